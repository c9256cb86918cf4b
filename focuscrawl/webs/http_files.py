"""Reads byte ranges of files on a web server, such as the archives of Common Crawl."""

from __future__ import annotations

import re
import weakref
from functools import lru_cache
from threading import Lock
from urllib.parse import parse_qsl, quote, urlsplit

from focuscrawl.errors import UserError
from focuscrawl.foundation.api_client import ApiAnswer, ApiClient
from focuscrawl.webs.web_protocol import MAX_BLOCK_BYTES

_PER_MINUTE = 120.0  # requests to a server, unless the URL says otherwise
_OPTION = "per_minute"
_MAX_FAILURES = 8  # in a row, after two minutes of waiting; Common Crawl is often busy
_MAX_ANSWER = 2 * MAX_BLOCK_BYTES  # bytes; more than any read
_SAFE = "/%+:=@,;~!$&'()*"  # characters of a path that stay as they are
_RANGE = re.compile(r"bytes (?:\d{1,18}-\d{1,18}|\*)/(\d{1,18})", re.ASCII)
_NO_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity"}


def is_http(place: str) -> bool:
    """Return whether a path or URI is the URL of a web server."""
    return place.lower().startswith(("http://", "https://"))


def open_http_files(url: str) -> tuple[HttpFiles, str]:
    """Return the server of a URL, and the path on the server.

    Parameters
    ----------
    url : str
        A URL. The option ``?per_minute=300`` sets the maximum number of requests.

    Raises
    ------
    UserError
        The URL is invalid, or contains a password.
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        per_minute = float(options.pop(_OPTION, _PER_MINUTE))
    except ValueError:
        raise UserError(f"{url.partition('?')[0]}: write options as in ?{_OPTION}=60") from None
    if options or not 0 < per_minute <= 60_000:
        raise UserError(f"{url.partition('?')[0]}: the only option is {_OPTION}, from 1 to 60000")
    return _open_server(f"{parts.scheme}://{parts.netloc}", per_minute), parts.path


@lru_cache
def _open_server(origin: str, per_minute: float) -> HttpFiles:
    return HttpFiles(origin, per_minute)


class HttpFiles:
    """The files of a web server, with the methods of a PyArrow file system that archives use.

    The client sends one request at a time, and waits if the server is busy (503, 429).

    Parameters
    ----------
    origin : str
        Scheme, host and port.
    per_minute : float
        Maximum number of requests.
    """

    type_name = "http"

    def __init__(self, origin: str, per_minute: float) -> None:
        self._client = ApiClient(
            origin,
            named="the URL of an archive",
            key_variable="no variable",
            per_minute=per_minute,
            max_answer=_MAX_ANSWER,
            max_failures=_MAX_FAILURES,
        )
        self._lock = Lock()
        weakref.finalize(self, self._client.close)

    def open_input_file(self, path: str) -> HttpFile:
        """Return a file, without asking the server for it."""
        return HttpFile(self, quote(path, safe=_SAFE))

    def read_range(self, path: str, start: int, size: int) -> ApiAnswer:
        """Return the response for a range of bytes.

        Raises
        ------
        FileNotFoundError
            The server has no such file.
        UserError
            The server cannot be reached, stays busy, refuses the request or ignores the range.
        """
        headers = {**_NO_HEADERS, "Range": f"bytes={start}-{start + size - 1}"}
        with self._lock:
            answer = self._client.request("GET", path, headers=headers)
        if answer.status == 404:
            raise FileNotFoundError(f"{self._client.endpoint}{path} does not exist")
        if answer.status == 200:
            raise UserError(
                f"{self._client.endpoint} sends no byte ranges: copy the archive, or name another "
                "server"
            )
        if answer.status not in {206, 416}:  # 403: Common Crawl refuses clients that ask too much
            raise UserError(
                f"{self._client.endpoint} refuses requests ({answer.status}): try again later, "
                f"with fewer requests per minute (?{_OPTION}=30)"
            )
        return answer


class HttpFile:
    """A file on a web server, read by ranges."""

    def __init__(self, files: HttpFiles, path: str) -> None:
        self._files, self._path = files, path

    def size(self) -> int:
        """Return the size in bytes."""
        answer = self._files.read_range(self._path, 0, 1)
        found = _RANGE.fullmatch(answer.content_range)
        if found is None:
            raise OSError(f"the server does not say how large {self._path} is")
        return int(found[1])

    def read_at(self, size: int, offset: int) -> bytes:
        """Return up to `size` bytes from `offset` on."""
        answer = self._files.read_range(self._path, offset, size)
        return answer.body[:size] if answer.status == 206 else b""
