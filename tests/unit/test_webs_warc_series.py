"""A recording in several files is one when they are put together, also after a kill."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.page_source import webs_of
from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, WarcRecorder
from focuscrawl.webs.warc_recorder import WarcSeries

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 5000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


def body(i: int) -> bytes:
    return Random(i).randbytes(600)  # that do not compress


def write(recorder: WarcSeries | WarcRecorder, i: int) -> None:
    recorder.record(
        request_method="GET",
        url=f"http://a.example/{i}",
        request_headers=[],
        request_body=b"",
        status=200,
        reason="OK",
        response_headers=[("Content-Type", "text/html")],
        body_raw=body(i),
        ip=None,
        at=datetime(2024, 1, 1, tzinfo=UTC),
    )


def together(folder: Path) -> RecordedWeb:
    path = folder.parent / "all.warc.gz"
    path.write_bytes(b"".join(each.read_bytes() for each in sorted(folder.iterdir())))
    return RecordedWeb(path)


def test_files_put_together_are_one_recording(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    for first in (0, 20):
        series = WarcSeries(folder / "pages.warc.gz", SIZE)
        for i in range(first, first + 20):
            write(series, i)
        series.close()
        if not first:  # it is killed, and resumed
            last = max(folder.iterdir())
            last.write_bytes(last.read_bytes() + b"\x1f\x8b\x08 half of a record")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"pages-{n:05}.warc.gz" for n in range(1, len(names) + 1)]
    sizes = [(folder / name).stat().st_size for name in names]
    assert len(names) > 4
    assert all(SIZE <= size < SIZE + 2000 for size in sizes[:-1])
    web = together(folder)
    for i in range(40):
        answer = web.fetch(f"http://a.example/{i}")
        assert answer is not None
        assert answer.body == body(i)


def test_a_series_is_written_by_one_process(tmp_path: Path) -> None:
    series = WarcSeries(tmp_path / "pages.warc.gz", 600)
    write(series, 0)
    write(series, 1)
    with pytest.raises(UserError, match=r"pages-00002.warc.gz is being written"):
        WarcSeries(tmp_path / "pages.warc.gz", 600)
    series.close()


def test_pages_of_a_crawl_are_looked_for_in_all_parts(tmp_path: Path) -> None:
    series = WarcSeries(tmp_path / "pages.warc.gz", 600)
    for i in range(3):
        write(series, i)
    series.close()
    webs = webs_of({"web": "live"}, tmp_path)
    assert len(webs) == 3
    urls = [f"http://a.example/{i}" for i in range(3)]
    assert [web.resolve(urls).count(None) for web in webs] == [2, 2, 2]
