"""Calibration of probabilities, and how far they can be trusted.

Naive Bayes counts every word as fresh evidence, so its log-odds grow with the length of the page
and end at 0 or 1. How far they can be trusted grows much more slowly; both the size and the
growth are fitted here, on pages the model did not learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BOUNDS = ((-8.0, 8.0), (0.0, 1.5))  # of log(scale) and of the exponent


@dataclass(frozen=True, slots=True)
class Calibration:
    """Temper posteriors: Pr'(c|u) proportional to Pr(c|u)^s, s = min(1, scale n(u)^-exponent).

    The order of the classes of a page stays as it was, and a page never becomes surer.

    Attributes
    ----------
    scale, exponent : both positive or 0; an exponent of 1 makes the evidence that of the
        page's average word
    """

    scale: float
    exponent: float

    def __post_init__(self) -> None:
        if not (self.scale > 0.0 and self.exponent >= 0.0):
            raise ValueError(f"calibration with scale {self.scale} and exponent {self.exponent}")

    def __call__(
        self, log_posteriors: NDArray[np.float64], lengths: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Calibrate `log_posteriors` (n, n_classes) of pages of `lengths` (n,) known words."""
        power = self.scale * np.maximum(lengths, 1.0) ** -self.exponent
        return log_normalised(log_posteriors * np.minimum(power, 1.0)[:, None])


def log_normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row of exp(`weights`), finite (n, n_classes), to a sum of 1; returns the logs.

    `scipy.special.logsumexp` does more and costs more than judging a small page.
    """
    shifted = weights - weights.max(axis=1, keepdims=True)
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normalised


def fit_calibration(
    log_posteriors: NDArray[np.float64],
    lengths: NDArray[np.float64],
    truth: NDArray[np.integer],
) -> Calibration:
    """Fit scale and exponent by maximum likelihood on held-out pages.

    Parameters
    ----------
    log_posteriors : (n, n_classes), finite
    lengths : (n,), known words of each page
    truth : (n,), the true class of each page

    Notes
    -----
    The true class is asked for with probability 1 - 1/(n + 2) only, as in Platt's scaling: a
    handful of pages that are all judged right is no proof of certainty.
    """
    n, n_classes = log_posteriors.shape
    doubt = 1.0 / (n + 2)
    target = np.full((n, n_classes), doubt / max(n_classes - 1, 1))
    target[np.arange(n), truth] = 1.0 - doubt

    def loss(parameters: NDArray[np.float64]) -> float:
        candidate = Calibration(float(np.exp(parameters[0])), float(parameters[1]))
        return float(-(target * candidate(log_posteriors, lengths)).sum() / n)

    start = np.array([0.0, 0.8])
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, needed in training only

    found = minimize(loss, start, method="Nelder-Mead", bounds=_BOUNDS, tol=1e-6).x
    return Calibration(float(np.exp(found[0])), float(found[1]))


class Bin(NamedTuple):
    """Judgements whose confidence lies in [low, high).

    Attributes
    ----------
    low, high : bounds; the last bin includes 1
    pages : how many
    confidence : mean probability given, in [0, 1]
    frequency : share that was true, in [0, 1]
    """

    low: float
    high: float
    pages: int
    confidence: float
    frequency: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Measures of how far probabilities can be trusted.

    Attributes
    ----------
    brier : mean squared distance to what was true; 0 is best
    ece : expected calibration error, the mean of abs(confidence - frequency) over judgements
    bins : the reliability table, empty bins left out
    """

    brier: float
    ece: float
    bins: tuple[Bin, ...]


def reliability_of_classes(
    probabilities: NDArray[np.float64], truth: NDArray[np.integer]
) -> Reliability:
    """Measure class probabilities (n, n_classes) against the true class of each page.

    The Brier score is summed over the classes, so it lies in [0, 2]; the table is about the
    best class of each page.
    """
    from sklearn.metrics import brier_score_loss  # noqa: PLC0415 - slow to import

    classes = np.arange(probabilities.shape[1])
    brier = brier_score_loss(truth, probabilities, labels=classes, scale_by_half=False)
    right = probabilities.argmax(axis=1) == truth
    return _table(float(brier), probabilities.max(axis=1), right)


def reliability_of_relevance(
    relevance: NDArray[np.float64], truth: NDArray[np.bool_]
) -> Reliability:
    """Measure relevance (n,) against whether each page is on the topic; Brier in [0, 1]."""
    from sklearn.metrics import brier_score_loss  # noqa: PLC0415

    return _table(float(brier_score_loss(truth, relevance)), relevance, truth)


def _table(
    brier: float, confidence: NDArray[np.float64], true: NDArray[np.bool_], n_bins: int = 10
) -> Reliability:
    # scikit-learn's `calibration_curve` does not say how many judgements a bin holds
    number = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    bins = tuple(
        Bin(
            i / n_bins,
            (i + 1) / n_bins,
            int(member.sum()),
            float(confidence[member].mean()),
            float(true[member].mean()),
        )
        for i in range(n_bins)
        if (member := number == i).any()
    )
    gap = sum(each.pages * abs(each.confidence - each.frequency) for each in bins)
    return Reliability(brier, gap / len(confidence), bins)
