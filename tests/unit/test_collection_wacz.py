"""The parts of an exported WACZ file, as programs that display such files read them."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from focuscrawl.collection import export_files, write_collection
from focuscrawl.collection.collection import Collection, ExportedPage, ExportOptions
from focuscrawl.text.extraction import PageText
from focuscrawl.webs import RecordedWeb, open_web
from focuscrawl.webs.captures import parse_cdxj_line, surt

from .archives import Recording, fetched

pytestmark = pytest.mark.usefixtures("own_cache")

FETCHED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
URLS = [f"http://{x}.example/" for x in "cadb"]


@pytest.fixture
def wacz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an export of four pages, whose index has two pages in a block."""
    monkeypatch.setattr(export_files, "_LINES", 2)
    recording = Recording(tmp_path / "pages.warc.gz")
    text = PageText("", "", "", "", "", None, "en", 0.9, "", "", "", "trafilatura")
    pages = []
    for n, url in enumerate(URLS):
        recording.add(url, b"<p>%d" % n)
        pages.append(ExportedPage(n, url, FETCHED, 0.9, "/A", f"Page {n}", text, str(n)))
    recording.file.close()
    webs = [open_web(str(recording.path))]
    exported = Collection({"topic": "/A"}, ExportOptions(), pages, Counter(), len(pages), webs)
    written = write_collection(exported, tmp_path / "c.wacz")
    assert [each.name for each in written] == ["c.wacz", "c.wacz.datasheet.md"]
    assert not [*tmp_path.glob(".*")]
    return tmp_path / "c.wacz"


def test_it_is_the_web_of_the_pages(wacz: Path) -> None:
    web = RecordedWeb(wacz)
    assert [*web.urls()] == URLS
    assert fetched(web, URLS[1]).body == b"<p>1"


def test_the_index_leads_to_the_records(wacz: Path) -> None:
    with ZipFile(wacz) as file:
        warc = file.read("archive/data.warc.gz")
        index = file.read("indexes/index.cdx.gz")
        header, *blocks = file.read("indexes/index.idx").decode().splitlines()
    assert json.loads(header.split(" ", 2)[2])["format"] == "cdxj-gzip-1.0"
    lines = []
    for block in blocks:
        key, timestamp, about = block.split(" ", 2)
        place = json.loads(about)
        data = index[place["offset"] :][: place["length"]]
        lines += gzip.decompress(data).splitlines()
        assert lines[-2].startswith(f"{key} {timestamp} ".encode())
    captures = [*map(parse_cdxj_line, lines)]
    assert [each.key for each in captures] == [*map(surt, sorted(URLS))]
    for capture in captures:
        assert capture.filename == "data.warc.gz"
        record = gzip.decompress(warc[capture.offset :][: capture.length])
        assert f"WARC-Target-URI: {capture.url}".encode() in record


def test_pages_and_hashes_are_listed(wacz: Path) -> None:
    with ZipFile(wacz) as file:
        header, *pages = map(json.loads, file.read("pages/pages.jsonl").splitlines())
        described = file.read("datapackage.json")
        about = json.loads(described)
        for each in about["resources"]:
            content = file.read(each["path"])
            assert each["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
            assert each["bytes"] == len(content)
        digest = json.loads(file.read("datapackage-digest.json"))
    assert header["format"] == "json-pages-1.0"
    assert [(each["url"], each["ts"], each["title"]) for each in pages] == [
        (url, "2024-05-06T07:08:09Z", f"Page {n}") for n, url in enumerate(URLS)
    ]
    assert digest["hash"] == f"sha256:{hashlib.sha256(described).hexdigest()}"
    assert about["title"] == "c"


def test_members_have_the_heads_that_replayweb_page_expects(wacz: Path) -> None:
    data = wacz.read_bytes()
    with ZipFile(wacz) as file:
        for member in file.infolist():
            (extra,) = struct.unpack_from("<H", data, member.header_offset + 28)
            assert extra == len(member.extra) == 0
            if member.filename.endswith(".gz"):
                assert member.compress_type == ZIP_STORED
