"""Single pages of the live Web, from a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fuzz.raw_server import Answer, RawServer

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.webs import RecordedWeb, WarcRecorder
from focuscrawl.webs.live_web import LiveWeb

from .archives import fetched

if TYPE_CHECKING:
    from focuscrawl.webs import Answer as Page

pytestmark = pytest.mark.usefixtures("own_cache")


def fetch(data: bytes, folder: Path) -> Page:
    with (
        RawServer(lambda *_: Answer(data), 1) as server,
        WarcRecorder(folder / "pages.warc.gz") as recorder,
    ):
        return LiveWeb(Networks.parse(["127.0.0.0/8"]), recorder).fetch(f"{server.origins[0]}/")


def status(number: str) -> bytes:
    return f"HTTP/1.1 {number} OK\r\nContent-Length: 2\r\n\r\nok".encode()


def test_an_answer_with_an_odd_status_is_one(tmp_path: Path) -> None:
    answer = fetch(status("599"), tmp_path)
    assert (answer.status, answer.body) == (599, b"ok")


@pytest.mark.parametrize(("length", "reason"), [(2, ""), (5, "disconnect"), (None, "")])
def test_a_lost_connection_is_recorded(length: int | None, reason: str, tmp_path: Path) -> None:
    head = b"" if length is None else b"\r\nContent-Length: %d" % length
    assert fetch(b"HTTP/1.1 200 OK" + head + b"\r\n\r\nok", tmp_path).truncated == reason
    (url,) = RecordedWeb(tmp_path / "pages.warc.gz").urls()
    assert fetched(RecordedWeb(tmp_path / "pages.warc.gz"), url).truncated == reason


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        *map(status, ["999", "600", "99", "-1", "9" * 20, "x" * 5000]),
        *(b"", b"none", b"HTTP/1.1 x\r\n\r\n", _CHUNKED + b"-5\r\nx", _CHUNKED + b"zz\r\nx"),
    ],
    ids=range(11),
)
def test_what_is_no_answer_is_one_line(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^[^\n]* does not answer [^\n]*$") as error:
        fetch(data, tmp_path)
    assert len(str(error.value)) < 400
