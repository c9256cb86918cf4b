"""From the store of a crawl that is over to the knowledge of its topic."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.distiller import Distiller, LinkGraph, Sites, stand_ins
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Collected, Collection
from focuscrawl.knowledge.update import WAITING
from focuscrawl.offline.training import learn_from
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from focuscrawl.store import CrawlStore

_DAY = 86_400.0  # seconds
_ANCHORS = 20  # of a page, the first: a template repeats them on every page
_ANCHOR = 80  # characters


def collection_of(
    store: CrawlStore, *, name: str, on_page: Callable[[], object] = lambda: None
) -> Collection:
    """Return a finished crawl as `focuscrawl.knowledge.learn` takes it; pages are streamed.

    Parameters
    ----------
    name : of the crawl, for people
    on_page : called for every page

    Raises
    ------
    UserError
        It fetched nothing.
    """
    identity = store.identity()
    p = schema.page.c
    found: list[Any] = [sa.func.min(p.fetched_at).label("first"), sa.func.count().label("n")]
    (pages,) = store.rows(sa.select(*found))
    if not pages.n:
        raise UserError(f"{store.where}: this crawl fetched nothing: nothing to learn from")
    about = "\n".join(f"{key}={identity[key]}" for key in sorted(identity))
    told = hashlib.blake2b(f"{about}\n{pages.first}".encode(), digest_size=16)
    replay = identity.get("web", "live") != "live"
    return Collection(
        id=told.hexdigest(),
        name=name,
        topic=identity.get("topic", ""),
        critic=identity.get("critic", ""),
        critic_name=identity.get("critic_name", ""),
        replay=replay,
        learned_at=pages.first[:19],
        fetches=_fetches(store, on_page),
        waiting=_waiting(store),
        graduate=_graduate(store),
    )


def _graduate(store: CrawlStore) -> bytes | None:
    """Return what the crawl's apprentice has learned; None if there was none, or no lesson."""
    if store.identity().get("strategy") != "apprentice":
        return None
    m = schema.models.c
    if not [*store.rows(sa.select(m.version).limit(1))]:
        return None
    return learn_from(store, go_on=True).export()


@dataclass
class _Anchors:
    """Texts of the links into each URL, streamed in the order of the URLs."""

    store: CrawlStore
    _groups: Iterator[tuple[int, Any]] = field(init=False)
    _next: tuple[int, Any] | None = None

    def __post_init__(self) -> None:
        link = schema.link.c
        rows = self.store.rows(sa.select(link.target, link.anchor).order_by(link.target, link.id))
        self._groups = itertools.groupby(rows, key=lambda row: row.target)
        self._next = next(self._groups, None)

    def of(self, url: int) -> tuple[str, ...]:
        """Return those of a URL; numbers come in ascending order."""
        while self._next is not None and self._next[0] < url:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != url:
            return ()
        distinct: dict[str, None] = {}
        for row in itertools.islice(self._next[1], 10 * _ANCHORS):
            if row.anchor:
                distinct[row.anchor[:_ANCHOR]] = None
        return tuple(itertools.islice(distinct, _ANCHORS))


def _fetches(store: CrawlStore, on_page: Callable[[], object]) -> Iterator[Collected]:
    hub, authority = _prestige(store)
    p, u = schema.page.c, schema.url.c
    columns: list[Any] = [
        u.id,
        u.url,
        p.status,
        p.relevance,
        p.title,
        p.fetched_at,
        p.duplicate_of,
        p.digest,
    ]
    statement = sa.select(*columns).join(schema.url, u.id == p.url)
    a = schema.answer.c
    if sa.inspect(store.engine).has_table(schema.answer.name):
        statement = statement.add_columns(a.content, a.headings, a.etag, a.last_modified)
        statement = statement.outerjoin(schema.answer, a.seq == p.seq)
    else:  # a crawl of an older version: its text was not kept, its bytes have to do
        nothing = sa.null()
        statement = statement.add_columns(
            p.digest.label("content"),
            nothing.label("headings"),
            nothing.label("etag"),
            nothing.label("last_modified"),
        )
    anchors = _Anchors(store)
    for row in store.rows(statement.order_by(u.id)):
        on_page()
        is_page = row.digest is not None and row.duplicate_of is None
        headings = (row.headings or "").splitlines() if is_page else []
        yield Collected(
            url=row.url,
            status=row.status,
            relevance=row.relevance,
            content=(row.content or row.digest) if is_page else None,
            etag=row.etag,
            last_modified=row.last_modified,
            day=datetime.fromisoformat(row.fetched_at).timestamp() / _DAY,
            texts=(row.title or "", *headings) if is_page else (),
            anchors=anchors.of(row.id) if is_page else (),
            hub=float(hub[row.id]),
            authority=float(authority[row.id]),
        )


def _prestige(store: CrawlStore) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return hub and authority scores by URL, over the greatest (METHODS 7)."""
    link, p, u = schema.link.c, schema.page.c, schema.url.c
    links = _table(store, sa.select(link.source, link.target).order_by(link.id), 2)
    fetches = _table(store, sa.select(p.url, p.relevance, sa.func.coalesce(p.duplicate_of, -1)), 3)
    urls = _table(store, sa.select(u.host, sa.func.coalesce(u.referrer, -1)).order_by(u.id), 2)
    source, target = links.astype(np.int64).T
    page, repeats = fetches[:, 0].astype(np.int64), fetches[:, 2].astype(np.int64)
    host, referrer = urls.astype(np.int64).T
    relevance = np.full(len(urls), np.nan)
    relevance[page] = fetches[:, 1]
    target = stand_ins(page, repeats, referrer, source)[target]
    sites = Sites.fitting(source, target, host)
    scores = Distiller(LinkGraph(source, target, sites.of_pages, relevance)).distill()
    return _over_greatest(scores.hubs), _over_greatest(scores.authorities)


def _over_greatest(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores / max(float(scores.max(initial=0.0)), 1e-12)


def _table(store: CrawlStore, statement: sa.Select[Any], width: int) -> NDArray[np.float64]:
    flat = itertools.chain.from_iterable(store.rows(statement))
    return np.fromiter(flat, np.float64).reshape(-1, width)


def _waiting(store: CrawlStore) -> Iterator[tuple[str, float]]:
    """Yield the best URLs that the crawl did not come to."""
    u = schema.url.c
    statement = (
        sa.select(u.url, u.score)
        .where(u.state == schema.QUEUED, u.score.is_not(None))
        .order_by(u.score.desc(), u.id)
        .limit(WAITING)
    )
    for row in store.rows(statement):
        yield row.url, min(max(row.score, 0.0), 1.0)
