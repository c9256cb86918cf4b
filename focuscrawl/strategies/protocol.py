"""What a strategy is given and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.strategies.evidence import Evidence
    from focuscrawl.webs.protocol import Web


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """What a strategy may ask at its start.

    Attributes
    ----------
    critic : with the user's focus; its `marked` leaves and class names
    random_state : seed of everything random
    web : the recorded web of a replay, None in a live crawl
    """

    critic: Critic
    random_state: int
    web: Web | None


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
    """

    view: PageView
    url: int
    seq: int
    depth: int
    relevance: float
    probabilities: NDArray[np.float64] | None
    links: NDArray[np.int64]
    targets: NDArray[np.int64]


class Strategy(Protocol):
    """Scores links; made once a crawl from a `StrategyContext`.

    Attributes
    ----------
    evidence : how the scores of several links to one URL become the URL's score
    """

    evidence: Evidence

    def __init__(self, context: StrategyContext) -> None: ...

    def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
        """Score the links of `page`.

        Returns
        -------
        float64 (n,), one score for each of ``page.links``, higher is sooner; ``-inf``: do not
        follow this link
        """
        ...
