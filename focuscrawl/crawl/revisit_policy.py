"""What a crawl does with pages that earlier crawls have fetched (methods 8, and beyond)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import draft_of, refuse_link
from focuscrawl.foundation.urls import normalize
from focuscrawl.knowledge import Knowledge
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.crawl_config import CrawlConfig


#: kind of the event that records what was queued
RETURNED = "returned"
#: in a crawl's folder: the knowledge that it started with
KNOWLEDGE_FILE = "knowledge.db"
#: strategies that use knowledge
KNOWLEDGE_STRATEGIES = ("apprentice", "learnable")

_ROOM = 10  # times the budget: pages queued for another visit
_LEAST = 10_000


class KnownPages:
    """What earlier crawls know of the pages of this one, and which are worth another visit.

    Those are requested on condition that they have changed.

    Parameters
    ----------
    worth : float64, what a visit is worth, by `Knowledge.positions`; None: known pages are fetched
        like any other
    """

    def __init__(
        self, knowledge: Knowledge, urls: UrlTable, worth: NDArray[np.float64] | None = None
    ) -> None:
        self._knowledge = knowledge
        self._urls = urls
        self._worth = worth

    @classmethod
    def of(cls, knowledge: Knowledge, urls: UrlTable, config: CrawlConfig, now: float) -> Self:
        """Find what is worth another visit, in a crawl at time `now`."""
        worth = knowledge.visit_values(now, config.not_modified_cost) if config.revisit else None
        return cls(knowledge, urls, worth)

    def relevance(self, url: str) -> float:
        """Return what is known of the relevance of a page that did not change."""
        return float(np.nan_to_num(self._knowledge.relevance([url])[0]))

    def scores(self, urls: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of known URLs, whatever links to them; NaN for others."""
        if self._worth is None:
            return self._knowledge.relevance(urls)
        places = self._knowledge.positions(urls)
        return np.where(places >= 0, self._worth[places] if len(self._worth) else 0.0, np.nan)

    def conditional_headers(self, url_id: int) -> dict[str, str]:
        """Return header fields that ask for a known page only if it has changed; {}: always."""
        page = None if self._worth is None else self._knowledge.page(self._urls[url_id])
        if page is None or page.content is None:
            return {}
        return conditional_headers(page.etag, page.last_modified)

    def queue_into(self, crawl: CrawlState) -> None:
        """Queue what is worth a visit, and the URLs that still wait for their first.

        The best of both, ten times as many as there are fetches to make. An earlier run may have
        done so.
        """
        if self._worth is None or History(crawl.store).events(RETURNED):
            return
        budget = crawl.config.budget
        most = max(_LEAST, _ROOM * budget) if budget else len(self._worth)
        places = np.flatnonzero(self._worth > 0.0)
        places = places[np.lexsort((places, -self._worth[places]))][:most]
        pages = [*zip(self._knowledge.urls_at(places), self._worth[places].tolist(), strict=True)]
        waiting = [*self._knowledge.queued_urls(most)]
        found = [*pages, *waiting]
        urls = [normalize(url) or "" for url, _ in found]
        for url, (_, score) in zip(crawl.follow(urls), found, strict=True):
            if url and crawl.urls.get(url) is None:
                crawl.queue(crawl.urls.add(url, 0, None), score)
        crawl.record_event(
            RETURNED, f"{len(pages)} pages to visit again, {len(waiting)} never fetched"
        )


def conditional_headers(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """Return the header fields that ask for a page only if it has changed."""
    fields = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    # they may be a stranger's: nothing that a header field cannot contain, such as line ends
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value.isascii() and value.isprintable()
    }


def open_knowledge(config: CrawlConfig, folder: CrawlFolder) -> Knowledge | None:
    """Open the knowledge a crawl starts, or has started, with.

    Raises
    ------
    UserError
        It cannot be used with this configuration.
    """
    kept = folder.path / KNOWLEDGE_FILE
    refuse_link(kept)
    if kept.exists():
        return Knowledge(kept)
    if config.knowledge is None:
        if config.revisit:
            raise UserError(
                "FOCUSCRAWL_REVISIT needs to know what to visit: add -a knowledge=FILE"
            )
        return None
    if config.revisit and config.strategy != KNOWLEDGE_STRATEGIES[0]:
        raise UserError(f"FOCUSCRAWL_REVISIT goes with the strategy {KNOWLEDGE_STRATEGIES[0]}")
    if config.strategy not in KNOWLEDGE_STRATEGIES:
        raise UserError(
            f"strategy {config.strategy} does not use knowledge: leave it out, or take "
            f"{' or '.join(KNOWLEDGE_STRATEGIES)}"
        )
    return Knowledge(Path(config.knowledge))


def copy_knowledge(knowledge: Knowledge, folder: CrawlFolder) -> None:
    """Keep the knowledge a crawl starts with in its folder: it resumes with that.

    A hard link is enough where the file system has them: a knowledge file is replaced, never
    changed.
    """
    kept = folder.path / KNOWLEDGE_FILE
    if kept.exists():
        return
    try:
        os.link(knowledge.path.resolve(), kept)
    except OSError:
        with draft_of(kept) as draft:
            shutil.copyfile(knowledge.path, draft)
