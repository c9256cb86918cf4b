"""The base of all strategies, the messages between crawl and strategy, checks of options."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web


#: distinct URLs, by number, and their scores: int64 (m,), float64 (m,)
Scores = tuple["Ints", "Floats"]
_MOST = 1_000_000_000


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
    seq, depth : its place in the crawl, from 1; clicks from a seed
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
    probabilities: Floats | None
    links: Ints
    targets: Ints
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
    memo : bytes for `restore_page` of these links when the crawl is resumed
    """

    link_scores: Floats
    urls: Ints
    scores: Floats
    memo: bytes | None = None


@dataclass(frozen=True, slots=True)
class StoredPage:
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
    targets: Ints
    link_scores: Floats
    memo: bytes | None


@dataclass(slots=True)
class ModelUpdate:
    """A new model, and the scores that it gives to all URLs that wait; see `Strategy.learn`.

    Attributes
    ----------
    version : of the model, one more than before
    trained_at_seq : fetches observed when learning started
    instances : links (u,v) with both ends fetched, learned from so far
    metrics : what is known of the model's quality; written to the store as JSON
    state : what `Strategy.load` needs to resume here; complete once it is adopted
    urls, scores : int64 (m,) and float64 (m,), new scores of all URLs that waited
    model : the strategy's own, for `Strategy.adopt`
    """

    version: int
    trained_at_seq: int
    instances: int
    metrics: Mapping[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    model: Any


def check_number(option: str, value: object, least: float, most: float = math.inf) -> None:
    """Raise `UserError` unless `value` is a number from `least` to `most`.

    Parameters
    ----------
    option : how the message names it: ``pagerank: damping``
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or math.isinf(value):  # type: ignore
        limits = f"from {least} up" if most == math.inf else f"from {least} to {most}"
        raise UserError(f"strategy {option} must be a number {limits}, not {value!r}")


def check_count(option: str, value: object, least: int) -> None:
    """Raise `UserError` unless `value` is a whole number from `least` to a thousand million."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise UserError(
            f"strategy {option} must be a whole number, {least} or more, not {value!r}"
        )


def is_list_of_texts(value: object) -> bool:
    """Tell whether an option is a list of texts."""
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


class Strategy(ABC):
    """Gives every link and every URL its score; made once a crawl from a `StrategyContext`.

    A subclass implements `expand` and `restore_page`. A strategy that learns sets `learns` and
    also implements `is_training_due`, `learn`, `adopt`, `load` and `rescore`. Parameters of
    ``__init__`` after the first are the strategy's options; options need defaults.

    Attributes
    ----------
    learns : its scores change with what it learns while the crawl runs
    in_rounds : it can order a crawl in rounds (`focuscrawl.rounds`), where the links of a page are
        recalled by another process. There, URLs have other numbers: `restore_page` goes by
        ``page.targets``, and a memo must not depend on the numbers, but for their order in the
        page. One that also learns implements `judged`, `pool`, `train` and `load_trained`
    model_version : of the model that scores links now; 0 before the first lesson
    expects_relevance : its scores are the expected relevance of a URL, in [0, 1]; a live crawl
        then holds back what is far below links that wait for their hosts
        (`focuscrawl.frontier.patience`)
    self_contained : set from outside, before the first page: a memo must not need those of
        earlier pages
    lag : a lesson is adopted exactly so many fetches of a replay after it started; with 0 a replay
        waits
    """

    learns: bool = False
    in_rounds: bool = False
    expects_relevance: bool = False
    self_contained: bool = False
    model_version: int = 0
    lag: int = 0

    def __init__(self, context: StrategyContext) -> None:  # noqa: B027 - nothing has to be kept
        """Make the strategy of a new or resumed crawl."""

    @abstractmethod
    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to.

        Runs in another thread for a long page of the live web; meanwhile no method is called but
        `learn` and `parts`.
        """

    @abstractmethod
    def restore_page(self, page: StoredPage) -> Scores:
        """Take in again, in a resumed crawl, the links that `expand` has seen, in the same order.

        Returns
        -------
        The URLs and scores that `expand` returned
        """

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:  # noqa: B027
        """Take in the outcome of a fetch, whatever it was; before `expand` of its page.

        Parameters
        ----------
        url : what was fetched
        relevance : 0 for redirects, errors, duplicates and what is no page (methods 1)
        duplicate_of : the earlier page with the same content, None if there is none
        """

    def page_value(self, url: int, relevance: float) -> float:
        """Return the value of a fetched page in [0, 1], by default its relevance.

        A host or a pattern of URLs earns further fetches by pages worth more than 1/2
        (`focuscrawl.crawl.traps`).
        """
        return relevance

    def score_after_failure(self, url: int, score: float) -> float:
        """Return the new score of a URL whose fetch failed with this `score`, and waits again."""
        return score

    # -- those that learn ------------------------------------------------------------------

    def is_training_due(self) -> bool:
        """Tell whether to start a lesson, which is about what is known now."""
        return False

    def learn(self) -> ModelUpdate:
        """Learn from all that was observed; runs in another thread, never twice at a time.

        `expand` and `observe` may be called meanwhile, and use the model as it is.
        """
        raise NotImplementedError

    def adopt(self, update: ModelUpdate) -> Scores:
        """Score with the lesson's model from now on.

        Returns
        -------
        URLs with links found while the lesson was learned, and their scores by the new model
        """
        raise NotImplementedError

    def load(self, state: bytes) -> int | None:
        """Load the model of the last lesson; comes before every `restore_page` and `observe`.

        Returns how many fetches there were when it was adopted; None: as many as when it started.
        What `restore_page` returns does not matter before that.
        """
        raise NotImplementedError

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links.

        Called in a resumed crawl after the recall of what came before the last lesson's adoption.
        """
        return no_scores()

    # -- in rounds, with a new strategy for each bucket of hosts in each round -------------------

    def split_memo(self, memo: bytes | None, groups: Sequence[Ints]) -> Iterable[bytes | None]:
        """Split the memo of a page by groups of its links; by default it belongs to all.

        May run in any thread.

        Parameters
        ----------
        groups : int64 (k,) each, ascending. Every link is in one, all links to one URL in the same
        """
        return [memo] * len(groups)

    def make_self_contained(self, memo: bytes | None, urls: Sequence[str]) -> bytes | None:
        """Return the memo as if the strategy were `self_contained`; `urls` are those linked to."""
        return memo

    def join_memos(self, parts: Sequence[StoredPage]) -> bytes | None:
        """Return the memo of a page whose links are those of some `parts`, in their order."""
        return parts[0].memo

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:  # noqa: B027
        """Take in the outcome of a fetch of an earlier round, of a URL with links from here."""

    def restore_pages(self, pages: Sequence[StoredPage]) -> Scores:
        """Recall some pages, at least one; return the URLs and their scores by all of them."""
        return merge_scores([self.restore_page(page) for page in pages])

    def export_judged(self) -> bytes | None:
        """Return what this bucket adds to the `pool` of all buckets; None: nothing."""
        raise NotImplementedError

    def new_pool(self) -> Any:
        """Return an empty pool: ``add(data)``, ``len``, and ``options.memory``."""
        raise NotImplementedError

    def train_on_pool(self, pool: Any) -> tuple[bytes, int, dict[str, float]]:
        """Train on the pool; return a state for `load_trained`, the instances and the metrics."""
        raise NotImplementedError

    def load_trained(self, version: int, state: bytes) -> ModelUpdate:
        """Return a lesson to `adopt`, from the state that `train` returned anywhere."""
        raise NotImplementedError

    def export_outcomes(self) -> bytes | None:
        """Return what else is known of fetches besides what is recalled; None: nothing."""
        return None

    def load_outcomes(self, outcomes: bytes) -> None:
        """Load what `outcomes` returned, in place of all that was observed."""
        raise NotImplementedError


def no_scores() -> Scores:
    """Return the scores of no URL."""
    return np.zeros(0, np.int64), np.zeros(0)


def merge_scores(parts: Sequence[Scores]) -> Scores:
    """Join scores given one after another; of a URL that has several the last counts."""
    if len(parts) == 1:
        return parts[0]
    urls = np.concatenate([urls for urls, _ in parts])[::-1]
    distinct, at = np.unique(urls, return_index=True)
    return distinct, np.concatenate([scores for _, scores in parts])[::-1][at]
