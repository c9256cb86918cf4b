"""How good predictions were, made before their outcome was known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def validate(predicted: NDArray[np.float64], y: NDArray[np.float64]) -> dict[str, float]:
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


def auc(scores: NDArray[np.float64], high: NDArray[np.bool_]) -> float:
    """Return the chance that a high one scores above a low one, ties half; 0.5 without both."""
    n_high = int(high.sum())
    n_low = len(high) - n_high
    if not n_high or not n_low:
        return 0.5
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # of equals, the mean of theirs
    return float((ranks[high].sum() - n_high * (n_high + 1) / 2) / (n_high * n_low))
