"""What a crawl does with pages that earlier crawls have met (METHODS 8, and past it)."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.knowledge import Knowledge
from focuscrawl.store import schema
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.crawl import Crawl
    from focuscrawl.crawl.folder import CrawlFolder
    from focuscrawl.crawl.plan import CrawlPlan

#: kind of the event that tells what was queued
RETURNED = "returned"
#: in a crawl's folder: the knowledge that it began with
KEPT = "knowledge.db"
#: strategies that know what to do with knowledge
STRATEGIES = ("apprentice", "learnable")

_ROOM = 10  # times the budget: pages queued for another visit
_LEAST = 10_000


@dataclass(frozen=True)
class RevisitPolicy:
    """What earlier crawls know of the pages of this one.

    Attributes
    ----------
    knowledge : None: nothing
    revisit : fetch known pages only where another visit is worth it
    worth : float64, what a visit is worth, by `Knowledge.places`
    """

    knowledge: Knowledge | None = None
    revisit: bool = False
    worth: NDArray[np.float64] | None = None

    def relevance(self, url: str) -> float:
        """Return what is known of the relevance of a page that did not change."""
        if self.knowledge is None:
            return 0.0
        return float(np.nan_to_num(self.knowledge.relevance([url])[0]))

    def scores(self, urls: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores that known URLs have whatever links to them; NaN for others."""
        assert self.knowledge is not None
        if self.worth is None:
            return self.knowledge.relevance(urls)
        places = self.knowledge.places(urls)
        return np.where(places >= 0, self.worth[places] if len(self.worth) else 0.0, np.nan)

    def validators(self, url: str) -> dict[str, str]:
        """Return the header fields that ask for a page only if it has changed [RFC 9110, 13.1].

        None for a page that is visited whatever is known of it.
        """
        if self.knowledge is None or not self.revisit:
            return {}
        page = self.knowledge.page(url)
        if page is None or page.content is None:
            return {}
        return conditions(page.etag, page.last_modified)


def conditions(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """Return the header fields that ask for a page only if it is another by now."""
    fields = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    # they may be a stranger's: no line ends, nothing a header field cannot have
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value.isascii() and value.isprintable()
    }


def open_knowledge(plan: CrawlPlan, folder: CrawlFolder) -> Knowledge | None:
    """Open the knowledge a crawl begins, or began, with.

    Raises
    ------
    UserError
        It cannot be used with this plan.
    """
    kept = folder.path / KEPT
    if kept.exists():
        return Knowledge(kept)
    if plan.knowledge is None:
        if plan.revisit:
            raise UserError(
                "FOCUSCRAWL_REVISIT needs to know what to visit: add -a knowledge=FILE"
            )
        return None
    if plan.revisit and plan.strategy != STRATEGIES[0]:
        raise UserError(f"FOCUSCRAWL_REVISIT goes with the strategy {STRATEGIES[0]}")
    if plan.strategy not in STRATEGIES:
        raise UserError(
            f"strategy {plan.strategy} does not use knowledge: leave it out, or take "
            f"{' or '.join(STRATEGIES)}"
        )
    return Knowledge(Path(plan.knowledge))


def keep_knowledge(knowledge: Knowledge, folder: CrawlFolder) -> None:
    """Keep what a crawl begins with in its folder: it resumes with that, whatever is learned.

    The file is not copied where the file system can give it a second name: learning puts
    another file in its place, and leaves this one as it is.
    """
    kept = folder.path / KEPT
    if kept.exists():
        return
    try:
        os.link(knowledge.path, kept)
    except OSError:
        unfinished = kept.with_name(f".{KEPT}.new")
        shutil.copyfile(knowledge.path, unfinished)
        unfinished.replace(kept)


def returning(knowledge: Knowledge | None, plan: CrawlPlan, now: float) -> RevisitPolicy:
    """Make out what is worth another visit, in a crawl at time `now`."""
    if knowledge is None or not plan.revisit:
        return RevisitPolicy(knowledge)
    return RevisitPolicy(knowledge, True, knowledge.worth(now, plan.not_modified_cost))


def queue_known(crawl: Crawl) -> None:
    """Queue the pages that are worth another visit, and the URLs that still wait for their first.

    The best of both, ten times as many as there are fetches to make.
    """
    known = crawl.returning
    if known.knowledge is None or known.worth is None:
        return
    e = schema.events.c
    if [*crawl.store.rows(sa.select(e.id).where(e.kind == RETURNED).limit(1))]:
        return  # an earlier run did
    most = max(_LEAST, _ROOM * crawl.plan.budget) if crawl.plan.budget else len(known.worth)
    places = np.flatnonzero(known.worth > 0.0)
    places = places[np.lexsort((places, -known.worth[places]))][:most]
    pages = known.knowledge.urls_at(places)
    waiting = known.knowledge.waiting(most)
    found = [*zip(pages, known.worth[places].tolist(), strict=True), *waiting]
    urls = [normalize(url) or "" for url, _ in found]
    for url, (_, score) in zip(crawl.resolve(urls), found, strict=True):
        if url and crawl.urls.get(url) is None:
            number = crawl.urls.add(url, 0, None)
            crawl.urls.change(number, QUEUED, score)
            crawl.frontier.push(number, crawl.urls.host(number), score)
    crawl.note(RETURNED, f"{len(pages)} pages to visit again, {len(waiting)} never fetched")
