"""Pages that no page links to: in site maps and feeds, and in other languages (`hreflang`).

A site map or a feed is a URL like any other: it waits in the frontier, is fetched as politely as a
page and counts against the budget. What it names are links of it, which the strategy scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from focuscrawl.crawl.part import Part
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import SITE_MAP_INDEX
from focuscrawl.page.metadata import primary, translations_of
from focuscrawl.store.history import History
from focuscrawl.store.schema import UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: what can be discovered
SITE_MAPS, FEEDS, TRANSLATIONS = "sitemaps", "feeds", "hreflang"
#: kind of the event that a site map or a feed is asked for
LISTED = "listed"

MOST_FILES = 10  # site maps and feeds that a host may have the crawl fetch
MOST_STEPS = 3  # from the first of them to one that it leads to, by indices and redirects
_FROM = ": from "


class _List(NamedTuple):
    """A site map or feed that is asked for: for which host, how many steps from its first."""

    owner: str
    step: int


class Discovery(Part):
    """Asks a host for its site maps and feeds when it has brought a relevant page.

    Those are the site maps that its robots.txt names, or ``/sitemap.xml``, and the feeds of its
    relevant pages. All that they lead to counts as the host's own, wherever it is, so that indices
    that lead from host to host come to an end.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._wanted = crawl.plan.discover
        self._told: dict[str, list[str]] = {}

    def reset(self) -> None:
        """Forget every fetch, but not what was asked for."""
        self._lists: dict[int, _List] = {}
        self._files: Counter[str] = Counter()
        self._fetches: Counter[str] = Counter()
        self._relevance: dict[str, float] = defaultdict(float)
        self._asked: set[str] = set()
        for event in History(self._crawl.store).events(LISTED):
            url, _, said = event.detail.rpartition(_FROM)
            owner, _, step = said.partition(", step ")
            number = self._crawl.urls.get(url)
            if number is not None and step.isdecimal():
                self._keep(number, _List(owner, int(step)))

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run."""
        stored = fetch.stored
        if not stored.again and stored.url not in self._lists:
            self._count(stored.name, stored.relevance)
            if stored.relevance > RELEVANT:
                self._asked.add(host(stored.name))

    def told(self, origin: str, site_maps: Iterable[str]) -> None:
        """Take in the site maps that the robots.txt of a host names; many are as good as ten."""
        self._told[host(origin)] = [*islice(site_maps, MOST_FILES)]

    def lists(self, number: int) -> bool:
        """Tell whether a URL is asked for as a site map or a feed; a start page may be one."""
        return number in self._lists or self._is_seed(number)

    def on_listed(self, visit: PageVisit) -> None:
        """Say what links of a site map or a feed are worth: what pages of its host have been."""
        if visit.number not in self._lists:
            self._note(visit, visit.number, _List(host(visit.url), 0))
        owner = self._lists[visit.number].owner
        visit.promise = self._relevance[owner] / (self._fetches[owner] + 1)

    def on_page(self, visit: PageVisit) -> None:
        """Ask for what a page, an index of site maps, or the redirect of one leads to."""
        known = self._lists.get(visit.number)
        if known is not None:
            self._go_on(visit, known)
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
            for url in self._told.get(own) or [_usual_place(visit.url)]:
                self._ask(visit, url, _List(own, 0))
        self._asked.add(own)
        if FEEDS in self._wanted:
            for url in visit.view.feeds:
                self._ask(visit, url, _List(own, 0))

    def _go_on(self, visit: PageVisit, known: _List) -> None:
        following = _List(known.owner, known.step + 1)
        target = visit.location if visit.redirects and visit.error is None else None
        if target is not None:
            number = self._crawl.urls.get(target)
            if number is not None and self._may_ask(number, following):
                self._note(visit, number, following)
        elif visit.view is not None and visit.view.kind == SITE_MAP_INDEX:
            for url in visit.view.links.urls:
                self._ask(visit, url, following)
        elif visit.view is not None and TRANSLATIONS in self._wanted:
            self._queue_translations(visit, visit.promise or 0.0)

    def _ask(self, visit: PageVisit, url: str, found: _List) -> None:
        """Queue a site map or a feed with the score of the page that speaks for it."""
        (target,) = self._crawl.follow([url])
        if target is None or self._files[found.owner] >= MOST_FILES:
            return
        number = self._crawl.urls.add(target, visit.depth, visit.number)
        if self._may_ask(number, found):
            if self._crawl.queue(number, _score(visit)):
                visit.newly_queued.append(_score(visit))
            self._note(visit, number, found)

    def _may_ask(self, number: int, found: _List) -> bool:
        few = self._files[found.owner] < MOST_FILES and found.step <= MOST_STEPS
        return few and number not in self._lists

    def _note(self, visit: PageVisit, number: int, found: _List) -> None:
        self._keep(number, found)
        told = f"{self._crawl.urls[number]}{_FROM}{found.owner}, step {found.step}"
        visit.events.append((LISTED, told))

    def _keep(self, number: int, found: _List) -> None:
        self._lists[number] = found
        self._files[found.owner] += 1

    def _queue_translations(self, visit: PageVisit, score: float) -> None:
        """Queue a page, or those of a site map, in the languages of the crawl."""
        assert visit.view is not None
        crawl, wanted = self._crawl, set(map(primary, self._crawl.plan.languages))
        pairs = [*zip(visit.view.translated_to, visit.view.translations, strict=True)]
        pairs += translations_of(visit.download.links, visit.url)
        urls = [
            url
            for language, url in pairs
            if primary(language) and (not wanted or primary(language) in wanted)
        ]
        for url in filter(None, crawl.follow(urls)):
            known = crawl.urls.get(url)
            if known is None or crawl.urls.state(known) == UNFOLLOWED:
                number = crawl.urls.add(url, visit.depth, visit.number)
                if crawl.queue(number, score):
                    visit.newly_queued.append(score)

    def _count(self, url: str, relevance: float) -> None:
        own = host(url)
        self._fetches[own] += 1
        self._relevance[own] += relevance

    def _is_seed(self, number: int) -> bool:
        urls = self._crawl.urls
        return urls.depth(number) == 0 and urls.found_on(number) is None


def _score(visit: PageVisit) -> float:
    """Return the score that a page was fetched with; of a start page, what it has come to."""
    return visit.relevance if visit.score is None else visit.score


def _usual_place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/sitemap.xml"
