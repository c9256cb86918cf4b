"""How far probabilities can be trusted: Brier score, calibration error, reliability table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
