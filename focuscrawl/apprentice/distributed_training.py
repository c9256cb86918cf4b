"""Training where several workers share a crawl: one learns from what all have judged."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.instances import make_instances
from focuscrawl.apprentice.learners.matrix import Instances
from focuscrawl.apprentice.lesson_quality import validate
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.apprentice.serialization import pack, part_of
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.foundation.packed_arrays import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.apprentice import Apprentice
    from focuscrawl.apprentice.learners.base import Learner
    from focuscrawl.apprentice.lesson import ApprenticeLesson
    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Floats


class JudgedBatch(NamedTuple):
    """n judged URLs as instances, as one apprentice hands them in.

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
    dense: Floats
    owner: NDArray[np.int32]
    y: Floats
    predicted: Floats
    window: Floats

    def to_bytes(self) -> bytes:
        """Pack them."""
        return pack_arrays(self._asdict(), compressed=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> JudgedBatch:
        """Unpack what `to_bytes` has packed."""
        arrays = unpack_arrays(data)
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
        self._parts: list[tuple[int, JudgedBatch, Floats]] = []

    def __len__(self) -> int:
        return sum(len(part.y) for _, part, _ in self._parts)

    def add(self, worker: int, data: bytes) -> None:
        """Take in `JudgedBatch` that a worker has handed in."""
        part = JudgedBatch.from_bytes(data)
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
        parts: list[JudgedBatch] = []
        values: list[Floats] = []
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


def _together(parts: list[JudgedBatch]) -> Instances:
    return Instances(
        SparseRows(
            np.concatenate([part.indices for part in parts]),
            pointers(np.concatenate([part.lengths for part in parts])),
        ),
        np.concatenate([part.values for part in parts]).astype(np.float64),
        np.concatenate([part.dense for part in parts]),
    )


class SharedTraining:
    """An apprentice's part in training: it hands in what it judged, may train, takes up models.

    All three may run in another thread, one at a time, and not between `take_up` and the
    apprentice's `adopt`.
    """

    def __init__(self, apprentice: Apprentice) -> None:
        self._apprentice = apprentice
        self._handed_in = 0  # URLs ever judged when it last handed in

    def hand_in(self) -> JudgedBatch | None:
        """Return what was judged since the last call; None if nothing was."""
        apprentice, memory = self._apprentice, self._apprentice.memory
        with apprentice.lock:
            buffer, n_links = memory.buffer, len(memory.table)
            new = min(buffer.ever - self._handed_in, len(buffer))
            self._handed_in = buffer.ever
            judged = buffer.judged
            own, window = memory.labels.of(judged.urls, memory.table.y.data[judged.urls])
        if not new:
            return None
        fresh = judged.latest(new)
        instances, owner = make_instances(
            memory.table,
            n_links,
            fresh.urls,
            fresh.inputs,
            unit_length=apprentice.scorer.learner.unit_length,
            each_link=apprentice.options.evidence == "first",
            most=apprentice.options.most_links_into,
        )
        return JudgedBatch(
            indices=instances.rows.indices,
            lengths=instances.rows.lengths.astype(np.int32),
            values=instances.values.astype(np.float32),
            dense=instances.dense,
            owner=owner.astype(np.int32),
            y=own[-new:],
            predicted=fresh.predicted,
            window=window,
        )

    def train(self, pool: Pool) -> tuple[bytes, int, dict[str, float]]:
        """Learn for all from what all have judged; changes nothing here, see `take_up`.

        Returns
        -------
        The learner, packed; instances; metrics
        """
        learner, instances, metrics = pool.fit(self._apprentice.scorer.learner)
        return pack(learner), instances, metrics

    def take_up(self, version: int, state: bytes) -> ApprenticeLesson:
        """Score all that waits here by a learner that another apprentice has trained.

        Parameters
        ----------
        version : of the model
        state : as `train` returned it
        """
        learner = new_learner(self._apprentice.options)
        learner.set_state(part_of(unpack_arrays(state), "m_"))
        return self._apprentice.lesson_of(learner, version)
