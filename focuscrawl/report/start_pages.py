"""What a crawl would begin with: its start pages, judged, and what may be wrong with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.report.outcome import PAGE, REDIRECT, UNCHANGED, outcome
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.store import CrawlStore

_WIDTH = 90  # characters of a URL
SHOWN = 20  #: start pages that are shown
_HOSTS = 5
_FORBIDDEN = "robots.txt"


@dataclass(frozen=True)
class StartPage:
    """A start page, and what came of it.

    Attributes
    ----------
    url : where it is, redirects followed
    outcome : ``page``, or why there is none, see `focuscrawl.report.outcome`
    relevance : R, None for what is no page
    topic : the critic's most probable class, if it has any
    """

    url: str
    outcome: str
    relevance: float | None = None
    topic: str | None = None

    @property
    def is_good(self) -> bool:
        """True for a page on the topic."""
        return self.relevance is not None and self.relevance > RELEVANT

    def line(self) -> str:
        """Return it in a line."""
        where = middle(one_line(self.url), _WIDTH)
        if self.relevance is None:
            return f"  -     {where}  ({self.outcome})"
        topic = f"  {one_line(self.topic)}" if self.topic else ""
        return f"  {self.relevance:.2f}  {where}{topic}"


def start_pages(store: CrawlStore) -> list[StartPage]:
    """Return the start pages of a crawl that it has tried to fetch, the best first."""
    history, found = History(store), list[StartPage]()
    for fetch in history.first_fetches():
        if fetch.depth > 0:
            continue
        came = outcome(fetch.status, fetch.error, fetch.duplicate_of is not None)
        if came in (PAGE, UNCHANGED):
            found.append(StartPage(fetch.name, PAGE, fetch.relevance, fetch.topic))
        elif came != REDIRECT:  # where it leads is a start page, too
            found.append(StartPage(fetch.name, came))
    for event in history.events("excluded"):
        url, _, why = event.detail.rpartition(": ")
        found.append(StartPage(url, _FORBIDDEN if _FORBIDDEN in why else why))
    return sorted(found, key=lambda page: 1.0 if page.relevance is None else -page.relevance)


def heading(pages: Sequence[StartPage]) -> str:
    """Return how many of the start pages could be had, and are on the topic."""
    judged = sum(page.relevance is not None for page in pages)
    good = sum(page.is_good for page in pages)
    return f"{judged} of {len(pages)} could be had, {good} of them on the topic (R > {RELEVANT})"


def facts_of(pages: Sequence[StartPage]) -> list[tuple[str, str]]:
    """Return the hosts of the start pages, and what robots.txt forbids: name and words of each."""
    hosts = Counter(host(page.url) for page in pages if page.relevance is not None)
    named = [f"{middle(name, 40)} ({n})" for name, n in hosts.most_common(_HOSTS)]
    more = [f"{len(hosts) - _HOSTS:,} more"] if len(hosts) > _HOSTS else []
    forbidden = sum(page.outcome == _FORBIDDEN for page in pages)
    counts = counted(forbidden, "start page") if forbidden else "none"
    return [
        ("hosts", f"{len(hosts)}: {', '.join([*named, *more])}"),
        ("robots.txt", f"{counts} forbidden"),
    ]


def in_lines(pages: Sequence[StartPage]) -> list[str]:
    """Return the start pages for a terminal, the best first, and their hosts."""
    lines = [in_line("start pages", heading(pages)), *(page.line() for page in pages[:SHOWN])]
    if len(pages) > SHOWN:
        lines.append(f"  and {len(pages) - SHOWN:,} more")
    return [*lines, *(in_line(name, words) for name, words in facts_of(pages))]


def in_line(name: str, words: str) -> str:
    """Return a fact for a terminal, below others."""
    return f"{name:13}{words}"


def warnings_of(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield why a crawl from these start pages may bring nothing, each a sentence.

    Parameters
    ----------
    examples : pages of the topic that the critic has learned from
    """
    judged = [page for page in pages if page.relevance is not None]
    if not judged:
        yield "no start page could be had: the crawl would end at once, with exit code 3"
        return
    if not any(page.is_good for page in judged):
        best = max(judged, key=lambda page: page.relevance or 0.0)
        yield (
            f"no start page is on the topic, the best has R {best.relevance:.2f}: either the "
            "seeds or the critic are of another topic (focuscrawl critic check)"
        )
    yield from doubts_of(pages, examples)


def doubts_of(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield what `warnings_of` says of where start pages are, and of what the critic knows."""
    judged = [page for page in pages if page.relevance is not None]
    hosts = {host(page.url) for page in judged}
    if len(hosts) == 1:
        all_of_them = "all start pages are" if len(judged) > 1 else "the only start page is"
        yield (
            f"{all_of_them} on {hosts.pop()}: the crawl asks it for one page at a time, and "
            "sees the rest of the Web only if that links there; add seeds of other hosts"
        )
    seeds = {page.url for page in pages}
    if examples and seeds.issuperset(examples):
        yield (
            "the critic has learned from these pages and no others of the topic: that it likes "
            "them says nothing (focuscrawl critic check)"
        )
