"""Single pages of the live Web, from a real server."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from fuzz.raw_server import Answer, RawServer

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.webs import WarcRecorder
from focuscrawl.webs.live_web import LiveWeb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Answer one request, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join(timeout=30)


@pytest.mark.parametrize("status", ["999", "600", "99", "-1", "99999999999999999999", "x" * 5000])
def test_what_has_no_status_is_no_answer(tmp_path: Path, status: str) -> None:
    warc = tmp_path / "pages.warc.gz"
    with (
        closing(WarcRecorder(warc)) as recorder,
        answering(f"HTTP/1.1 {status} OK\r\nContent-Length: 2\r\n\r\nno".encode()) as url,
    ):
        web = LiveWeb(Networks.of(["127.0.0.1"]), recorder)
        with pytest.raises(UserError, match="does not answer") as error:
            web.fetch(url)
    assert len(str(error.value)) < 400


def test_what_has_one_is(tmp_path: Path) -> None:
    with (
        closing(WarcRecorder(tmp_path / "pages.warc.gz")) as recorder,
        answering(b"HTTP/1.1 599 Odd\r\nContent-Length: 2\r\n\r\nok") as url,
    ):
        answer = LiveWeb(Networks.of(["127.0.0.1"]), recorder).fetch(url)
    assert (answer.status, answer.body) == (599, b"ok")


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data", [b"", b"none", b"HTTP/1.1 x\r\n\r\n", _CHUNKED + b"-5\r\nx", _CHUNKED + b"zz\r\nx"]
)
def test_what_is_no_answer_is_one_line(data: bytes, tmp_path: Path) -> None:
    with (
        RawServer(lambda *_: Answer(data), 1) as server,
        WarcRecorder(tmp_path / "pages.warc.gz") as recorder,
    ):
        web = LiveWeb(Networks.of(["127.0.0.0/8"]), recorder)
        with pytest.raises(UserError, match="does not answer"):
            web.fetch(f"{server.origins[0]}/")
