"""Code that all routes of the studio share, such as rendering of HTML pages.

The files named in ``static/vendored.json`` are unchanged copies from npm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, update_lock
from focuscrawl.report.templates import load_template
from focuscrawl.studio.served_folder import NamedCrawl

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.studio.jobs import Jobs
    from focuscrawl.studio.served_folder import StudioFolder

Endpoint: TypeAlias = "Callable[[Request], Response]"

PREFIX = "/api/v1"  #: prefix of the paths of the API
#: name in URLs: package, path in the package, media type
ASSETS = {
    "report.css": ("focuscrawl.report", "style.css", "text/css"),
    "studio.css": ("focuscrawl.studio", "static/studio.css", "text/css"),
    "studio.js": ("focuscrawl.studio", "static/studio.js", "text/javascript"),
    "topics.js": ("focuscrawl.studio", "static/topics.js", "text/javascript"),
    "judging.js": ("focuscrawl.studio", "static/judging.js", "text/javascript"),
    "tables.js": ("focuscrawl.studio", "static/tables.js", "text/javascript"),
    "exploring.js": ("focuscrawl.studio", "static/exploring.js", "text/javascript"),
    "htmx.min.js": ("focuscrawl.studio", "static/htmx.min.js", "text/javascript"),
    "uPlot.min.js": ("focuscrawl.studio", "static/uPlot.min.js", "text/javascript"),
    "uPlot.min.css": ("focuscrawl.studio", "static/uPlot.min.css", "text/css"),
    "live.js": ("focuscrawl.studio", "static/live.js", "text/javascript"),
    "icon.svg": ("focuscrawl.studio", "static/icon.svg", "image/svg+xml"),
}
INVALID_TEXT = "invalid text: remove NUL characters and unpaired surrogates"
_MAX_POSTED = 4 << 20  # bytes


@dataclass(frozen=True)
class StudioContext:
    """The folder, the jobs and the options of a running studio."""

    folder: StudioFolder
    jobs: Jobs
    read_only: bool  # pages hide buttons and forms; `Access` refuses their requests
    base: str = ""  # prefix of the paths of all pages
    stopping: Event = field(default_factory=Event)  # set when the studio stops, to end streams

    @contextmanager
    def job_lock(self) -> Iterator[None]:
        """Prevent other requests and studios from starting jobs during a ``with`` block.

        Callers check whether a job is running, and start a job, within one ``with`` block.
        """
        root = self.folder.root
        with reporting_write_errors(root), update_lock(root / "jobs"):
            yield

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl with the given name; raise `UserError` if the crawl does not exist."""
        path = self.folder.crawl(name)
        return NamedCrawl(self.folder.name_of(path), path)

    def requested_crawl(self, request: Request) -> NamedCrawl:
        """Return the crawl that a request's path names; raise `UserError` if there is none."""
        return self.crawl(request.path_params["name"])

    def render(
        self, template: str, values: Mapping[str, Any], status: int = HTTPStatus.OK
    ) -> HTMLResponse:
        """Return the HTML response of a template with `values`."""
        found = load_template(f"templates/{template}.html.j2", "focuscrawl.studio")
        shared = {
            "folder": str(self.folder.root),
            "read_only": self.read_only,
            "base": self.base,
            "api": f"{self.base}{PREFIX}",
        }
        return HTMLResponse(found.render(shared | {**values}), status)

    def page_endpoint(
        self, template: str, values: Callable[[Request], Mapping[str, Any]]
    ) -> Endpoint:
        """Return an endpoint that renders a template with the values computed for a request."""
        return lambda request: self.render(template, values(request))


def json_endpoint(values: Callable[[Request], Any]) -> Endpoint:
    """Return an endpoint that responds with the values computed for a request, as JSON."""
    return lambda request: JSONResponse(values(request))


def accepted_response(found: Any, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a response with status 202 Accepted."""
    return JSONResponse(found, HTTPStatus.ACCEPTED, headers=headers)


# -- posted values -------------------------------------------------------------------------


def post_route(path: str, endpoint: Callable[[Request, Mapping[str, Any]], Response]) -> Route:
    """Return a route for POST requests that calls `endpoint` with the posted values in a thread.

    The posted values are a JSON object or the fields of a form. The value of a form field is a
    string, or a list of strings if the field is repeated. Invalid values, and text with NUL
    characters or unpaired surrogates, raise `UserError`.
    """

    async def receive(request: Request) -> Response:
        values = await _read_values(request)
        for name, value in values.items():
            if not (_is_text(name) and _is_text(value)):
                raise UserError(f"{name!r:.80} is {INVALID_TEXT}")
        return await run_in_threadpool(endpoint, request, values)

    return Route(path, receive, methods=["POST"])


class FieldErrorsError(UserError):
    """Several invalid values of a form.

    Attributes
    ----------
    fields : dict of str to str
        Message by the name of the field.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(fields.values()))
        self.fields = dict(fields)


class FieldChecks:
    """Collects the errors of a form's fields, so that a person sees all errors at once."""

    def __init__(self) -> None:
        self._errors: dict[str, str] = {}

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        """Record a `UserError` in the ``with`` block as the error of the field `name`."""
        try:
            yield
        except UserError as error:
            self._errors.setdefault(name, str(error))

    def finish(self) -> None:
        """Raise `FieldErrorsError` if a field has an error."""
        if self._errors:
            raise FieldErrorsError(self._errors)


def text_value(values: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return a posted string without surrounding spaces; raise `UserError` for other types.

    Numbers in JSON become strings, true becomes ``yes``, and false becomes an empty string.
    """
    found = values.get(name, default)
    if isinstance(found, bool):
        found = "yes" if found else ""
    elif isinstance(found, int | float):
        found = str(found)
    if not isinstance(found, str):
        raise UserError(f"{name} must be a string")
    return found.strip()


def text_values(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a posted list of strings, or the lines of a string, without empty strings."""
    found = values.get(name, [])
    if isinstance(found, str):
        found = found.splitlines()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(f"{name} must be a list of strings, or lines of text")
    return [each.strip() for each in found if each.strip()]


def _is_text(value: Any) -> bool:
    """Return whether all strings in a JSON value can be written and passed to commands."""
    if isinstance(value, dict):
        return all(_is_text(name) and _is_text(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_text, value))
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    return True


async def _read_values(request: Request) -> dict[str, Any]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_POSTED:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The request is larger than {_MAX_POSTED >> 20} MiB: send less at once.",
            )
    if "json" in request.headers.get("content-type", ""):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise UserError("the body of the request is not valid JSON") from None
        if not isinstance(found, dict):
            raise UserError("the body of the request must be a JSON object")
        return found
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: found[0] if len(found) == 1 else found for name, found in fields.items()}


# -- assets --------------------------------------------------------------------------------


def read_asset(name: str) -> bytes:
    """Return the content of a static file of the studio, named in `ASSETS`."""
    package, path, _ = ASSETS[name]
    return files(package).joinpath(path).read_bytes()


def asset_routes() -> list[Route]:
    """Return a route for each static file, so that request paths are never used as file paths."""
    return [_asset_route(name) for name in ASSETS]


def _asset_route(name: str) -> Route:
    content, media_type = read_asset(name), ASSETS[name][2]
    # browsers request assets again after an hour, because a new version may change them
    headers = {"Cache-Control": "max-age=3600"}
    return Route(
        f"/assets/{name}", lambda _: Response(content, media_type=media_type, headers=headers)
    )
