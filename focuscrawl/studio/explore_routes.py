"""Routes of the studio for exploring crawls: tables, pages, hubs, and the map of hosts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.distiller import SITE_RULES
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import format_csv
from focuscrawl.report.url_lookup import PageLinks, load_recorded_page, url_facts
from focuscrawl.report.url_tables import (
    KINDS,
    UNFETCHED_STATES,
    UrlFilter,
    count_rows,
    list_duplicates,
    list_rows,
    sql_of,
)
from focuscrawl.report.why import PART_NAMES, Explanation
from focuscrawl.studio.crawl_analyses import AnalysisRunner, ComparedCrawls, OpenCrawls
from focuscrawl.studio.drawings import draw_circle, draw_curves
from focuscrawl.studio.page_cards import describe_reasons, mark_words, strong_words
from focuscrawl.studio.page_rendering import PREFIX, json_endpoint
from focuscrawl.topics import read_verdicts

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext

    Values = dict[str, Any]


class _Column(NamedTuple):
    """A column of a table; `order` sorts by the column, and is empty if nothing does."""

    name: str
    label: str
    order: str = ""
    is_number: bool = False
    is_optional: bool = True
    starts_ascending: bool = False
    is_shown: bool = True  # until a person chooses columns


class _Table(NamedTuple):
    """A table of URLs or hosts; `kinds` are labels by the values of a query."""

    heading: str
    about: str
    columns: tuple[_Column, ...]
    kinds: dict[str, str]
    number: str  # label of the number that `least` and `most` filter
    sort: str  # first order
    fields: tuple[str, ...]  # columns of the CSV file


#: by the last part of their path, in the order of `count_rows`
TABLES = {
    "pages": _Table(
        "Pages",
        "All fetches of the crawl. The relevance is the judgement of the critic; the "
        "score is the relevance that the strategy predicted when the URL left the frontier.",
        (
            _Column("relevance", "Relevance", "relevance", is_number=True, is_optional=False),
            _Column("page", "Page", is_optional=False),
            _Column("score", "Score", "score", is_number=True),
            _Column("class", "Class"),
            _Column("host", "Host", "host", starts_ascending=True, is_shown=False),
            _Column("fetch", "Fetch", "newest", is_number=True),
            _Column("outcome", "Outcome"),
        ),
        {"page": "pages", "duplicate": "duplicates", "redirect": "redirects",
         "nothing": "no page"},
        "Relevance",
        "relevance",
        ("seq", "url", "title", "relevance", "score", "status", "kind", "host", "topic"),
    ),
    "frontier": _Table(
        "Frontier (queued URLs)",
        "All URLs that the crawl has found but not fetched. The score of a URL is the relevance "
        "that the strategy predicts for its page.",
        (
            _Column("score", "Score", "score", is_number=True, is_optional=False),
            _Column("url", "URL", is_optional=False),
            _Column("host", "Host", "host", starts_ascending=True, is_shown=False),
            _Column("state", "State"),
            _Column("depth", "Clicks from a start page", is_number=True),
            _Column("found", "Found", "newest", is_number=True),
        ),
        {"queued": "queued", "excluded": "excluded", "unfollowed": "not followed"},
        "Score",
        "score",
        ("number", "url", "host", "score", "state", "depth", "referrer"),
    ),
    "hosts": _Table(
        "Hosts",
        "All hosts of the crawl. The share is the number of relevant pages of a host, divided by "
        "the number of fetches from the host.",
        (
            _Column("relevant", "Relevant pages", "relevant", is_number=True, is_optional=False),
            _Column("name", "Host", "name", is_optional=False, starts_ascending=True),
            _Column("share", "Share", "share", is_number=True),
            _Column("fetches", "Fetches", "fetches", is_number=True),
            _Column("queued", "Queued URLs", "queued", is_number=True),
        ),
        {},
        "Relevant pages",
        "relevant",
        ("name", "fetches", "relevant", "share", "queued"),
    ),
}  # fmt: skip
_CSV_PART = 5000  # rows
_CSV_INTERVAL = 0.2  # seconds between two checks whether the rows are sorted
assert (*TABLES["pages"].kinds,) == KINDS
assert (*TABLES["frontier"].kinds,) == UNFETCHED_STATES


def routes_of_table(context: StudioContext, crawls: OpenCrawls, which: str) -> list[Route]:
    """Return the routes of a table in `TABLES`: page, part of the page, JSON and CSV."""
    table, path = TABLES[which], f"/crawls/{{name:path}}/{which}"

    def shown(request: Request) -> Values:
        crawl = context.requested_crawl(request)
        query = {k: v for k, v in request.query_params.items() if v}
        filters = {k: v for k, v in query.items() if k not in ("after", "before")}
        found = read_table(crawls, crawl.path, which, query)
        verdicts = {} if which == "hosts" else read_verdicts(crawl.path)
        return {
            "crawl": crawl.name,
            "which": which,
            "table": table,
            "query": query,
            "filters": filters,
            "is_later_part": query != filters,
            "backwards": "before" in query,
            "found": found,
            "verdicts": verdicts,
            "sql": sql_of(which, _parse_query(filters)),
        }

    def answer(request: Request) -> Response:
        crawl = context.requested_crawl(request)
        return JSONResponse(read_table(crawls, crawl.path, which, request.query_params))

    def rows(request: Request) -> Response:
        values = shown(request)
        response = context.render("url_rows", values)
        # the address of the whole page, so that it can be reloaded and shared
        place = f"{context.base}/crawls/{quote(values['crawl'])}/{which}"
        response.headers["HX-Replace-Url"] = f"{place}?{urlencode(values['query'])}"
        return response

    def csv_file(request: Request) -> Response:
        crawl = context.requested_crawl(request)
        wanted = _parse_query(request.query_params)
        return StreamingResponse(
            _csv_lines(crawls, crawl.path, which, wanted),
            media_type="text/csv; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{which}.csv"',
                "Content-Security-Policy": "sandbox",
                "Cache-Control": "no-store",
            },
        )

    at_api = f"{PREFIX}/crawls/{{name:path}}/host-rows" if which == "hosts" else f"{PREFIX}{path}"
    return [
        Route(at_api, answer),
        Route(f"{PREFIX}{path}.csv", csv_file),
        Route(path, context.page_endpoint("urls", shown)),
        Route(f"/parts{path}", rows),
    ]


def read_table(crawls: OpenCrawls, path: Path, which: str, query: Mapping[str, str]) -> Values:
    """Return a part of a crawl's table ``pages``, ``frontier`` (URLs not fetched) or ``hosts``.

    The result has the fields of `focuscrawl.report.url_tables.UrlRows`, ``total`` (number of rows
    of the table), ``as_of`` (time of the data, ISO 8601, UTC) and ``sorting``. While the sorted
    copy of the crawl is being written, the only field is ``sorting`` with the value True.
    """
    wanted = _parse_query(query)
    with crawls.sorted(path) as found:
        if found is None:
            return {"sorting": True}
        connection, copy = found
        after, before = query.get("after", ""), query.get("before", "")
        part = list_rows(connection, which, wanted, after=after, before=before)
        return {
            "sorting": False,
            **asdict(part),
            "total": count_rows(connection)[[*TABLES].index(which)],
            "as_of": copy.started_at.isoformat(timespec="seconds"),
        }


def _csv_lines(crawls: OpenCrawls, path: Path, which: str, wanted: UrlFilter) -> Iterator[str]:
    """Yield all rows of a table that match a filter as CSV, some thousand rows at a time.

    The sorted copy is opened for each part, because the parts are read in different threads.
    """
    table = TABLES[which]
    yield format_csv([table.fields])
    after: str | None = ""
    while after is not None:
        with crawls.sorted(path) as found:
            if found is None:
                time.sleep(_CSV_INTERVAL)
                continue
            part = list_rows(found[0], which, wanted, after=after, n=_CSV_PART)
        yield format_csv([row[name] for name in table.fields] for row in part.rows)
        after = part.after


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


_TWO_CRAWLS = "name two crawls with the parameters a and b"


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the pages and their API."""
    crawls, analyses = OpenCrawls(), AnalysisRunner(context.folder.root)
    compared = ComparedCrawls(analyses)

    def of_url(read: Callable[[OpenCrawls, Path, str], Values]) -> Callable[[Request], Values]:
        return lambda request: read(
            crawls, context.requested_crawl(request).path, _requested_url(request)
        )

    def one(request: Request) -> Values:
        crawl = context.requested_crawl(request)
        page = of_url(read_page)(request)
        verdict = read_verdicts(crawl.path).get(page["url"], "")
        in_drawer = request.url.path.startswith("/parts/")
        return {"crawl": crawl.name, "page": page, "verdict": verdict, "in_drawer": in_drawer}

    def shown_why(request: Request) -> Values:
        return {
            "crawl": context.requested_crawl(request).name,
            "why": of_url(explain_url)(request),
        }

    def shown_text(request: Request) -> Values:
        name = context.requested_crawl(request).name
        try:
            found = of_url(read_text)(request)
            on, off = strong_words(found["reasons"])
            paragraphs = [mark_words(each, on, off) for each in found["text"]]
            sentences = describe_reasons(found["relevance"], found["reasons"])
            return {"crawl": name, "text": found, "paragraphs": paragraphs, "sentences": sentences}
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
        *(route for which in TABLES for route in routes_of_table(context, crawls, which)),
        Route(f"{PREFIX}{at}/page", json_endpoint(of_url(read_page))),
        Route(f"{PREFIX}{at}/page/why", json_endpoint(of_url(explain_url))),
        Route(f"{PREFIX}{at}/page/text", json_endpoint(of_url(read_text))),
        Route(f"{at}/page", context.page_endpoint("one_page", one)),
        Route(f"/parts{at}/page", context.page_endpoint("page_facts", one)),
        Route(f"/parts{at}/page/why", context.page_endpoint("page_why", shown_why)),
        Route(f"/parts{at}/page/text", context.page_endpoint("page_text", shown_text)),
        *view_routes(f"{at}/hubs", hubs, _analysis_endpoint(hubs), ("hubs", "hubs_lists")),
        *view_routes(f"{at}/report", report, _analysis_endpoint(report), ("report", "reported")),
        Route(f"{PREFIX}{at}/hosts", _analysis_endpoint(hosts)),
        Route(f"{at}/map", context.page_endpoint("hosts", hosts)),
        Route(f"/parts{at}/map", context.page_endpoint("hosts_map", hosts)),
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
    page = load_recorded_page(identity, path, known["url"])
    found = asdict(replace(page, reasons=None))
    reasons = None if page.reasons is None else page.reasons.to_dict()
    return found | {"relevance": known["fetch"]["relevance"], "reasons": reasons}
