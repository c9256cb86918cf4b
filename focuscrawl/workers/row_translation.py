"""From the numbers of a worker to those of the store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focuscrawl.store.schema import EXCLUDED, FETCHED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from focuscrawl.store import VisitRecord
    from focuscrawl.workers.url_ids import SharedUrlTable

    Parts = Callable[[bytes | None, Sequence[NDArray[np.int64]]], Iterable[bytes | None]]

_LINKS = 40  # bits: a worker's own links are numbered from its number times two to this on


class StoreRows(NamedTuple):
    """What some records change, table by table, each row as its columns are in the schema.

    Attributes
    ----------
    urls : those the worker may queue; `strange` are URLs of other workers' hosts
    answers : what the next crawl wants to know of each of the pages; None: nothing
    evidence : rows without their ``id``
    """

    hosts: list[tuple[int, str]]
    urls: list[tuple[Any, ...]]
    strange: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    changes: dict[int, tuple[float | None, int]]
    pages: list[dict[str, Any]]
    answers: list[dict[str, Any] | None]
    evidence: list[dict[str, Any]]


def rows_of(
    records: Sequence[VisitRecord], urls: SharedUrlTable, worker: int, parts: Parts
) -> StoreRows:
    """Translate records; may run in any thread.

    Parameters
    ----------
    parts : see `focuscrawl.strategies.Strategy.parts`
    """
    ids, host_ids = urls.ids.data, urls.host_ids.data
    rows = StoreRows([], [], [], [], {}, [], [], [])
    for record in records:
        rows.hosts.extend((int(host_ids[i]), name) for i, name in record.hosts)
        for new in record.urls:
            referrer = None if new.referrer is None else int(ids[new.referrer])
            row = (
                int(ids[new.id]),
                new.url,
                int(host_ids[new.host]),
                new.depth,
                referrer,
                new.score,
                new.state,
            )
            (rows.strange if new.state == UNFOLLOWED else rows.urls).append(row)
            if new.state in (FETCHED, EXCLUDED):
                # new here only, maybe: the store has it as queued if another worker had its shard
                rows.changes[row[0]] = (new.score, new.state)
        rows.changes.update({int(ids[n]): (score, state) for n, score, state in record.changes})
        for link in record.links:
            rows.links.append(
                (
                    worker << _LINKS | link.id,
                    int(ids[link.source]),
                    int(ids[link.target]),
                    link.anchor.replace("\0", ""),  # PostgreSQL has no place for it
                    link.dom_position,
                    link.score,
                    link.model_version,
                )
            )
        if record.page is not None:
            rows.pages.append(_page(asdict(record.page), ids, worker))
            rows.answers.append(None if record.answer is None else _texts(asdict(record.answer)))
        rows.evidence.extend(_evidence(record, urls, worker, parts))
    rows.hosts.sort()  # in one order by all workers, so that they do not wait in a circle
    return rows


def _page(page: dict[str, Any], ids: NDArray[np.int64], worker: int) -> dict[str, Any]:
    del page["seq"]
    twin = page["duplicate_of"]
    return _texts(page) | {
        "url": int(ids[page["url"]]),
        "duplicate_of": None if twin is None else int(ids[twin]),
        "worker": worker,
    }


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose texts PostgreSQL can keep."""
    return {
        name: value.replace("\0", "") if isinstance(value, str) else value
        for name, value in row.items()
    }


def _evidence(
    record: VisitRecord, urls: SharedUrlTable, worker: int, parts: Parts
) -> Iterator[dict[str, Any]]:
    """Yield what the links of a page say, a row a shard; and URLs elsewhere that come next."""
    ids = urls.ids.data
    source = None if record.page is None else int(ids[record.page.url])
    relevance = 0.0 if record.page is None else record.page.relevance

    def row(
        targets: NDArray[np.int64], scores: NDArray[np.float64], applied_by: int
    ) -> dict[str, Any]:
        return {
            "shard": urls.shard(int(targets[0])),
            "applied_by": applied_by,
            "source": source,
            "relevance": relevance,
            "targets": ids[targets].astype("<i8").tobytes(),
            "scores": scores.astype("<f8").tobytes(),
            "memo": None,
        }

    if record.links:
        targets = np.array([link.target for link in record.links], np.int64)
        scores = np.array([-np.inf if link.score is None else link.score for link in record.links])
        shards = urls.shards_of(targets)
        order = np.argsort(shards, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(shards[order])) + 1)
        memos = parts(record.memo, groups) if len(groups) > 1 else [record.memo]
        for kept, memo in zip(groups, memos, strict=True):
            known_by = worker if int(shards[kept[0]]) in record.held else 0
            yield row(targets[kept], scores[kept], known_by) | {"memo": memo}
    for target in record.first:
        yield row(np.array([target]), np.array([np.inf]), 0)
