"""Discovery of pages that no page links to: by site maps, feeds and `hreflang`.

A site map or a feed is a URL like any other: it waits in the frontier, is fetched as politely as a
page and counts against the budget. What it names are links of it, which the strategy scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from focuscrawl.crawl.part import Part
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import SITE_MAP_INDEX, URL_LIST_KINDS
from focuscrawl.page.metadata import primary_subtag, translations_in_headers
from focuscrawl.store.history import History
from focuscrawl.store.schema import UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: what can be discovered
SITE_MAPS, FEEDS, TRANSLATIONS = "sitemaps", "feeds", "hreflang"
#: kind of the event that a site map or a feed is queued
LISTED = "listed"

MAX_FILES = 10  # site maps and feeds that a host may have the crawl fetch
MAX_STEPS = 3  # from the first of them to one that it leads to, by indices and redirects
_FROM = ": from "


class _List(NamedTuple):
    """A site map or feed that is queued: for which host, how many steps from its first."""

    owner: str
    step: int


class Discovery(Part):
    """Queues the site maps and feeds of a host when it has brought a relevant page.

    Those are the site maps that its robots.txt names, or ``/sitemap.xml``, and the feeds of its
    relevant pages. All that they lead to counts as the host's own, wherever it is, so that indices
    that lead from host to host come to an end.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._wanted = crawl.config.discover
        self._site_maps: dict[str, list[str]] = {}  # by the host whose robots.txt names them

    def reset(self) -> None:
        """Forget every fetch, but not what was queued."""
        self._lists: dict[int, _List] = {}
        self._files: Counter[str] = Counter()
        self._fetches: Counter[str] = Counter()
        self._relevance: dict[str, float] = defaultdict(float)
        self._asked: set[str] = set()
        for event in History(self._crawl.store).events(LISTED):
            url, _, origin = event.detail.rpartition(_FROM)
            owner, _, step = origin.partition(", step ")
            url_id = self._crawl.urls.get(url)
            if url_id is not None and step.isdecimal():
                self._keep(url_id, _List(owner, int(step)))

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run."""
        stored = fetch.stored
        if not stored.again and stored.url not in self._lists:
            self._count(stored.name, stored.relevance)
            if stored.relevance > RELEVANT:
                self._asked.add(host(stored.name))

    def add_site_maps(self, origin: str, site_maps: Iterable[str]) -> None:
        """Take in the site maps that the robots.txt of a host names; at most ten are kept."""
        self._site_maps[host(origin)] = [*islice(site_maps, MAX_FILES)]

    def may_be_list(self, url_id: int) -> bool:
        """Tell whether a URL is fetched as a site map or a feed; a start page may be one."""
        urls = self._crawl.urls
        is_seed = urls.depth(url_id) == 0 and urls.referrer_id(url_id) is None
        return url_id in self._lists or is_seed

    def on_judged(self, visit: PageVisit) -> None:
        """Set what links of a site map or a feed are worth: what pages of its host have been."""
        assert visit.view is not None
        if visit.view.kind not in URL_LIST_KINDS:
            return
        if visit.url_id not in self._lists:
            self._note(visit, visit.url_id, _List(host(visit.url), 0))
        owner = self._lists[visit.url_id].owner
        visit.link_relevance = self._relevance[owner] / (self._fetches[owner] + 1)

    def before_record(self, visit: PageVisit) -> None:
        """Queue what a page, an index of site maps, or the redirect of one leads to."""
        known = self._lists.get(visit.url_id)
        if known is not None:
            self._follow_list(visit, known)
            return
        self._count(visit.url, visit.relevance)
        relevant = visit.relevance > RELEVANT
        if visit.view is None or not (relevant or visit.other_language):
            return
        if TRANSLATIONS in self._wanted:
            self._queue_translations(visit, _score(visit))
        if not relevant:
            return
        own = host(visit.url)
        if SITE_MAPS in self._wanted and own not in self._asked:
            for url in self._site_maps.get(own) or [urljoin(visit.url, "/sitemap.xml")]:
                self._ask(visit, url, _List(own, 0))
        self._asked.add(own)
        if FEEDS in self._wanted:
            for url in visit.view.feeds:
                self._ask(visit, url, _List(own, 0))

    def _follow_list(self, visit: PageVisit, known: _List) -> None:
        following = _List(known.owner, known.step + 1)
        target = visit.location if visit.is_redirect and visit.error is None else None
        if target is not None:
            url_id = self._crawl.urls.get(target)
            if url_id is not None and self._may_ask(url_id, following):
                self._note(visit, url_id, following)
        elif visit.view is not None and visit.view.kind == SITE_MAP_INDEX:
            for url in visit.view.links.urls:
                self._ask(visit, url, following)
        elif visit.view is not None and TRANSLATIONS in self._wanted:
            self._queue_translations(visit, visit.link_relevance or 0.0)

    def _ask(self, visit: PageVisit, url: str, found: _List) -> None:
        # with the score of the page that it was found by
        (target,) = self._crawl.follow([url])
        if target is None or self._files[found.owner] >= MAX_FILES:
            return
        url_id = self._crawl.urls.add(target, visit.depth, visit.url_id)
        if self._may_ask(url_id, found):
            if self._crawl.queue(url_id, _score(visit)):
                visit.newly_queued.append(_score(visit))
            self._note(visit, url_id, found)

    def _may_ask(self, url_id: int, found: _List) -> bool:
        few = self._files[found.owner] < MAX_FILES and found.step <= MAX_STEPS
        return few and url_id not in self._lists

    def _note(self, visit: PageVisit, url_id: int, found: _List) -> None:
        self._keep(url_id, found)
        detail = f"{self._crawl.urls[url_id]}{_FROM}{found.owner}, step {found.step}"
        visit.events.append((LISTED, detail))

    def _keep(self, url_id: int, found: _List) -> None:
        self._lists[url_id] = found
        self._files[found.owner] += 1

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
        own = host(url)
        self._fetches[own] += 1
        self._relevance[own] += relevance


def _score(visit: PageVisit) -> float:
    """Return the score that a page was fetched with; of a start page, its relevance."""
    return visit.relevance if visit.score is None else visit.score
