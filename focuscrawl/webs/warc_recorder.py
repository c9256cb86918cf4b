"""Records requests and responses in WARC 1.1 files, which a crawl can replay."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import uuid
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from filelock import lock_descriptor

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow
from focuscrawl.webs.warc_reading import WarcScan

_ENDING = ".warc.gz"
_GZIP_LEVEL = 6  # takes half the time of level 9 for 1 % larger files
_INFO = (
    f"software: focuscrawl/{__version__}\r\n"
    "format: WARC File Format 1.1\r\n"
    "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
)


class WarcRecorder:
    """Appends requests and responses to a WARC file.

    If an earlier run was killed, an incomplete last record of the file is removed first. When
    `record` returns, the request and the response are in the file.

    Parameters
    ----------
    path : str or os.PathLike
        File name that ends in ``.warc.gz``; every record is a gzip member.

    Raises
    ------
    UserError
        The name has another ending, or the file cannot be written, is not a compressed WARC file,
        or
        is in use by another process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.name.endswith(_ENDING):
            raise UserError(f"{self.path} is not a name for a recording: end the name in .warc.gz")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b", buffering=0, opener=open_nofollow)  # noqa: SIM115
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; name another file"
            ) from error
        try:
            self._open_or_resume()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the WARC file, which is complete even without a call of `close`."""
        self._file.close()

    def record(
        self,
        *,
        url: str,
        at: datetime,
        request_method: str = "GET",
        request_headers: Sequence[tuple[str, str]] = (),
        request_body: bytes = b"",
        status: int = 200,
        reason: str = "",
        response_headers: Sequence[tuple[str, str]] = (),
        body_raw: bytes = b"",
        truncated: str = "",
        ip: str | None = None,
    ) -> None:
        """Append a response and its request as a ``response`` and a ``request`` record.

        Parameters
        ----------
        url, request_method, request_headers, request_body
            The request.
        at : datetime
            Time of the request, with a time zone.
        status, reason, response_headers
            The response. Header fields are pairs of name and value in the order sent, with one
            character for each byte (Latin-1).
        body_raw : bytes
            Body with its Content-Encoding. HTTP clients undo the Transfer-Encoding, so that
            header is
            not recorded.
        truncated : str
            Reason why the body is incomplete, one of `TRUNCATIONS`; empty if it is complete.
        ip : str, optional
            Address of the server.
        """
        about = {
            "WARC-Target-URI": url.partition("#")[0],
            "WARC-Date": _date(at),
        }
        if ip is not None:
            about["WARC-IP-Address"] = ip
        answered = [(n, v) for n, v in response_headers if n.lower() != "transfer-encoding"]
        response_id = _new_id()
        cut = {"WARC-Truncated": truncated} if truncated else {}
        response = _record(
            {"WARC-Type": "response", "WARC-Record-ID": response_id, **about, **cut},
            "application/http; msgtype=response",
            _http(f"HTTP/1.1 {status} {reason}", answered),
            body_raw,
        )
        host, _, path = about["WARC-Target-URI"].partition("://")[2].partition("/")
        asked = list(request_headers)
        if not any(name.lower() == "host" for name, _ in asked):
            asked.insert(0, ("Host", host))
        request = _record(
            {
                "WARC-Type": "request",
                "WARC-Record-ID": _new_id(),
                **about,
                "WARC-Concurrent-To": response_id,
            },
            "application/http; msgtype=request",
            _http(f"{request_method} /{path} HTTP/1.1", asked),
            request_body,
        )
        self._append(response + request)  # in one write, so a cut between the two is unlikely

    def _open_or_resume(self) -> None:
        """Lock the file; cut off an incomplete record, or start a new file."""
        if not lock_descriptor(self._file.fileno(), blocking=False):
            raise UserError(
                f"another process is writing {self.path}: wait for it, or name another file"
            )
        if self._file.seek(0, os.SEEK_END):
            self._cut_incomplete_record()
            return
        fields = {
            "WARC-Type": "warcinfo",
            "WARC-Record-ID": _new_id(),
            "WARC-Date": _date(datetime.now(UTC)),
            "WARC-Filename": self.path.name,
        }
        self._append(_record(fields, "application/warc-fields", b"", _INFO.encode()))

    def _cut_incomplete_record(self) -> None:
        with open(self.path, "rb", buffering=1 << 20, opener=open_nofollow) as file:
            scan = WarcScan(self.path, file)
            for _ in scan:
                pass
        if not scan.records or not scan.gzipped:
            raise UserError(
                f"{self.path} is not a compressed WARC file, so records cannot be appended: "
                "move the file away, or name another file"
            )
        self._file.truncate(scan.end)

    def _append(self, records: bytes) -> None:
        """Write complete records, or leave the file unchanged."""
        end = self._file.seek(0, os.SEEK_END)
        left = memoryview(records)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(end)
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; name another file"
            ) from error


class WarcSeries:
    """Records to a series of WARC files ``pages-00001.warc.gz``, ``pages-00002.warc.gz``, ...

    When a WARC file is full, the next file is started. The WARC files, in the order of their
    names, form one recording.

    Parameters
    ----------
    path : str or os.PathLike
        Name that ends in ``.warc.gz``; the numbers come before the ending.
    size : int
        Size in bytes from which on a file is full; the last exchange is not split.

    Raises
    ------
    UserError
        See `WarcRecorder`, which appends to the last existing file.
    """

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        self._path, self._size = Path(path), size
        name = re.compile(rf"{re.escape(self._stem)}-(\d{{5,}}){re.escape(_ENDING)}")
        existing = self._path.parent.glob(f"*{_ENDING}")
        numbers = [int(found[1]) for each in existing if (found := name.fullmatch(each.name))]
        self._number = max(numbers, default=1)
        self._recorder = self._open()

    def record(self, **exchange: Any) -> None:
        """Append a response and its request, as `WarcRecorder.record` does."""
        if self._recorder.path.stat().st_size >= self._size:
            self._recorder.close()
            self._number += 1
            self._recorder = self._open()
        self._recorder.record(**exchange)

    def close(self) -> None:
        """Close the current WARC file, which is complete even without a call of `close`."""
        self._recorder.close()

    @property
    def _stem(self) -> str:
        return self._path.name.removesuffix(_ENDING)

    def _open(self) -> WarcRecorder:
        return WarcRecorder(self._path.with_name(f"{self._stem}-{self._number:05}{_ENDING}"))


def _record(fields: dict[str, str], content_type: str, head: bytes, body: bytes) -> bytes:
    """Return a record as a gzip member with `head` and `body` as its block."""
    block = head + body
    fields = fields | {"WARC-Block-Digest": _digest(block)}
    if head:
        fields["WARC-Payload-Digest"] = _digest(body)
    fields |= {"Content-Type": content_type, "Content-Length": str(len(block))}
    lines = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields.items())
    record = b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"
    return zlib.compress(record, _GZIP_LEVEL, wbits=31)


def _http(first_line: str, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [first_line, *(f"{name}: {value}" for name, value in headers)]
    text = "".join(f"{_one_line(line)}\r\n" for line in lines)
    return text.encode("latin-1", "replace") + b"\r\n"


def _one_line(text: str) -> str:
    """Remove line breaks, so that a value cannot add header fields."""
    return " ".join(text.splitlines()) if "\n" in text or "\r" in text else text


def _digest(data: bytes) -> str:
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    return "sha1:" + base64.b32encode(digest).decode()


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _new_id() -> str:
    return f"<{uuid.uuid4().urn}>"
