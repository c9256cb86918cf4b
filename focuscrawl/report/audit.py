"""Judges all pages of a recording, to find off-topic pages and hosts (``focuscrawl audit``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.corpus import process_pages
from focuscrawl.critic.critic_files import load_critic
from focuscrawl.foundation.urls import host
from focuscrawl.foundation.user_input import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.webs.web_protocol import HtmlAnswer, Web

NO_PAGE, TOO_HARD = "redirects, errors and files of other types", "pages that cannot be parsed"


class AuditedPage(NamedTuple):
    """A page of a recording with its relevance."""

    url: str
    relevance: float
    title: str


class AuditedHost(NamedTuple):
    """The pages of a host: their number, how many are off-topic, and their mean relevance."""

    host: str
    pages: int
    off_topic: int
    relevance: float


@dataclass(frozen=True)
class Audit:
    """The relevance of the pages of a recording.

    Attributes
    ----------
    pages : list of AuditedPage
        The judged pages, the least relevant first.
    skipped : Counter of str
        Number of recorded URLs that were not judged, by reason.
    min_relevance : float
        Pages with a lower relevance are off-topic.
    """

    pages: list[AuditedPage]
    skipped: Counter[str]
    min_relevance: float

    @property
    def off_topic(self) -> list[AuditedPage]:
        """The off-topic pages, the least relevant first."""
        return [page for page in self.pages if page.relevance < self.min_relevance]

    def hosts(self) -> list[AuditedHost]:
        """Return all hosts, those with the most off-topic pages first."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        for page in self.pages:
            found[host(page.url)].append(page.relevance)
        hosts = [
            AuditedHost(
                name, len(values), sum(each < self.min_relevance for each in values), fmean(values)
            )
            for name, values in found.items()
        ]
        return sorted(hosts, key=lambda each: (-each.off_topic, each.relevance, each.host))


def audit_web(
    web: Web,
    critic: str,
    topic: str,
    *,
    min_relevance: float = 0.5,
    processes: int = 1,
    progress: Progress = NO_PROGRESS,
) -> Audit:
    """Judge every page of a recording.

    Parameters
    ----------
    critic, topic : str
        The critic and its relevant topics; see `focuscrawl.critic.critic_files.load_critic`.
    processes : int
        Number of processes that parse and judge pages.

    Raises
    ------
    UserError
        The critic cannot be loaded.
    """
    load_critic(critic, topic)  # before child processes start
    urls = [*web.urls()]
    progress.start(len(urls))
    pages: list[AuditedPage] = []
    skipped: Counter[str] = Counter()
    for judged in process_pages(web, urls, partial(_judge, critic, topic), processes):
        progress.advance(len(judged))
        for each in judged:
            if isinstance(each, str):
                skipped[each] += 1
            else:
                pages.append(each)
    pages.sort(key=lambda page: (page.relevance, page.url))
    return Audit(pages, skipped, min_relevance)


def _judge(
    critic: str, topic: str, _urls: Sequence[str], answers: list[HtmlAnswer | None]
) -> list[AuditedPage | str]:
    """Return each page with its relevance, or the reason why the response was not judged."""
    views = [None if each is None else each.parse() for each in answers]
    pages = [view for view in views if view is not None]
    relevance = iter(_load(critic, topic).judge(pages).relevance.tolist() if pages else [])
    return [
        AuditedPage(view.url, next(relevance), view.title)
        if view is not None
        else NO_PAGE
        if answer is None
        else TOO_HARD
        for answer, view in zip(answers, views, strict=True)
    ]


@lru_cache(1)
def _load(critic: str, topic: str) -> Critic:
    return load_critic(critic, topic)
