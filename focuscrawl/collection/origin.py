"""Where a collection comes from: what its crawl has kept of how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

from focuscrawl.collection.critic_card import CriticCard, critic_card
from focuscrawl.foundation.progress_listener import SILENT, Progress
from focuscrawl.report.summary import Summary
from focuscrawl.store import schema
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from focuscrawl.completeness import Estimate
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.protocol import Web

_FORBIDDEN = "Forbidden by robots.txt"
_UNKNOWN = CriticCard(why_not="nothing is known of it")


@dataclass(frozen=True)
class Origin:
    """What is told of a crawl to those who get its pages.

    Attributes
    ----------
    begun_with : arguments of the crawl, once for each time they were others
    seeds : start URLs and their R; None: no page was had there
    stopped : why it ended, in words
    fetched : fetches, whatever came of them
    outcomes : fetches by what came of them, see `focuscrawl.report.outcome`
    forbidden : URLs that were not fetched because a robots.txt forbids it
    completeness : estimate of how complete it is; None: none was made
    critic : how good its critic is
    """

    begun_with: tuple[str, ...] = ()
    seeds: tuple[tuple[str, float | None], ...] = ()
    stopped: str = ""
    fetched: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    forbidden: int = 0
    completeness: Estimate | None = None
    critic: CriticCard = _UNKNOWN

    @classmethod
    def of(
        cls, store: CrawlStore, folder: Path, webs: Sequence[Web], progress: Progress = SILENT
    ) -> Self:
        """Read it from a crawl; measure the critic if that was not done before.

        Parameters
        ----------
        folder : of the crawl
        webs : where pages and examples are, in the order to look for one
        progress : told of the examples that the critic is measured by
        """
        summary, history = Summary.of(store), History(store)
        excluded = history.events("excluded")
        return cls(
            begun_with=tuple(dict.fromkeys(each.detail for each in history.events("start"))),
            seeds=_seeds(store),
            stopped=summary.stopped,
            fetched=summary.fetched,
            outcomes=summary.outcomes,
            forbidden=sum(each.detail.endswith(_FORBIDDEN) for each in excluded),
            completeness=summary.completeness,
            critic=critic_card(summary.identity, folder, webs, progress),
        )


def _seeds(store: CrawlStore) -> tuple[tuple[str, float | None], ...]:
    p, u = schema.page.c, schema.url.c
    relevance = sa.case((p.status.between(200, 299), p.relevance), else_=None).label("relevance")
    rows = sa.select(u.url, relevance).select_from(schema.url)
    rows = rows.join(schema.page, p.url == u.id, isouter=True)
    rows = rows.where(u.score.is_(None), u.referrer.is_(None), u.depth == 0).order_by(u.id)
    return tuple((row.url, row.relevance) for row in store.rows(rows))
