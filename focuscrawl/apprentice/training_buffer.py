"""The training buffer: the latest judged URLs, with the inputs they had before the fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TrainingBuffer:
    """The latest judged URLs, in the order fetched.

    Parameters
    ----------
    memory : how many are kept
    width : k, inputs of each

    Attributes
    ----------
    ever : how many there were, those forgotten included
    """

    def __init__(self, memory: int, width: int) -> None:
        self.ever = 0
        self._memory = memory
        self._width = width
        self._begin()

    def _begin(self) -> None:
        self._urls = GrowingArray(np.int64)
        self._inputs = GrowingArray(np.float64)
        self._predicted = GrowingArray(np.float64)

    def __len__(self) -> int:
        return min(len(self._urls), self._memory)

    @property
    def urls(self) -> NDArray[np.int64]:
        """Their numbers, int64 (n,); a view that stays as it is."""
        return self._urls.data[len(self._urls) - len(self) :]

    @property
    def inputs(self) -> NDArray[np.float64]:
        """Their inputs when they were fetched, float64 (n, k); a view that stays as it is."""
        return self._inputs.data.reshape(-1, self._width)[len(self._urls) - len(self) :]

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Their scores when they were fetched, float64 (n,); a view that stays as it is."""
        return self._predicted.data[len(self._urls) - len(self) :]

    def add(
        self,
        urls: NDArray[np.int64],
        inputs: NDArray[np.float64],
        predicted: NDArray[np.float64],
    ) -> None:
        """Append URLs (m,), inputs (m, k) and scores (m,); what is too old is forgotten."""
        if len(self._urls) >= 2 * self._memory + 1024:
            latest = self.urls, self.inputs, self.predicted
            self._begin()  # anew: somebody may be reading the old ones
            self._extend(*latest)
        self._extend(urls, inputs, predicted)
        self.ever += len(urls)

    def _extend(
        self,
        urls: NDArray[np.int64],
        inputs: NDArray[np.float64],
        predicted: NDArray[np.float64],
    ) -> None:
        self._urls.extend(urls)
        self._inputs.extend(inputs.ravel())
        self._predicted.extend(predicted)
