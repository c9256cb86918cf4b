"""Routes of the studio for exploring crawls, such as tables of URLs and hosts."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.distiller import SITE_RULES
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
from focuscrawl.studio.crawl_analyses import AnalysisRunner, ComparedCrawls, OpenCrawls
from focuscrawl.studio.drawings import draw_circle, draw_curves
from focuscrawl.studio.page_rendering import PREFIX, json_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext

    Values = dict[str, Any]


class _Table(NamedTuple):
    """A table of URLs; `kinds` and `orders` are labels by the values of a query."""

    read: Callable[..., Any]
    total: int  # index in the result of `count_rows`
    kinds: dict[str, str]
    orders: dict[str, str]


#: by the last part of their path
_TABLES = {
    "pages": _Table(
        list_pages,
        0,
        {"page": "judged", "duplicate": "duplicates", "redirect": "redirects",
         "nothing": "no page"},
        {"newest": "latest first", "oldest": "earliest first", "relevance": "highest relevance",
         "score": "highest score", "host": "by host"},
    ),
    "frontier": _Table(
        list_unfetched,
        1,
        {"queued": "queued", "excluded": "excluded", "unfollowed": "not followed"},
        {"score": "highest score", "newest": "latest first", "oldest": "earliest first",
         "host": "by host"},
    ),
}  # fmt: skip
_TWO_CRAWLS = "name two crawls with the parameters a and b"
assert (*_TABLES["pages"].kinds,) == KINDS
assert (*_TABLES["pages"].orders,) == (*PAGE_ORDERS,)
assert (*_TABLES["frontier"].kinds,) == UNFETCHED_STATES
assert (*_TABLES["frontier"].orders,) == (*UNFETCHED_ORDERS,)


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the pages and their API."""
    crawls, analyses = OpenCrawls(), AnalysisRunner(context.folder.root)
    compared = ComparedCrawls(analyses)

    def table_routes(which: str) -> list[Route]:
        def values(request: Request) -> Values:
            crawl = context.requested_crawl(request)
            query = {k: v for k, v in request.query_params.items() if v}
            filters = {k: v for k, v in query.items() if k not in ("after", "before")}
            return {
                "crawl": crawl.name,
                "which": which,
                "query": query,
                "filters": filters,
                "is_later_part": query != filters,
                "backwards": "before" in query,
                "kinds": _TABLES[which].kinds,
                "orders": _TABLES[which].orders,
                "found": read_table(crawls, crawl.path, which, query),
            }

        answer = json_endpoint(lambda request: values(request)["found"])
        return view_routes(f"{at}/{which}", values, answer, ("urls", f"{which}_rows"))

    def of_url(read: Callable[[OpenCrawls, Path, str], Values]) -> Callable[[Request], Values]:
        return lambda request: read(
            crawls, context.requested_crawl(request).path, _requested_url(request)
        )

    def one(request: Request) -> Values:
        return {"crawl": context.requested_crawl(request).name, "page": of_url(read_page)(request)}

    def shown_why(request: Request) -> Values:
        return {
            "crawl": context.requested_crawl(request).name,
            "why": of_url(explain_url)(request),
        }

    def shown_text(request: Request) -> Values:
        name = context.requested_crawl(request).name
        try:
            return {"crawl": name, "text": of_url(read_text)(request)}
        except UserError as error:
            return {"crawl": name, "text": None, "error": str(error)}

    def hubs(request: Request) -> Values:
        crawl, rule = context.requested_crawl(request), request.query_params.get("sites", "")
        if rule and rule not in SITE_RULES:
            raise UserError(f"sites {rule!r:.40} is invalid: use one of {', '.join(SITE_RULES)}")
        found = analyses.get("hubs", crawl.path, option=rule)
        return {"crawl": crawl.name, "result": found, "sites": rule}

    def hosts(request: Request) -> Values:
        crawl = context.requested_crawl(request)
        found = analyses.get("hosts", crawl.path)
        drawing = None
        if found.value is not None:
            drawing = draw_circle(found.value["hosts"], found.value["links"])
        return {"crawl": crawl.name, "result": found, "drawing": drawing}

    def report(request: Request) -> Values:
        crawl = context.requested_crawl(request)
        found = analyses.get("report", crawl.path)
        drawing = None if found.value is None else draw_curves([found.value["curve"]])
        return {"crawl": crawl.name, "result": found, "drawing": drawing}

    def compare(request: Request) -> Values:
        a, b = (request.query_params.get(side, "") for side in "ab")
        names = [context.folder.name_of(path) for path in context.folder.crawls()]
        shown = {"a": a, "b": b, "names": names, "result": None, "drawing": None}
        if not (a and b):
            return shown
        found = compared.get(*_parse_pair(context, a, b))
        drawing = None if found.value is None else draw_curves(found.value["curves"])
        return shown | {"result": found, "drawing": drawing}

    def compared_pages(request: Request) -> Values:
        query = request.query_params
        a, b, part = (query.get(name, "") for name in ("a", "b", "part"))
        found = compared.pages(*_parse_pair(context, a, b), part, query.get("start", "0"))
        return {"a": a, "b": b, "part": part, **found}

    def view_routes(
        path: str,
        values: Callable[[Request], Values],
        answer: Callable[[Request], Response],
        templates: tuple[str, str],
    ) -> list[Route]:
        """Return the routes of the API, of a page, and of the part of the page to update."""
        page, part = templates
        return [
            Route(f"{PREFIX}{path}", answer),
            Route(path, context.page_endpoint(page, values)),
            Route(f"/parts{path}", context.page_endpoint(part, values)),
        ]

    at = "/crawls/{name:path}"
    return [
        *(route for which in _TABLES for route in table_routes(which)),
        Route(f"{PREFIX}{at}/page", json_endpoint(of_url(read_page))),
        Route(f"{PREFIX}{at}/page/why", json_endpoint(of_url(explain_url))),
        Route(f"{PREFIX}{at}/page/text", json_endpoint(of_url(read_text))),
        Route(f"{at}/page", context.page_endpoint("one_page", one)),
        Route(f"/parts{at}/page/why", context.page_endpoint("page_why", shown_why)),
        Route(f"/parts{at}/page/text", context.page_endpoint("page_text", shown_text)),
        *view_routes(f"{at}/hubs", hubs, _analysis_endpoint(hubs), ("hubs", "hubs_lists")),
        *view_routes(f"{at}/hosts", hosts, _analysis_endpoint(hosts), ("hosts", "hosts_map")),
        *view_routes(f"{at}/report", report, _analysis_endpoint(report), ("report", "reported")),
        *view_routes("/compare", compare, _analysis_endpoint(compare), ("compare", "compared")),
        Route(f"{PREFIX}/compare/pages", json_endpoint(compared_pages)),
        Route("/parts/compare/pages", context.page_endpoint("compared_rows", compared_pages)),
    ]


def _analysis_endpoint(values: Callable[[Request], Values]) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        found = values(request)["result"]
        if found is None:
            raise UserError(_TWO_CRAWLS)
        return JSONResponse(asdict(found))

    return endpoint


def _parse_pair(context: StudioContext, a: str, b: str) -> tuple[Path, Path]:
    if not (a and b):
        raise UserError(_TWO_CRAWLS)
    first, second = context.folder.crawl(a), context.folder.crawl(b)
    if first == second:
        raise UserError(f"{a} cannot be compared with itself: choose another crawl")
    return first, second


def _requested_url(request: Request) -> str:
    url = request.query_params.get("url", "").strip()
    if not url:
        raise UserError("the parameter url is missing: open a page from the table of pages")
    return url


def read_table(crawls: OpenCrawls, path: Path, which: str, query: Mapping[str, str]) -> Values:
    """Return a part of a crawl's table of pages, or of unfetched URLs (``frontier``).

    The result has the fields of `focuscrawl.report.url_tables.UrlRows`, ``total`` (number of rows
    of the table), ``as_of`` (time of the data, ISO 8601, UTC) and ``sorting``. While the sorted
    copy of the crawl is being written, the only field is ``sorting`` with the value True.
    """
    wanted = _parse_query(query)
    with crawls.sorted(path) as found:
        if found is None:
            return {"sorting": True}
        connection, copy = found
        places = {"after": query.get("after", ""), "before": query.get("before", "")}
        part = _TABLES[which].read(connection, wanted, **places)
        return {
            "sorting": False,
            **asdict(part),
            "total": count_rows(connection)[_TABLES[which].total],
            "as_of": copy.started_at.isoformat(timespec="seconds"),
        }


def read_page(crawls: OpenCrawls, path: Path, url: str) -> Values:
    """Return the state, the links and the duplicates of a URL of a crawl.

    The field ``duplicates`` is None while the sorted copy of the crawl is being written.
    """
    with crawls.store(path) as store:
        facts = url_facts(store, url)
        links = asdict(PageLinks.of(store, facts["number"]))
    duplicates = None
    with crawls.sorted(path) as found:
        if found is not None:
            duplicates = list_duplicates(found[0], facts["number"])
    return facts | {"links": links, "duplicates": duplicates}


def explain_url(crawls: OpenCrawls, path: Path, url: str) -> Values:
    """Return an explanation why a URL was fetched or is queued, as JSON-serializable values.

    The result has the fields ``state``, ``score``, ``busy``, ``path`` (steps with ``url``,
    ``seq``, ``relevance``) and ``reasons``. The field ``reasons`` is None, or has the fields
    ``lines``, ``parts`` (log-odds by name), ``words`` and ``score``.
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


def read_text(crawls: OpenCrawls, path: Path, url: str) -> Values:
    """Return the recorded text of a page of a crawl."""
    with crawls.store(path) as store:
        identity, known = store.identity(), url_facts(store, url)
    if known["fetch"] is None:
        raise UserError("the crawl has not fetched this URL")
    return asdict(load_recorded_page(identity, path, known["url"]))


def _parse_query(query: Mapping[str, str]) -> UrlFilter:
    """Parse the filters of a query; raise `UserError` if a value is invalid."""
    status = query.get("status", "").strip()
    if status and not (status.isascii() and status.isdigit() and len(status) <= 3):
        raise UserError("status must be an HTTP status such as 200, or 0 for no response")
    return UrlFilter(
        least=_parse_number(query, "least"),
        most=_parse_number(query, "most"),
        host=query.get("host", "").strip(),
        kind=query.get("kind", "").strip(),
        status=int(status) if status else None,
        search=query.get("search", "").strip(),
        order=query.get("order", "").strip(),
    )


def _parse_number(query: Mapping[str, str], name: str) -> float | None:
    given = query.get(name, "").strip()
    if not given:
        return None
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise UserError(f"{name} must be a number such as 0.5")
    return found
