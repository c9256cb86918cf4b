"""From log-weights to log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def log_normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row of exp(`weights`), finite (n, n_classes), to a sum of 1; returns the logs.

    `scipy.special.logsumexp` does more and costs more than judging a small page.
    """
    shifted = weights - weights.max(axis=1, keepdims=True)
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normalised
