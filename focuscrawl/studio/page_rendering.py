"""What every page of the studio uses: folder and jobs at hand, HTML, assets, posted fields."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import changing
from focuscrawl.report.templates import load_template
from focuscrawl.studio.served_folder import NamedCrawl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from starlette.requests import Request

    from focuscrawl.studio.jobs import Jobs
    from focuscrawl.studio.served_folder import StudioFolder


@dataclass(frozen=True)
class Desk:
    """A studio's folder and what is done in it.

    Attributes
    ----------
    folder : topics, critics and crawls
    jobs : commands that were begun here, running or ended
    read_only : nobody may change anything; who asks to is refused before a route is found
    base : what the paths of its pages begin with
    over : set when the studio ends, so that streams end, too
    """

    folder: StudioFolder
    jobs: Jobs
    read_only: bool
    base: str = ""
    over: Event = field(default_factory=Event)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Keep others, and other studios of the folder, from beginning jobs.

        Who looks whether one is under way, and begins one if not, does both within it.
        """
        try:
            with changing(self.folder.root / "jobs"):
                yield
        except OSError as error:
            raise UserError(f"{self.folder.root} cannot be written: {error.strerror}") from None

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl called so.

        Raises
        ------
        UserError
            There is none.
        """
        path = self.folder.crawl(name)
        return NamedCrawl(self.folder.name_of(path), path)


# Files that browsers load: ours, and what is taken over unchanged from npm.
#
# ``static/vendored.json`` has version, licence, source and SHA-256 of what is taken over.

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


_LONGEST = 4 << 20  # bytes
NO_TEXT = "it holds a NUL or half a character, which no text has: leave that out"


def with_values(
    endpoint: Callable[[Request, Mapping[str, Any]], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads the values posted, and answers from a thread.

    Of a form each value is a text, or a list of texts where a field is there more than once; of
    JSON whatever it says.

    Raises
    ------
    UserError
        What was posted is neither, or holds what no text has.
    """

    async def answer(request: Request) -> Response:
        values = await _values(request)
        for name, value in values.items():
            if not (_is_text(name) and _is_text(value)):
                raise UserError(f"{name!r:.80}: {NO_TEXT}")
        return await run_in_threadpool(endpoint, request, values)

    return answer


def text_of(values: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return a value that has to be a text, without spaces around it; see `with_values`.

    Of JSON a number stands for its text, true for ``yes``, and false for an empty one.
    """
    found = values.get(name, default)
    if isinstance(found, bool):
        found = "yes" if found else ""
    elif isinstance(found, int | float):
        found = str(found)
    if not isinstance(found, str):
        raise UserError(f"{name} has to be a text")
    return found.strip()


def texts_of(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a value of texts: a list, or the lines of a text; empty ones are left out."""
    found = values.get(name, [])
    if isinstance(found, str):
        found = found.splitlines()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(f"{name} has to be a list of texts")
    return [each.strip() for each in found if each.strip()]


def _is_text(value: Any) -> bool:
    """Tell whether all texts in a value of JSON can be written and told to commands."""
    if isinstance(value, dict):
        return all(_is_text(name) and _is_text(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_text, value))
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    return True


async def _values(request: Request) -> dict[str, Any]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"More than {_LONGEST >> 20} MiB at once."
            )
    if "json" in request.headers.get("content-type", ""):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise UserError("what was posted is no JSON") from None
        if not isinstance(found, dict):
            raise UserError("what is posted has to be a JSON object")
        return found
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: found[0] if len(found) == 1 else found for name, found in fields.items()}


PREFIX = "/api/v1"  #: of addresses of the API


def render(desk: Desk, name: str, values: Mapping[str, Any]) -> HTMLResponse:
    """Return ``templates/<name>.html.j2`` with `values`, and with what all pages show."""
    everywhere = {"folder": str(desk.folder.root), "read_only": desk.read_only}
    return _render(desk, name, {**everywhere, **values}, 200)


def message(desk: Desk, heading: str, text: str, status: int) -> HTMLResponse:
    """Return a page that says one thing."""
    return _render(desk, "message", {"heading": heading, "text": text}, status)


def _render(desk: Desk, name: str, values: dict[str, Any], status: int) -> HTMLResponse:
    template = load_template(f"templates/{name}.html.j2", "focuscrawl.studio")
    addresses = {"base": desk.base, "api": f"{desk.base}{PREFIX}"}
    return HTMLResponse(template.render(addresses | values), status)
