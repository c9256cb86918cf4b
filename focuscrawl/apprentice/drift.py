"""How far a lesson moved the scores of what waits [A02 figure 13]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 10


def drift(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, float | list[int]]:
    """Compare the scores of n waiting URLs before and after a lesson, both in [0, 1].

    Returns
    -------
    ``drift``: mean |after - before|; ``waiting``: n; ``histogram_before``, ``histogram_after``:
    how many scores are in each of `BINS` equal parts of [0, 1]; empty for n = 0
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
