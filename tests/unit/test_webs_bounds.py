"""Recordings that are made to hurt whoever reads them: what they cost, and what is kept."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from longer import long

from focuscrawl import settings
from focuscrawl.webs import RecordedWeb, warc_reading
from focuscrawl.webs.warc_reading import WarcScan
from focuscrawl.webs.web_protocol import MAX_BODY_BYTES, MAX_HEAD_BYTES, read_page

from .archives import fetched
from .archives import warc_record as record

brotli: Any = pytest.importorskip("brotli")
zstd: Any = pytest.importorskip(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
)

pytestmark = pytest.mark.usefixtures("own_cache")

BOMB = 80 << 20  # bytes that a small packing unpacks to
MOST = 64 << 20  # bytes of memory that reading any recording here takes at most
MOST_NAMES = 16 << 20  # the same, of one with long names and small pages
HOST = "http://a.example/"
BAD = f"{HOST}bad"


def http(body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/html", *fields])
    return head.encode() + b"\r\n\r\n" + body


def good(name: str) -> bytes:
    return record(name, http(f"<title>{name}</title>".encode()))


def member(record: bytes) -> bytes:
    return zlib.compress(record, wbits=31)


def zeros(stream: Any, size: int = BOMB) -> bytes:
    """Pack zeros, without holding them."""
    step = bytes(1 << 20)
    write = getattr(stream, "process", None) or stream.compress
    end = getattr(stream, "finish", None) or stream.flush
    return b"".join([write(step) for _ in range(size >> 20)]) + bytes(end())


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: zeros(zlib.compressobj(9, wbits=31)),
    "deflate": lambda: zeros(zlib.compressobj(9)),
    "deflate, bare": lambda: zeros(zlib.compressobj(9, wbits=-15)),
    "br": lambda: zeros(brotli.Compressor(quality=4)),
    "zstd": lambda: zeros(zstd.ZstdCompressor()),
    "gzip, gzip": lambda: gzip.compress(zeros(zlib.compressobj(9, wbits=31))),
}


@contextmanager
def little_memory(most: int = MOST) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def written(path: Path, *records: bytes, most: int = MOST) -> RecordedWeb:
    """Write records between two good ones, and find these again."""
    packed = path.suffix == ".gz"
    ends = [member(good(n)) if packed else good(n) for n in ("first", "last")]
    path.write_bytes(b"".join([ends[0], *records, ends[1]]))
    with little_memory(most):
        web = RecordedWeb(path)
        for name in ("first", "last"):
            page = read_page(web, HOST + name)
            assert page is not None
            assert page.title == name
    return web


def test_the_limits_are_those_of_the_live_web() -> None:
    assert settings.DOWNLOAD_MAXSIZE == MAX_BODY_BYTES


@pytest.mark.parametrize("coding", BOMBS)
def test_a_body_is_unpacked_as_far_as_a_crawl_would(coding: str, tmp_path: Path) -> None:
    field = f"Content-Encoding: {coding.removesuffix(', bare')}"
    web = written(tmp_path / "web.warc", record("bad", http(BOMBS[coding](), field)))
    with little_memory():
        answer = web.fetch(BAD)
    assert answer is not None
    assert (answer.status, answer.body, answer.too_large) == (200, b"", True)
    assert read_page(web, BAD) is None


@pytest.mark.parametrize("pack", [lambda body: body, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("over", [0, 1])
def test_the_largest_body_is_served_whole(
    pack: Callable[[bytes], bytes], over: int, tmp_path: Path
) -> None:
    body = pack(b"a" * (MAX_BODY_BYTES + over))
    fields = ["Content-Encoding: gzip"] if body.startswith(b"\x1f") else []
    web = written(tmp_path / "web.warc.gz", member(record("bad", http(body, *fields))))
    answer = fetched(web, BAD)
    assert (len(answer.body), answer.too_large) == ((0, True) if over else (MAX_BODY_BYTES, False))


@pytest.mark.parametrize("suffix", [".warc", ".warc.gz"])
def test_of_a_large_record_the_beginning_is_read(suffix: str, tmp_path: Path) -> None:
    head = http(b"")
    begin = record("bad", head, length=len(head) + BOMB).removesuffix(b"\r\n\r\n")
    if suffix == ".warc":
        large = begin + bytes(BOMB) + b"\r\n\r\n"
    else:
        stream = zlib.compressobj(9, wbits=31)
        large = stream.compress(begin) + zeros(stream)
    web = written(tmp_path / f"web{suffix}", large)
    assert (web.records, web.damaged, web.truncated_at) == (3, 0, None)
    with little_memory():
        answer = web.fetch(BAD)
    assert answer is not None
    assert (answer.status, answer.body, answer.too_large) == (200, b"", True)


def test_of_members_without_end_a_thousand_are_opened(tmp_path: Path) -> None:
    members = gzip.compress(b"a", mtime=0) * 5000
    web = written(tmp_path / "web.warc", record("bad", http(members, "Content-Encoding: gzip")))
    answer = fetched(web, BAD)
    assert answer.body == b"a" * 1000


def test_empty_members_between_records_are_stepped_over(tmp_path: Path) -> None:
    web = written(tmp_path / "web.warc.gz", gzip.compress(b"", mtime=0) * 20_000)
    assert (web.records, web.damaged, web.truncated_at) == (2, 0, None)


@pytest.mark.parametrize("digits", [12, 13, 20, 5000])
@pytest.mark.parametrize("suffix", [".warc", ".warc.gz"])
def test_a_length_beyond_measure_is_no_length(digits: int, suffix: str, tmp_path: Path) -> None:
    odd = record("bad", http(b"odd"), length="9" * digits)
    web = written(tmp_path / f"web{suffix}", member(odd) if suffix == ".warc.gz" else odd)
    answer = fetched(web, BAD)
    assert answer.body == b"odd"


@pytest.mark.parametrize(
    "head",
    [
        http(b"", "a: b\r\n" * MAX_HEAD_BYTES),
        http(b"", "a: b" + "\r\n c" * MAX_HEAD_BYTES),
        http(b"", "a: " + "b" * MAX_HEAD_BYTES),
    ],
    ids=["fields", "folds", "a long field"],
)
def test_a_head_without_end_is_no_page(head: bytes, tmp_path: Path) -> None:
    web = written(tmp_path / "web.warc", record("bad", head))
    assert web.resolve([BAD]) == [None]


def test_names_without_end_are_not_kept(tmp_path: Path) -> None:
    name = "y" * 60_000
    fields = f"\r\nWARC-Concurrent-To: {name}\r\nWARC-Payload-Digest: {name}\r\nWARC-Date: {name}"
    records = [
        member(record(f"{i}/{name[:50_000] if i % 2 else ''}", http(b"x"), more=f"{fields}{i}"))
        for i in range(100)  # more than `MOST_NAMES` in all
    ]
    web = written(tmp_path / "web.warc.gz", *records, most=MOST_NAMES)
    assert len(web) == 2


@pytest.mark.parametrize(
    "field", ["WARC-Target-URI", *long("WARC-Concurrent-To", "WARC-Payload-Digest", "WARC-Date")]
)
def test_a_name_that_fits_into_a_head_may_be_too_long_all_the_same(
    field: str, tmp_path: Path
) -> None:
    more = "" if field == "WARC-Target-URI" else f"\r\n{field}: "
    long = "y" * 50_000
    records = [
        member(record(f"{i}{'' if more else long}", http(b"x"), more=more and f"{more}{i}{long}"))
        for i in range(400)  # more than `MOST_NAMES` in all
    ]
    web = written(tmp_path / "web.warc.gz", *records, most=MOST_NAMES)
    assert len(web) == (402 if more else 2)


def test_folded_lines_without_end_are_no_record(tmp_path: Path) -> None:
    folds = "\r\nX: y" + "\r\n z" * 12_000
    records = [member(record(f"{i}", http(b"x"), more=folds)) for i in range(200)]
    web = written(tmp_path / "web.warc.gz", *records)
    assert (web.records, web.damaged) == (2, 1)


class Counting(BytesIO):
    """A file that knows how much was read of it."""

    counted = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.counted += len(data)
        return data


@pytest.mark.parametrize(
    "noise",
    [
        b"WARC/1.0\r\n" * 10_000,
        record("x", b"", length=10**4).replace(b"ID", b"") * 2000,
        record("x", b"", length=10**9) * 2000,
        record("x", b"", length=10**9).removesuffix(b"\r\n\r\n") * 2000,
    ],
    ids=["starts", "heads", "wrong lengths", "half records"],
)
def test_what_only_begins_like_records_is_not_read_over_and_over(noise: bytes) -> None:
    file = Counting(good("first") + noise + good("last"))
    names = [found.target.removeprefix(HOST) for found in WarcScan(Path("web.warc"), file)]
    assert (names[0], names[-1]) == ("first", "last")
    assert file.counted < 1000 * len(noise)


def test_a_search_in_noise_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_reading, "_MAX_WASTED", 1 << 22)
    path = tmp_path / "web.warc.gz"
    first = member(good("first"))
    # FLG 0x1f: a header with a name, which goes on until there is a zero
    path.write_bytes(first + b"\x1f\x8b\x08" * 20_000 + member(good("last")))
    with little_memory():
        web = RecordedWeb(path)
    assert list(web.urls()) == [f"{HOST}first"]
    assert web.truncated_at == len(first)


def test_three_codings_are_left_on(tmp_path: Path) -> None:
    body = gzip.compress(gzip.compress(gzip.compress(b"x")))
    field = "Content-Encoding: " + ", ".join(["gzip"] * 3)
    answer = fetched(written(tmp_path / "web.warc", record("bad", http(body, field))), BAD)
    assert (answer.body, answer.header("content-encoding")) == (body, "gzip, gzip, gzip")


def test_what_is_packed_with_zstandard_is_read(tmp_path: Path) -> None:
    body = zstd.compress(b"<title>one") + zstd.compress(b" two</title>")
    web = written(tmp_path / "web.warc", record("bad", http(body, "Content-Encoding: zstd")))
    page = read_page(web, BAD)
    assert page is not None
    assert page.title == "one two"
