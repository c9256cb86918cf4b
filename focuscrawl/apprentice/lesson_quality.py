"""What is measured of a lesson: how good predictions were, and how far it moved the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats

BINS = 10  # of the histograms of `drift`


def validate(predicted: Floats, y: Floats) -> dict[str, float]:
    """Compare predictions (n,) with the relevance (n,) that the fetches showed.

    Returns
    -------
    ``auc`` (0.5 where all outcomes are alike), ``log_loss``, ``brier``, ``predicted`` and
    ``relevance`` (their means: the same for a calibrated apprentice), ``judged`` (n); empty
    for n = 0
    """
    if not len(y):
        return {}
    p = np.clip(predicted, 1e-6, 1.0 - 1e-6)
    return {
        "auc": auc(predicted, y > 0.5),
        "log_loss": float(-np.mean(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))),
        "brier": float(np.mean((predicted - y) ** 2)),
        "predicted": float(predicted.mean()),
        "relevance": float(y.mean()),
        "judged": float(len(y)),
    }


def auc(scores: Floats, high: Bools) -> float:
    """Return the chance that a high one scores above a low one, ties half; 0.5 without both."""
    n_high = int(high.sum())
    n_low = len(high) - n_high
    if not n_high or not n_low:
        return 0.5
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # of equals, the mean of theirs
    return float((ranks[high].sum() - n_high * (n_high + 1) / 2) / (n_high * n_low))


def drift(before: Floats, after: Floats) -> dict[str, float | list[int]]:
    """Compare the scores of n waiting URLs before and after a lesson, both in [0, 1].

    Returns
    -------
    ``drift``: mean |after - before| [A02 figure 13]; ``waiting``: n; ``histogram_before``,
    ``histogram_after``: how many scores are in each of `BINS` equal parts of [0, 1]; empty for
    n = 0
    """
    if not len(before):
        return {}
    edges = np.linspace(0.0, 1.0, BINS + 1)
    return {
        "drift": float(np.abs(after - before).mean()),
        "waiting": float(len(before)),
        "histogram_before": np.histogram(before, edges)[0].tolist(),
        "histogram_after": np.histogram(after, edges)[0].tolist(),
    }
