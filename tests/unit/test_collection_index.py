"""The index of an archive: whatever its URLs and headers hold, each answer is one line of it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import WarcRecorder
from focuscrawl.webs.capture_index import write_index
from focuscrawl.webs.captures import surt

URLS = [
    "http://b.example/x y\nhttp://evil.example/ 20200101000000 {}",
    "http://a.example/\u2028\x85\r\tz?q= 1",
    'http://c.example/"},{"url": "http://d.example/"}',
    "http://a.example/z",
]


def test_hostile_urls_stay_on_their_line(tmp_path: Path) -> None:
    archive, index = tmp_path / "a name.warc.gz", tmp_path / "c.cdxj"
    with WarcRecorder(archive) as recorder:
        for number, url in enumerate(URLS):
            recorder.record(
                request_method="GET",
                url=url,
                request_headers=[],
                request_body=b"",
                status=200,
                reason="OK",
                response_headers=[("Content-Type", 'Text/HTML\n"x; charset=y')],
                body_raw=b"page %d" % number,
                ip=None,
                at=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
            )
    assert write_index([archive], index, tmp_path) == len(URLS)
    lines = index.read_bytes().decode("ascii").split("\n")
    assert lines.pop() == ""
    assert lines == sorted(lines)
    assert len(lines) == len(URLS)
    bodies = set()
    for line in lines:
        key, at, fields = line.split(" ", 2)
        about = json.loads(fields)
        assert at == "20240506070809"
        assert key == surt(normalize(about["url"]) or "")
        assert about["status"] == "200"
        assert about["filename"] == "a name.warc.gz"
        start, length = int(about["offset"]), int(about["length"])
        record = gzip.decompress(archive.read_bytes()[start : start + length])
        assert about["digest"].encode() in record
        bodies.add(record.rpartition(b"\r\n\r\npage ")[2].strip())
    assert bodies == {b"%d" % number for number in range(len(URLS))}


def test_keys_sort_sites_together() -> None:
    urls = ["http://www.a.example/b", "https://x.a.example/", "http://b.example/"]
    assert [surt(url) for url in urls] == ["example,a)/b", "example,a,x)/", "example,b)/"]
    assert surt("http://a.example/x/?b=2&a=1") == surt("https://A.example/x?a=1&b=2".lower())
