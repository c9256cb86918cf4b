"""Reads the data of a finished crawl that a knowledge file stores, such as pages and hubs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from focuscrawl.distiller import Distiller
from focuscrawl.errors import UserError
from focuscrawl.knowledge import CrawlRecord, FetchRecord
from focuscrawl.knowledge.update import MAX_QUEUED
from focuscrawl.offline.apprentice_training import train_apprentice
from focuscrawl.offline.link_graph import CrawlLinks
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.store import CrawlStore

_DAY = 86_400.0  # seconds
_MAX_ANCHORS = 20  # anchors of links into a page
_MAX_ANCHOR_LENGTH = 80  # characters


def read_crawl_record(
    store: CrawlStore, *, name: str, on_page: Callable[[], object] = lambda: None
) -> CrawlRecord:
    """Return the data of a finished crawl as `focuscrawl.knowledge.add_crawl` needs it.

    Raises
    ------
    UserError
        The crawl has no fetches.
    """
    identity = store.identity()
    (first,) = store.row("SELECT min(fetched_at) FROM page")
    if first is None:
        raise UserError(f"{store.location}: this crawl has no fetches: start the crawl first")
    settings = "\n".join(f"{key}={identity[key]}" for key in sorted(identity))
    digest = hashlib.blake2b(f"{settings}\n{first}".encode(), digest_size=16)
    replay = identity.get("web", "live") != "live"
    return CrawlRecord(
        id=digest.hexdigest(),
        name=name,
        topic=identity.get("topic", ""),
        critic=identity.get("critic", ""),
        critic_name=identity.get("critic_name", ""),
        replay=replay,
        learned_at=first[:19],
        fetches=_fetches(store, on_page),
        queued=_queued_urls(store),
        trained_apprentice=_train_apprentice(store),
    )


def _train_apprentice(store: CrawlStore) -> bytes | None:
    """Return the apprentice of the crawl; None without an apprentice or without training."""
    if store.identity().get("strategy") != "apprentice":
        return None
    if History(store).last_model() is None:
        return None
    return train_apprentice(store, warm_start=True).export()


def _fetches(store: CrawlStore, on_page: Callable[[], object]) -> Iterator[FetchRecord]:
    history = History(store)
    hub, authority = _prestige(store)
    anchors = itertools.groupby(history.anchors(), key=itemgetter(0))
    target, texts = next(anchors, (None, iter(())))
    for row in history.answers():
        on_page()
        while target is not None and target < row.url:
            target, texts = next(anchors, (None, iter(())))
        headings = (row.headings or "").splitlines()
        yield FetchRecord(
            url=row.name,
            status=row.status,
            relevance=row.relevance,
            content=row.content if row.is_page else None,
            etag=row.etag,
            last_modified=row.last_modified,
            day=datetime.fromisoformat(row.fetched_at).timestamp() / _DAY,
            texts=(row.title or "", *headings) if row.is_page else (),
            anchors=_distinct(texts) if row.is_page and target == row.url else (),
            hub=float(hub[row.url]),
            authority=float(authority[row.url]),
        )


def _distinct(links: Iterator[tuple[int, str]]) -> tuple[str, ...]:
    """Return the first distinct anchors of links, shortened to `_MAX_ANCHOR_LENGTH`."""
    first = itertools.islice(links, 10 * _MAX_ANCHORS)
    texts = (text[:_MAX_ANCHOR_LENGTH] for _, text in first if text)
    return tuple(itertools.islice(dict.fromkeys(texts), _MAX_ANCHORS))


def _prestige(store: CrawlStore) -> tuple[Floats, Floats]:
    """Return hub and authority scores by URL, divided by the largest score (methods.md 7)."""
    links = CrawlLinks.from_store(store)
    scores = Distiller(links.graph(links.sites())).distill()
    return _divide_by_max(scores.hubs), _divide_by_max(scores.authorities)


def _divide_by_max(scores: Floats) -> Floats:
    return scores / max(float(scores.max(initial=0.0)), 1e-12)


def _queued_urls(store: CrawlStore) -> Iterator[tuple[str, float]]:
    """Yield the queued URLs with the best scores."""
    best = """SELECT url, score FROM url WHERE state = ? AND score IS NOT NULL
              ORDER BY score DESC, id LIMIT ?"""
    for url, score in store.rows(best, (QUEUED, MAX_QUEUED)):
        yield url, min(max(score, 0.0), 1.0)
