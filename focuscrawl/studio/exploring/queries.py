"""What the pages of a crawl show, as plain values, for the API and the pages alike."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.report.link_reasons import NAMES
from focuscrawl.report.links_around import LinksAround
from focuscrawl.report.page_again import read_again
from focuscrawl.report.url_facts import url_facts
from focuscrawl.report.url_tables import (
    Wanted,
    duplicates_of,
    pages_part,
    totals,
    waiting_part,
)
from focuscrawl.report.why import Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from focuscrawl.studio.exploring.open_crawls import OpenCrawls

#: tables by the part of the address that shows them: what reads them, what of `totals` counts them
_TABLES: dict[str, tuple[Callable[..., Any], int]] = {
    "pages": (pages_part, 0),
    "frontier": (waiting_part, 1),
}


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """Return which rows the query of an address asks for; UserError if it makes no sense."""
    status = query.get("status", "").strip()
    if status and not (status.isascii() and status.isdigit() and len(status) <= 3):
        raise UserError("status has to be an HTTP status, as 200, or 0 where there was none")
    return Wanted(
        least=_number(query, "least"),
        most=_number(query, "most"),
        host=query.get("host", "").strip(),
        kind=query.get("kind", "").strip(),
        status=int(status) if status else None,
        search=query.get("search", "").strip(),
        order=query.get("order", "").strip(),
    )


def table(crawls: OpenCrawls, path: Path, which: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a part of the table `which`, ``pages`` or ``frontier``, of the crawl in `path`.

    Returns
    -------
    ``sorting`` (True: nothing else is known yet), ``rows``, ``before``, ``after``, ``searched``
    (see `focuscrawl.report.url_tables.Part`), ``total`` (rows of the whole table), ``as_of``
    (ISO 8601, UTC).
    """
    wanted = wanted_of(query)
    read, counted = _TABLES[which]
    with crawls.sorted(path) as found:
        if found is None:
            return {"sorting": True}
        connection, copy = found
        places = {"after": query.get("after", ""), "before": query.get("before", "")}
        part = read(connection, wanted, **places)
        return {
            "sorting": False,
            **asdict(part),
            "total": totals(connection)[counted],
            "as_of": copy.made.isoformat(timespec="seconds"),
        }


def page(crawls: OpenCrawls, path: Path, url: str) -> dict[str, Any]:
    """Return what the crawl in `path` knows of a URL.

    Returns
    -------
    See `focuscrawl.report.url_facts`; ``links``, see `focuscrawl.report.links_around`; and
    ``duplicates``, None while the crawl is being sorted.
    """
    with crawls.store(path) as store:
        facts = url_facts(store, url)
        links = asdict(LinksAround.of(store, facts["number"]))
    duplicates = None
    with crawls.sorted(path) as found:
        if found is not None:
            duplicates = duplicates_of(found[0], facts["number"])
    return facts | {"links": links, "duplicates": duplicates}


def why(crawls: OpenCrawls, path: Path, url: str) -> dict[str, Any]:
    """Return why a URL was fetched, or waits, see `focuscrawl.report.why.Explanation`.

    Returns
    -------
    ``state``, ``score``, ``busy``, ``path`` (steps with ``url``, ``seq``, ``relevance``), and
    ``reasons``, None or ``parts`` (name, log-odds), ``words``, ``score``.
    """
    with crawls.store(path) as store:
        found = Explanation.of(store, url)
    reasons = None
    if found.reasons is not None:
        parts = {n: part for n, part in found.reasons.parts.items() if n != "intercept"}
        reasons = {
            "lines": found.reasons.lines(),
            "parts": {NAMES.get(name, name): part for name, part in parts.items()},
            "words": found.reasons.words,
            "score": found.reasons.score,
        }
    return {
        "state": found.state,
        "score": found.score,
        "busy": found.busy,
        "path": [
            {"url": step.url, "seq": step.seq, "relevance": step.relevance} for step in found.path
        ],
        "reasons": reasons,
    }


def text(crawls: OpenCrawls, path: Path, url: str) -> dict[str, Any]:
    """Return what a page says, see `focuscrawl.report.page_again.PageAgain`."""
    with crawls.store(path) as store:
        identity, known = store.identity(), url_facts(store, url)
    if known["fetch"] is None:
        raise UserError("it was not fetched: there is no text")
    return asdict(read_again(identity, path, known["url"]))


def _number(query: Mapping[str, str], name: str) -> float | None:
    given = query.get(name, "").strip()
    if not given:
        return None
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise UserError(f"{name} has to be a number, as 0.5")
    return found
