"""What must hold for any bytes at all; see `fuzz.__main__` for the search."""

from __future__ import annotations

import gzip
import tempfile
import unicodedata
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from unit.test_page_robust import LABELS, check

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, normalize, resolve, without_credentials
from focuscrawl.page import parse_page
from focuscrawl.taxonomy import read_dmoz
from focuscrawl.webs.warc import read_record
from focuscrawl.webs.warc_scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE = b"""<!DOCTYPE html><html><head><base href=/a/><title>A &amp; B</title>
<meta charset=utf-8><meta name=robots content=noindex><link rel=canonical href=b>
<meta http-equiv=refresh content="3; url=c"></head><body><h1>x</h1><p>words <a href=d rel=nofollow>
<img alt=e></a><map><area href=f></map><iframe src=g></iframe><svg><a xlink:href=h></a></svg>
<table><tr><td>1<td>2</table><script>no</script><!-- no --></body></html>"""
_RECORD = b"""WARC/1.1\r
WARC-Type: response\r
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>\r
WARC-Date: 2024-01-01T00:00:00Z\r
WARC-Target-URI: http://a.example/\r
Content-Type: application/http; msgtype=response\r
Content-Length: 46\r
\r
HTTP/1.1 200 OK\r
Content-Type: text/html\r
\r
hi\r
\r
"""
_DMOZ = b"""<?xml version="1.0" encoding="UTF-8"?><RDF xmlns:r="http://www.w3.org/TR/RDF/">
<Topic r:id="Top/Arts/Music"><catid>2</catid><link r:resource="http://a.example/"/>
<pdf r:resource="http://a.example/x.pdf"/></Topic><ExternalPage about="http://b.example/?a&amp;b">
<d:Title>B</d:Title><topic>Top/Arts/Music</topic></ExternalPage></RDF>"""


def page(data: bytes) -> None:
    """Any bytes are a page, in any encoding they claim."""
    label = LABELS[data[0] % len(LABELS)] if data else None
    check(parse_page(data[1:], "http://site.example/a/b", encoding=label))


def urls(data: bytes) -> None:
    """What comes out of any text is a web address as the crawler compares them, or nothing."""
    base, _, reference = data.decode("utf-8", "surrogateescape").partition("\n")
    for url in (normalize(base), *resolve(base, [reference, base, ""])):
        if url is None:
            continue
        assert normalize(url) == url
        assert url.startswith(("http://", "https://"))
        assert host(url)
        assert url == without_credentials(url)
        assert "#" not in url
        assert url.isascii()
        assert url.isprintable()
        assert " " not in url


def warc(data: bytes) -> None:
    """Any bytes are a recording, or refused; a record that was found is found again."""
    try:
        scan = Scan(Path("fuzzed.warc"), BytesIO(data))
        records = list(scan)
    except UserError:
        return
    assert scan.records == len(records)
    assert scan.end <= len(data)
    for record in records:
        framed = data[record.offset : record.offset + record.length]
        again = read_record(framed, record.offset, scan.gzipped)
        assert again is not None
        assert (again.target, again.block) == (record.target, record.block)


def dmoz(data: bytes) -> None:
    """Any bytes are a topic tree, or refused."""
    with tempfile.NamedTemporaryFile(suffix=".rdf.u8") as file:
        file.write(data)
        file.flush()
        try:
            taxonomy = read_dmoz(file.name)
        except UserError:
            return
    for topic in taxonomy.topics:
        assert not {"Cc", "Cs"} & set(map(unicodedata.category, topic))
        for url in taxonomy.examples(topic):
            assert url.startswith(("http://", "https://"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "page": page,
    "urls": urls,
    "warc": warc,
    "dmoz": dmoz,
}
#: where the search begins
SEEDS: dict[str, list[bytes]] = {
    "page": [b"\0" + _PAGE, b"\1" + _PAGE.replace(b"utf-8", b"utf-16")],
    "urls": [
        b"http://User:pw@A.example:80/a/../b%7e?x=1#y\n../c d;e?f",
        "https://münchen.example/straße\n//[::1]:8080/".encode(),
        b"javascript:alert(1)\nHTTP:\\\\0x7f.1\\\t",
    ],
    "warc": [_RECORD, _RECORD + _RECORD, gzip.compress(_RECORD, mtime=0)],
    "dmoz": [_DMOZ, gzip.compress(_DMOZ, mtime=0)],
}
