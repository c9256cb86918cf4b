"""Judged start pages and expected costs of a crawl, for ``focuscrawl plan`` and the studio."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    from focuscrawl.store import CrawlStore


_URL_WIDTH = 90  # characters of a URL shown
PAGES_SHOWN = 20  #: start pages shown
_HOSTS_SHOWN = 5
_FETCHES_PER_MINUTE = 1500  # of a recorded web, on a slow machine
_FORBIDDEN = "robots.txt"


@dataclass(frozen=True)
class StartPage:
    """A start page and the outcome of its fetch."""

    url: str  #: URL after redirects
    outcome: str  #: ``page``, or the reason why there is no page, see `focuscrawl.report.outcomes`
    relevance: float | None = None  #: relevance of the page; None without a page
    topic: str | None = None  #: the most probable class, if the critic has classes

    @property
    def is_relevant(self) -> bool:
        """True if the start page has a relevance above ½."""
        return self.relevance is not None and self.relevance > RELEVANT

    def format_line(self) -> str:
        """Return the start page as a line for a terminal."""
        where = shorten_middle(one_line(self.url), _URL_WIDTH)
        if self.relevance is None:
            return f"  -     {where}  ({self.outcome})"
        topic = f"  {one_line(self.topic)}" if self.topic else ""
        return f"  {self.relevance:.2f}  {where}{topic}"


def start_pages(store: CrawlStore) -> list[StartPage]:
    """Return a crawl's start pages with the outcomes of their fetches, the most relevant first."""
    history, found = History(store), list[StartPage]()
    for fetch in history.first_fetches():
        if fetch.depth > 0:
            continue
        came = outcome(fetch.status, fetch.error, fetch.duplicate_of is not None)
        if came in (PAGE, UNCHANGED):
            found.append(StartPage(fetch.url_text, PAGE, fetch.relevance, fetch.topic))
        elif came != REDIRECT:  # the target of the redirect is a start page as well
            found.append(StartPage(fetch.url_text, came))
    for event in history.events("excluded"):
        url, _, why = event.detail.rpartition(": ")
        found.append(StartPage(url, _FORBIDDEN if _FORBIDDEN in why else why))
    return sorted(found, key=lambda page: 1.0 if page.relevance is None else -page.relevance)


def summarize_start_pages(pages: Sequence[StartPage]) -> str:
    """Return a text with the number of fetched start pages and of relevant start pages."""
    judged = sum(page.relevance is not None for page in pages)
    good = sum(page.is_relevant for page in pages)
    return f"{judged} of {len(pages)} fetched, {good} relevant"


def host_facts(pages: Sequence[StartPage]) -> list[tuple[str, str]]:
    """Return facts about hosts of start pages and about robots.txt, as pairs of name and value."""
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
    """Return the start pages and their hosts as lines for a terminal."""
    lines = [
        format_fact("start pages", summarize_start_pages(pages)),
        *(page.format_line() for page in pages[:PAGES_SHOWN]),
    ]
    if len(pages) > PAGES_SHOWN:
        lines.append(f"  and {len(pages) - PAGES_SHOWN:,} more")
    return [*lines, *(format_fact(name, words) for name, words in host_facts(pages))]


def format_fact(name: str, words: str) -> str:
    """Return a fact, given as a name and a value, as a line for a terminal."""
    return f"{name:13}{words}"


def plan_warnings(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each reason why a crawl from the start pages may find nothing.

    Parameters
    ----------
    pages : sequence of StartPage
        The start pages.
    examples : sequence of str
        URLs of the relevant training examples of the critic.
    """
    judged = [page for page in pages if page.relevance is not None]
    if not judged:
        yield "no start page could be fetched: the crawl would stop at once with exit code 3"
        return
    if not any(page.is_relevant for page in judged):
        best = max(judged, key=lambda page: page.relevance or 0.0)
        yield (
            f"no start page is relevant (highest relevance {best.relevance:.2f}): choose other "
            "start pages, or a critic of the same topic"
        )
    yield from start_page_warnings(pages, examples)


def start_page_warnings(pages: Sequence[StartPage], examples: Sequence[str]) -> Iterator[str]:
    """Yield a warning if all start pages are on one host, or are training examples."""
    judged = [page for page in pages if page.relevance is not None]
    hosts = {host(page.url) for page in judged}
    if len(hosts) == 1:
        all_of_them = "all start pages are" if len(judged) > 1 else "the only start page is"
        yield (
            f"{all_of_them} on {hosts.pop()}: the crawl fetches one page of a host at a time, and "
            "finds other hosts only through links; add start pages of other hosts"
        )
    seeds = {page.url for page in pages}
    if examples and seeds.issuperset(examples):
        yield (
            "the critic was trained on these start pages, so their high relevance does not show "
            "how good the critic is; judge pages of the crawl to check and improve the critic"
        )


@dataclass(frozen=True)
class CrawlPlan:
    """The start pages of a planned crawl with their relevance, and the cost of a fetch."""

    pages: tuple[StartPage, ...]  #: the start pages requested, the most relevant first
    seeds: int  #: number of seeds
    most: int  #: limit on start pages requested
    #: words of the relevant start pages with the most weight for the critic, if known
    words: str | None
    size: float  #: bytes on disk for each fetch
    live: bool  #: the crawl is of the live Web
    delay: float  #: seconds between two fetches of a host
    at_once: int  #: limit on requests in flight
    warnings: tuple[str, ...]  #: sentences of `plan_warnings`

    def format_lines(self, budget: int) -> list[str]:
        """Return the start pages and costs of the plan as lines for a terminal."""
        lines = format_start_pages(self.pages)
        if self.seeds > self.most:
            lines.append(
                format_fact(
                    "", f"not all of {self.seeds:,} seeds: --most {self.seeds} fetches all"
                )
            )
        return [
            *lines,
            *(format_fact(*fact) for fact in [*self._topic_words(), *self.cost_facts(budget)]),
        ]

    def facts(self, budget: int) -> list[tuple[str, str]]:
        """Return the numbers of the plan, such as costs, as pairs of name and value."""
        return [*host_facts(self.pages), *self._topic_words(), *self.cost_facts(budget)]

    def _topic_words(self) -> list[tuple[str, str]]:
        return [] if self.words is None else [("words", self.words)]

    def cost_facts(self, budget: int) -> list[tuple[str, str]]:
        """Return the estimated time and disk space for a budget, as pairs of name and value."""
        if not budget:
            return [("budget", "unlimited, so time and disk cannot be estimated")]
        hosts = {host(page.url) for page in self.pages if page.relevance is not None}
        if not hosts:
            return [("time", "unknown, because no start page was fetched")]
        fetches = pluralize(budget, "fetch")
        disk = ("disk", f"at most about {max(1, self.size * budget / 1e6):,.0f} MB for {fetches}")
        if not self.live:
            time = "less than a minute" if budget <= _FETCHES_PER_MINUTE else "minutes"
            return [("time", f"{time} (recorded web, no delays)"), disk]
        of_these = min(len(hosts), self.at_once)
        few, many = (
            timedelta(seconds=round(budget * self.delay / n)) for n in (of_these, self.at_once)
        )
        text = (
            f"at least {few} for {fetches} on these hosts, with {self.delay:g} s between fetches "
            f"of a host; {many} on many hosts"
        )
        return [("time", text), disk]

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes of the plan as JSON-serializable values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create a plan from the result of `to_dict`; raise UserError if a value is invalid."""
        try:
            pages = tuple(StartPage(**page) for page in values["pages"])
            return cls(**{**values, "pages": pages, "warnings": tuple(values["warnings"])})
        except (LookupError, TypeError) as error:
            raise UserError(f"these values are no plan of a crawl: {error}") from None
