"""The studio as an ASGI application: API, pages and assets behind one door."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse

from focuscrawl.errors import UserError
from focuscrawl.studio import api, assets, crawling, pages
from focuscrawl.studio.access import AccessMiddleware
from focuscrawl.studio.collecting import routes as collecting
from focuscrawl.studio.exploring import routes as exploring
from focuscrawl.studio.judging import routes as judging
from focuscrawl.studio.posted import NO_TEXT
from focuscrawl.studio.rendering import PREFIX, message
from focuscrawl.studio.topics import routes as topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from focuscrawl.studio.access import Access
    from focuscrawl.studio.desk import Desk


def make_application(desk: Desk, access: Access) -> Starlette:
    """Return the application that serves what is on `desk` to whom `access` lets in."""

    def refuse(request: Request, why: str, status: HTTPStatus) -> Response:
        if request.url.path.startswith(PREFIX):
            return JSONResponse({"error": why}, status)
        return message(desk, status.phrase, why, status)

    def user_error(request: Request, error: Exception) -> Response:
        return refuse(request, str(error), HTTPStatus.BAD_REQUEST)

    def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.NOT_FOUND:
            why = "There is nothing here: go to the overview."
            return refuse(request, why, HTTPStatus.NOT_FOUND)
        return refuse(request, error.detail, HTTPStatus(error.status_code))

    return Starlette(
        routes=[
            *topics.routes(desk),
            *judging.routes(desk),
            *crawling.routes(desk),
            *exploring(desk),
            *collecting(desk),
            *api.routes(desk),
            *assets.routes(),
            *pages.routes(desk),
        ],
        middleware=[
            Middleware(AccessMiddleware, access=access),
            Middleware(_AddressMiddleware, refuse=refuse),
        ],
        exception_handlers={UserError: user_error, HTTPException: http_error},
    )


class _AddressMiddleware:
    """Refuses addresses with a NUL in them, which no file is called and no text has."""

    def __init__(self, app: ASGIApp, refuse: Callable[..., Response]) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            why = f"The address: {NO_TEXT}."
            answer = self._refuse(Request(scope), why, HTTPStatus.BAD_REQUEST)
        await answer(scope, receive, send)
