"""What several apprentices have judged, for the one of them that trains."""

from __future__ import annotations

import copy
import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.learners.matrix import Instances
from focuscrawl.apprentice.model import fresh_learner
from focuscrawl.apprentice.serialization import pack_arrays, part_of
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.apprentice.validation import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.protocol import Learner
    from focuscrawl.apprentice.options import Options


class Judgements(NamedTuple):
    """n judged URLs, as one apprentice hands them in.

    Attributes
    ----------
    indices, lengths, values, dense : the m instances made of them
    owner : int32 (m,), which of the n each is of
    y, predicted : float64 (n,), R(v), graded if it is, and the score it was fetched with
    window : float64 (w,), the present values of the latest w URLs this apprentice has handed in,
        these among them: what a page opened shows later
    """

    indices: NDArray[np.int32]
    lengths: NDArray[np.int32]
    values: NDArray[np.float32]
    dense: NDArray[np.float64]
    owner: NDArray[np.int32]
    y: NDArray[np.float64]
    predicted: NDArray[np.float64]
    window: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """Pack them."""
        return pack_arrays(**self._asdict())

    @classmethod
    def from_bytes(cls, data: bytes) -> Judgements:
        """Unpack what `to_bytes` has packed."""
        with np.load(io.BytesIO(data)) as arrays:
            return cls(**{name: arrays[name] for name in cls._fields})


class Pool:
    """The latest judged URLs of all apprentices that share a crawl, in the order handed in.

    Parameters
    ----------
    options : those of each of the apprentices; `memory` bounds what is kept

    Attributes
    ----------
    new : URLs that came since the last lesson
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.new = 0
        self._parts: list[tuple[int, Judgements, NDArray[np.float64]]] = []

    def __len__(self) -> int:
        return sum(len(part.y) for _, part, _ in self._parts)

    def add(self, worker: int, data: bytes) -> None:
        """Take in `Judgements` that a worker has handed in."""
        part = Judgements.from_bytes(data)
        self._parts.append((worker, part, np.zeros(len(part.y))))
        self.new += len(part.y)
        left = part.window
        for owner, _, value in reversed(self._parts):
            if owner == worker:
                n = min(len(left), len(value))
                value[len(value) - n :] = left[len(left) - n :]
                left = left[: len(left) - n]
        while len(self) - len(self._parts[0][1].y) >= self.options.memory:
            self._parts.pop(0)

    def fit(self, learner: Learner) -> tuple[Learner, int, dict[str, float]]:
        """Learn from the pool; the learner given stays as it is.

        Returns
        -------
        A learner, the number of instances, and how well they had been predicted
        """
        parts: list[Judgements] = []
        values: list[NDArray[np.float64]] = []
        kept = self.new if learner.remembers else len(self)
        for _, part, value in reversed(self._parts):
            if kept <= 0:
                break
            kept -= len(part.y)
            parts.insert(0, part)
            values.insert(0, value[part.owner])
        learner = copy.copy(learner)
        instances = _together(parts)
        learner.partial_fit(instances, np.concatenate(values))
        self.new = 0
        metrics = validate(
            np.concatenate([part.predicted for part in parts]),
            np.concatenate([part.y for part in parts]),
        )
        return learner, len(instances), metrics


def _together(parts: list[Judgements]) -> Instances:
    return Instances(
        SparseRows(
            np.concatenate([part.indices for part in parts]),
            pointers(np.concatenate([part.lengths for part in parts])),
        ),
        np.concatenate([part.values for part in parts]).astype(np.float64),
        np.concatenate([part.dense for part in parts]),
    )


def learner_of(state: bytes, options: Options) -> Learner:
    """Unpack a learner that was packed by `pack`."""
    learner = fresh_learner(options)
    with np.load(io.BytesIO(state)) as arrays:
        packed: Mapping[str, NDArray[np.generic]] = arrays
        learner.set_state(part_of(packed, "m_"))
    return learner
