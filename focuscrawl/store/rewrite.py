"""A crawl's judgements and scores written over, in one transaction."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, insert, update

from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Engine

    from focuscrawl.store.records import ModelRow

_PAGE = (
    update(schema.page)
    .where(schema.page.c.seq == bindparam("_seq"))
    .values(relevance=bindparam("_relevance"), topic=bindparam("_topic"))
)
_LINK = (
    update(schema.link)
    .where(schema.link.c.id == bindparam("_id"))
    .values(score=bindparam("_score"), model_version=bindparam("_version"))
)
_URL = (
    update(schema.url)
    .where(schema.url.c.id == bindparam("_id"))
    .values(score=bindparam("_score"), state=bindparam("_state"))
)


def rewrite(
    engine: Engine,
    *,
    pages: Iterable[tuple[int, float, str | None]],
    links: Iterable[tuple[int, float | None, int]],
    memos: Iterable[tuple[int, bytes | None]],
    urls: Iterable[tuple[int, float | None, int]],
    models: list[ModelRow],
    identity: Mapping[str, str],
    event: tuple[int, str, str],
) -> None:
    """Write what another critic makes of a crawl; all of it or nothing.

    Parameters
    ----------
    pages, links, memos, urls : rows to change, see `focuscrawl.crawl.rejudging.Rejudged`
    models : they take the place of those that there are
    identity : what to change of what the crawl was begun with, or to add to it
    event : (seq, kind, detail)
    """
    memos = list(memos)
    batches = (
        (_PAGE, [dict(zip(("_seq", "_relevance", "_topic"), row, strict=True)) for row in pages]),
        (_LINK, [dict(zip(("_id", "_score", "_version"), row, strict=True)) for row in links]),
        (_URL, [dict(zip(("_id", "_score", "_state"), row, strict=True)) for row in urls]),
        (
            delete(schema.memo).where(schema.memo.c.seq == bindparam("_seq")),
            [{"_seq": seq} for seq, _ in memos],
        ),
        (
            insert(schema.memo),
            [{"seq": seq, "data": data} for seq, data in memos if data is not None],
        ),
    )
    kept = [dataclasses.asdict(model) for model in models]
    for model in kept[:-1]:
        model["state"] = None
    seq, kind, detail = event
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    with engine.begin() as connection:
        for statement, rows in batches:
            if rows:
                connection.execute(statement, rows)
        connection.execute(delete(schema.models))
        if kept:
            connection.execute(insert(schema.models), kept)
        connection.execute(delete(schema.meta).where(schema.meta.c.key.in_(list(identity))))
        if identity:
            meta = [{"key": key, "value": value} for key, value in identity.items()]
            connection.execute(insert(schema.meta), meta)
        event_row = {"at": at, "seq": seq, "kind": kind, "detail": detail}
        connection.execute(insert(schema.events), [event_row])
