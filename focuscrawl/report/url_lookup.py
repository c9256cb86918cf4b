"""What a store says of one URL: its fetch, its links, its text."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.page_source import LIVE, webs_of
from focuscrawl.crawl.scope import may_be_page
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL, host, normalize
from focuscrawl.page import Effort, TooMuchWorkError, parse_page
from focuscrawl.page.parse import shown_text
from focuscrawl.report.outcomes import outcome
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.store import schema
from focuscrawl.webs.opening import open_named
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from focuscrawl.page import PageView
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


_SHOWN = 100


@dataclass(frozen=True)
class LinksAround:
    """Links out of a page and to it, the first ones of either.

    Attributes
    ----------
    out : in the order they were found: ``id``, ``url``, ``anchor``, ``score`` (None: not
        followed), ``seq`` and ``relevance`` (None: not fetched)
    more_out : whether there are others
    into : of pages that link to it, by number: the same
    n_into : how many links lead to it
    """

    out: list[dict[str, Any]]
    more_out: bool
    into: list[dict[str, Any]]
    n_into: int

    @classmethod
    def of(cls, store: CrawlStore, url: int, n: int = _SHOWN) -> LinksAround:
        """Read the links of the URL with that number; what is read does not grow with the crawl.

        Parameters
        ----------
        store : of a crawl in a folder
        """
        link = schema.link.c
        into = store.rows(_links(link.source).where(link.target == url).order_by(link.id).limit(n))
        count = sa.select(sa.func.count().label("n")).where(link.target == url)
        out = _out(store, url, n + 1)
        return cls(
            out=out[:n],
            more_out=len(out) > n,
            into=[dict(row._mapping) for row in into],
            n_into=int(store.row(count.select_from(schema.link)).n),
        )


def _links(other: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Select links with what is at their other end."""
    link, u, p = schema.link.c, schema.url.c, schema.page.c
    return (
        sa.select(link.id, u.url, link.anchor, link.score, p.seq, p.relevance)
        .select_from(schema.link)
        .join(schema.url, u.id == other)
        .outerjoin(schema.page, p.url == other)
    )


def _out(store: CrawlStore, url: int, n: int) -> list[dict[str, Any]]:
    """Return the first links of a page: links are numbered in the order of the fetches.

    Nothing says where those of a page begin, but the page that a link is on, and its number: it
    is found by halving. Those found when a hub was fetched again stand between others; where
    they are is known.
    """
    p, link = schema.page.c, schema.link.c
    seq = next(iter(store.rows(sa.select(p.seq).where(p.url == url))), None)
    last = store.row(sa.select(sa.func.max(link.id).label("id"))).id
    if seq is None or last is None:
        return []
    again = _again(store)
    low, high = 0, int(last) + 1  # the first link of a page fetched as late, or later
    while low < high:
        middle = (low + high) // 2
        if _seq(store, again, middle) < seq[0]:
            low = middle + 1
        else:
            high = middle
    rows = store.rows(
        _links(link.target).where(link.id >= low, link.id < low + n, link.source == url)
        .order_by(link.id)
    )  # fmt: skip
    found = {row.id: dict(row._mapping) for row in rows}
    for first, length, _, of in again:
        if of == url and len(found) < n:
            inside = link.id.between(first, first + length - 1)
            more = store.rows(_links(link.target).where(inside).order_by(link.id))
            found |= {row.id: dict(row._mapping) for row in more}
    return [found[number] for number in sorted(found)][:n]


def _again(store: CrawlStore) -> list[tuple[int, int, int, int]]:
    """Return first link, number of links, fetches before, and URL of pages fetched again."""
    a = schema.revisit.c
    rows = sa.select(a.first_link, a.links, a.seq, a.url).where(a.first_link.is_not(None))
    return [
        (int(first), int(links), int(seq or 0), int(url))
        for first, links, seq, url in map(tuple, store.rows(rows.order_by(a.first_link)))
    ]


def _seq(store: CrawlStore, again: list[tuple[int, int, int, int]], number: int) -> float:
    """Return after how many fetches a link was found."""
    at = bisect_right(again, (number, 1 << 62, 0, 0)) - 1
    if at >= 0 and number < again[at][0] + again[at][1]:
        return again[at][2] + 0.5
    p, link = schema.page.c, schema.link.c
    of_it = sa.select(p.seq).join(schema.link, link.source == p.url).where(link.id == number)
    return float(next((row.seq for row in store.rows(of_it)), 0))


_CLASSES = 10  # that are shown
_LONGEST = 20_000  # characters of text
_LARGEST = 2 << 20  # bytes of a page


@dataclass(frozen=True)
class PageAgain:
    """What a page says; all texts are those of a stranger.

    Attributes
    ----------
    title : of the page
    text : of its leaves, the short ones joined
    cut : whether there is more
    classes : (name, probability, whether it is of the topic) of the most probable classes, by
        the critic the crawl follows; empty where that gives none
    no_classes : why there are none, a sentence; "" where there are
    """

    title: str
    text: list[str]
    cut: bool
    classes: list[tuple[str, float, bool]]
    no_classes: str


def read_again(identity: Mapping[str, str], folder: Path, url: str) -> PageAgain:
    """Read a page from the recording of a crawl, or from the web that it replays.

    Parameters
    ----------
    identity, folder : of the crawl
    url : as the store has it

    Raises
    ------
    UserError
        The page is not kept, or too much work to be read here.
    """
    for web in webs_of(identity, folder):
        answer = HtmlAnswer.found(web, url)
        if answer is not None:
            break
    else:
        raise UserError("the recording has no HTML page of this URL: its text is not kept")
    if len(answer.body) > _LARGEST:
        raise UserError("the page is larger than 2 MiB: it is not shown")
    try:
        view = parse_page(answer.body, url, encoding=answer.encoding, most=Effort.LARGE)
    except TooMuchWorkError:
        raise UserError("the page takes too long to be read: it is not shown") from None
    classes, why = _classes(identity, view)
    text, cut = shown_text(answer.body, answer.encoding, _LONGEST)
    return PageAgain(view.title, text, cut, classes, why)


def _classes(
    identity: Mapping[str, str], view: PageView
) -> tuple[list[tuple[str, float, bool]], str]:
    name = identity.get("critic_name", "")
    if is_callable_spec(name) and not Path(name).exists():
        return [], "The critic is a program of its own, which is not run to show a page."
    try:
        critic = load_trained(name, identity.get("topic", ""))
    except UserError as error:
        return [], f"The critic cannot be read: {error}."
    found = critic.judge([view]).probabilities
    if found is None:
        return [], "The critic gives no probabilities of classes."
    most = np.argsort(-found[0], kind="stable")[:_CLASSES].tolist()
    return [(critic.classes[i], float(found[0, i]), bool(critic.marked[i])) for i in most], ""
