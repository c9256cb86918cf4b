"""What a strategy must be able to do for several workers to share a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from focuscrawl.strategies.protocol import LearningStrategy, Lesson, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.strategies.protocol import RecalledPage


@runtime_checkable
class Shareable(Strategy, Protocol):
    """A strategy whose links can be told to another worker, who gives them to `recall`.

    There, URLs have other numbers: `recall` is to go by ``page.targets``, and a memo must not
    depend on what numbers they were, but for their order in the page.
    """

    def parts(
        self, memo: bytes | None, groups: Sequence[NDArray[np.int64]]
    ) -> Iterable[bytes | None]:
        """Return what of the memo of a page belongs to each of some groups of its links.

        May run in any thread.

        Parameters
        ----------
        groups : int64 (k,) each, ascending. Every link is in one, all links to one URL in the same
        """
        ...

    def hear(self, url: int, relevance: float) -> None:
        """Take note of what came of another worker's fetch of a URL with links from here."""
        ...


@runtime_checkable
class SharedLearner(Shareable, LearningStrategy, Protocol):
    """A learner of which one trains for all.

    `hand_in`, `train` and `take_up` run in another thread, one at a time, and none of them before
    the lesson of the last `take_up` was adopted.
    """

    def recall_all(
        self, pages: Sequence[RecalledPage]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Do what `recall` does for each of some pages, at least one.

        Returns
        -------
        The distinct URLs and their scores by all of it: int64 (m,), float64 (m,)
        """
        ...

    def period(self, fetched: int) -> float:
        """Return how many fetches of all workers come between two lessons.

        Parameters
        ----------
        fetched : so many there were
        """
        ...

    def hand_in(self) -> tuple[bytes, int] | None:
        """Return what is to be learned from that came since the last call.

        Returns
        -------
        It, for `Pool.add`, and how many fetches it is of; None: nothing came
        """
        ...

    def pool(self) -> Any:
        """Return an empty pool: ``add(worker, data)``, ``len``, and ``options.memory``."""
        ...

    def train(self, pool: Any) -> tuple[bytes, int, dict[str, float]]:
        """Learn from the pool: state for `take_up`, number of instances, metrics."""
        ...

    def take_up(self, version: int, state: bytes, fetched: int) -> Lesson:
        """Make of what `train` returned, here or elsewhere, a lesson to `adopt`."""
        ...
