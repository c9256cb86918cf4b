"""The three recorded webs: all that is labelled or a seed is there, and can be fetched."""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from warcio.archiveiterator import ArchiveIterator

from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import RecordedWeb

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.webs

#: records, URLs (a page under both schemes is one; ftp and file are none), hosts, other URLs
SIZES = {
    "uci": (51_081, 51_072, 86, 0),
    "wikipedia": (6_494, 6_494, 1, 0),
    "webkb": (8_272, 8_213, 590, 52),
}


@pytest.fixture(scope="module", params=sorted(SIZES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def web(name: str, request: pytest.FixtureRequest) -> RecordedWeb:
    return RecordedWeb(request.getfixturevalue(f"{name}_warc"))


def test_all_pages_are_indexed(web: RecordedWeb, name: str) -> None:
    records, urls, hosts, _ = SIZES[name]
    assert (web.records, len(web), len(web.hosts)) == (records, urls, hosts)
    assert set(web.statuses.tolist()) == {200}
    assert web.truncated_at is None
    assert web.damaged == 0
    assert len(set(web.urls())) == urls


def test_all_labels_seeds_and_portals_resolve(web: RecordedWeb, name: str, webs_dir: Path) -> None:
    folder = webs_dir / name
    wanted = []
    for table in ("labels.csv", "seeds.csv"):
        if (folder / table).exists():
            with (folder / table).open(newline="", encoding="utf-8") as file:
                wanted += [row["url"] for row in csv.DictReader(file)]
    wanted += (folder / "portal.txt").read_text(encoding="utf-8").split()
    urls = [normalize(url) for url in wanted]
    assert sum(url is None for url in urls) == SIZES[name][3]
    known = web.resolve([url for url in urls if url is not None])
    assert None not in known
    assert web.resolve([url for url in known if url is not None]) == known


def test_pages_are_those_that_warcio_reads(web: RecordedWeb) -> None:
    urls = set(web.urls())
    with web.path.open("rb") as file:
        for record in islice(ArchiveIterator(file), 300):
            url = normalize(record.rec_headers.get_header("WARC-Target-URI"))
            if url not in urls:  # the other scheme's copy, or no web page
                continue
            answer = web.fetch(url)
            assert answer is not None
            assert answer.body == record.content_stream().read()
            assert answer.headers == record.http_headers.headers


def test_pages_all_over_can_be_fetched(web: RecordedWeb) -> None:
    for url in list(web.urls())[::97]:
        answer = web.fetch(url)
        assert answer is not None
        assert answer.url == url
        assert dict(answer.headers)["Content-Length"] == str(len(answer.body))
