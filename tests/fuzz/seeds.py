"""Where searches begin, and words that mean something to what reads their inputs."""

from __future__ import annotations

import gzip
import io
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path

from focuscrawl.store import CrawlStore

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


_TOML = b"""# a topic
critic = "models/demo"
topics = ["/Sports/Cycling"]
words = ["bicycle", "tour"]
good = ["http://a.example/", "http://b.example/x"]
[classes]
"/Sports/Cycling/Tours" = ["http://c.example/"]
"""
_BOOKMARKS = b"""<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1><DL><p>
<DT><H3 ADD_DATE="1">Cycling</H3><DL><p>
<DT><A HREF="http://a.example/" ADD_DATE="1">A &amp; B</A>
</DL><p></DL><p>"""


def _store() -> bytes:
    """Return a store that has nothing in it yet, as small as SQLite makes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crawl.db"
        with closing(CrawlStore.create(path, {"topic": "/good"})):
            pass
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("PRAGMA journal_mode=delete; PRAGMA page_size=512; VACUUM")
        return path.read_bytes()


def _wacz() -> bytes:
    """Return a WACZ file with one record."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr(zipfile.ZipInfo("archive/a.warc"), _RECORD)
    return written.getvalue()


#: where the search begins
SEEDS: dict[str, list[bytes]] = {
    "page": [
        b"\0<p a=1 b=2 c=3><p d=4>",
        b"\0<base href=/a/><a href=b>",
        b"\0" + _PAGE,
        b"\1" + _PAGE.replace(b"utf-8", b"utf-16"),
    ],
    "urls": [
        b"http://User:pw@A.example:80/a/../b%7e?x=1#y\n../c d;e?f",
        "https://münchen.example/straße\n//[::1]:8080/".encode(),
        b"javascript:alert(1)\nHTTP:\\\\0x7f.1\\\t",
    ],
    "warc": [_RECORD, _RECORD + _RECORD, gzip.compress(_RECORD, mtime=0), _wacz()],
    "dmoz": [_DMOZ, gzip.compress(_DMOZ, mtime=0)],
    "toml": [_TOML],
    "bookmarks": [_BOOKMARKS],
    "store": [_store()],
}
_HTML = b"<a href= <a <b> <p> <table> <td> <div> <li> <h1> <form> <select> <!-- --> </ > < & \
&amp; &#1; <![CDATA[ ]]> <svg> <math> <template> <title> <base href= <meta charset= a=1 href= \
class= \" '"
#: words that mean something to what reads a target's inputs
WORDS: dict[str, list[bytes]] = {
    "page": _HTML.split(b" "),
    "urls": b"http:// // / ? # @ : . .. %2e [ ] xn-- \\ & = ; javascript: \n".split(b" "),
    "warc": [
        *(b"WARC/1.0\r\n", b"\r\n", b"\r\n\r\n", b"Content-Length: ", b"\r\n ", b"9999999999"),
        *(b"Content-Encoding: gzip\r\n", b"Transfer-Encoding: chunked\r\n", b"\x1f\x8b\x08"),
        *(gzip.compress(b"", mtime=0), gzip.compress(bytes(1 << 20), mtime=0), _RECORD),
    ],
    "dmoz": b'<Topic r:id= <ExternalPage about= <topic> </topic> <link & &#1; < > " Top/ /'.split(
        b" "
    ),
    "toml": b'[ ] [[ ]] { } = . , " \' """ a= # \n 1e9 0x 1979-05-27 \\u0000'.split(b" "),
    "bookmarks": [*_HTML.split(b" "), b"<DL>", b"<DT>", b"<H3>", b"</DL>", b"<A HREF="],
    "store": [b"\0", b"\xff", b"\x7f\xff\xff\xff", b"SQLite format 3\0", b"CREATE TABLE"],
}
