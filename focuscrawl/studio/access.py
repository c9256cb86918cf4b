"""Checks which requests to the studio are allowed, by token, cookie, ``Host`` and ``Origin``."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import platformdirs
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, update_lock, write_atomically

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_TOKEN_BYTES = 32
_TOKEN_PATTERN = re.compile(r"[\w-]{43}", re.ASCII)
_SAFE_METHODS = ("GET", "HEAD")
_TOKEN_PARAMETER = "token"
_BEARER = "Bearer "
_SECRET_PATH_LENGTH = 22  # 128 bits
_PORTS = {"http": 80, "https": 443}
_HOST_PATTERN = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+", re.ASCII)
_PREFIX_PATTERN = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._~-]*)*", re.ASCII)
_CONTENT_POLICY = "Content-Security-Policy"

#: headers of every response: browsers load and run only the studio's own files
HEADERS = {
    _CONTENT_POLICY: (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def load_token(root: Path) -> str:
    """Return the access token for the studio of the folder `root`, or create a token.

    The token file is private and in the user's state folder, because another person may have
    created the folder `root`. If the token file cannot be written, each start of the studio
    creates a new token.
    """
    name = sha256(os.fsencode(root)).hexdigest()[:32]
    path = platformdirs.user_state_path("focuscrawl") / "studio" / name
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with update_lock(path):  # another studio of this folder may start at the same time
            token = _read_token(path)
            if token is None:
                token = secrets.token_urlsafe(_TOKEN_BYTES)
                write_atomically(path, token + "\n")
        return token
    except (OSError, UserError):
        return _read_token(path) or secrets.token_urlsafe(_TOKEN_BYTES)
    finally:
        os.umask(before)


def _read_token(path: Path) -> str | None:
    with suppress(OSError, ValueError, UserError):
        with open(path, encoding="ascii", opener=open_nofollow) as file:
            kept = file.read(2 * _TOKEN_BYTES).strip()
            private = os.fstat(file.fileno()).st_mode & 0o077 == 0
        if private and _TOKEN_PATTERN.fullmatch(kept):
            return kept
    return None


@dataclass(frozen=True)
class PublicUrl:
    """Public address of a studio behind a proxy, such as ``https://studio.example.org/path``."""

    origin: str  # scheme, host and port, as in the header Origin
    hosts: frozenset[str]  # values of the header Host, with and without the port
    prefix: str  # path, or empty

    @classmethod
    def parse(cls, text: str) -> PublicUrl:
        """Parse the public URL of a studio; raise `UserError` if the URL is invalid."""
        error = UserError(
            f"--public-url {text!r:.200} is invalid: give an address like "
            "https://studio.example.org or https://example.org/studio"
        )
        try:
            found = urlsplit(text.strip())
            name, port = found.hostname or "", found.port
        except ValueError:
            raise error from None
        prefix = found.path.rstrip("/")
        if (
            found.scheme not in _PORTS
            or not _HOST_PATTERN.fullmatch(name)
            or any((found.username, found.password, found.query, found.fragment))
            or not _PREFIX_PATTERN.fullmatch(prefix)
        ):
            raise error
        host = f"[{name}]" if ":" in name else name
        shown = host if port in (None, _PORTS[found.scheme]) else f"{host}:{port}"
        hosts = frozenset({host, shown, f"{host}:{port or _PORTS[found.scheme]}"})
        return cls(f"{found.scheme}://{shown}", hosts, prefix)

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers connect to the studio with TLS."""
        return self.origin.startswith("https:")


class Access:
    """Checks whether a request to the studio is allowed, before routing.

    Browsers send a cookie to every port of a host, so also to other programs on the studio's
    machine. The studio's cookie is therefore bound to a secret path, and a request of a browser
    needs the secret path and the cookie. Scripts send the token in the header ``Authorization``.

    Parameters
    ----------
    token : str
        Anybody who knows the token may use the studio.
    hosts : iterable of str
        Accepted values of ``Host``: names with ports.
    cookie : str
        Name of the cookie, which differs between studios on one host.
    read_only : bool
        Refuse all changes.
    public : PublicUrl, optional
        Address of the studio behind a proxy.

    Attributes
    ----------
    base : str
        Prefix of the paths of all pages.
    """

    def __init__(
        self,
        token: str,
        hosts: Iterable[str],
        cookie: str,
        *,
        read_only: bool = False,
        public: PublicUrl | None = None,
    ) -> None:
        self._token = token
        self._session = _derive(token, "session")  # the token cannot be computed from the cookie
        self._cookie = cookie
        self._hosts = {*hosts}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._read_only = read_only
        self._secure = public is not None and public.is_encrypted
        self._secret_path = f"/~{_derive(token, 'path')[:_SECRET_PATH_LENGTH]}"
        self.base = self._secret_path
        if public is not None:
            self._hosts |= public.hosts
            self._origins.add(public.origin)
            self.base = public.prefix + self._secret_path

    def inner_path(self, path: str) -> str | None:
        """Return the part of a path after the secret prefix `base`; None for other paths."""
        for base in (self.base, self._secret_path):  # proxies may remove their prefix
            starts = secrets.compare_digest(path[: len(base)].encode(), base.encode())
            if starts and path[len(base) :][:1] in ("", "/"):
                return path[len(base) :] or "/"
        return None

    def refusal(self, request: Request, *, by_path: bool) -> tuple[HTTPStatus, str] | None:
        """Return the HTTP status and the message for a refused request; None for allowed requests.

        The argument `by_path` is True if the path of the request starts with the secret prefix
        `base`.
        """
        if not self._has_known_host(request):
            return HTTPStatus.MISDIRECTED_REQUEST, "Use the address that the studio printed."
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._origins:
            return HTTPStatus.FORBIDDEN, (
                "The request comes from another site. If the studio is behind a proxy, start it "
                "with --public-url."
            )
        by_header = _is_equal(self._bearer_token(request), self._token)
        by_cookie = by_path and _is_equal(request.cookies.get(self._cookie), self._session)
        if not by_header and not by_cookie:
            return HTTPStatus.UNAUTHORIZED, (
                "Open the address that `focuscrawl studio` printed, which contains the token."
            )
        changes = request.method not in _SAFE_METHODS
        if changes and self._read_only:
            return HTTPStatus.FORBIDDEN, (
                "This studio is read-only: to make changes, start it without --read-only."
            )
        if changes and origin is None and not by_header:
            return HTTPStatus.FORBIDDEN, "Changes need the header Origin or Authorization."
        return None

    def set_cookie(self, request: Request, path: str) -> Response | None:
        """Return a redirect that sets the cookie, in response to a request with the token.

        The redirect to `path` keeps the token out of the browser's address bar and history. The
        result is None if the request has no valid token.
        """
        given = request.query_params.get(_TOKEN_PARAMETER)
        reading = request.method in _SAFE_METHODS
        if not (self._has_known_host(request) and reading and _is_equal(given, self._token)):
            return None
        query = request.url.remove_query_params(_TOKEN_PARAMETER).query
        target = self.base + quote(path)
        answer = RedirectResponse(f"{target}?{query}" if query else target, HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            self._cookie,
            self._session,
            path=self.base,
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _has_known_host(self, request: Request) -> bool:
        return request.headers.get("host", "").lower() in self._hosts

    def _bearer_token(self, request: Request) -> str | None:
        given = request.headers.get("authorization", "")
        return given.removeprefix(_BEARER) if given.startswith(_BEARER) else None


def _derive(token: str, purpose: str) -> str:
    """Return a secret that reveals neither the token nor other derived secrets."""
    digest = hmac.digest(token.encode(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _is_equal(given: str | None, secret: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), secret.encode())


class AccessMiddleware:
    """ASGI middleware that refuses requests as `Access` decides, and adds headers to responses.

    The middleware removes `Access.base`, a secret prefix, from paths before routing.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        if scope["type"] != "http":  # the studio has no WebSockets
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                own = headers.get(_CONTENT_POLICY)  # a response may restrict more, never less
                headers.update(HEADERS)
                if own is not None:
                    headers[_CONTENT_POLICY] += f"; {own}"
            await send(message)

        inner = self._access.inner_path(scope["path"])
        request = Request(scope if inner is None else {**scope, "path": inner})
        answer = self._access.set_cookie(request, request.scope["path"])
        if answer is None:
            refusal = self._access.refusal(request, by_path=inner is not None)
            if refusal is not None:
                answer = PlainTextResponse(refusal[1] + "\n", refusal[0])
        await (answer or self._app)(request.scope, receive, send_with_headers)
