"""The three recorded webs: all of their pages are there, as warcio reads them."""

from __future__ import annotations

from itertools import islice

import pytest
from warcio.archiveiterator import ArchiveIterator

from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import RecordedWeb

pytestmark = pytest.mark.webs

#: records, URLs (a page under both schemes is one; ftp and file are none), hosts
SIZES = {
    "uci": (51_081, 51_072, 86),
    "wikipedia": (6_494, 6_494, 1),
    "webkb": (8_272, 8_213, 590),
}


@pytest.fixture(scope="module", params=sorted(SIZES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def web(name: str, request: pytest.FixtureRequest) -> RecordedWeb:
    return RecordedWeb(request.getfixturevalue(f"{name}_warc"))


def test_all_pages_are_indexed(web: RecordedWeb, name: str) -> None:
    assert (web.records, len(web), len(web.hosts)) == SIZES[name]
    assert set(web.statuses.tolist()) == {200}
    assert web.truncated_at is None
    assert web.damaged == 0
    assert len(set(web.urls())) == len(web)


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
