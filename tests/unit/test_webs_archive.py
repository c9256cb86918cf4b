"""Archives as webs: an index, CDXJ or columnar, and WARC files that are written here."""

from __future__ import annotations

import pickle
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.report.measures import load_pages
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import WarcRecorder, open_web
from focuscrawl.webs.capture_index import write_index

from .archives import INDICES, Recording, archive, fetched

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("name", INDICES)
def test_an_archive_is_the_web_that_was_recorded(name: str, tiny: TinyWeb, tmp_path: Path) -> None:
    index = archive(tiny, tmp_path, name)
    recorded = open_web(str(tmp_path / "warcs" / "pages.warc.gz"))
    for web in (open_web(str(index)), pickle.loads(pickle.dumps(open_web(str(index))))):
        assert web.name == "web"
        assert sorted(web.urls()) == sorted(recorded.urls())
        asked = [*recorded.urls(), "http://b.example/", "http://none.example/"]
        asked += [f"{url}x" for url in recorded.urls()] + ["http://www.a.example/dir/1?b=1&a=1"]
        assert web.resolve(asked) == recorded.resolve(asked)
        assert [*map(web.fetch, asked)] == [*map(recorded.fetch, asked)]
    moved = open_web(str(index)).fetch("http://a.example/old")
    assert moved is not None
    assert (moved.status, moved.header("location")) == (301, "https://b.example/")


@pytest.mark.parametrize("name", INDICES)
def test_a_copy_of_an_index_is_the_same_web_wherever_the_files_are(
    name: str, tiny: TinyWeb, tmp_path: Path
) -> None:
    index = archive(tiny, tmp_path, name)
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy2(index, tmp_path / "elsewhere" / name)
    web, other = open_web(str(index)), open_web(f"{copy},{tmp_path}")
    assert web.fingerprint == other.fingerprint
    assert other.fetch("https://b.example/") == web.fetch("https://b.example/")
    fewer = TinyWeb({"https://b.example/": "b"})
    assert open_web(str(archive(fewer, tmp_path / "fewer", name))).fingerprint != web.fingerprint


def crawled(web: Path, folder: Path) -> list[tuple[str, float]]:
    plan = CrawlConfig(
        topic="/Sports/Cycling",
        seeds="models/demo/seeds.csv",
        web=str(web),
        strategy="apprentice",
        budget=60,
        crawl_dir=str(folder),
    )
    replay(open_crawl(plan))
    pages = load_pages(str(folder))
    return list(zip(pages["url"], pages["relevance"].round(6), strict=True))


def test_the_crawl_of_an_archive_is_that_of_the_recording(demo: Path, tmp_path: Path) -> None:
    expected = crawled(demo / "web.warc.gz", tmp_path / "recording")
    assert len(expected) == 60
    for name in INDICES:
        assert crawled(demo / name, tmp_path / name) == expected


@pytest.mark.parametrize("name", INDICES)
def test_a_revisit_has_the_body_it_refers_to(name: str, tmp_path: Path) -> None:
    date = "2020-01-01T00:00:00Z"
    about = {"WARC-Refers-To-Target-URI": "http://a.example/first", "WARC-Refers-To-Date": date}
    recording, visit = Recording(tmp_path / "a.warc.gz"), [("X-Visit", "revisit")]
    recording.add("http://a.example/first", b"the body", about={"WARC-Date": date})
    recording.add("http://a.example/again", headers=visit, kind="revisit", about=about)
    lost = {"WARC-Refers-To": "<urn:uuid:no>"}
    recording.add("http://a.example/lost", headers=visit, kind="revisit", about=lost)
    recording.file.close()
    write_index([recording.path], tmp_path / name, tmp_path)
    web = open_web(str(tmp_path / name))
    again = fetched(web, "http://a.example/again")
    assert (again.status, again.body, again.headers) == (200, b"the body", visit)
    assert "lacks the original record" in fetched(web, "http://a.example/lost").failure


def test_what_was_not_asked_for_with_get_is_in_no_index(tmp_path: Path) -> None:
    with WarcRecorder(tmp_path / "a.warc.gz") as recorder:
        for method in ("GET", "POST"):
            at = datetime(2026, 1, 1, tzinfo=UTC)
            recorder.record(url=f"http://a.example/{method}", at=at, request_method=method)
    assert write_index([tmp_path / "a.warc.gz"], tmp_path / "web.cdxj", tmp_path) == 1
    assert [*open_web(str(tmp_path / "web.cdxj")).urls()] == ["http://a.example/GET"]


def test_it_is_said_early_where_files_are_not(
    tiny: TinyWeb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    open_web(f"{index},{tmp_path / 'warcs'}")
    assert "warcs/warcs/pages.warc.gz does not exist" in caplog.text


def test_what_is_cut_of_a_file_is_said_when_it_is_indexed(
    tiny: TinyWeb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warc = tiny.write(tmp_path / "pages.warc.gz")
    whole = write_index([warc], tmp_path / "whole.cdxj", tmp_path)
    assert not caplog.text
    warc.write_bytes(warc.read_bytes()[:-10])
    assert 0 < write_index([warc], tmp_path / "cut.cdxj", tmp_path) <= whole
    assert "pages.warc.gz is truncated or damaged at byte" in caplog.text
