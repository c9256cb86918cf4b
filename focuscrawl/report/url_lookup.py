"""Looks up the fetch, the links and the page text of one URL in a crawl's store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl.page_source import LIVE, open_page_webs
from focuscrawl.crawl.scope import can_be_page
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.focused_critic import explain_words
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL_LENGTH, host, normalize
from focuscrawl.page import ParseCost, ParseLimitError, parse_page
from focuscrawl.page.parse import visible_paragraphs
from focuscrawl.report.outcomes import outcome
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.store import schema
from focuscrawl.webs.opening import open_web_from_file
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.critic.focused_critic import WordReasons
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore


_SHOWN = 100
_CLASSES = 10  # classes shown
_LONGEST = 20_000  # characters of text shown
_LARGEST = 2 << 20  # bytes of a page that is parsed to be shown


def find_url(store: CrawlStore, text: str) -> sqlite3.Row:
    """Return the row of a URL in the table ``url``; ignore whether the scheme is http or https.

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
        raise UserError(f"links to {shown} are dropped: {why}")
    near = _first(store, _variants(url))
    if near is not None:
        raise UserError(f"the crawl has not found {shown}: did you mean {near['url']}?")
    known = "SELECT count(*) FROM url JOIN host h ON h.id = url.host WHERE h.name = ?"
    (number,) = store.row(known, (host(url),))
    hint = f"{pluralize(number, 'URL')} of {host(url)}" if number else f"no URL of {host(url)}"
    raise UserError(
        f"the crawl has found no link to {shown}, or dropped the link because of nofollow; the "
        f"crawl knows {hint}: give the exact URL, as in the store's views pages and frontier"
    )


def _dropped(store: CrawlStore, url: str) -> str | None:
    """Return why the crawl drops links to a URL; None if it might queue them."""
    if len(url) > MAX_URL_LENGTH:
        return f"the URL is longer than {MAX_URL_LENGTH:,} characters"
    if not can_be_page(url):
        return "the file extension is not of HTML (FOCUSCRAWL_ANY_MEDIA=1 follows such links)"
    identity = store.identity()
    if identity.get("web", LIVE) == LIVE:
        return None
    try:
        web = open_web_from_file(identity.get("web_name", ""), store.location)
    except UserError:
        return None
    (there,) = web.resolve([url])
    missing = f"{web.name} lacks the page (FOCUSCRAWL_CLOSED=0 follows such links)"
    return missing if there is None else None


def _first(store: CrawlStore, urls: Iterable[str]) -> sqlite3.Row | None:
    for url in urls:
        for row in store.rows("SELECT * FROM url WHERE url = ?", (url,)):
            return row
    return None


def _other_scheme(url: str) -> str:
    scheme, rest = url.split("://", 1)
    return f"{'http' if scheme == 'https' else 'https'}://{rest}"


def _variants(url: str) -> list[str]:
    """Return similar URLs: with or without the last slash, www., or the query."""
    path, mark, query = url.split("://", 1)[1].partition("?")
    slashed = path[:-1] if path.endswith("/") else f"{path}/"
    renamed = path[4:] if path.startswith("www.") else f"www.{path}"
    rests = [f"{slashed}{mark}{query}", f"{renamed}{mark}{query}", path, slashed]
    return [f"{s}://{variant}" for variant in rests for s in ("http", "https")]


_FETCH = """
SELECT p.seq, p.status, p.relevance, p.topic, p.score, p.fetched_at, p.content_type, p.size,
       p.title, p.canonical, p.error, p.links, p.dropped, original.url AS duplicate_of
FROM page p LEFT JOIN url original ON original.id = p.duplicate_of WHERE p.url = ?
"""


def url_facts(store: CrawlStore, text: str) -> dict[str, Any]:
    """Return the state, the score and the fetch of a URL, without reading the whole crawl.

    Returns
    -------
    dict
        ``number`` (ID), ``url``, ``host``, ``state``, ``depth``, ``score``, ``referrer``, and
        ``fetch``: None, or a dict with the columns of the table ``page``, ``outcome`` and
        ``duplicate_of`` (URL or None).

    Raises
    ------
    UserError
        The crawl has not found the URL; the message names a similar URL.
    """
    row = find_url(store, text)
    fetch = next(map(dict, store.rows(_FETCH, (row["id"],))), None)
    if fetch is not None:
        again = fetch["duplicate_of"] is not None
        fetch["outcome"] = outcome(fetch["status"], fetch["error"], again)
    (name,) = store.row("SELECT name FROM host WHERE id = ?", (row["host"],))
    referrer = store.rows("SELECT url FROM url WHERE id = ?", (row["referrer"],))
    return {
        "number": row["id"],
        "url": row["url"],
        "host": name,
        "state": schema.STATES[row["state"]],
        "depth": row["depth"],
        "score": row["score"],
        "referrer": next((url for (url,) in referrer), None),
        "fetch": fetch,
    }


@dataclass(frozen=True)
class PageLinks:
    """The first links on a page and the first links to the page."""

    #: links out of the page in the order they were found: ``id``, ``url``, ``anchor``, ``score``
    #: (None: not followed), ``seq`` and ``relevance`` (None: not fetched) of the target
    out: list[dict[str, Any]]
    more_out: bool  #: the page has more links than `out`
    #: links into the page, in the same form, with the linking page in place of the target
    into: list[dict[str, Any]]
    n_into: int  #: number of all links into the page

    @classmethod
    def of(cls, store: CrawlStore, url: int, n: int = _SHOWN) -> PageLinks:
        """Read up to `n` links on the page with the ID `url`, and `n` links to the page."""
        into = store.rows(f"{_SOURCES} WHERE l.target = ? ORDER BY l.id LIMIT ?", (url, n))
        out = _out(store, url, n + 1)
        return cls(
            out=out[:n],
            more_out=len(out) > n,
            into=[*map(dict, into)],
            n_into=int(store.row("SELECT count(*) FROM link WHERE target = ?", (url,))[0]),
        )


# links with the page at their other end
_SOURCES = """
SELECT l.id, u.url, l.anchor, l.score, p.seq, p.relevance
FROM link l JOIN url u ON u.id = l.source LEFT JOIN page p ON p.url = l.source"""
_TARGETS = """
SELECT l.id, u.url, l.anchor, l.score, p.seq, p.relevance
FROM link l JOIN url u ON u.id = l.target LEFT JOIN page p ON p.url = l.target"""


def _out(store: CrawlStore, url: int, n: int) -> list[dict[str, Any]]:
    """Return the first links of a page.

    Links have IDs in the order of the fetches, but no index by page. A binary search over the IDs
    finds the first link of the page. The table ``revisit`` holds the IDs of links that were found
    when a hub was fetched again.
    """
    seq = next((seq for (seq,) in store.rows("SELECT seq FROM page WHERE url = ?", (url,))), None)
    (last,) = store.row("SELECT max(id) FROM link")
    if seq is None or last is None:
        return []
    again = _revisits(store)
    low, high = 0, int(last) + 1  # the first link of this page or of a later page
    while low < high:
        middle = (low + high) // 2
        if _fetches_before_link(store, again, middle) < seq:
            low = middle + 1
        else:
            high = middle
    first = f"{_TARGETS} WHERE l.id >= ? AND l.id < ? AND l.source = ?"
    found = {row["id"]: dict(row) for row in store.rows(first, (low, low + n, url))}
    for first_link, length, _, of in again:
        if of == url and len(found) < n:
            more = f"{_TARGETS} WHERE l.id BETWEEN ? AND ?"
            ends = (first_link, first_link + length - 1)
            found |= {row["id"]: dict(row) for row in store.rows(more, ends)}
    return [found[number] for number in sorted(found)][:n]


def _revisits(store: CrawlStore) -> list[tuple[int, int, int, int]]:
    """Return first link, number of links, number of the fetch, and URL of the hub revisits."""
    rows = store.rows(
        "SELECT first_link, links, coalesce(seq, 0), url FROM revisit "
        "WHERE first_link IS NOT NULL ORDER BY first_link"
    )
    return [(int(first), int(links), int(seq), int(url)) for first, links, seq, url in rows]


def _fetches_before_link(
    store: CrawlStore, again: list[tuple[int, int, int, int]], number: int
) -> float:
    """Return the number of the fetch that found a link; one half more for a hub revisit."""
    at = bisect_right(again, (number, 1 << 62, 0, 0)) - 1
    if at >= 0 and number < again[at][0] + again[at][1]:
        return again[at][2] + 0.5
    of_it = "SELECT p.seq FROM page p JOIN link l ON l.source = p.url WHERE l.id = ?"
    return float(next((seq for (seq,) in store.rows(of_it, (number,))), 0))


@dataclass(frozen=True)
class RecordedPage:
    """Untrusted text of a recorded page, and its most probable classes."""

    title: str  #: title of the page
    text: list[str]  #: paragraphs of the visible text
    cut: bool  #: the text is truncated
    #: name, probability, and membership in the topic of the most probable classes, by the critic
    #: of the crawl
    classes: list[tuple[str, float, bool]]
    no_classes: str  #: sentence that says why `classes` is empty
    #: words of the page for and against the topic; None: the critic cannot explain itself
    reasons: WordReasons | None


def load_recorded_page(identity: Mapping[str, str], folder: Path, url: str) -> RecordedPage:
    """Read a page from the recording of a crawl, or from the web that the crawl replays.

    Parameters
    ----------
    identity, folder : mapping, Path
        Identity and folder of the crawl.
    url : str
        URL as in the store.

    Raises
    ------
    UserError
        The page is not recorded, or it is too large or too slow to parse.
    """
    for web in open_page_webs(identity, folder):
        answer = HtmlAnswer.from_web(web, url)
        if answer is not None:
            break
    else:
        raise UserError("the recording has no HTML page of this URL, so its text cannot be shown")
    if len(answer.body) > _LARGEST:
        raise UserError("the page is larger than 2 MiB, so its text is not shown")
    try:
        view = parse_page(answer.body, url, encoding=answer.encoding, max_cost=ParseCost.LARGE)
    except ParseLimitError:
        raise UserError("parsing the page takes too long, so its text is not shown") from None
    classes, why, reasons = _classes(identity, view)
    text, cut = visible_paragraphs(answer.body, answer.encoding, _LONGEST)
    return RecordedPage(view.title, text, cut, classes, why, reasons)


def _classes(
    identity: Mapping[str, str], view: PageView
) -> tuple[list[tuple[str, float, bool]], str, WordReasons | None]:
    name = identity.get("critic_name", "")
    if is_callable_spec(name) and not Path(name).exists():
        return [], "The critic is a Python function, which the studio does not run.", None
    try:
        critic = load_trained(name, identity.get("topic", ""))
    except UserError as error:
        return [], f"The critic cannot be read: {error}.", None
    found = critic.judge([view]).probabilities
    if found is None:
        return [], "The critic predicts no class probabilities.", None
    most = np.argsort(-found[0], kind="stable")[:_CLASSES].tolist()
    shown = [(critic.classes[i], float(found[0, i]), bool(critic.marked[i])) for i in most]
    return shown, "", explain_words(critic, view.words.bag)
