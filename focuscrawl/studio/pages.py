"""The pages: what the API says, as HTML. What a crawl or a page is called is never markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse
from starlette.routing import Route

from focuscrawl.report.templates import load_template
from focuscrawl.studio import api, listing

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.studio.folder import StudioFolder


def routes(folder: StudioFolder, *, read_only: bool) -> list[Route]:
    """Return the routes of the pages."""
    everywhere = {"folder": str(folder.root), "read_only": read_only, "api": api.PREFIX}

    def overview(_: Request) -> HTMLResponse:
        return _page(
            "overview",
            everywhere
            | {
                "topics": listing.topics(folder),
                "critics": listing.critics(folder),
                "crawls": listing.crawls(folder),
            },
        )

    def crawls(_: Request) -> HTMLResponse:
        return _page("crawls", everywhere | {"crawls": listing.crawls(folder)})

    return [Route("/", overview), Route("/parts/crawls", crawls)]


def message(heading: str, text: str, status: int) -> HTMLResponse:
    """Return a page that says one thing."""
    return _page("message", {"heading": heading, "text": text}, status)


def _page(name: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
    template = load_template(f"templates/{name}.html.j2", "focuscrawl.studio")
    return HTMLResponse(template.render(values), status)
