"""What a strategy is given and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """What a strategy may ask at its start.

    Attributes
    ----------
    critic : with the user's focus; its `marked` leaves and class names
    random_state : seed of everything random
    web : the recorded web of a replay, None in a live crawl
    topics : paths of the user's focus
    knowledge : what earlier crawls have learned of the topic, None in a first one
    """

    critic: Critic
    random_state: int
    web: Web | None
    topics: tuple[str, ...] = ()
    knowledge: Knowledge | None = None


@dataclass(frozen=True, slots=True)
class JudgedPage:
    """A fetched page u with the critic's verdict, and where its links lead.

    Attributes
    ----------
    view : the page
    url : its number
    seq : its place in the crawl, from 1
    depth : clicks from a seed
    relevance : R(u) in [0, 1]
    probabilities : float64 (n_classes,), posteriors of the critic's classes, or None
    links : int64 (n,), which of `view.links` lead to followable URLs, ascending
    targets : int64 (n,), the numbers of the URLs v they lead to
    referrer : number of the URL at which u was first found, a page or a redirect; None: nowhere
    """

    view: PageView
    url: int
    seq: int
    depth: int
    relevance: float
    probabilities: NDArray[np.float64] | None
    links: NDArray[np.int64]
    targets: NDArray[np.int64]
    referrer: int | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a strategy makes of a page's links.

    Attributes
    ----------
    link_scores : float64 (n,), one for each of ``page.links``, higher is sooner; ``-inf``: this
        link is not followed
    urls, scores : int64 (m,) and float64 (m,), the distinct URLs whose score is new or changed
        by these links, and their scores; ``-inf``: the URL is not to be fetched, for now
    memo : what the strategy wants back of these links when the crawl is resumed
    """

    link_scores: NDArray[np.float64]
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]
    memo: bytes | None = None


@dataclass(frozen=True, slots=True)
class RecalledPage:
    """A page of an earlier run, as the store has kept it.

    Attributes
    ----------
    url, seq, relevance : as in `JudgedPage`
    targets : int64 (n,), the numbers of the URLs its links lead to
    link_scores : float64 (n,), as the strategy gave them
    memo : as the strategy gave it
    """

    url: int
    seq: int
    relevance: float
    targets: NDArray[np.int64]
    link_scores: NDArray[np.float64]
    memo: bytes | None


class Strategy(Protocol):
    """Gives every link and every URL its score; made once a crawl from a `StrategyContext`.

    Further parameters of ``__init__`` are the strategy's options; they need defaults.
    """

    def __init__(self, context: StrategyContext) -> None: ...

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to."""
        ...

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of what came of a fetch, whatever it was; before `expand` of its page.

        Parameters
        ----------
        url : what was fetched
        relevance : 0 for redirects, errors, duplicates and what is no page (METHODS 1)
        duplicate_of : the earlier page with the same content, None if there is none
        """
        ...

    def recall(self, page: RecalledPage) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Take in again, in a resumed crawl, the links that `expand` has seen.

        Calls of `recall` and `observe` come in the order of the earlier run's `expand` and
        `observe`.

        Returns
        -------
        The URLs and scores that `expand` returned: int64 (m,), float64 (m,)
        """
        ...


@dataclass(slots=True)
class Lesson:
    """What a learner has made of its instances; see `LearningStrategy.learn`.

    Attributes
    ----------
    version : of the model, one more than before
    trained_at_seq : fetches observed when learning began
    instances : links (u,v) with both ends fetched, learned from so far
    metrics : what is known of the model's quality; written to the store as JSON
    state : what `LearningStrategy.load` needs to go on from here; complete once it is adopted
    urls, scores : int64 (m,) and float64 (m,), new scores of all URLs that waited
    model : the learner's own, for `LearningStrategy.adopt`
    """

    version: int
    trained_at_seq: int
    instances: int
    metrics: Mapping[str, float | list[int]]
    state: bytes
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]
    model: Any


@runtime_checkable
class LearningStrategy(Strategy, Protocol):
    """A strategy whose scores change with what it learns while the crawl runs.

    Attributes
    ----------
    model_version : of the model that scores links now; 0 before the first lesson

    A learner may have another attribute, ``lag``: how many fetches a replay may go on while a
    lesson is learned; exactly so many later it is adopted. Without it a replay waits.
    """

    model_version: int

    def lesson_due(self) -> bool:
        """Tell whether enough was observed since the last lesson.

        If so, the lesson begins at once, and is to be about what is known now.
        """
        ...

    def learn(self) -> Lesson:
        """Learn from all that was observed; runs in another thread, never twice at a time.

        `expand` and `observe` may be called meanwhile. They go on with the model as it is.
        """
        ...

    def adopt(self, lesson: Lesson) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Score with the lesson's model from now on.

        Returns
        -------
        int64 (m,), float64 (m,): URLs with links found while the lesson was learned, and their
        scores by the new model
        """
        ...

    def load(self, state: bytes) -> int | None:
        """Take up the model of the last lesson; comes before every `recall` and `observe`.

        Returns how many fetches there were when it was adopted; None: as many as when it began.

        What `recall` returns does not matter until those of the lesson's pages are through.
        """
        ...

    def rescore(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the scores of all URLs that have links: int64 (m,), float64 (m,).

        Asked in a resumed crawl when all that came before the last lesson was adopted has been
        taken in again.
        """
        ...


@runtime_checkable
class Appraiser(Strategy, Protocol):
    """A strategy that knows more of what a page was worth than its relevance says."""

    def worth(self, url: int, relevance: float) -> float:
        """Return what the page was worth, in [0, 1]; asked after `expand`, or `recall`.

        A host or a pattern of URLs earns further fetches by pages worth more than 1/2
        (`focuscrawl.crawl.parts.traps`); for other strategies these are the relevant ones.

        Parameters
        ----------
        relevance : R(u), as for `Strategy.observe`
        """
        ...
