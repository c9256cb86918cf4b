"""Routes of the studio for exploring crawls, such as pages, hubs, and the map of hosts."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.distiller import SITE_RULES
from focuscrawl.errors import UserError
from focuscrawl.report.url_lookup import PageLinks, load_recorded_page, url_facts
from focuscrawl.report.url_tables import (
    list_duplicates,
)
from focuscrawl.report.why import PART_NAMES, Explanation
from focuscrawl.studio.crawl_analyses import AnalysisRunner, ComparedCrawls, OpenCrawls
from focuscrawl.studio.drawings import draw_circle, draw_curves
from focuscrawl.studio.page_cards import describe_reasons, mark_words, strong_words
from focuscrawl.studio.page_rendering import PREFIX, json_endpoint
from focuscrawl.studio.table_routes import TABLES, routes_of_table
from focuscrawl.topics import read_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext

    Values = dict[str, Any]


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
