"""Processes the response to the first fetch of a URL: judges the page and queues its links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates, text_signature
from focuscrawl.crawl.scope import OTHER_LANGUAGE, has_allowed_length, select_links
from focuscrawl.crawl.state import refresh_target
from focuscrawl.crawl.visit import META_REFRESH, NOINDEX, NOT_MODIFIED, make_answer_row
from focuscrawl.page.documents import SITE_MAP_INDEX, URL_LIST_KINDS
from focuscrawl.store import VisitRecord
from focuscrawl.store.schema import EXCLUDED, FETCHED, LinkRow
from focuscrawl.strategies import JudgedPage

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit, Visit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.page import PageView
    from focuscrawl.page.metadata import LanguageFilter
    from focuscrawl.strategies import Expansion, Strategy


CRITIC, STRATEGY = "critic", "strategy"
_CHUNK = 1000  # URLs that are queued in a few milliseconds


class Verdict(NamedTuple):
    """The critic's judgement of a page."""

    relevance: float  # 0 if the crawl does not accept the page's language
    probabilities: Floats | None  # posteriors of the critic's classes
    topic: str | None  # most probable class
    other_language: str | None = None  # language that the crawl does not accept


class ScoredLinks(NamedTuple):
    """A strategy's scores of the links of a page; the score of a link not followed is None."""

    expansion: Expansion
    scores: list[float | None]


def judge_page(critic: Critic, view: PageView, languages: LanguageFilter) -> Verdict:
    """Return a critic's judgement of a page; pages in a language not accepted have relevance 0.

    Raises
    ------
    ValueError
        The critic's relevance is not between 0 and 1. Critics may raise other errors.
    """
    judgement = critic.judge([view])
    other = languages.excluded_language(view)
    relevance = float(judgement.relevance[0])
    if not 0.0 <= relevance <= 1.0:
        raise ValueError(f"the critic's relevance {relevance} is not between 0 and 1")
    if other is not None:
        relevance = 0.0
    if judgement.probabilities is None:
        return Verdict(relevance, None, None, other)
    probabilities = judgement.probabilities[0]
    topic = critic.classes[int(np.argmax(probabilities))]
    return Verdict(relevance, probabilities, topic, other)


def judge_visit(crawl: CrawlState, visit: PageVisit, view: PageView) -> Verdict | None:
    """Return the critic's judgement of the fetched page; None if the critic raises an error."""
    try:
        return judge_page(crawl.critic, view, crawl.scope.languages)
    except Exception as error:
        crawl.log_failure(visit, CRITIC, error)
        visit.error, visit.view, visit.digest = visit.failure, None, None
        return None


class FirstVisits:
    """Processes the responses to the first fetch of each URL.

    Redirects, errors, duplicates and responses that are not pages have relevance 0 (methods.md 1).

    Parameters
    ----------
    known_relevance : callable or None
        Returns the relevance of a URL in earlier crawls.
    """

    def __init__(self, crawl: CrawlState, known_relevance: Callable[[str], float] | None) -> None:
        self._crawl = crawl
        self._known_relevance = known_relevance

    def judge(self, visit: PageVisit) -> None:
        """Classify the response to a fetch, and let the critic judge the page."""
        if visit.view is not None and visit.view.kind in URL_LIST_KINDS:
            self._process_site_map(visit, visit.view)
            return
        visit.refresh = refresh_target(visit, self._crawl.config.meta_refresh)
        if visit.refresh is not None:
            visit.view = None
        elif visit.view is not None:
            self._judge_page(visit, visit.view)
        elif visit.status == NOT_MODIFIED and self._known_relevance is not None:
            visit.relevance = self._known_relevance(visit.url)
        elif 200 <= visit.status < 300:
            visit.error = visit.error or "no HTML"

    def _judge_page(self, visit: PageVisit, view: PageView) -> None:
        crawl = self._crawl
        visit.title = view.title
        visit.noindex = view.noindex and self._crawl.config.obey_meta_robots
        if visit.noindex:
            visit.events.append((NOINDEX, view.title))
        visit.links = visit.dropped = len(view.links) + view.links_cut
        visit.digest = Duplicates.digest(visit.download.body)
        if view.canonical is not None and has_allowed_length(view.canonical):
            visit.canonical = crawl.resolve([view.canonical])[0] or view.canonical
        names = Duplicates.known_urls(visit.url, visit.canonical)
        signature = text_signature(view.words)
        original = crawl.duplicates.find(visit.digest, names, signature)
        if original is not None:
            visit.duplicate_id, visit.same_bytes = original
            visit.duplicate_of = crawl.urls[original.url_id]
            crawl.duplicates.add_copy(visit.url_id, original.url_id)
            return
        verdict = judge_visit(crawl, visit, view)
        if verdict is None:
            return
        visit.other_language = verdict.other_language
        if verdict.other_language is not None:
            visit.events.append((OTHER_LANGUAGE, f"{visit.url}: {verdict.other_language}"))
        visit.signature = signature
        crawl.duplicates.add(visit.url_id, visit.digest, names, signature)
        visit.relevance, visit.probabilities, visit.topic, _ = verdict
        for part in crawl.parts:
            part.on_judged(visit)
        visit.answer = make_answer_row(view, visit.download)

    def _process_site_map(self, visit: PageVisit, view: PageView) -> None:
        # not a page, so the relevance is 0, but the links are followed
        visit.title, visit.error = view.title, view.kind
        visit.links = visit.dropped = len(view.links) + view.links_cut
        self._add_probabilities(visit, view)
        for part in self._crawl.parts:
            part.on_judged(visit)

    def _add_probabilities(self, visit: PageVisit, view: PageView) -> None:
        # strategies need them to score the links of a visit that has no relevance
        try:
            probabilities = self._crawl.critic.judge([view]).probabilities
        except Exception as error:
            self._crawl.log_failure(visit, CRITIC, error)
        else:
            visit.probabilities = None if probabilities is None else probabilities[0]

    def start_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Report the fetch to the strategy; return the page if the page's links must be scored."""
        if visit.is_redirect:
            self._follow_redirect(visit)
        try:
            self._crawl.strategy.observe(visit.url_id, visit.relevance, visit.duplicate_id)
        except Exception as error:
            self._crawl.log_failure(visit, STRATEGY, error)
            return None
        if visit.view is None or visit.view.kind == SITE_MAP_INDEX:
            return None
        if visit.duplicate_id is None:
            found = followed_links(self._crawl, visit.view, visit.depth, visit.requested)
        else:
            found = self._links_of_copy(visit, visit.view)
            if not found:
                return None
            self._add_probabilities(visit, visit.view)
        visit.dropped = visit.links - len(found)
        return make_judged_page(self._crawl, visit, visit.view, found)

    def _links_of_copy(self, visit: PageVisit, view: PageView) -> dict[int, str]:
        """Return the links of a duplicate with the same bytes that the first page does not have.

        These are relative links, which resolve to other URLs in another folder or on another host.
        The URLs of the first page's links are known. No links are returned if the page names the
        first page as its canonical URL. The same holds if the page was found by way of another
        duplicate of that page: the links of a page that leads to itself never end.
        """
        crawl, original = self._crawl, visit.duplicate_id
        assert original is not None
        if not visit.same_bytes or visit.canonical == visit.duplicate_of:
            return {}
        at = visit.url_id
        # a referrer has a smaller id, except in a damaged store
        while (before := crawl.urls.referrer_id(at)) is not None and before < at:
            if crawl.duplicates.is_copy(before, original):
                return {}
            at = before
        found = followed_links(crawl, view, visit.depth, visit.requested)
        return {at: url for at, url in found.items() if crawl.urls.get(url) is None}

    def _follow_redirect(self, visit: PageVisit) -> None:
        # the target of a redirect is fetched next
        crawl, location = self._crawl, visit.location
        target = None if location is None else crawl.follow([location])[0]
        visit.links = visit.dropped = int(location is not None)
        visit.error = crawl.redirects.refusal_reason(visit.url_id, location, target)
        if target is not None and visit.error is None and visit.follows_redirect:
            visit.dropped = 0
            new = crawl.urls.add(target, visit.depth, visit.url_id)
            if new not in crawl.in_flight and crawl.queue(new, math.inf):
                visit.newly_queued.append(math.inf)
        if visit.refresh is not None:
            visit.error = visit.error or f"{META_REFRESH}: {visit.refresh}"

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Record all changes caused by a fetch in one transaction."""
        crawl = self._crawl
        if visit.excluded is not None:
            crawl.frontier.release(visit.url_id, now)
            crawl.urls.set_state(visit.url_id, EXCLUDED, crawl.urls.score(visit.url_id))
            crawl.record_event("excluded", f"{visit.url}: {visit.excluded}")
            return visit
        visit.seq = crawl.fetched + 1
        visit.set_fetch_time()
        for part in crawl.parts:
            part.before_record(visit)
        crawl.frontier.release(visit.url_id, now)
        crawl.urls.set_state(visit.url_id, FETCHED, crawl.urls.score(visit.url_id))
        crawl.count(visit.seq, visit.relevance, visit.status)
        events = [(visit.seq, kind, detail) for kind, detail in visit.events]
        crawl.put(
            VisitRecord(
                visit.to_row(),
                links=visit.link_rows,
                memo=visit.memo,
                answer=visit.answer,
                events=events,
            )
        )
        return visit


def followed_links(
    crawl: CrawlState, view: PageView, depth: int, requested: frozenset[str] | None = None
) -> dict[int, str]:
    """Return the URLs to which the followed links of a page lead, by position of the link."""
    config = crawl.config
    if requested is None and not crawl.scope.follows_links_at(depth):
        return {}
    urls = (crawl.follow if requested is None else crawl.resolve)(view.links.urls)
    any_media = config.any_media or requested is not None
    found = select_links(
        view, urls, any_media=any_media, pdf=config.pdf, obey_robots=config.obey_meta_robots
    )
    if requested is None:
        return found
    return {at: url for at, url in found.items() if url in requested}


def make_judged_page(
    crawl: CrawlState, visit: PageVisit, view: PageView, found: Mapping[int, str]
) -> JudgedPage:
    """Create the judged page that is passed to the strategy.

    Parameters
    ----------
    found : mapping of int to str
        Targets of the links that are followed, by position of the link.
    """
    targets = [crawl.urls.add(url, visit.depth + 1, visit.url_id) for url in found.values()]
    return JudgedPage(
        view=view,
        url=visit.url_id,
        seq=crawl.fetched + 1,
        depth=visit.depth,
        relevance=visit.relevance if visit.link_relevance is None else visit.link_relevance,
        probabilities=visit.probabilities,
        links=np.array([*found], dtype=np.int64),
        targets=np.array(targets, dtype=np.int64),
        referrer=crawl.urls.referrer_id(visit.url_id),
    )


def queue_links(
    crawl: CrawlState, visit: PageVisit, page: JudgedPage, scored: ScoredLinks
) -> Iterator[None]:
    """Queue the scored link targets of a page; each step of the iterator queues up to 1,000."""
    expansion, scores = scored
    visit.link_rows = [*_link_rows(page, scores, crawl.model_version, crawl.links)]
    visit.memo = expansion.memo
    crawl.links += len(page.links)
    waiting = iter(crawl.urls.queueable(expansion.urls, expansion.scores))
    while some := [*islice(waiting, _CHUNK)]:
        for target, score in some:
            if crawl.queue(target, score):
                visit.newly_queued.append(score)
        yield


def score_links(strategy: Strategy, page: JudgedPage) -> ScoredLinks:
    """Return a strategy's scores of the links of a page.

    Raises
    ------
    ValueError
        A score is neither a number nor -inf.
    """
    expansion = strategy.expand(page)
    scores = expansion.link_scores.tolist()
    if not (expansion.link_scores < np.inf).all():
        raise ValueError(
            f"strategy {type(strategy).__name__}: the score of a link must be a number or -inf, "
            "not nan or inf"
        )
    return ScoredLinks(expansion, [score if math.isfinite(score) else None for score in scores])


def _link_rows(
    page: JudgedPage, scores: list[float | None], version: int, first: int
) -> Iterable[LinkRow]:
    anchors, n = page.view.links.anchors, len(page.links)
    columns = zip(
        range(first, first + n),
        [page.url] * n,
        page.targets.tolist(),
        [anchors[i] for i in page.links.tolist()],
        page.view.links.left[page.links].tolist(),
        scores,
        [version] * n,
        strict=True,
    )
    return map(LinkRow._make, columns)
