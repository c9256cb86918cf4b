"""Calibration: naive Bayes posteriors tempered to probabilities that can be read as such.

Naive Bayes counts every word as fresh evidence, so its log-odds grow with the length of the
page and end at 0 or 1. How far they can be trusted grows much more slowly; both the size and
the growth are fitted here, on pages the model did not learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
