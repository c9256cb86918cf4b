"""Who may talk to the studio: those who know its token, from its own pages, under its own name."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_READING = ("GET", "HEAD")
_TOKEN = "token"
_BEARER = "Bearer "
_POLICY = "Content-Security-Policy"

#: of every answer: nothing runs, loads or is shown but what the studio itself serves
HEADERS = {
    _POLICY: (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Access:
    """What is asked of a request before anything else looks at it.

    Attributes
    ----------
    token : whoever knows it may use the studio
    hosts : names and ports, as ``Host`` has them, that the studio answers to
    cookie : name of the cookie that holds the token; other studios have other ports
    read_only : nobody may change anything
    """

    token: str
    hosts: frozenset[str]
    cookie: str
    read_only: bool = False

    def refusal(self, request: Request) -> tuple[HTTPStatus, str] | None:
        """Return why a request is refused, with the way out; None: it is not."""
        if request.headers.get("host", "").lower() not in self.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, "Use the address that the studio has printed."
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return HTTPStatus.FORBIDDEN, "Only pages of the studio itself may ask this."
        by_header = self._is_token(self._bearer(request))
        if not by_header and not self._is_token(request.cookies.get(self.cookie)):
            return HTTPStatus.UNAUTHORIZED, (
                "Open the address that `focuscrawl studio` has printed: it holds a token."
            )
        if request.method in _READING:
            return None
        return self._refusal_of_change(origin=origin, by_header=by_header)

    def brings_token(self, request: Request) -> bool:
        """Tell whether the address itself, one of ours, holds the token."""
        ours = request.headers.get("host", "").lower() in self.hosts
        reading = request.method in _READING
        return ours and reading and self._is_token(request.query_params.get(_TOKEN))

    def _refusal_of_change(
        self, *, origin: str | None, by_header: bool
    ) -> tuple[HTTPStatus, str] | None:
        if self.read_only:
            return HTTPStatus.FORBIDDEN, (
                "This studio is read-only: start one without --read-only to change something."
            )
        if origin is None and not by_header:
            return HTTPStatus.FORBIDDEN, "Changes need the header Origin, or Authorization."
        return None

    def _bearer(self, request: Request) -> str | None:
        said = request.headers.get("authorization", "")
        return said.removeprefix(_BEARER) if said.startswith(_BEARER) else None

    def _is_token(self, said: str | None) -> bool:
        return said is not None and secrets.compare_digest(said.encode(), self.token.encode())


class AccessMiddleware:
    """Refuses what `Access` refuses, and adds `HEADERS` to every answer.

    An address that holds the token is answered with the cookie, and led to the same without the
    token, which so stays out of the history and of what is shown.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":  # there are no WebSockets
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                own = headers.get(_POLICY)  # an answer may be held to more, never to less
                headers.update(HEADERS)
                if own is not None:
                    headers[_POLICY] += f"; {own}"
            await send(message)

        request = Request(scope)
        answer = self._answer(request) or self._app
        await answer(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        if self._access.brings_token(request):
            answer = RedirectResponse(_without_token(request), HTTPStatus.SEE_OTHER)
            answer.set_cookie(
                self._access.cookie, self._access.token, httponly=True, samesite="strict"
            )
            return answer
        refusal = self._access.refusal(request)
        if refusal is None:
            return None
        status, why = refusal
        return PlainTextResponse(why + "\n", status)


def _without_token(request: Request) -> str:
    """Return the address from its path on; two slashes at its beginning would be a host."""
    left = request.url.remove_query_params(_TOKEN)
    path = "/" + left.path.lstrip("/\\")
    return f"{path}?{left.query}" if left.query else path
