"""Creates the ASGI application of the studio, and runs its web server."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EACCES, EADDRINUSE
from http import HTTPStatus
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse

from focuscrawl.errors import UserError
from focuscrawl.studio import (
    corpora,
    crawl_routes,
    explore_routes,
    exports,
    judging,
    listing,
    overview,
    topic_routes,
)
from focuscrawl.studio.access import Access, AccessMiddleware, load_token
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import (
    INVALID_TEXT,
    PREFIX,
    FieldErrorsError,
    StudioContext,
    asset_routes,
)

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from focuscrawl.studio.access import PublicUrl
    from focuscrawl.studio.served_folder import StudioFolder

_LOOPBACK = ("127.0.0.1", "localhost")


def make_application(context: StudioContext, access: Access) -> Starlette:
    """Return the ASGI application of the studio, which answers allowed requests."""

    def refuse(
        request: Request, why: str, status: HTTPStatus, fields: Mapping[str, str] | None = None
    ) -> Response:
        if request.url.path.startswith((PREFIX, "/parts/")):  # htmx shows the field `error`
            found: dict[str, Any] = {"error": why}
            return JSONResponse(found if fields is None else found | {"fields": fields}, status)
        return context.render("message", {"heading": status.phrase, "text": why}, status)

    def user_error(request: Request, error: Exception) -> Response:
        fields = error.fields if isinstance(error, FieldErrorsError) else None
        return refuse(request, str(error), HTTPStatus.BAD_REQUEST, fields)

    def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.NOT_FOUND:
            why = "The studio has no page at this address."
            return refuse(request, why, HTTPStatus.NOT_FOUND)
        return refuse(request, error.detail, HTTPStatus(error.status_code))

    applier = judging.JudgementApplier(context)
    return Starlette(
        routes=[
            *topic_routes.routes(context),
            *corpora.routes(context),
            *judging.routes(context, applier),
            *crawl_routes.routes(context),
            *explore_routes.routes(context),
            *exports.routes(context, applier.is_busy),
            *listing.routes(context),
            *overview.routes(context),
            *asset_routes(),
        ],
        middleware=[
            Middleware(AccessMiddleware, access=access),
            Middleware(_AddressMiddleware, refuse=refuse),
        ],
        exception_handlers={UserError: user_error, HTTPException: http_error},
    )


class _AddressMiddleware:
    """Refuses URLs with a NUL, which file names cannot contain."""

    def __init__(self, app: ASGIApp, refuse: Callable[..., Response]) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            why = f"The URL is {INVALID_TEXT}."
            answer = self._refuse(Request(scope), why, HTTPStatus.BAD_REQUEST)
        await answer(scope, receive, send)


class Studio:
    """A studio that listens on a port; its method `serve` answers requests.

    Parameters
    ----------
    folder : StudioFolder
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0: any free port.
    read_only : bool
        Refuse all changes.
    public_url : PublicUrl, optional
        Address of the studio behind a proxy.

    Attributes
    ----------
    address : str
        URL to open in a browser, with the token.
    """

    def __init__(
        self,
        folder: StudioFolder,
        host: str,
        port: int,
        *,
        read_only: bool = False,
        public_url: PublicUrl | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen()
        except (OSError, OverflowError) as error:
            self._socket.close()
            if isinstance(error, OSError) and error.errno not in (EADDRINUSE, EACCES):
                raise UserError(
                    f"the studio cannot listen on {host} ({error.strerror}): give an address of "
                    "this machine with --host, such as 127.0.0.1"
                ) from None
            raise UserError(
                f"the studio cannot listen on port {port} of {host} ({error}): another studio may "
                "use the port; choose another with --port, or any free port with --port 0"
            ) from None
        port = self._socket.getsockname()[1]
        token = load_token(folder.root)
        names = {host, *_LOOPBACK} if host in _LOOPBACK else {host}
        access = Access(
            token,
            [_with_port(name, port) for name in names],
            f"focuscrawl-studio-{port}",
            read_only=read_only,
            public=public_url,
        )
        self._context = StudioContext(folder, Jobs(folder.root), read_only, base=access.base)
        self._application = make_application(self._context, access)
        origin = f"http://{_with_port(host, port)}" if public_url is None else public_url.origin
        self.address = f"{origin}{access.base}/?token={token}"

    def serve(self) -> None:
        """Serve until Ctrl-C."""
        config = uvicorn.Config(
            self._application,
            log_level="warning",
            access_log=False,  # URLs may contain the token
            server_header=False,
            proxy_headers=False,  # the client's address is not used
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        with self._socket, suppress(KeyboardInterrupt):
            _Server(config, self._context.stopping).run(sockets=[self._socket])


class _Server(uvicorn.Server):
    """Sets `stopping` at a signal to stop, because uvicorn waits for open streams."""

    def __init__(self, config: uvicorn.Config, stopping: Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End all open response streams, and then stop the server."""
        self._stopping.set()
        super().handle_exit(sig, frame)


def has_browser() -> bool:
    """Return whether a graphical browser can be opened on this machine."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, screens))


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
