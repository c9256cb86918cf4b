"""Routes of the pages that explore a crawl: its URLs, one page, hubs, hosts, two crawls."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.distiller import RULES
from focuscrawl.errors import UserError
from focuscrawl.report.url_lookup import PageLinks, load_recorded_page, url_facts
from focuscrawl.report.url_tables import (
    KINDS,
    PAGE_ORDERS,
    UNFETCHED_ORDERS,
    UNFETCHED_STATES,
    UrlFilter,
    count_rows,
    list_duplicates,
    list_pages,
    list_unfetched,
)
from focuscrawl.report.why import PART_NAMES, Explanation
from focuscrawl.studio.crawl_sums import Background, Compared, OpenCrawls
from focuscrawl.studio.drawings import draw_circle, draw_curves
from focuscrawl.studio.page_rendering import PREFIX, json_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk

    Values = dict[str, Any]


class _Table(NamedTuple):
    """A table of URLs: what reads it, which of `totals` counts its rows, the choices of its form.

    `kinds` and `orders` have a text for each value of the query.
    """

    read: Callable[..., Any]
    counted: int
    kinds: dict[str, str]
    orders: dict[str, str]


#: by the last part of their address
_TABLES = {
    "pages": _Table(
        list_pages,
        0,
        {"page": "judged", "duplicate": "duplicates", "redirect": "redirects",
         "nothing": "no page"},
        {"newest": "newest first", "oldest": "as fetched", "relevance": "most relevant",
         "score": "most expected", "host": "by host"},
    ),
    "frontier": _Table(
        list_unfetched,
        1,
        {"queued": "waiting", "excluded": "excluded", "unfollowed": "not followed"},
        {"score": "best expected", "newest": "newest first", "oldest": "as found",
         "host": "by host"},
    ),
}  # fmt: skip
assert (*_TABLES["pages"].kinds,) == KINDS
assert (*_TABLES["pages"].orders,) == (*PAGE_ORDERS,)
assert (*_TABLES["frontier"].kinds,) == UNFETCHED_STATES
assert (*_TABLES["frontier"].orders,) == (*UNFETCHED_ORDERS,)


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the pages and their API."""
    crawls, background = OpenCrawls(), Background(desk.folder.root)
    compared = Compared(background)

    def table_routes(which: str) -> list[Route]:
        def values(request: Request) -> Values:
            crawl = desk.crawl_of(request)
            query = {k: v for k, v in request.query_params.items() if v}
            filters = {k: v for k, v in query.items() if k not in ("after", "before")}
            return {
                "crawl": crawl.name,
                "which": which,
                "query": query,
                "filters": filters,
                "begun": query != filters,
                "backwards": "before" in query,
                "kinds": _TABLES[which].kinds,
                "orders": _TABLES[which].orders,
                "found": table(crawls, crawl.place, which, query),
            }

        answer = json_of(lambda request: values(request)["found"])
        return three(f"{at}/{which}", values, answer, ("urls", f"{which}_rows"))

    def of_url(what: Callable[[OpenCrawls, Path, str], Values]) -> Callable[[Request], Values]:
        return lambda request: what(crawls, desk.crawl_of(request).place, _url(request))

    def one(request: Request) -> Values:
        return {"crawl": desk.crawl_of(request).name, "page": of_url(page_values)(request)}

    def shown_why(request: Request) -> Values:
        return {"crawl": desk.crawl_of(request).name, "why": of_url(why)(request)}

    def shown_text(request: Request) -> Values:
        name = desk.crawl_of(request).name
        try:
            return {"crawl": name, "text": of_url(text)(request)}
        except UserError as error:
            return {"crawl": name, "text": None, "error": str(error)}

    def hubs(request: Request) -> Values:
        crawl, rule = desk.crawl_of(request), request.query_params.get("sites", "")
        if rule and rule not in RULES:
            raise UserError(f"no rule {rule!r:.40} for sites: take one of {', '.join(RULES)}")
        found = background.ask("hubs", crawl.place, option=rule)
        return {"crawl": crawl.name, "sum": found, "sites": rule}

    def hosts(request: Request) -> Values:
        crawl = desk.crawl_of(request)
        found = background.ask("hosts", crawl.place)
        drawing = None
        if found.value is not None:
            drawing = draw_circle(found.value["hosts"], found.value["links"])
        return {"crawl": crawl.name, "sum": found, "drawing": drawing}

    def compare(request: Request) -> Values:
        a, b = (request.query_params.get(side, "") for side in "ab")
        names = [desk.folder.name_of(path) for path in desk.folder.crawls()]
        shown = {"a": a, "b": b, "names": names, "sum": None, "drawing": None}
        if not (a and b):
            return shown
        found = compared.ask(*_pair(desk, a, b))
        drawing = None if found.value is None else draw_curves(found.value["curves"])
        return shown | {"sum": found, "drawing": drawing}

    def compared_pages(request: Request) -> Values:
        query = request.query_params
        a, b, part = (query.get(name, "") for name in ("a", "b", "part"))
        found = compared.pages(*_pair(desk, a, b), part, query.get("start", "0"))
        return {"a": a, "b": b, "part": part, **found}

    def three(
        path: str,
        values: Callable[[Request], Values],
        answer: Callable[[Request], Response],
        templates: tuple[str, str],
    ) -> list[Route]:
        """Return the routes of the API, of a page, and of the part of it that is updated."""
        page, part = templates
        return [
            Route(f"{PREFIX}{path}", answer),
            Route(path, desk.page(page, values)),
            Route(f"/parts{path}", desk.page(part, values)),
        ]

    at = "/crawls/{name:path}"
    return [
        *(route for which in _TABLES for route in table_routes(which)),
        Route(f"{PREFIX}{at}/page", json_of(of_url(page_values))),
        Route(f"{PREFIX}{at}/page/why", json_of(of_url(why))),
        Route(f"{PREFIX}{at}/page/text", json_of(of_url(text))),
        Route(f"{at}/page", desk.page("one_page", one)),
        Route(f"/parts{at}/page/why", desk.page("page_why", shown_why)),
        Route(f"/parts{at}/page/text", desk.page("page_text", shown_text)),
        *three(f"{at}/hubs", hubs, _summed(hubs), ("hubs", "hubs_lists")),
        *three(f"{at}/hosts", hosts, _summed(hosts), ("hosts", "hosts_map")),
        *three("/compare", compare, _summed(compare), ("compare", "compared")),
        Route(f"{PREFIX}/compare/pages", json_of(compared_pages)),
        Route("/parts/compare/pages", desk.page("compared_rows", compared_pages)),
    ]


def _summed(values: Callable[[Request], Values]) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        found = values(request)["sum"]
        if found is None:
            raise UserError("name two crawls: a and b")
        return JSONResponse(asdict(found))

    return endpoint


def _pair(desk: Desk, a: str, b: str) -> tuple[Path, Path]:
    if not (a and b):
        raise UserError("name two crawls: a and b")
    first, second = desk.folder.crawl(a), desk.folder.crawl(b)
    if first == second:
        raise UserError("this is one crawl: compare it with another one")
    return first, second


def _url(request: Request) -> str:
    url = request.query_params.get("url", "").strip()
    if not url:
        raise UserError("no URL is named: open a page from the table of pages")
    return url


def table(crawls: OpenCrawls, path: Path, which: str, query: Mapping[str, str]) -> Values:
    """Return a part of the table `which`, ``pages`` or ``frontier``, of the crawl in `path`.

    Returns
    -------
    ``sorting`` (True: there is nothing else yet), ``rows``, ``before``, ``after``, ``searched``
    (see `focuscrawl.report.url_tables.UrlRows`), ``total`` (rows of the whole table), ``as_of``
    (ISO 8601, UTC).
    """
    wanted = _wanted(query)
    with crawls.sorted(path) as found:
        if found is None:
            return {"sorting": True}
        connection, copy = found
        places = {"after": query.get("after", ""), "before": query.get("before", "")}
        part = _TABLES[which].read(connection, wanted, **places)
        return {
            "sorting": False,
            **asdict(part),
            "total": count_rows(connection)[_TABLES[which].counted],
            "as_of": copy.made.isoformat(timespec="seconds"),
        }


def page_values(crawls: OpenCrawls, path: Path, url: str) -> Values:
    """Return what the crawl in `path` knows of a URL: see `focuscrawl.report.url_lookup`.

    ``duplicates`` is None while the crawl is being sorted.
    """
    with crawls.store(path) as store:
        facts = url_facts(store, url)
        links = asdict(PageLinks.of(store, facts["number"]))
    duplicates = None
    with crawls.sorted(path) as found:
        if found is not None:
            duplicates = list_duplicates(found[0], facts["number"])
    return facts | {"links": links, "duplicates": duplicates}


def why(crawls: OpenCrawls, path: Path, url: str) -> Values:
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
            "parts": {PART_NAMES.get(name, name): part for name, part in parts.items()},
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


def text(crawls: OpenCrawls, path: Path, url: str) -> Values:
    """Return the text of a page, see `focuscrawl.report.url_lookup.RecordedPage`."""
    with crawls.store(path) as store:
        identity, known = store.identity(), url_facts(store, url)
    if known["fetch"] is None:
        raise UserError("it was not fetched: there is no text")
    return asdict(load_recorded_page(identity, path, known["url"]))


def _wanted(query: Mapping[str, str]) -> UrlFilter:
    """Return which rows a query selects; UserError if it makes no sense."""
    status = query.get("status", "").strip()
    if status and not (status.isascii() and status.isdigit() and len(status) <= 3):
        raise UserError("status has to be an HTTP status, as 200, or 0 where there was none")
    return UrlFilter(
        least=_number(query, "least"),
        most=_number(query, "most"),
        host=query.get("host", "").strip(),
        kind=query.get("kind", "").strip(),
        status=int(status) if status else None,
        search=query.get("search", "").strip(),
        order=query.get("order", "").strip(),
    )


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
