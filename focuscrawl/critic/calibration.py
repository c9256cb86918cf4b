"""Calibration of class probabilities, and measures of their reliability.

Naive Bayes counts every word as independent evidence, so its log-odds of long pages are too
extreme. Calibration shrinks the log-odds of a page by a factor that depends on the length of the
page and is fitted on held-out pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools, Floats


_BOUNDS = ((-8.0, 8.0), (0.0, 1.5))  # of log(scale) and of the exponent


@dataclass(frozen=True, slots=True)
class Calibration:
    """Raises the class probabilities of a page to a power s <= 1, and normalises them.

    For a page with n known words, s = min(1, `scale` * n^-`exponent`). Calibration keeps the order
    of the classes of a page, and never makes a judgement more extreme.

    Attributes
    ----------
    scale : positive
    exponent : 0 or positive; 1 averages the evidence over the words of the page
    """

    scale: float
    exponent: float

    def __post_init__(self) -> None:
        if not (self.scale > 0.0 and self.exponent >= 0.0):
            raise ValueError(f"calibration with scale {self.scale} and exponent {self.exponent}")

    def __call__(self, log_posteriors: Floats, lengths: Floats) -> Floats:
        """Calibrate `log_posteriors` (n, n_classes) of pages with `lengths` (n,) known words."""
        power = self.scale * np.maximum(lengths, 1.0) ** -self.exponent
        return log_normalised(log_posteriors * np.minimum(power, 1.0)[:, None])


def log_normalised(weights: Floats) -> Floats:
    """Return `weights` (n, n_classes) normalised so that the exponentials of each row sum to 1.

    The function `scipy.special.logsumexp` would take longer than judging a small page.
    """
    shifted = weights - weights.max(axis=1, keepdims=True)
    normalised: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normalised


def fit_calibration(
    log_posteriors: Floats, lengths: Floats, truth: NDArray[np.integer]
) -> Calibration:
    """Fit the calibration's scale and exponent by maximum likelihood on held-out pages.

    Parameters
    ----------
    log_posteriors : (n_pages, n_classes), finite
    lengths : number of known words of each page, (n_pages,)
    truth : true classes, (n_pages,)

    Notes
    -----
    The target probability of the true class is 1 - 1/(n + 2), as in Platt's scaling. So a few
    correct judgements do not lead to probabilities of 1.
    """
    n, n_classes = log_posteriors.shape
    doubt = 1.0 / (n + 2)
    target = np.full((n, n_classes), doubt / max(n_classes - 1, 1))
    target[np.arange(n), truth] = 1.0 - doubt

    def loss(parameters: Floats) -> float:
        candidate = Calibration(float(np.exp(parameters[0])), float(parameters[1]))
        return float(-(target * candidate(log_posteriors, lengths)).sum() / n)

    start = np.array([0.0, 0.8])
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, needed in training only

    found = minimize(loss, start, method="Nelder-Mead", bounds=_BOUNDS, tol=1e-6).x
    return Calibration(float(np.exp(found[0])), float(found[1]))


class Bin(NamedTuple):
    """Judgements whose confidence is at least `low` and below `high`; the last bin includes 1.

    Attributes
    ----------
    pages : number of judgements
    confidence : mean predicted probability, in [0, 1]
    frequency : share of true judgements, in [0, 1]
    """

    low: float
    high: float
    pages: int
    confidence: float
    frequency: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Measures of how reliable predicted probabilities are.

    Attributes
    ----------
    brier : Brier score, the mean squared distance from the truth; 0 is best
    ece : expected calibration error, the mean of abs(confidence - frequency) over judgements
    bins : the reliability table without empty bins
    """

    brier: float
    ece: float
    bins: tuple[Bin, ...]


def reliability_of_classes(probabilities: Floats, truth: NDArray[np.integer]) -> Reliability:
    """Measure predicted class probabilities (n_pages, n_classes) against the true classes.

    The Brier score is the sum of the squared errors over the classes, in [0, 2]. The table of
    reliability uses the most probable class of each page.
    """
    from sklearn.metrics import brier_score_loss  # noqa: PLC0415 - slow to import

    classes = np.arange(probabilities.shape[1])
    brier = brier_score_loss(truth, probabilities, labels=classes, scale_by_half=False)
    right = probabilities.argmax(axis=1) == truth
    return _table(float(brier), probabilities.max(axis=1), right)


def reliability_of_relevance(relevance: Floats, truth: Bools) -> Reliability:
    """Measure predicted relevance (n_pages,) against labels; the Brier score is in [0, 1]."""
    from sklearn.metrics import brier_score_loss  # noqa: PLC0415

    return _table(float(brier_score_loss(truth, relevance)), relevance, truth)


def _table(brier: float, confidence: Floats, true: Bools, n_bins: int = 10) -> Reliability:
    # scikit-learn's `calibration_curve` does not return the number of judgements of a bin
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
