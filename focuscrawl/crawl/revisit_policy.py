"""Revisits of pages that earlier crawls of the topic fetched (methods.md 8)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import refuse_link, replace_atomically
from focuscrawl.foundation.urls import normalize
from focuscrawl.knowledge import Knowledge
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.foundation.arrays import Floats


#: kind of the event that known pages were queued
RETURNED = "returned"
#: knowledge file in the folder of a crawl
KNOWLEDGE_FILE = "knowledge.db"
#: strategies that use knowledge
KNOWLEDGE_STRATEGIES = ("apprentice", "learnable")

_PAGES_PER_FETCH = 10  # known pages that are queued for each fetch of the budget
_MIN_PAGES = 10_000


class KnownPages:
    """Pages that earlier crawls fetched, and the expected gain of fetching each page again.

    Parameters
    ----------
    worth : float64 array or None
        Expected gain of a visit, indexed by `Knowledge.positions`; None if known pages are fetched
        like any other page, without conditional requests.
    """

    def __init__(self, knowledge: Knowledge, urls: UrlTable, worth: Floats | None = None) -> None:
        self._knowledge = knowledge
        self._urls = urls
        self._worth = worth

    @classmethod
    def of(cls, knowledge: Knowledge, urls: UrlTable, config: CrawlConfig, now: float) -> Self:
        """Create the `KnownPages` of a crawl that starts at the time ``now``."""
        worth = knowledge.visit_values(now, config.not_modified_cost) if config.revisit else None
        return cls(knowledge, urls, worth)

    def relevance(self, url: str) -> float:
        """Return the relevance of a page according to earlier crawls; 0 for an unknown page."""
        return float(np.nan_to_num(self._knowledge.relevance([url])[0]))

    def scores(self, urls: Sequence[str]) -> Floats:
        """Return the scores of URLs according to earlier crawls; NaN for unknown URLs."""
        if self._worth is None:
            return self._knowledge.relevance(urls)
        places = self._knowledge.positions(urls)
        return np.where(places >= 0, self._worth[places] if len(self._worth) else 0.0, np.nan)

    def conditional_headers(self, url_id: int) -> dict[str, str]:
        """Return the header fields of a conditional request for a known page, or {}."""
        page = None if self._worth is None else self._knowledge.page(self._urls[url_id])
        if page is None or page.content is None:
            return {}
        return conditional_headers(page.etag, page.last_modified)

    def queue_pages(self, crawl: CrawlState) -> None:
        """Queue known pages worth fetching again, and URLs that earlier crawls did not fetch.

        The method queues up to n of the best known pages, and up to n known URLs that were never
        fetched, where n is ten times the budget. Nothing is queued if an earlier run of the crawl
        has queued the known pages.
        """
        if self._worth is None or History(crawl.store).events(RETURNED):
            return
        budget = crawl.config.budget
        most = max(_MIN_PAGES, _PAGES_PER_FETCH * budget) if budget else len(self._worth)
        places = np.flatnonzero(self._worth > 0.0)
        places = places[np.lexsort((places, -self._worth[places]))][:most]
        pages = [*zip(self._knowledge.urls_at(places), self._worth[places].tolist(), strict=True)]
        queued = [*self._knowledge.queued_urls(most)]
        candidates = [*pages, *queued]
        urls = [normalize(url) or "" for url, _ in candidates]
        for url, (_, score) in zip(crawl.follow(urls), candidates, strict=True):
            if url and crawl.urls.get(url) is None:
                crawl.queue(crawl.urls.add(url, 0, None), score)
        crawl.record_event(
            RETURNED, f"{len(pages)} pages to visit again, {len(queued)} never fetched"
        )


def conditional_headers(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """Return the header fields of a conditional request, with the last known ETag and date."""
    fields = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    # servers choose these values, so values that are invalid in a header field are dropped
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value.isascii() and value.isprintable()
    }


def open_knowledge(config: CrawlConfig, folder: CrawlFolder) -> Knowledge | None:
    """Open the knowledge file that the configuration of a crawl names; None if there is none.

    Raises
    ------
    UserError
        The configuration does not allow the use of knowledge, or requires knowledge.
    """
    kept = folder.path / KNOWLEDGE_FILE
    refuse_link(kept)
    if kept.exists():
        return Knowledge(kept)
    if config.knowledge is None:
        if config.revisit:
            raise UserError(
                "FOCUSCRAWL_REVISIT requires knowledge from an earlier crawl: add "
                "-a knowledge=FILE"
            )
        return None
    if config.revisit and config.strategy != KNOWLEDGE_STRATEGIES[0]:
        raise UserError(
            f"FOCUSCRAWL_REVISIT requires the strategy {KNOWLEDGE_STRATEGIES[0]}: remove "
            f"-a strategy={config.strategy}"
        )
    if config.strategy not in KNOWLEDGE_STRATEGIES:
        raise UserError(
            f"strategy {config.strategy} does not use knowledge: remove -a knowledge=..., or use "
            f"the strategy {' or '.join(KNOWLEDGE_STRATEGIES)}"
        )
    return Knowledge(Path(config.knowledge))


def copy_knowledge(knowledge: Knowledge, folder: CrawlFolder) -> None:
    """Copy the knowledge file into the crawl's folder, so that the crawl can be resumed with it.

    The copy is a hard link, because knowledge files are replaced and never modified.
    """
    kept = folder.path / KNOWLEDGE_FILE
    if kept.exists():
        return
    try:
        os.link(knowledge.path.resolve(), kept)
    except OSError:
        with replace_atomically(kept) as draft:
            shutil.copyfile(knowledge.path, draft)
