"""The base class of strategies, their data, and finding strategies by name."""

from __future__ import annotations

import difflib
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from focuscrawl.apprentice.instances import TrainingSet
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web

#: distinct URL ids, int64 (m,), and their scores, float64 (m,)
Scores = tuple["Ints", "Floats"]
_MAX_COUNT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """The parts of a crawl that the constructor of a strategy can use.

    Attributes
    ----------
    critic : the critic, with the classes that the user marked as topic
    random_state : seed of random numbers
    web : the recording (saved pages) that a replay crawls; None in a live crawl
    topics : topic paths that the user chose
    knowledge : knowledge of the topic from earlier crawls; None in a first crawl
    shared : objects that the strategies of this context share, one strategy at a time
    """

    critic: Critic
    random_state: int
    web: Web | None
    topics: tuple[str, ...] = ()
    knowledge: Knowledge | None = None
    shared: dict[Any, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class JudgedPage:
    """A fetched page with the judgement of the critic and the targets of its links.

    Attributes
    ----------
    view : the parsed page
    url : id of the URL
    seq : position of the fetch in the crawl, from 1
    depth : clicks from a seed
    relevance : relevance of the page, in [0, 1]
    probabilities : float64 (n_classes,), posteriors of the critic's classes, or None
    links : int64 (n_links,), positions of the followable links in ``view.links``, ascending
    targets : int64 (n_links,), URL ids of the targets of these links
    referrer : id of the page or redirect where the URL was first found; None for a seed
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
    """The scores of a page's links and of the link targets, as returned by `Strategy.expand`.

    Attributes
    ----------
    link_scores : float64 (n_links,), score of each of ``page.links``; higher scores are fetched
        first; ``-inf``: the link is not followed
    urls : int64 (m,), distinct URLs with a new or changed score
    scores : float64 (m,), scores of `urls`; ``-inf``: the URL is not fetched for now
    memo : bytes that `restore_page` needs when the crawl is resumed
    """

    link_scores: Floats
    urls: Ints
    scores: Floats
    memo: bytes | None = None


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page that an earlier run of the crawl has fetched, as read from the store.

    Attributes
    ----------
    url, seq, relevance, targets : as in `JudgedPage`
    link_scores, memo : as in `Expansion`
    """

    url: int
    seq: int
    relevance: float
    targets: Ints
    link_scores: Floats
    memo: bytes | None


@dataclass(slots=True)
class ModelUpdate:
    """A new model and its scores of all queued URLs; see `Strategy.learn`.

    Attributes
    ----------
    version : version of the model, one more than before
    trained_at_seq : number of fetches when the training started
    instances : number of training instances
    metrics : quality of the model, which the store keeps as JSON
    state : bytes for `Strategy.load`, complete after `Strategy.adopt`
    urls : int64 (m,), all queued URLs
    scores : float64 (m,), scores of `urls`
    model : data for `Strategy.adopt`
    training_set : the training instances, if the strategy has `Strategy.emits_instances`
    """

    version: int
    trained_at_seq: int
    instances: int
    metrics: Mapping[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    model: Any
    training_set: TrainingSet | None = None


def check_number(option: str, value: object, least: float, most: float = math.inf) -> None:
    """Raise `UserError` unless `value` is a number from `least` to `most`.

    Parameters
    ----------
    option : strategy and option for the error message, such as ``pagerank: damping``
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or math.isinf(value):  # type: ignore
        limits = f"of {least} or more" if most == math.inf else f"from {least} to {most}"
        raise UserError(f"strategy {option} must be a number {limits}, not {value!r}")


def check_count(option: str, value: object, least: int) -> None:
    """Raise `UserError` unless `value` is a whole number from `least` to `_MAX_COUNT`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MAX_COUNT:
        raise UserError(
            f"strategy {option} must be a whole number, {least} or more, not {value!r}"
        )


def is_list_of_strings(value: object) -> bool:
    """Return whether the value of an option is a list of strings."""
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


class Strategy(ABC):
    """Base class of strategies, which score links and URLs to order the frontier.

    A subclass implements `expand` and `restore_page`. A strategy that learns also sets `learns` to
    True, and implements `is_training_due`, `learn`, `adopt`, `load` and `rescore`. The parameters
    of ``__init__`` after the context are the options of the strategy, and must have default
    values.

    Attributes
    ----------
    learns : bool
        Whether the strategy trains a model while the crawl runs.
    emits_instances : bool
        Whether each `ModelUpdate` of the strategy has a `training_set`, for the setting
        ``FOCUSCRAWL_INSTANCES``.
    in_rounds : bool
        Whether the strategy supports a crawl in rounds (`focuscrawl.rounds`), where another
        process restores the links of a page. URL ids differ between processes, so a memo may
        depend only on their order in the page. A strategy that also learns implements
        `export_judged`, `new_pool`, `train_on_pool` and `load_trained`.
    expects_relevance : bool
        Whether scores are the expected relevance of a URL, in [0, 1]. A live crawl then delays
        URLs that score far below links of busy hosts (`focuscrawl.frontier.patience`).
    self_contained : bool
        Set by the crawl before the first page: a memo must not depend on memos of earlier pages.
    model_version : int
        Version of the present model; 0 before the first training.
    lag : int
        Fetches of a replay from the start of a training to the adoption of its model; with 0, the
        replay waits for the training.
    """

    learns: bool = False
    emits_instances: bool = False
    in_rounds: bool = False
    expects_relevance: bool = False
    self_contained: bool = False
    model_version: int = 0
    lag: int = 0

    def __init__(self, context: StrategyContext) -> None:  # noqa: B027 - optional to override
        """Create the strategy of a new or resumed crawl."""

    @abstractmethod
    def expand(self, page: JudgedPage) -> Expansion:
        """Return the scores of the links of `page` and of the link targets.

        For a long page of a live crawl, the method `expand` runs in a background thread. While
        `expand` runs, the crawl calls only the methods `learn` and `split_memos`.
        """

    @abstractmethod
    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of a page that an earlier run of the crawl has passed to `expand`.

        Returns
        -------
        tuple[Ints, Floats]
            The URLs and scores that `expand` returned.
        """

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:  # noqa: B027
        """Record the outcome of a fetch, before `expand` is called with the page.

        Parameters
        ----------
        url : int
            Id of the fetched URL.
        relevance : float
            Relevance of the page; 0 for redirects, errors and duplicates (methods.md 1).
        duplicate_of : int or None
            Id of an earlier page with the same content.
        """

    def score_after_failure(self, url: int, score: float) -> float:
        """Return the new score of a URL that is queued again after a failed fetch."""
        return score

    def score_at_request(self, url: int, score: float) -> float:
        """Return a URL's score when its request is sent; by default, it is the frontier's score.

        The downloader middleware `PriorityMiddleware` sets ``Request.priority`` from the returned
        score. A strategy overrides the method `score_at_request` if the expected relevance of a
        queued URL changes without a new score in the frontier.

        Parameters
        ----------
        url : int
            Id of the URL.
        score : float
            Last score of the URL in the frontier.
        """
        return score

    # -- strategies that learn -------------------------------------------------------------

    def is_training_due(self) -> bool:
        """Return whether to start a training on the fetches observed so far."""
        return False

    def learn(self) -> ModelUpdate:
        """Train a new model on all observed fetches.

        The method `learn` runs in a background thread, one training at a time. During the
        training, `expand` and `observe` use the current model.
        """
        raise NotImplementedError

    def adopt(self, update: ModelUpdate) -> Scores:
        """Replace the current model by the model of `update`.

        Returns
        -------
        tuple[Ints, Floats]
            URLs with links that were found during the training, and their new scores.
        """
        raise NotImplementedError

    def load(self, state: bytes) -> int | None:
        """Load the last model, before the crawl calls `restore_page` and `observe`.

        Returns
        -------
        int or None
            Number of fetches at the adoption of the model; None: at the start of the training.
            The crawl ignores the scores of earlier `restore_page` calls.
        """
        raise NotImplementedError

    def rescore(self) -> Scores:
        """Return the scores of all URLs to which links are known.

        A resumed crawl first restores all pages that were fetched before the last model was
        adopted, and then calls `rescore`.
        """
        return no_scores()

    # -- in rounds, with a new strategy for each bucket of hosts in each round -------------------

    def split_memos(
        self, memos: Sequence[bytes | None], parts: Sequence[Ints]
    ) -> Iterable[Sequence[bytes | None]]:
        """Return one memo per part of each page's links; by default, each is the whole memo.

        The method `split_memos` may run in any thread.

        Parameters
        ----------
        memos : Sequence[bytes | None]
            Memos of pages with links.
        parts : Sequence[Ints]
            For each page, int64 (n_links,), number of the part of each link. All links to a URL
            are in the same part. The memos of a page are returned by ascending part number.
        """
        return [[memo] * len(np.unique(part)) for memo, part in zip(memos, parts, strict=True)]

    def make_self_contained(self, memo: bytes | None, urls: Sequence[str]) -> bytes | None:
        """Return a memo (stored bytes) that is usable without the crawl's earlier pages."""
        return memo

    def join_memos(self, parts: Sequence[StoredPage]) -> bytes | None:
        """Join the memos (stored bytes) of groups of a page's links to one memo."""
        return parts[0].memo

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:  # noqa: B027
        """Record the relevance of a URL that an earlier round of fetches has fetched."""

    def restore_pages(self, pages: Sequence[StoredPage]) -> Scores:
        """Add the links of stored pages, and return the scores of all link targets."""
        return merge_scores([self.restore_page(page) for page in pages])

    def export_judged(self) -> bytes | None:
        """Return the training data of the current bucket (group of hosts), or None."""
        raise NotImplementedError

    def new_pool(self) -> Any:
        """Return an empty pool, which collects the training data of all buckets."""
        raise NotImplementedError

    def train_on_pool(self, pool: Any) -> tuple[bytes, int, dict[str, float]]:
        """Train on a pool; return the model as bytes, the number of instances, and metrics."""
        raise NotImplementedError

    def load_trained(self, version: int, state: bytes) -> ModelUpdate:
        """Return a `ModelUpdate` with the model that `train_on_pool` has returned as bytes."""
        raise NotImplementedError

    def export_outcomes(self) -> bytes | None:
        """Return data about fetches that `restore_pages` does not restore, or None."""
        return None

    def load_outcomes(self, outcomes: bytes) -> None:
        """Load the data about fetches that `export_outcomes` has returned."""
        raise NotImplementedError


def no_scores() -> Scores:
    """Return empty arrays of URL ids and scores."""
    return np.zeros(0, np.int64), np.zeros(0)


def merge_scores(parts: Sequence[Scores]) -> Scores:
    """Join several arrays of URLs and scores; later scores of a URL replace earlier scores."""
    if len(parts) == 1:
        return parts[0]
    urls = np.concatenate([urls for urls, _ in parts])[::-1]
    distinct, at = np.unique(urls, return_index=True)
    return distinct, np.concatenate([scores for _, scores in parts])[::-1][at]


GROUP = "focuscrawl.strategies"


def strategy_names() -> list[str]:
    """Return the names of all installed strategies."""
    return sorted(entry_points(group=GROUP).names)


@cache
def describe_strategy(name: str) -> str:
    """Return the first sentence of the docstring of a strategy; empty if there is none."""
    try:
        text = inspect.getdoc(find_strategy(name)) or ""
    except UserError:  # reported to users of the strategy
        return ""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


@cache
def find_strategy(name: str) -> type[Strategy]:
    """Return the class of the strategy `name`.

    Raises
    ------
    UserError
        No installed package has this strategy, or its entry point is not a `Strategy`.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        names = strategy_names()
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(names)}"
        raise UserError(f"strategy {name!r} not found: {hint}")
    point = next(iter(found))
    try:
        strategy = point.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"strategy {name} cannot be loaded from {point.value}: {error}") from None
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise UserError(
            f"strategy {name} ({point.value}) is not a subclass of focuscrawl.strategies.Strategy"
        )
    if inspect.isabstract(strategy):
        missing = ", ".join(sorted(strategy.__abstractmethods__))
        raise UserError(f"strategy {name} ({point.value}) does not implement {missing}")
    return strategy


def make_strategy(name: str, context: StrategyContext, options: Mapping[str, Any]) -> Strategy:
    """Create the strategy `name` with the options that a user has set.

    Raises
    ------
    UserError
        The strategy or an option does not exist.
    """
    strategy = find_strategy(name)
    known = [*inspect.signature(strategy).parameters][1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(
            f"strategy {name} has no option {unknown[0]!r}: "
            + (f"available: {', '.join(known)}" if known else "the strategy has no options")
        )
    return strategy(context, **options)
