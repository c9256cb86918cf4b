"""Finds pages that no page links to, in site maps, feeds and ``hreflang`` attributes.

A site map or a feed is queued and fetched like a page, and counts against the budget. The strategy
scores the URLs in a site map or a feed like links on a page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from focuscrawl.crawl.part import Part
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.page import is_html
from focuscrawl.page.documents import SITE_MAP_INDEX, URL_LIST_KINDS
from focuscrawl.page.metadata import primary_subtag, translations_in_headers
from focuscrawl.store.history import History
from focuscrawl.store.schema import UNFOLLOWED

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: values of the argument ``discover``
SITE_MAPS, FEEDS, TRANSLATIONS = "sitemaps", "feeds", "hreflang"
#: kind of the event that a site map or a feed is queued
LISTED = "listed"

MAX_FILES = 10  # site maps and feeds of a host
MAX_STEPS = 3  # by site map indices and redirects, from the first site map of a host
_FROM = ": from "


class _QueuedFile(NamedTuple):
    """A queued site map or feed: the host it counts for, and the steps from the host's first."""

    owner: str
    step: int


class Discovery(Part):
    """Queues the site maps and feeds of a host after the crawl has found a relevant page there.

    The robots.txt of a host gives the URLs of its site maps; the default is ``/sitemap.xml``. The
    relevant pages of a host give the URLs of its feeds. A site map on another host is assigned to
    the host whose site map index lists the site map. If a site map index leads to indexes on
    further hosts, all their site maps count towards the limit of the first host, so that the
    search ends.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._sources = crawl.config.discover
        self._site_maps: dict[str, list[str]] = {}  # by the host whose robots.txt names them

    def reset(self) -> None:
        """Forget all fetches, and load the queued site maps and feeds from the store."""
        self._queued_files: dict[int, _QueuedFile] = {}
        self._files_per_host: Counter[str] = Counter()
        self._fetches_per_host: Counter[str] = Counter()
        self._relevance_per_host: dict[str, float] = defaultdict(float)
        self._searched_hosts: set[str] = set()
        for event in History(self._crawl.store).events(LISTED):
            url, _, origin = event.detail.rpartition(_FROM)
            owner, _, step = origin.partition(", step ")
            url_id = self._crawl.urls.get(url)
            if url_id is not None and step.isdecimal():
                self._add_file(url_id, _QueuedFile(owner, int(step)))

    def restore(self, fetch: RestoredFetch) -> None:
        """Add the relevance of a fetch of an earlier run to the counts of its host."""
        stored = fetch.stored
        if not stored.is_revisit and stored.url not in self._queued_files:
            self._count(stored.url_text, stored.relevance)
            if stored.relevance > RELEVANT:
                self._searched_hosts.add(host(stored.url_text))

    def add_site_maps(self, origin: str, site_maps: Iterable[str]) -> None:
        """Store up to ten URLs of site maps from the robots.txt of a host."""
        self._site_maps[host(origin)] = [*islice(site_maps, MAX_FILES)]

    def can_be_site_map_or_feed(self, url_id: int, media_type: str | None) -> bool:
        """Tell whether a URL may be a site map or feed: it was queued as such or is a start page.

        A start page with an HTML media type is neither a site map nor a feed.
        """
        urls = self._crawl.urls
        is_seed = urls.depth(url_id) == 0 and urls.referrer_id(url_id) is None
        return url_id in self._queued_files or (is_seed and not is_html(media_type))

    def on_judged(self, visit: PageVisit) -> None:
        """Use the mean relevance of the host's pages to score the links of a site map or feed."""
        assert visit.view is not None
        if visit.view.kind not in URL_LIST_KINDS:
            return
        if visit.url_id not in self._queued_files:
            self._record_file(visit, visit.url_id, _QueuedFile(host(visit.url), 0))
        owner = self._queued_files[visit.url_id].owner
        visit.link_relevance = self._relevance_per_host[owner] / (
            self._fetches_per_host[owner] + 1
        )

    def before_record(self, visit: PageVisit) -> None:
        """Queue the site maps, feeds and translations that a page or a site map index links to."""
        known = self._queued_files.get(visit.url_id)
        if known is not None:
            self._follow_file(visit, known)
            return
        self._count(visit.url, visit.relevance)
        relevant = visit.relevance > RELEVANT
        if visit.view is None or not (relevant or visit.other_language):
            return
        if TRANSLATIONS in self._sources:
            self._queue_translations(visit, _link_score(visit))
        if not relevant:
            return
        page_host = host(visit.url)
        if SITE_MAPS in self._sources and page_host not in self._searched_hosts:
            for url in self._site_maps.get(page_host) or [urljoin(visit.url, "/sitemap.xml")]:
                self._queue_file(visit, url, _QueuedFile(page_host, 0))
        self._searched_hosts.add(page_host)
        if FEEDS in self._sources:
            for url in visit.view.feeds:
                self._queue_file(visit, url, _QueuedFile(page_host, 0))

    def _follow_file(self, visit: PageVisit, known: _QueuedFile) -> None:
        following = _QueuedFile(known.owner, known.step + 1)
        target = visit.location if visit.is_redirect and visit.error is None else None
        if target is not None:
            url_id = self._crawl.urls.get(target)
            if url_id is not None and self._can_queue(url_id, following):
                self._record_file(visit, url_id, following)
        elif visit.view is not None and visit.view.kind == SITE_MAP_INDEX:
            for url in visit.view.links.urls:
                self._queue_file(visit, url, following)
        elif visit.view is not None and TRANSLATIONS in self._sources:
            self._queue_translations(visit, visit.link_relevance or 0.0)

    def _queue_file(self, visit: PageVisit, url: str, found: _QueuedFile) -> None:
        (target,) = self._crawl.follow([url])
        if target is None or self._files_per_host[found.owner] >= MAX_FILES:
            return
        url_id = self._crawl.urls.add(target, visit.depth, visit.url_id)
        if self._can_queue(url_id, found):
            if self._crawl.queue(url_id, _link_score(visit)):
                visit.newly_queued.append(_link_score(visit))
            self._record_file(visit, url_id, found)

    def _can_queue(self, url_id: int, found: _QueuedFile) -> bool:
        few = self._files_per_host[found.owner] < MAX_FILES and found.step <= MAX_STEPS
        return few and url_id not in self._queued_files

    def _record_file(self, visit: PageVisit, url_id: int, found: _QueuedFile) -> None:
        self._add_file(url_id, found)
        detail = f"{self._crawl.urls[url_id]}{_FROM}{found.owner}, step {found.step}"
        visit.events.append((LISTED, detail))

    def _add_file(self, url_id: int, found: _QueuedFile) -> None:
        self._queued_files[url_id] = found
        self._files_per_host[found.owner] += 1

    def _queue_translations(self, visit: PageVisit, score: float) -> None:
        assert visit.view is not None
        crawl, wanted = self._crawl, set(map(primary_subtag, self._crawl.config.languages))
        pairs = [*zip(visit.view.translated_to, visit.view.translations, strict=True)]
        pairs += translations_in_headers(visit.download.links, visit.url)
        urls = [
            url
            for language, url in pairs
            if primary_subtag(language) and (not wanted or primary_subtag(language) in wanted)
        ]
        for url in filter(None, crawl.follow(urls)):
            known = crawl.urls.get(url)
            if known is None or crawl.urls.state(known) == UNFOLLOWED:
                url_id = crawl.urls.add(url, visit.depth, visit.url_id)
                if crawl.queue(url_id, score):
                    visit.newly_queued.append(score)

    def _count(self, url: str, relevance: float) -> None:
        page_host = host(url)
        self._fetches_per_host[page_host] += 1
        self._relevance_per_host[page_host] += relevance


def _link_score(visit: PageVisit) -> float:
    """Return the score that a page was fetched with, or the relevance of a start page."""
    return visit.relevance if visit.score is None else visit.score
