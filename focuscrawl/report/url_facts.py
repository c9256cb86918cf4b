"""What the store says of one URL, and of its fetch if there was one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.report.outcome import outcome
from focuscrawl.report.url_lookup import find_url
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_FETCH = ("seq", "status", "relevance", "topic", "score", "fetched_at", "content_type", "size",
          "title", "canonical", "error", "links", "dropped")  # fmt: skip


def url_facts(store: CrawlStore, text: str) -> dict[str, Any]:
    """Return what is known of the URL that `text` means; what is read does not grow.

    Returns
    -------
    ``number``, ``url``, ``host``, ``state``, ``depth``, ``score``, ``referrer``; and ``fetch``,
    None if there was none, with the columns of the table ``page``, ``outcome`` and
    ``duplicate_of``, a URL or None.

    Raises
    ------
    UserError
        The crawl has never seen it; the message says what comes near.
    """
    u, p, h = schema.url.c, schema.page.c, schema.host.c
    row = find_url(store, text)
    host = store.row(sa.select(h.name).where(h.id == row.host)).name
    original = schema.url.alias()
    of_it = (
        sa.select(*(p[name] for name in _FETCH), original.c.url.label("duplicate_of"))
        .select_from(schema.page)
        .outerjoin(original, original.c.id == p.duplicate_of)
        .where(p.url == row.id)
    )
    fetch = next((dict(found._mapping) for found in store.rows(of_it)), None)
    if fetch is not None:
        again = fetch["duplicate_of"] is not None
        fetch["outcome"] = outcome(fetch["status"], fetch["error"], again)
    referrer = sa.select(u.url).where(u.id == row.referrer)
    return {
        "number": row.id,
        "url": row.url,
        "host": host,
        "state": schema.STATES[row.state],
        "depth": row.depth,
        "score": row.score,
        "referrer": next((found.url for found in store.rows(referrer)), None),
        "fetch": fetch,
    }
