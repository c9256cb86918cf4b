"""A crawl judged anew: its pages by another critic, its links by what that makes of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.duplicates import DIGEST, Duplicates
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.errors import UserError
from focuscrawl.store import ModelRow, schema
from focuscrawl.store.history import LinkHistory, fetched_again
from focuscrawl.strategies import JudgedPage, RecalledPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web

    Row = sa.Row[Any]

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
    unread : pages that could not be read again, and keep their judgement
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


class Rejudging:
    """Goes through a crawl as if it had been judged by another critic from the start.

    The same pages in the same order, whatever would have been fetched instead; the strategy
    sees them anew, and its scores of what waits are what the crawl goes on with. A strategy
    that learns is given a lesson after every tenth more fetches.

    Parameters
    ----------
    store : of the crawl, which must not be fetching meanwhile
    web : where the pages are read again
    critic, strategy : the new ones; the strategy has seen nothing yet
    on_page : called for every page
    """

    def __init__(
        self,
        store: CrawlStore,
        web: Web,
        *,
        critic: Critic,
        strategy: Strategy,
        on_page: Callable[[], object] = lambda: None,
    ) -> None:
        u = schema.url.c
        rows = sa.select(u.url, u.depth, u.score, u.state).order_by(u.id)
        urls = [tuple(row) for row in store.rows(rows)]
        self._store = store
        self._critic = critic
        self._strategy = strategy
        self._on_page = on_page
        self._urls: list[str] = [row[0] for row in urls]
        self._depth = [row[1] for row in urls]
        self._waiting = [(row[2], row[3]) for row in urls]
        self._source = PageSource(web, self._urls)
        self._scores = np.full(len(urls), np.nan)
        self._duplicates = Duplicates()
        self._found = Rejudged()

    def run(self) -> Rejudged:
        """Judge every page, score every link.

        Raises
        ------
        UserError
            No page of the crawl can be read again.
        """
        p, memo = schema.page.c, schema.memo.c
        pages = (
            sa.select(p.seq, p.url, p.relevance, p.canonical, p.digest, p.duplicate_of, memo.data)
            .outerjoin(schema.memo, memo.seq == p.seq)
            .order_by(p.seq)
        )
        found, again = LinkHistory(self._store), fetched_again(self._store)
        rows = [*self._store.rows(pages)]
        up = down = 0
        lesson_at = 1.0
        for row in rows:
            relevance = self._page(row, found.of(row.url))
            up += row.relevance <= 0.5 < relevance
            down += relevance <= 0.5 < row.relevance
            if (row.seq >= lesson_at or row is rows[-1]) and self._lesson():
                lesson_at = row.seq * _APART
            for later in again.get(row.seq, ()):
                # of a page fetched twice, a recording answers with the first only
                self._recall(later, found.of(later.url) if later.links else [])
            self._on_page()
        self._found.moved = up, down
        if self._found.unread and not self._found.pages:
            raise UserError(
                f"{self._store.where}: none of its pages can be read again: record them with "
                "-s FOCUSCRAWL_WARC=1, or name their web with --web"
            )
        self._found.urls = [*self._states()]
        return self._found

    def _page(self, row: Row, links: Sequence[Row]) -> float:
        """Judge one fetch, and score its links."""
        url, relevance = row.url, float(row.relevance)
        if row.digest is None or row.duplicate_of is not None:
            self._strategy.observe(url, relevance, row.duplicate_of)
            return relevance
        body = row.digest[:DIGEST]  # a sketch follows
        self._duplicates.add(url, body, Duplicates.names(self._urls[url], row.canonical))
        read = self._source.read(url, body, [link.target for link in links])
        if read is None:
            self._found.unread += 1
            self._strategy.observe(url, relevance, None)
            self._recall(row, links)
            return relevance
        view, numbers = read
        judged = self._critic.judge([view])
        relevance = float(judged.relevance[0])
        probabilities = None if judged.probabilities is None else judged.probabilities[0]
        topic = None
        if probabilities is not None:
            topic = self._critic.classes[int(np.argmax(probabilities))]
        self._strategy.observe(url, relevance, None)
        self._found.pages.append((row.seq, relevance, topic))
        judged_page = JudgedPage(
            view=view,
            url=url,
            seq=row.seq,
            depth=self._depth[url],
            relevance=relevance,
            probabilities=probabilities,
            links=numbers,
            targets=np.array([link.target for link in links], np.int64),
        )
        self._expand(judged_page, links)
        return relevance

    def _expand(self, page: JudgedPage, links: Sequence[Row]) -> None:
        """Score the links of a page."""
        version = self._strategy.model_version
        expansion = self._strategy.expand(page)
        self._scores[expansion.urls] = expansion.scores
        self._found.memos.append((page.seq, expansion.memo))
        for link, score in zip(links, expansion.link_scores.tolist(), strict=True):
            self._found.links.append((link.id, score if np.isfinite(score) else None, version))

    def _recall(self, row: Row, links: Sequence[Row]) -> None:
        """Let the strategy have a page as it was, which cannot be read again."""
        if links or row.data is not None:
            urls, scores = self._strategy.recall(
                RecalledPage(
                    url=row.url,
                    seq=row.seq,
                    relevance=float(row.relevance),
                    targets=np.array([link.target for link in links], np.int64),
                    link_scores=np.array(
                        [-np.inf if link.score is None else link.score for link in links]
                    ),
                    memo=row.data,
                )
            )
            self._scores[urls] = scores

    def _lesson(self) -> bool:
        """Have the strategy learn if it is due."""
        strategy = self._strategy
        if not strategy.learns or not strategy.lesson_due():
            return False
        lesson = strategy.learn()
        since, scores = strategy.adopt(lesson)
        self._scores[lesson.urls] = lesson.scores
        self._scores[since] = scores
        self._found.models.append(
            ModelRow(
                version=lesson.version,
                trained_at_seq=lesson.trained_at_seq,
                instances=lesson.instances,
                metrics=json.dumps(dict(lesson.metrics)),
                state=lesson.state,
            )
        )
        return True

    def _states(self) -> Sequence[tuple[int, float | None, int]]:
        """Return the URLs that wait with another score, or do no longer, or now do."""
        changed: list[tuple[int, float | None, int]] = []
        for url, (before, state) in enumerate(self._waiting):
            score = float(self._scores[url])
            if state == schema.QUEUED and before is None:
                continue  # a start URL comes first, whatever links to it
            if state == schema.QUEUED:
                if np.isfinite(score):
                    changed.append((url, score, state))
                elif self._found.pages:
                    changed.append((url, None, schema.UNFOLLOWED))
            elif state == schema.UNFOLLOWED and np.isfinite(score):
                known = self._duplicates.stands_for(self._urls[url]) is not None
                changed.append((url, score, schema.EXCLUDED if known else schema.QUEUED))
        return changed
