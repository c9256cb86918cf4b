"""Single pages of servers that answer badly: one line, no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz.raw_server import Answer, RawServer

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.webs import WarcRecorder
from focuscrawl.webs.live import LiveWeb

if TYPE_CHECKING:
    from pathlib import Path

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
