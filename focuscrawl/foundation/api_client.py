"""HTTP client of a server that the user names, such as a language model or a search engine.

Requests keep a distance. If the server is busy, the client repeats the request after a back-off.
The key is sent to the named server only: redirects are not followed, and the key is removed from
error messages.
"""

from __future__ import annotations

import ipaddress
import math
import select
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from threading import Timer
from typing import NamedTuple
from urllib.parse import urlsplit

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.foundation.backoff import HostBackoff, read_retry_after
from focuscrawl.foundation.urls import normalize

_CONNECT_TIMEOUT, _READ_TIMEOUT = 10.0, 120.0  # seconds
REQUEST_TIMEOUT = 180.0  #: seconds for a request, even if the server keeps sending bytes
_MIN_WAIT = 1.0  # seconds before a retry; doubled with every failure in a row
_MAX_WAIT = 120.0
_MAX_FAILURES = 4
_MAX_ERROR = 200  # characters of an error message
_TRANSIENT_ERRORS = frozenset({408, 409, 425, 429})  # statuses besides 5xx that are retried


class ApiAnswer(NamedTuple):
    """A response of the server."""

    status: int
    body: bytes
    content_type: str
    content_range: str = ""


class ApiClient:
    """Sends one request at a time to a server.

    Parameters
    ----------
    endpoint : str
        URL like ``https://host/path`` without credentials; requests go to paths below the URL.
    key : str or None
        Secret that is sent as bearer token.
    named : str
        What the user set to the URL, for messages, such as an option.
    key_variable : str
        Environment variable with the key, for messages.
    per_minute : float
        Maximum number of requests.
    timeout : float
        Seconds from the first byte of a request to the last byte of its response.
    max_answer : int
        Maximum number of bytes of a response that are read.
    agent : str
        The User-Agent header.
    max_failures : int
        Failures in a row after which the client gives up.

    Attributes
    ----------
    endpoint : str
        The normalised URL, without a final slash.
    has_key : bool
        Whether requests contain a key.

    Raises
    ------
    UserError
        The endpoint or the key is invalid, or the key would be sent unencrypted to another
        machine.
    """

    def __init__(
        self,
        endpoint: str,
        key: str | None = None,
        *,
        named: str,
        key_variable: str,
        per_minute: float,
        timeout: float = REQUEST_TIMEOUT,
        max_answer: int = 1_000_000,
        agent: str = f"focuscrawl/{__version__}",
        max_failures: int = _MAX_FAILURES,
    ) -> None:
        self.endpoint = _read_endpoint(endpoint, named, key_variable)
        self._key = _read_key(key, key_variable)
        self.has_key = self._key is not None
        if self.has_key and self.endpoint.startswith("http:") and not _is_loopback(self.endpoint):
            raise UserError(
                f"{named}: the key would be sent to {self.endpoint} in clear text: use https, or "
                f"unset {key_variable}"
            )
        at = urlsplit(self.endpoint)
        self._connection: HTTPConnection
        if at.scheme == "https":
            tls = ssl.create_default_context()
            self._connection = HTTPSConnection(at.hostname or "", at.port, context=tls)
        else:
            self._connection = HTTPConnection(at.hostname or "", at.port)
        self._path = at.path
        self._timeout = timeout
        self._max_answer = max_answer
        self._headers = {"User-Agent": agent, "Accept": "application/json"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._interval = 60.0 / per_minute
        self._next_request_at = 0.0  # on the monotonic clock
        self._backoff = HostBackoff(_MIN_WAIT, _MAX_WAIT, max_failures)
        self._reached = False

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Send a request, and repeat it while the server is busy; return the response.

        Parameters
        ----------
        path : str
            Path below the endpoint, with a query.
        body : bytes or None
            JSON.
        headers : Mapping of str to str, optional
            Further header fields.

        Raises
        ------
        UserError
            The server cannot be reached, or does not answer after several retries.
        """
        while True:
            self._wait_turn()
            retry_after = None
            try:
                self._connect()
                answer, retry_after = self._send(method, path, body, headers or {})
                self._reached = True
                if answer.status < 500 and answer.status not in _TRANSIENT_ERRORS:
                    self._backoff.record_answer(0)
                    return answer
                problem = f"answers {answer.status}"
            except (OSError, HTTPException) as error:
                problem = self.describe(error)
            wait = self._backoff.record_failure(0, retry_after)
            if math.isinf(wait):
                asks = f", and asks to wait {retry_after:,.0f} s" if retry_after else ""
                raise UserError(f"{self.endpoint} {problem}{asks}: try again later")
            time.sleep(wait)

    def describe(self, what: object) -> str:
        """Return an error on one line without the key."""
        text = str(what)
        if self._key:
            text = text.replace(self._key, "...")
        return " ".join(text.split())[:_MAX_ERROR]

    def _connect(self) -> None:
        """Connect if the connection is closed; raise `UserError` if no server has answered yet."""
        connection = self._connection
        if connection.sock is not None:
            if not select.select([connection.sock], [], [], 0.0)[0]:
                return
            connection.close()  # the server has closed the connection
        connection.timeout = _CONNECT_TIMEOUT
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            connection.close()
            if self._reached or isinstance(error, TimeoutError):
                raise OSError(error) from None
            problem = self.describe(error)
            raise UserError(f"{self.endpoint} cannot be reached: {problem}") from None
        connection.sock.settimeout(_READ_TIMEOUT)

    def _send(
        self, method: str, path: str, content: bytes | None, more: Mapping[str, str]
    ) -> tuple[ApiAnswer, float | None]:
        headers = {**self._headers, **more}
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connection
        complete = False
        try:
            with self._time_limit(connection.sock):
                connection.request(method, f"{self._path}{path}", content, headers)
                answer = connection.getresponse()
                body = answer.read(self._max_answer)
            complete = answer.isclosed()
            if not complete and answer.length and len(body) < self._max_answer:
                raise IncompleteRead(body, answer.length)
            retry_after = read_retry_after(
                answer.headers.get("Retry-After", ""), datetime.now(UTC)
            )
            about = (answer.headers.get(name, "") for name in ("Content-Type", "Content-Range"))
            return ApiAnswer(answer.status, body, *about), retry_after
        finally:
            if not complete:
                connection.close()

    @contextmanager
    def _time_limit(self, opened: socket.socket) -> Iterator[None]:
        """Close a connection after the timeout; a socket's timeout restarts with each byte."""
        late = False

        def shut_down() -> None:
            nonlocal late
            late = True
            with suppress(OSError):  # the socket may be closed by now
                socket.socket.shutdown(opened, socket.SHUT_RDWR)  # also the socket below TLS

        timer = Timer(self._timeout, shut_down)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, HTTPException):
            if not late:
                raise
        finally:
            timer.cancel()
        if late:
            raise TimeoutError(f"took longer than {self._timeout:g} s")

    def _wait_turn(self) -> None:
        now = time.monotonic()
        if now < self._next_request_at:
            time.sleep(self._next_request_at - now)
        self._next_request_at = max(now, self._next_request_at) + self._interval


def _read_endpoint(text: str, named: str, key_variable: str) -> str:
    try:
        credentials = "@" in urlsplit(text).netloc
    except ValueError:
        credentials = False
    if credentials:
        raise UserError(
            f"{named}: remove name and password from the URL; set {key_variable} to the key"
        )
    url = normalize(text.strip())
    if url is None or "?" in url or "#" in text:  # not shown: the URL may contain a password
        raise UserError(
            f"{named} needs the URL of an endpoint like https://host/v1, without ? and #"
        )
    return url.rstrip("/")


def _read_key(text: str | None, key_variable: str) -> str | None:
    key = (text or "").strip()
    if not key:
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError(f"{key_variable} is no valid key: use ASCII characters without spaces")
    return key


def _is_loopback(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
