"""Addresses of what is explored of a crawl: its pages, frontier, hubs, hosts."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.distiller import RULES
from focuscrawl.errors import UserError
from focuscrawl.report.url_lookup import LinksAround, read_again, url_facts
from focuscrawl.report.url_tables import (
    KINDS,
    PAGE_ORDERS,
    WAITING_ORDERS,
    WAITING_STATES,
    Wanted,
    duplicates_of,
    pages_part,
    totals,
    waiting_part,
)
from focuscrawl.report.why import NAMES, Explanation
from focuscrawl.studio.crawl_sums import Background, Compared, OpenCrawls
from focuscrawl.studio.page_rendering import PREFIX, render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.studio.page_rendering import Desk


_RADIUS = 250.0
_GAP = 9.0  # between a host and its name
_LARGEST, _SMALLEST = 11.0, 3.0  # radius of a host
_DRAWN = 120  # links; more of them hide each other


def draw_circle(hosts: Sequence[dict[str, Any]], links: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return what a drawing of `focuscrawl.report.url_tables.HostMap` consists of.

    Returns
    -------
    ``hosts`` with ``place``, ``name``, ``x``, ``y``, ``size``, ``degrees`` (of its name),
    ``flipped`` (the name ends at the host), ``gap``; and ``links``, the heaviest 120, with
    ``source``, ``target``, ``path`` (of SVG), ``width``; around (0, 0), in the same unit.
    """
    n = len(hosts)
    around = _around(n, links)
    angle = np.empty(n)
    angle[around] = np.arange(n) * (2 * math.pi / max(n, 1)) - math.pi / 2
    x, y = _RADIUS * np.cos(angle), _RADIUS * np.sin(angle)
    most = max((each["relevant"] for each in hosts), default=0) or 1
    drawn = [
        {
            "place": i,
            "name": each["name"],
            "x": round(float(x[i]), 1),
            "y": round(float(y[i]), 1),
            "size": round(max(_SMALLEST, _LARGEST * math.sqrt(each["relevant"] / most)), 1),
            "degrees": round(math.degrees(angle[i]) + (180.0 if math.cos(angle[i]) < 0 else 0), 1),
            "flipped": math.cos(angle[i]) < 0,
            "gap": _GAP + _LARGEST,
        }
        for i, each in enumerate(hosts)
    ]
    drawn_links = links[:_DRAWN]  # the heaviest come first
    heaviest = max((count for *_, count in drawn_links), default=1)
    lines = [
        {
            "source": a,
            "target": b,
            "path": f"M{x[a]:.1f} {y[a]:.1f}Q{(x[a] + x[b]) / 5:.1f} {(y[a] + y[b]) / 5:.1f} "
            f"{x[b]:.1f} {y[b]:.1f}",
            "width": round(0.6 + 3.4 * math.log1p(count) / math.log1p(heaviest), 2),
        }
        for a, b, count in drawn_links
    ]
    return {"hosts": drawn, "links": lines}


def _around(n: int, links: Sequence[Sequence[int]]) -> Ints:
    """Return the order of n hosts: by the second eigenvector of the graph's Laplacian.

    It is the order in which the squared distances of linked hosts add up to least (Hall 1970).
    """
    weight = np.zeros((n, n))
    for a, b, count in links:
        weight[a, b] += math.log1p(count)
    weight += weight.T
    laplacian = np.diag(weight.sum(axis=0)) - weight
    # hosts that nothing links to are kept together as well
    laplacian += 1e-3 * (n * np.eye(n) - np.ones((n, n)))
    if n < 3:
        return np.arange(n)
    _, vectors = np.linalg.eigh(laplacian)
    return np.argsort(vectors[:, 1], kind="stable")


WIDTH, HEIGHT = 640.0, 240.0
_TICKS = 4


def draw_curves(curves: Sequence[Sequence[Sequence[float | None]]]) -> dict[str, Any]:
    """Return what a drawing consists of.

    Parameters
    ----------
    curves : of each crawl (fetches, harvest rate so far, of late), see
        `focuscrawl.report.comparison.two_crawls`

    Returns
    -------
    ``so_far`` and ``late``, points of a polyline of each crawl; ``across``, (x, fetches); ``up``,
    (y, rate); ``width``, ``height``.
    """
    most = max((points[-1][0] or 0.0 for points in curves if points), default=1.0) or 1.0

    def line(points: Sequence[Sequence[float | None]], column: int) -> str:
        return " ".join(
            f"{(each[0] or 0.0) / most * WIDTH:.1f},{(1.0 - value) * HEIGHT:.1f}"
            for each in points
            if (value := each[column]) is not None
        )

    return {
        "so_far": [line(points, 1) for points in curves],
        "late": [line(points, 2) for points in curves],
        "across": [(WIDTH * i / _TICKS, round(most * i / _TICKS)) for i in range(_TICKS + 1)],
        "up": [(HEIGHT * (1.0 - i / _TICKS), i / _TICKS) for i in range(_TICKS + 1)],
        "width": WIDTH,
        "height": HEIGHT,
    }


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


def page_values(crawls: OpenCrawls, path: Path, url: str) -> dict[str, Any]:
    """Return what the crawl in `path` knows of a URL.

    Returns
    -------
    See `focuscrawl.report.url_lookup`; ``links``, see `focuscrawl.report.url_lookup`; and
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
            {name: step[name] for name in ("url", "seq", "relevance")} for step in found.path
        ],
        "reasons": reasons,
    }


def text(crawls: OpenCrawls, path: Path, url: str) -> dict[str, Any]:
    """Return what a page says, see `focuscrawl.report.url_lookup.PageAgain`."""
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


_ROUTE_TABLES = {
    "pages": {
        "kinds": {"page": "judged", "duplicate": "duplicates", "redirect": "redirects",
                  "nothing": "no page"},
        "orders": {"newest": "newest first", "oldest": "as fetched", "relevance": "most relevant",
                   "score": "most expected", "host": "by host"},
    },
    "frontier": {
        "kinds": {"queued": "waiting", "excluded": "excluded", "unfollowed": "not followed"},
        "orders": {"score": "best expected", "newest": "newest first", "oldest": "as found",
                   "host": "by host"},
    },
}  # fmt: skip
assert tuple(_ROUTE_TABLES["pages"]["kinds"]) == KINDS
assert tuple(_ROUTE_TABLES["pages"]["orders"]) == tuple(PAGE_ORDERS)
assert tuple(_ROUTE_TABLES["frontier"]["kinds"]) == WAITING_STATES
assert tuple(_ROUTE_TABLES["frontier"]["orders"]) == tuple(WAITING_ORDERS)


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the API and of the pages."""
    shown = _Shown(desk)
    at, api = "/crawls/{name:path}", f"{PREFIX}/crawls/{{name:path}}"
    page = partial(_page, desk)
    return [
        *shown.table("pages"),
        *shown.table("frontier"),
        Route(f"{api}/page", shown.explained(page_values)),
        Route(f"{api}/page/why", shown.explained(why)),
        Route(f"{api}/page/text", shown.explained(text)),
        Route(f"{api}/hubs", _summed(shown.hubs)),
        Route(f"{api}/hosts", _summed(shown.hosts)),
        Route(f"{PREFIX}/compare", _summed(shown.compare)),
        Route(f"{PREFIX}/compare/pages", _pages(shown.compared_pages)),
        Route(f"{at}/page", page("one_page", shown.one)),
        Route(f"/parts{at}/page/why", page("page_why", shown.why)),
        Route(f"/parts{at}/page/text", page("page_text", shown.text)),
        Route(f"{at}/hubs", page("hubs", shown.hubs)),
        Route(f"/parts{at}/hubs", page("hubs_lists", shown.hubs)),
        Route(f"{at}/hosts", page("hosts", shown.hosts)),
        Route(f"/parts{at}/hosts", page("hosts_map", shown.hosts)),
        Route("/compare", page("compare", shown.compare)),
        Route("/parts/compare", page("compared", shown.compare)),
        Route("/parts/compare/pages", page("compared_rows", shown.compared_pages)),
    ]


class _Shown:
    """What each page shows, by the names it has in the template."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._crawls = OpenCrawls()
        self._background = Background(desk.folder.root)
        self._compared = Compared(self._background)

    def table(self, which: str) -> list[Route]:
        """Return the routes of a table."""

        def values(request: Request) -> dict[str, Any]:
            name, path = self._crawl(request)
            query = {k: v for k, v in request.query_params.items() if v}
            filters = {k: v for k, v in query.items() if k not in ("after", "before")}
            found = table(self._crawls, path, which, query)
            shown: dict[str, Any] = {"crawl": name, "which": which}
            shown |= {"query": query, "filters": filters}
            shown |= {"begun": query != filters, "backwards": "before" in query}
            return {**shown, **_ROUTE_TABLES[which], "found": found}

        def api(request: Request) -> Response:
            _, path = self._crawl(request)
            return JSONResponse(table(self._crawls, path, which, request.query_params))

        return [
            Route(f"{PREFIX}/crawls/{{name:path}}/{which}", api),
            Route(f"/crawls/{{name:path}}/{which}", _page(self._desk, "urls", values)),
            Route(
                f"/parts/crawls/{{name:path}}/{which}",
                _page(self._desk, f"{which}_rows", values),
            ),
        ]

    def explained(self, what: Callable[..., dict[str, Any]]) -> Callable[[Request], Response]:
        """Return the endpoint of the API for a function of one URL."""

        def endpoint(request: Request) -> Response:
            _, path = self._crawl(request)
            return JSONResponse(what(self._crawls, path, _url(request)))

        return endpoint

    def one(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        return {"crawl": name, "page": page_values(self._crawls, path, _url(request))}

    def why(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        return {"crawl": name, "why": why(self._crawls, path, _url(request))}

    def text(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        try:
            found = text(self._crawls, path, _url(request))
        except UserError as error:
            return {"crawl": name, "text": None, "error": str(error)}
        return {"crawl": name, "text": found}

    def hubs(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        rule = request.query_params.get("sites", "")
        if rule and rule not in RULES:
            raise UserError(f"no rule {rule!r:.40} for sites: take one of {', '.join(RULES)}")
        return {
            "crawl": name,
            "sum": self._background.ask("hubs", path, option=rule),
            "sites": rule,
        }

    def hosts(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        found = self._background.ask("hosts", path)
        drawing = None
        if found.value is not None:
            drawing = draw_circle(found.value["hosts"], found.value["links"])
        return {"crawl": name, "sum": found, "drawing": drawing}

    def compare(self, request: Request) -> dict[str, Any]:
        a, b = (request.query_params.get(side, "") for side in "ab")
        folder = self._desk.folder
        names = [folder.name_of(path) for path in folder.crawls()]
        shown = {"a": a, "b": b, "names": names, "sum": None, "drawing": None}
        if not (a and b):
            return shown
        found = self._compared.ask(*self._pair(a, b))
        drawing = None if found.value is None else draw_curves(found.value["curves"])
        return shown | {"sum": found, "drawing": drawing}

    def compared_pages(self, request: Request) -> dict[str, Any]:
        asked = request.query_params
        a, b, part = (asked.get(name, "") for name in ("a", "b", "part"))
        found = self._compared.pages(*self._pair(a, b), part, asked.get("start", "0"))
        return {"a": a, "b": b, "part": part, **found}

    def _pair(self, a: str, b: str) -> tuple[Path, Path]:
        if not (a and b):
            raise UserError("name two crawls: a and b")
        first, second = (self._desk.folder.crawl(each) for each in (a, b))
        if first == second:
            raise UserError("this is one crawl: compare it with another one")
        return first, second

    def _crawl(self, request: Request) -> tuple[str, Path]:
        path = self._desk.folder.crawl(request.path_params["name"])
        return self._desk.folder.name_of(path), path


def _summed(values: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Response]:
    """Return the endpoint of the API for a sum."""

    def endpoint(request: Request) -> Response:
        found = values(request)["sum"]
        if found is None:
            raise UserError("name two crawls: a and b")
        return JSONResponse(asdict(found))

    return endpoint


def _pages(values: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Response]:
    return lambda request: JSONResponse(values(request))


def _page(
    desk: Desk, template: str, values: Callable[[Request], dict[str, Any]]
) -> Callable[[Request], Response]:
    return lambda request: render(desk, template, values(request))


def _url(request: Request) -> str:
    url = request.query_params.get("url", "").strip()
    if not url:
        raise UserError("no URL is named: open a page from the table of pages")
    return url


# Looking at a crawl: its pages and frontier, one page, hubs, hosts, two crawls.
#
# Here are addresses and pages, and what is kept at hand for them. What is read of a crawl is in
# `focuscrawl.report`.

__all__ = ["routes"]
