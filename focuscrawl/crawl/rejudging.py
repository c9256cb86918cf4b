"""A crawl judged anew: its pages by another critic, its links by what that makes of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.first_visits import judge_page, score_links
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.crawl.parts.learning import model_row
from focuscrawl.crawl.restore import recalled
from focuscrawl.crawl.state import FAILED_IN_A_ROW
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.strategies import JudgedPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page.language import Languages
    from focuscrawl.store import CrawlStore, ModelRow
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web

logger = logging.getLogger(__name__)

_APART = 1.1  # fetches from a lesson to the next, as a ratio: a crawl has many times as many


@dataclass
class Rejudged:
    """What another critic makes of a crawl; nothing of it is in the store yet.

    Attributes
    ----------
    pages : (seq, relevance, topic) of the pages read again
    links : (id, score, model version) of their links; a score of None: not followed
    memos : (seq, what the strategy wants back of the page's links)
    urls : (URL, score, state) of those that wait, or would
    models : lessons of a strategy that learns
    unread : pages that could not be read or judged again, and keep their judgement
    moved : pages whose relevance went over 1/2, up or down
    """

    pages: list[tuple[int, float, str | None]] = field(default_factory=list)
    links: list[tuple[int, float | None, int]] = field(default_factory=list)
    memos: list[tuple[int, bytes | None]] = field(default_factory=list)
    urls: list[tuple[int, float | None, int]] = field(default_factory=list)
    models: list[ModelRow] = field(default_factory=list)
    unread: int = 0
    moved: tuple[int, int] = (0, 0)

    def describe(self) -> str:
        """Return the outcome in one line."""
        up, down = self.moved
        line = f"{len(self.pages)} pages judged anew: {up} now relevant, {down} no longer"
        return f"{line}; {self.unread} could not be read again" if self.unread else line


def check_readable(store: CrawlStore, webs: Sequence[Web]) -> None:
    """Raise `UserError` if a crawl has pages, and none of them can be read again.

    Parameters
    ----------
    webs : where its pages are, in the order to look for one
    """
    history = History(store)
    pages = [page for page in history.first_fetches() if page.is_page]
    source = PageSource(webs, [row.url for row in history.urls()])
    if pages and not any(source.read(page.url, page.digest or b"") for page in pages):
        raise _unreadable(store)


def _unreadable(store: CrawlStore) -> UserError:
    return UserError(
        f"{store.where}: none of its pages can be read again: record them with "
        "-s FOCUSCRAWL_WARC=1, or name a recording of them with --web"
    )


class Rejudging:
    """Goes through a crawl as if it had been judged by another critic from the start.

    The same pages in the same order, whatever would have been fetched instead; the strategy
    sees them anew, and its scores of what waits are what the crawl goes on with. A strategy
    that learns is given a lesson after every tenth more fetches.

    Parameters
    ----------
    store : of the crawl, which must not be fetching meanwhile
    webs : where the pages are read again, in the order to look for one
    critic, strategy : the new ones; the strategy has seen nothing yet
    languages : that the crawl is confined to
    on_page : called for every page
    """

    def __init__(
        self,
        store: CrawlStore,
        webs: Sequence[Web],
        *,
        critic: Critic,
        strategy: Strategy,
        languages: Languages,
        on_page: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._critic = critic
        self._strategy = strategy
        self._languages = languages
        self._on_page = on_page
        self._urls = [*History(store).urls()]
        self._source = PageSource(webs, [row.url for row in self._urls])
        self._scores = np.full(len(self._urls), np.nan)
        self._linked = np.zeros(len(self._urls), np.bool_)
        self._duplicates = Duplicates()
        self._found = Rejudged()
        self._failed_in_a_row = 0

    def run(self) -> Rejudged:
        """Judge every page, score every link.

        Raises
        ------
        UserError
            No page of the crawl can be read again.
        """
        up = down = 0
        lesson_at = 1.0
        history = History(self._store)
        last = history.n_fetches()
        for fetch in history.fetches():
            self._linked[[link.target for link in fetch.links]] = True
            if fetch.again:
                # of a page fetched twice, a recording answers with the first only
                self._recall(fetch)
                continue
            relevance = self._page(fetch)
            up += fetch.relevance <= RELEVANT < relevance
            down += relevance <= RELEVANT < fetch.relevance
            if (fetch.seq >= lesson_at or fetch.seq == last) and self._lesson():
                lesson_at = fetch.seq * _APART
            self._on_page()
        self._found.moved = up, down
        if self._found.unread and not self._found.pages:
            raise _unreadable(self._store)
        self._found.urls = [*self._states()]
        return self._found

    def _page(self, fetch: StoredFetch) -> float:
        """Judge one fetch, and score its links."""
        if fetch.digest is None or fetch.duplicate_of is not None:
            self._strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
            return fetch.relevance
        names = Duplicates.names(self._urls[fetch.url].url, fetch.canonical)
        self._duplicates.add(fetch.url, fetch.digest, names)
        targets = [link.target for link in fetch.links]
        read = self._source.read(fetch.url, fetch.digest, targets)
        if read is None:
            self._found.unread += 1
            self._strategy.observe(fetch.url, fetch.relevance, None)
            self._recall(fetch)
            return fetch.relevance
        view, places = read
        try:
            verdict = judge_page(self._critic, view, self._languages)
        except Exception as error:
            self._failed(fetch, error)
            self._found.unread += 1
            self._strategy.observe(fetch.url, fetch.relevance, None)
            self._recall(fetch)
            return fetch.relevance
        relevance, probabilities, topic, _ = verdict
        self._strategy.observe(fetch.url, relevance, None)
        self._found.pages.append((fetch.seq, relevance, topic))
        page = JudgedPage(
            view=view,
            url=fetch.url,
            seq=fetch.seq,
            depth=self._urls[fetch.url].depth,
            relevance=relevance,
            probabilities=probabilities,
            links=places,
            targets=np.array(targets, np.int64),
            referrer=self._urls[fetch.url].referrer,
        )
        try:
            expansion, scores = score_links(self._strategy, page)
        except Exception as error:
            self._failed(fetch, error)
            self._found.memos.append((fetch.seq, None))
            return relevance
        self._failed_in_a_row = 0
        self._scores[expansion.urls] = expansion.scores
        self._found.memos.append((fetch.seq, expansion.memo))
        version = self._strategy.model_version
        rows = zip(fetch.links, scores, strict=True)
        self._found.links += [(link.id, score, version) for link, score in rows]
        return relevance

    def _failed(self, fetch: StoredFetch, error: Exception) -> None:
        """Leave a page out that critic or strategy fails on; raise the error after many."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= FAILED_IN_A_ROW:
            raise error
        logger.warning("%s keeps what it had: critic or strategy failed: %r", fetch.name, error)

    def _recall(self, fetch: StoredFetch) -> None:
        """Let the strategy have a page as it was, which cannot be read again."""
        urls, scores = recalled(self._strategy, fetch)
        self._scores[urls] = scores

    def _lesson(self) -> bool:
        """Have the strategy learn if it is due."""
        if not self._strategy.lesson_due():
            return False
        lesson = self._strategy.learn()
        since, scores = self._strategy.adopt(lesson)
        self._scores[lesson.urls] = lesson.scores
        self._scores[since] = scores
        self._found.models.append(model_row(lesson))
        return True

    def _states(self) -> Sequence[tuple[int, float | None, int]]:
        """Return the URLs that wait with another score, or do no longer, or now do."""
        changed: list[tuple[int, float | None, int]] = []
        for url, stored in enumerate(self._urls):
            before, state, score = stored.score, stored.state, float(self._scores[url])
            if state == schema.QUEUED and before is None:
                continue  # a start URL comes first, whatever links to it
            if state == schema.QUEUED:
                if np.isfinite(score):
                    changed.append((url, score, state))
                elif self._found.pages and self._linked[url]:  # others were asked for
                    changed.append((url, None, schema.UNFOLLOWED))
            elif state == schema.UNFOLLOWED and np.isfinite(score):
                known = self._duplicates.stands_for(stored.url) is not None
                changed.append((url, score, schema.EXCLUDED if known else schema.QUEUED))
        return changed
