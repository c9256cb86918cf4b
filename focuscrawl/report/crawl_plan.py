"""What a crawl would start with, judged, and what it would take."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host
from focuscrawl.report.outcomes import PAGE, REDIRECT, UNCHANGED, outcome
from focuscrawl.report.plain_text import one_line, pluralize, shorten_middle
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from focuscrawl.store import CrawlStore


_URL_WIDTH = 90  # characters of a URL
PAGES_SHOWN = 20  #: start pages that are shown
_HOSTS_SHOWN = 5
_FORBIDDEN = "robots.txt"


@dataclass(frozen=True)
class StartPage:
    """A start page, and what came of it.

    Attributes
    ----------
    url : where it is, redirects followed
    outcome : ``page``, or why there is none, see `focuscrawl.report.outcomes`
    relevance : R, None for what is no page
    topic : the critic's most probable class, if it has any
    """

    url: str
    outcome: str
    relevance: float | None = None
    topic: str | None = None

    @property
    def is_relevant(self) -> bool:
        """True for a page on the topic."""
        return self.relevance is not None and self.relevance > RELEVANT

    def format_line(self) -> str:
        """Return it in a line."""
        where = shorten_middle(one_line(self.url), _URL_WIDTH)
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
            found.append(StartPage(fetch.url_text, PAGE, fetch.relevance, fetch.topic))
        elif came != REDIRECT:  # where it leads is a start page, too
            found.append(StartPage(fetch.url_text, came))
    for event in history.events("excluded"):
        url, _, why = event.detail.rpartition(": ")
        found.append(StartPage(url, _FORBIDDEN if _FORBIDDEN in why else why))
    return sorted(found, key=lambda page: 1.0 if page.relevance is None else -page.relevance)


def summarize_start_pages(pages: Sequence[StartPage]) -> str:
    """Return how many of the start pages could be had, and are on the topic."""
    judged = sum(page.relevance is not None for page in pages)
    good = sum(page.is_relevant for page in pages)
    return f"{judged} of {len(pages)} could be had, {good} of them on the topic (R > {RELEVANT})"


def host_facts(pages: Sequence[StartPage]) -> list[tuple[str, str]]:
    """Return the hosts of the start pages, and what robots.txt forbids: name and words of each."""
    hosts = Counter(host(page.url) for page in pages if page.relevance is not None)
    named = [f"{shorten_middle(name, 40)} ({n})" for name, n in hosts.most_common(_HOSTS_SHOWN)]
    more = [f"{len(hosts) - _HOSTS_SHOWN:,} more"] if len(hosts) > _HOSTS_SHOWN else []
    forbidden = sum(page.outcome == _FORBIDDEN for page in pages)
    counts = pluralize(forbidden, "start page") if forbidden else "none"
    return [
        ("hosts", f"{len(hosts)}: {', '.join([*named, *more])}"),
        ("robots.txt", f"{counts} forbidden"),
    ]


def format_start_pages(pages: Sequence[StartPage]) -> list[str]:
    """Return the start pages for a terminal, the best first, and their hosts."""
    lines = [
        format_fact("start pages", summarize_start_pages(pages)),
        *(page.format_line() for page in pages[:PAGES_SHOWN]),
    ]
    if len(pages) > PAGES_SHOWN:
        lines.append(f"  and {len(pages) - PAGES_SHOWN:,} more")
    return [*lines, *(format_fact(name, words) for name, words in host_facts(pages))]


def format_fact(name: str, words: str) -> str:
    """Return a fact for a terminal, below others."""
    return f"{name:13}{words}"


def plan_warnings(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield why a crawl from these start pages may bring nothing, each a sentence.

    Parameters
    ----------
    examples : pages of the topic that the critic has learned from
    """
    judged = [page for page in pages if page.relevance is not None]
    if not judged:
        yield "no start page could be had: the crawl would end at once, with exit code 3"
        return
    if not any(page.is_relevant for page in judged):
        best = max(judged, key=lambda page: page.relevance or 0.0)
        yield (
            f"no start page is on the topic, the best has R {best.relevance:.2f}: either the "
            "seeds or the critic are of another topic (focuscrawl critic check)"
        )
    yield from start_page_warnings(pages, examples)


def start_page_warnings(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield what `plan_warnings` says of where start pages are, and of what the critic knows."""
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


@dataclass(frozen=True)
class CrawlPlan:
    """Start pages of a crawl as they were judged, and what a fetch of it takes.

    Attributes
    ----------
    pages : start pages that were tried, the best first
    seeds, most : how many there are, and how many of them were tried at most
    words : of the good start pages, by which the critic knows its topic; None where that is not
        to be had
    size : bytes that a fetch leaves on the disk
    live : whether it would crawl the live Web
    delay : seconds between two fetches of a host
    at_once : fetches under way, at most
    warnings : why it may bring nothing, each a sentence
    """

    pages: tuple[StartPage, ...]
    seeds: int
    most: int
    words: str | None
    size: float
    live: bool
    delay: float
    at_once: int
    warnings: tuple[str, ...]

    def format_lines(self, budget: int) -> list[str]:
        """Return all but the warnings for a terminal."""
        lines = format_start_pages(self.pages)
        if self.seeds > self.most:
            lines.append(
                format_fact("", f"of {self.seeds:,} seeds: --most {self.seeds} fetches all")
            )
        return [
            *lines,
            *(format_fact(*fact) for fact in [*self._topic_words(), *self.cost_facts(budget)]),
        ]

    def facts(self, budget: int) -> list[tuple[str, str]]:
        """Return what is known beside the pages and the warnings: name and words of each."""
        return [*host_facts(self.pages), *self._topic_words(), *self.cost_facts(budget)]

    def _topic_words(self) -> list[tuple[str, str]]:
        return [] if self.words is None else [("words", self.words)]

    def cost_facts(self, budget: int) -> list[tuple[str, str]]:
        """Return what a budget would take, in time and on disk."""
        if not budget:
            return [("budget", "no limit: time and disk have none either")]
        there = {host(page.url) for page in self.pages if page.relevance is not None}
        if not there:
            return [("time", "no start page could be had: nothing to reckon it from")]
        fetches = pluralize(budget, "fetch")
        disk = ("disk", f"at most about {max(1, self.size * budget / 1e6):,.0f} MB for {fetches}")
        if not self.live:
            return [("time", "a replay waits for nobody: minutes"), disk]
        of_these = min(len(there), self.at_once)
        few, many = (
            timedelta(seconds=round(budget * self.delay / n)) for n in (of_these, self.at_once)
        )
        said = (
            f"{few} for {fetches} if it stays on these hosts, "
            f"{self.delay:g} s apart on each; {many} on many; more where servers are slow"
        )
        return [("time", said), disk]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Take what `plain` has returned; UserError if it is something else."""
        try:
            pages = tuple(StartPage(**page) for page in values["pages"])
            return cls(**{**values, "pages": pages, "warnings": tuple(values["warnings"])})
        except (LookupError, TypeError) as error:
            raise UserError(f"this is no outlook of a crawl: {error}") from None
