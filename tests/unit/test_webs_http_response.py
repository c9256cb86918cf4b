"""Heads parsed and bodies decoded, whole and broken."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.webs.http_response import Headers, decode_body, parse_response

TEXT = b"The quick brown fox. " * 1000


def bare_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


brotli: Any = pytest.importorskip("brotli")

PACKERS = {
    "gzip": gzip.compress,
    "X-GZip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": bare_deflate,
    "br": brotli.compress,
}


def chunked(data: bytes, size: int = 1000) -> bytes:
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    return b"".join(b"%X;x=y\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\nT: x\r\n\r\n"


def test_a_head_is_parsed_leniently() -> None:
    response = parse_response(
        b"HTTP/1.0  302\tMoved: there\r\nA: 1\nno field\r\n"
        b"B : x\r\n  folded\r\n\r\nC: body\r\n\r\n"
    )
    assert response is not None
    assert response.status == 302
    assert response.headers == [("A", "1"), ("B", "x folded")]
    assert response.body == b"C: body\r\n\r\n"


@pytest.mark.parametrize(
    "block", [b"", b"GET / HTTP/1.1\r\n\r\n", b"<html>", b"HTTP/1.1 20\r\n\r\n", b"HTTP/1.1 2000"]
)
def test_what_is_no_response_is_none(block: bytes) -> None:
    assert parse_response(block) is None


def test_a_head_alone_and_bytes_beyond_ascii() -> None:
    response = parse_response("HTTP/2 200\r\nLocation: /caf\xe9".encode("latin-1"))
    assert response is not None
    assert response.headers == [("Location", "/caf\xe9")]
    assert response.body == b""


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT])
def test_content_encodings_are_undone(encoding: str, data: bytes) -> None:
    packed = PACKERS[encoding](data)
    headers: Headers = [
        ("Content-Encoding", encoding),
        ("Content-Length", str(len(packed))),
        ("Connection", "close"),
        ("ETag", "1"),
    ]
    assert decode_body(headers, packed) == (
        [("ETag", "1"), ("Content-Length", str(len(data)))],
        data,
    )


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_body_recorded_decoded_is_left_alone(encoding: str) -> None:
    assert decode_body([("Content-Encoding", encoding)], TEXT) == ([], TEXT)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
@given(cut=st.floats(0, 1, exclude_max=True))
@settings(max_examples=20, deadline=None)
def test_a_cut_body_gives_its_beginning(encoding: str, cut: float) -> None:
    data = bytes(range(256)) * 200 + TEXT
    packed = PACKERS[encoding](data)
    _, body = decode_body([("Content-Encoding", encoding)], packed[: int(cut * len(packed))])
    assert data.startswith(body)


def test_a_damaged_end_costs_no_beginning() -> None:
    noise = zlib.compress(b"".join(b"%d" % (i * i) for i in range(30_000)), wbits=31)
    body = decode_body([("Content-Encoding", "gzip")], noise[:-4000] + b"\xff" * 4000)[1]
    assert body.startswith(b"0149162536")
    assert len(body) > 50_000


def test_chunks_members_and_several_encodings() -> None:
    packed = chunked(gzip.compress(brotli.compress(TEXT[:300])) + gzip.compress(b""), 7)
    headers: Headers = [
        ("Transfer-Encoding", "gzip, Chunked"),
        ("Content-Encoding", "br, identity"),
        ("Content-Encoding", "gzip"),
    ]
    assert decode_body(headers, packed) == ([], TEXT[:300])
    assert decode_body(
        [("Content-Encoding", "gzip")], gzip.compress(b"a") + gzip.compress(b"b")
    ) == (
        [],
        b"ab",
    )


def test_an_unknown_encoding_stays() -> None:
    headers: Headers = [("Content-Encoding", "rot13, gzip")]
    assert decode_body(headers, gzip.compress(b"grkg")) == (
        [("Content-Encoding", "rot13")],
        b"grkg",
    )


@given(body=st.binary(max_size=200), size=st.integers(1, 50), cut=st.integers(0, 400))
@settings(max_examples=100)
def test_chunks_are_joined_as_far_as_they_go(body: bytes, size: int, cut: int) -> None:
    headers = [("Transfer-Encoding", "chunked")]
    sent = chunked(body, size)
    assert decode_body(headers, sent)[1] == body
    got = decode_body(headers, sent[:cut])[1]
    assert body.startswith(got) or got == sent[:cut]


@given(
    body=st.binary(max_size=300),
    transfer=st.sampled_from(["", "chunked"]),
    encodings=st.lists(st.sampled_from([*PACKERS, "identity", "zz"]), max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_any_bytes_decode_to_something(body: bytes, transfer: str, encodings: list[str]) -> None:
    headers: Headers = [
        ("Transfer-Encoding", transfer),
        ("Content-Length", "7"),
        ("Content-Encoding", ", ".join(encodings)),
    ]
    kept, decoded = decode_body(headers, body)
    assert dict(kept)["Content-Length"] == str(len(decoded))
    codings = [each for each in encodings if each != "identity"]
    assert ("Content-Encoding" in dict(kept)) == ("zz" in codings or len(codings) > 2)
