"""Addresses of what is explored, of the API and of the pages."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.distiller import RULES
from focuscrawl.errors import UserError
from focuscrawl.report.sorted_urls import KINDS
from focuscrawl.report.url_tables import PAGE_ORDERS, WAITING_ORDERS, WAITING_STATES
from focuscrawl.studio.exploring import queries
from focuscrawl.studio.exploring.background import Background
from focuscrawl.studio.exploring.circle import draw_circle
from focuscrawl.studio.exploring.compared import Compared
from focuscrawl.studio.exploring.curves import draw_curves
from focuscrawl.studio.exploring.open_crawls import OpenCrawls
from focuscrawl.studio.rendering import PREFIX, render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.desk import Desk

_TABLES = {
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
assert tuple(_TABLES["pages"]["kinds"]) == KINDS
assert tuple(_TABLES["pages"]["orders"]) == tuple(PAGE_ORDERS)
assert tuple(_TABLES["frontier"]["kinds"]) == WAITING_STATES
assert tuple(_TABLES["frontier"]["orders"]) == tuple(WAITING_ORDERS)


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the API and of the pages."""
    shown = _Shown(desk)
    at, api = "/crawls/{name:path}", f"{PREFIX}/crawls/{{name:path}}"
    page = partial(_page, desk)
    return [
        *shown.table("pages"),
        *shown.table("frontier"),
        Route(f"{api}/page", shown.explained(queries.page)),
        Route(f"{api}/page/why", shown.explained(queries.why)),
        Route(f"{api}/page/text", shown.explained(queries.text)),
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
            found = queries.table(self._crawls, path, which, query)
            shown: dict[str, Any] = {"crawl": name, "which": which}
            shown |= {"query": query, "filters": filters}
            shown |= {"begun": query != filters, "backwards": "before" in query}
            return {**shown, **_TABLES[which], "found": found}

        def api(request: Request) -> Response:
            _, path = self._crawl(request)
            return JSONResponse(queries.table(self._crawls, path, which, request.query_params))

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
        return {"crawl": name, "page": queries.page(self._crawls, path, _url(request))}

    def why(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        return {"crawl": name, "why": queries.why(self._crawls, path, _url(request))}

    def text(self, request: Request) -> dict[str, Any]:
        name, path = self._crawl(request)
        try:
            found = queries.text(self._crawls, path, _url(request))
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
