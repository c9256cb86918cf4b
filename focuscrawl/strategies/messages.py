"""What crawl and strategy exchange: a judged page, the scores of its links, lessons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web

#: distinct URLs, by number, and their scores: int64 (m,), float64 (m,)
Scores = tuple["Ints", "Floats"]


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
    memo : what the strategy wants back of these links when the crawl is resumed
    """

    link_scores: Floats
    urls: Ints
    scores: Floats
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
    targets: Ints
    link_scores: Floats
    memo: bytes | None


@dataclass(slots=True)
class Lesson:
    """A new model, and the scores that it gives to all URLs that wait; see `Strategy.learn`.

    Attributes
    ----------
    version : of the model, one more than before
    trained_at_seq : fetches observed when learning began
    instances : links (u,v) with both ends fetched, learned from so far
    metrics : what is known of the model's quality; written to the store as JSON
    state : what `Strategy.load` needs to go on from here; complete once it is adopted
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
