"""Finds the URL of a store that a user means: http or https, and what comes near."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.crawl.link_filter import may_be_page
from focuscrawl.crawl.page_source import LIVE
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL, host, normalize
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.store import schema
from focuscrawl.webs.by_name import open_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.store import CrawlStore


def find_url(store: CrawlStore, text: str) -> sa.Row[Any]:
    """Return the row of the table ``url`` that `text` means, whether http or https.

    Raises
    ------
    UserError
        `text` is no URL, or the crawl has never seen it.
    """
    shown = one_line(text)
    url = normalize(text if "://" in text else f"http://{text}")
    if url is None:
        raise UserError(f"{shown} is no http(s) URL")
    found = _first(store, (url, _other_scheme(url)))
    if found is not None:
        return found
    why = _dropped(store, url)
    if why is not None:
        raise UserError(f"{shown} was not followed, links to it are dropped: {why}")
    near = _first(store, _variants(url))
    if near is not None:
        raise UserError(f"the crawl has not seen {shown}: did you mean {near.url}?")
    h, u = schema.host.c, schema.url.c
    known = sa.select(sa.func.count().label("n")).select_from(schema.url)
    count = store.row(known.join(schema.host, h.id == u.host).where(h.name == host(url)))
    hint = f"it knows {counted(count.n, 'URL')}" if count.n else "it knows no URL"
    raise UserError(
        f"no link to {shown} was followed: none was seen, or it was dropped, as pages ask robots "
        f"with nofollow; {hint} of {host(url)}; give the exact URL, as in the view pages or "
        "frontier of the store"
    )


def _dropped(store: CrawlStore, url: str) -> str | None:
    """Return why links to a URL never reach the frontier; None if they might."""
    if len(url) > MAX_URL:
        return f"it is longer than {MAX_URL:,} characters"
    if not may_be_page(url):
        return "its name promises no HTML page (FOCUSCRAWL_ANY_MEDIA=1 follows them)"
    identity = store.identity()
    if identity.get("web", LIVE) == LIVE:
        return None
    try:
        web = open_named(identity.get("web_name", ""), store.where)
    except UserError:
        return None
    (there,) = web.resolve([url])
    missing = f"{web.name} does not have it (FOCUSCRAWL_CLOSED=0 follows them)"
    return missing if there is None else None


def _first(store: CrawlStore, urls: Iterable[str]) -> sa.Row[Any] | None:
    for url in urls:
        for row in store.rows(sa.select(schema.url).where(schema.url.c.url == url)):
            return row
    return None


def _other_scheme(url: str) -> str:
    scheme, rest = url.split("://", 1)
    return f"{'http' if scheme == 'https' else 'https'}://{rest}"


def _variants(url: str) -> list[str]:
    """Return what is often meant: with or without the last slash, www., or the query."""
    path, mark, query = url.split("://", 1)[1].partition("?")
    slashed = path[:-1] if path.endswith("/") else f"{path}/"
    renamed = path[4:] if path.startswith("www.") else f"www.{path}"
    rests = [f"{slashed}{mark}{query}", f"{renamed}{mark}{query}", path, slashed]
    return [f"{s}://{variant}" for variant in rests for s in ("http", "https")]
