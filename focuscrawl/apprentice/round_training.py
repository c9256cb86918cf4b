"""Training in rounds: one process learns from what was judged in all buckets of hosts."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.apprentice.instances import make_instances
from focuscrawl.apprentice.learners.matrix import Instances
from focuscrawl.apprentice.lesson_quality import validate
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.apprentice.serialization import part_of
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
    """n judged URLs of a bucket as instances.

    Attributes
    ----------
    indices, lengths, values, dense : the m instances made of them
    owner : int32 (m,), which of the n each is of
    y, predicted, value : float64 (n,), R(v), graded if it is; the score it was fetched with; what
        is learned of it, by what its page has opened, too
    """

    indices: NDArray[np.int32]
    lengths: NDArray[np.int32]
    values: NDArray[np.float32]
    dense: Floats
    owner: NDArray[np.int32]
    y: Floats
    predicted: Floats
    value: Floats

    @classmethod
    def of(cls, apprentice: Apprentice) -> Self | None:
        """Return what an apprentice has judged; None: nothing."""
        memory = apprentice.memory
        with apprentice.lock:
            n_links, judged = len(memory.table), memory.buffer.judged
            own, value = memory.labels.of(judged.urls, memory.table.y.data[judged.urls])
        if not len(judged.urls):
            return None
        instances, owner = make_instances(
            memory.table,
            n_links,
            judged.urls,
            judged.inputs,
            unit_length=apprentice.scorer.learner.unit_length,
            each_link=apprentice.options.evidence == "first",
            most=apprentice.options.most_links_into,
        )
        return cls(
            indices=instances.rows.indices,
            lengths=instances.rows.lengths.astype(np.int32),
            values=instances.values.astype(np.float32),
            dense=instances.dense,
            owner=owner.astype(np.int32),
            y=own,
            predicted=judged.predicted,
            value=value,
        )

    def to_bytes(self) -> bytes:
        """Pack them."""
        return pack_arrays(self._asdict(), compressed=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Unpack what `to_bytes` has packed."""
        arrays = unpack_arrays(data)
        return cls(**{name: arrays[name] for name in cls._fields})


class Pool:
    """The latest judged URLs of all buckets, in the order added.

    Parameters
    ----------
    options : of the apprentice; `memory` bounds what is kept
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._batches: list[JudgedBatch] = []

    def __len__(self) -> int:
        return sum(len(batch.y) for batch in self._batches)

    def add(self, data: bytes) -> None:
        """Take in a `JudgedBatch`, packed."""
        self._batches.append(JudgedBatch.from_bytes(data))
        while len(self) - len(self._batches[0].y) >= self.options.memory:
            self._batches.pop(0)

    def fit(self, learner: Learner) -> tuple[Learner, int, dict[str, float]]:
        """Learn from the pool; the learner given stays as it is.

        Returns
        -------
        A learner, the number of instances, and how well they had been predicted
        """
        batches = self._batches
        learner = copy.copy(learner)
        instances = _together(batches)
        learner.partial_fit(
            instances, np.concatenate([batch.value[batch.owner] for batch in batches])
        )
        metrics = validate(
            np.concatenate([batch.predicted for batch in batches]),
            np.concatenate([batch.y for batch in batches]),
        )
        return learner, len(instances), metrics


def _together(batches: list[JudgedBatch]) -> Instances:
    return Instances(
        SparseRows(
            np.concatenate([batch.indices for batch in batches]),
            pointers(np.concatenate([batch.lengths for batch in batches])),
        ),
        np.concatenate([batch.values for batch in batches]).astype(np.float64),
        np.concatenate([batch.dense for batch in batches]),
    )


def lesson_of(apprentice: Apprentice, version: int, state: bytes) -> ApprenticeLesson:
    """Score all that waits here by a learner that was trained elsewhere.

    Parameters
    ----------
    version : of the model
    state : the learner, packed
    """
    learner = new_learner(apprentice.options)
    learner.set_state(part_of(unpack_arrays(state), "m_"))
    return apprentice.lesson_of(learner, version)
