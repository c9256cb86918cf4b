"""The frame of WARC files: cut at every byte, damaged, and measured against warcio."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from focuscrawl.errors import UserError
from focuscrawl.webs.warc_reading import Record, WarcScan, read_record

from .archives import warc_record

NAME = Path("web.warc")
BODIES = [b"one", b"", b"three\r\n\r\n", b"\r\nWARC/1.0\r\nWARC-Type: x\r\n\r\n", b"five" * 30]


def record(i: int, body: bytes, *, length: int | None = None) -> bytes:
    folded = "\r\nX-Folded: a\r\n\tb"
    written = warc_record(f"{i}", body, kind="resource", length=length, more=folded)
    return written.replace(b"Content-Length", b"content-length", 1)


def members(records: list[bytes]) -> list[bytes]:
    return [zlib.compress(r, wbits=31) for r in records]


RECORDS = [record(i, body) for i, body in enumerate(BODIES)]


def scan(data: bytes) -> tuple[list[Record], WarcScan]:
    scanned = WarcScan(NAME, BytesIO(data))
    return list(scanned), scanned


@pytest.mark.parametrize("records", [RECORDS, members(RECORDS)], ids=["plain", "gzip"])
def test_whole_records_are_found(records: list[bytes]) -> None:
    data = b"".join(records)
    found, scanned = scan(data)
    assert [r.block for r in found] == BODIES
    assert [r.target for r in found] == [f"http://a.example/{i}" for i in range(len(BODIES))]
    assert {r.type for r in found} == {"resource"}
    assert {r.headers["x-folded"] for r in found} == {"a b"}
    assert [r.length for r in found] == [len(r) for r in records]
    assert (scanned.records, scanned.end) == (len(BODIES), len(data))
    assert (scanned.truncated_at, scanned.damaged) == (None, 0)
    for r in found:
        again = read_record(data[r.offset :][: r.length], r.offset)
        assert again is not None
        assert (again.headers, again.block) == (r.headers, r.block)


@pytest.mark.parametrize("records", [RECORDS, members(RECORDS)], ids=["plain", "gzip"])
def test_cut_at_every_byte_all_whole_records_are_served(records: list[bytes]) -> None:
    data = b"".join(records)
    ends = [sum(map(len, records[: i + 1])) for i in range(len(records))]
    gzipped = data.startswith(b"\x1f")
    newlines = 0 if gzipped else 4  # a record is whole without the empty lines behind it
    for cut in range(5, len(data) + 1):
        found, scanned = scan(data[:cut])
        whole = sum(end - newlines <= cut for end in ends)
        assert [r.block for r in found] == BODIES[:whole]
        assert scanned.end == min(ends[whole - 1], cut) if whole else scanned.end == 0
        is_cut = cut > scanned.end
        assert scanned.truncated_at == (scanned.end if is_cut else None)
    for cut in range(5):
        with pytest.raises(UserError, match=str(NAME)):
            scan(data[:cut] if cut < 3 else b"x" * cut)


@pytest.mark.parametrize("records", [RECORDS, members(RECORDS)], ids=["plain", "gzip"])
def test_a_half_record_that_was_written_on_after_is_stepped_over(records: list[bytes]) -> None:
    for cut in range(40, len(records[4]) - 4):
        data = records[0] + records[4][:cut] + b"".join(records[1:3])
        found, scanned = scan(data)
        assert [r.block for r in found] == BODIES[:3]
        assert [r.target for r in found] == [f"http://a.example/{i}" for i in range(3)]
        assert (scanned.truncated_at, scanned.damaged) == (None, 1)


@pytest.mark.parametrize("wrong", [None, 0, 3, 200, 10**9])
@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_length_costs_no_other_record(wrong: int | None, packed: bool) -> None:
    body = b"a body of some length, to be sure"
    odd = record(9, body, length=wrong)
    if wrong is None:
        odd = odd.replace(b"content-length", b"x-length")
    records = [RECORDS[0], odd, RECORDS[1], RECORDS[2]]
    data = b"".join(members(records) if packed else records)
    found, scanned = scan(data)
    assert [r.block for r in found] == [BODIES[0], body, BODIES[1], BODIES[2]]
    assert (scanned.truncated_at, scanned.damaged) == (None, 0)
    for r in found:
        again = read_record(data[r.offset :][: r.length], r.offset)
        assert again is not None
        assert again.block == r.block


@pytest.mark.parametrize("wrong", [None, 0, 3, 200])
@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_length_of_the_last_record(wrong: int | None, packed: bool) -> None:
    odd = record(9, b"the last body", length=wrong)
    if wrong is None:
        odd = odd.replace(b"content-length", b"x-length")
    records = [RECORDS[0], odd]
    found, scanned = scan(b"".join(members(records) if packed else records))
    assert [r.block for r in found] == [BODIES[0], b"the last body"]
    assert (scanned.truncated_at, scanned.damaged) == (None, 0)
    if not packed:  # without the empty lines nobody knows whether the record is complete
        for cut in range(1, 14):
            found, scanned = scan(b"".join(records)[:-cut])
            assert [r.block for r in found] == BODIES[:1]
            assert scanned.truncated_at == len(RECORDS[0])


HEADS = {
    "no id": "WARC/1.0\nWARC-Type: response\nWARC-Date: 2020-01-01T00:00:00Z\nContent-Length: 4",
    "no date": "WARC/1.1\nWARC-Type: response\nWARC-Record-ID: <urn:x>\nContent-Length: 4",
    "no length": "WARC/1.0\nWARC-Type: response\nWARC-Record-ID: <urn:x>",
    "folded": "WARC/0.17\nWARC-Type:\n response\nWARC-Record-ID:\n\t<u>\nContent-Length:\n 4",
    "upper case": "WARC/1.1\nWARC-TYPE: RESPONSE\nWARC-RECORD-ID: <URN:X>\nCONTENT-LENGTH: 4",
    "lower case": "warc/1.0\nwarc-type: response\nwarc-record-id: <urn:x>\ncontent-length: 4",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_heads_as_some_writers_write_them(head: str, newline: str, packed: bool) -> None:
    lines = [*head.split("\n"), "WARC-Target-URI: http://a.example/", "", "body"]
    one = newline.join(lines).encode() + b"\r\n\r\n"
    records = [one, RECORDS[0], one, one.replace(b"body", b"longer", 1)]
    found, scanned = scan(b"".join(members(records) if packed else records))
    assert [r.block for r in found] == [b"body", BODIES[0], b"body", b"longer"]
    assert [r.type for r in found] == ["response", "resource", "response", "response"]
    assert (scanned.truncated_at, scanned.damaged) == (None, 0)


@pytest.mark.parametrize("at", [200, 210, 230])
def test_a_record_split_over_gzip_members_is_refused_with_the_way_out(at: int) -> None:
    data = record(1, b"first " * 20) + record(2, b"second " * 20)
    with pytest.raises(UserError, match="warcio recompress"):
        scan(b"".join(members([data[:at], data[at : at + 100], data[at + 100 :]])))


CONFORMANCE = Path(os.environ.get("FOCUSCRAWL_CONFORMANCE", "../shared/conformance")) / "warc"
NOT_BY_RECORD = {"example-bad-non-chunked.warc.gz", "example-wrong-chunks.warc.gz"}


@pytest.mark.parametrize(
    "path", sorted(CONFORMANCE.glob("*/*.warc*")) + sorted(CONFORMANCE.glob("*/warc/*.warc"))
)
def test_records_that_fastwarc_reads_are_read(path: Path) -> None:
    fastwarc = pytest.importorskip("fastwarc.warc")
    theirs = []
    with path.open("rb") as file, suppress(OSError):  # of the first invalid head
        for each in fastwarc.ArchiveIterator(file, parse_http=False):
            block, length = each.reader.read(), each.headers.get("Content-Length", "")
            if each.headers.get("WARC-Type") and length.isdigit() and len(block) == int(length):
                theirs.append(block)  # a complete record
    with path.open("rb") as file:
        if path.suffix in {".lz4", ".bad"} or path.name in NOT_BY_RECORD:
            with pytest.raises(UserError, match=r"warcio recompress|name a \.warc"):
                list(WarcScan(path, file))
        elif theirs:
            ours = [each.block for each in WarcScan(path, file)]
            assert len(ours) >= len(theirs)
            for block, other in zip(ours, theirs, strict=False):
                # they differ where a length is wrong: fastwarc believes the length
                assert block.startswith(other) or other.startswith(block)


@pytest.mark.parametrize("between", [b"\r\n", b"\n", b"\r\n\r\n\r\n", b"\n\n"])
def test_other_blank_lines_between_records_are_no_damage(between: bytes) -> None:
    data = b"".join(r.removesuffix(b"\r\n\r\n") + between for r in [RECORDS[0], *RECORDS[:2]])
    found, scanned = scan(data)
    assert [r.headers["warc-record-id"] for r in found] == [f"<urn:uuid:{i}>" for i in (0, 0, 1)]
    assert found[0].block == BODIES[0]
    assert (scanned.truncated_at, scanned.damaged) == (None, 0)


@given(
    bodies=st.lists(st.binary(max_size=100), min_size=1, max_size=5),
    packed=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_warcio_finds_the_same(bodies: list[bytes], packed: bool) -> None:
    records = [record(i, body) for i, body in enumerate(bodies)]
    data = b"".join(members(records) if packed else records)
    found, _ = scan(data)
    theirs = ArchiveIterator(BytesIO(data))
    offsets = []
    for ours, other in zip(found, theirs, strict=True):
        assert ours.block == other.raw_stream.read()
        assert ours.target == other.rec_headers.get_header("WARC-Target-URI")
        offsets.append((ours.offset, theirs.get_record_offset()))
    assert all(ours == other for ours, other in offsets)


@given(data=st.binary(max_size=300), start=st.sampled_from([b"WARC/", b"\x1f\x8b\x08", b""]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes, start: bytes) -> None:
    try:
        found, scanned = scan(start + data)
    except UserError:
        return
    assert len(found) == scanned.records
    assert scanned.records or scanned.truncated_at == 0


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_noise_inside_costs_only_what_it_hits(data: st.DataObject) -> None:
    packed = data.draw(st.booleans())
    records = members(RECORDS) if packed else RECORDS
    hit = data.draw(st.integers(1, len(records) - 2))
    noise = data.draw(st.binary(min_size=1, max_size=20))
    at = data.draw(st.integers(0, len(records[hit]) - 1))
    spoilt = records[hit][:at] + noise + records[hit][at + len(noise) :]
    found, _ = scan(b"".join([*records[:hit], spoilt, *records[hit + 1 :]]))
    blocks = [r.block for r in found]
    assert blocks[:hit] == BODIES[:hit]
    assert blocks[-1] == BODIES[-1]
