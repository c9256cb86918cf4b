"""Files that browsers load: ours, and what is taken over unchanged from npm.

``static/vendored.json`` has version, licence, source and SHA-256 of what is taken over.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

#: name: package it is in, path there, media type; the first is the report's own style
ASSETS = {
    "report.css": ("focuscrawl.report", "style.css", "text/css"),
    "studio.css": ("focuscrawl.studio", "static/studio.css", "text/css"),
    "studio.js": ("focuscrawl.studio", "static/studio.js", "text/javascript"),
    "topics.js": ("focuscrawl.studio", "static/topics.js", "text/javascript"),
    "judging.js": ("focuscrawl.studio", "static/judging.js", "text/javascript"),
    "exploring.js": ("focuscrawl.studio", "static/exploring.js", "text/javascript"),
    "htmx.min.js": ("focuscrawl.studio", "static/htmx.min.js", "text/javascript"),
    "uPlot.min.js": ("focuscrawl.studio", "static/uPlot.min.js", "text/javascript"),
    "uPlot.min.css": ("focuscrawl.studio", "static/uPlot.min.css", "text/css"),
    "live.js": ("focuscrawl.studio", "static/live.js", "text/javascript"),
    "icon.svg": ("focuscrawl.studio", "static/icon.svg", "image/svg+xml"),
}


def read_asset(name: str) -> bytes:
    """Return the content of one of `ASSETS`."""
    package, path, _ = ASSETS[name]
    return files(package).joinpath(path).read_bytes()


def routes() -> list[Route]:
    """Return a route for each file: no path of a request is ever one of a disk."""
    return [_route(name) for name in ASSETS]


def _route(name: str) -> Route:
    content, media_type = read_asset(name), ASSETS[name][2]

    def endpoint(_: Request) -> Response:
        # asked for anew after an hour: a new version of the studio is not shown in the old style
        headers = {"Cache-Control": "max-age=3600"}
        return Response(content, media_type=media_type, headers=headers)

    return Route(f"/assets/{name}", endpoint)
