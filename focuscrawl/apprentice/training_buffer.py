"""The training buffer: the latest judged URLs, with the inputs they had before the fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class JudgedUrls(NamedTuple):
    """n URLs that were judged, in the order fetched.

    Attributes
    ----------
    urls : int64 (n,), their numbers
    inputs : float64 (n, k), their inputs when they were fetched
    predicted : float64 (n,), their scores when they were fetched
    """

    urls: Ints
    inputs: Floats
    predicted: Floats

    @classmethod
    def among(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return those of which a pack has the columns."""
        return cls(*(np.asarray(arrays[name]) for name in cls._fields))

    def latest(self, n: int) -> JudgedUrls:
        """Return the last `n` of them, or all there are."""
        first = max(0, len(self.urls) - n)
        return JudgedUrls(self.urls[first:], self.inputs[first:], self.predicted[first:])


class TrainingBuffer:
    """The latest judged URLs.

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
    def judged(self) -> JudgedUrls:
        """Those kept; views that stay as they are."""
        inputs = self._inputs.data.reshape(-1, self._width)
        return JudgedUrls(self._urls.data, inputs, self._predicted.data).latest(self._memory)

    def add(self, judged: JudgedUrls) -> None:
        """Append some; what is too old is forgotten."""
        if len(self._urls) >= 2 * self._memory + 1024:
            kept = self.judged
            self._begin()  # anew: somebody may be reading the old ones
            self._extend(kept)
        self._extend(judged)
        self.ever += len(judged.urls)

    def _extend(self, judged: JudgedUrls) -> None:
        self._urls.extend(judged.urls)
        self._inputs.extend(judged.inputs.ravel())
        self._predicted.extend(judged.predicted)
