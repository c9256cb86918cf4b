"""Archives as webs: an index, CDXJ or columnar, and WARC files that are written here."""

from __future__ import annotations

import json
import pickle
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.report.measures import load_pages
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import WarcRecorder, open_web
from focuscrawl.webs.capture_index import write_index

from .archives import INDICES, Recording, archive, change, fetched

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


FIRST, OTHER = "http://a.example/First?b=1", "http://b.example/"
DATE, DIGEST = "2020-01-01T00:00:00Z", "sha1:MFXNJE4N2VCJ4GV5SHXCGO7GTWZHLIDA"
TO = "WARC-Refers-To-Target-URI"
WAYS: dict[str, tuple[str, dict[str, str]]] = {  # URL of the revisit record, its fields
    "id": (OTHER, {"WARC-Refers-To": "<urn:uuid:00000000-0000-0000-0000-000000000001>"}),
    "digest": (OTHER, {"WARC-Payload-Digest": DIGEST}),
    "digest in lower case": (OTHER, {"WARC-Payload-Digest": DIGEST.lower()}),
    "URL and digest": (OTHER, {TO: FIRST, "WARC-Payload-Digest": DIGEST}),
    "own URL and digest": ("https://a.example/First?b=1", {"WARC-Payload-Digest": DIGEST}),
    "URL and date": (OTHER, {TO: FIRST, "WARC-Refers-To-Date": DATE}),
    "URL in brackets": (OTHER, {TO: f"<{FIRST}>", "WARC-Refers-To-Date": DATE}),
    "https": (OTHER, {TO: "https://a.example/First?b=1", "WARC-Refers-To-Date": DATE}),
    "URL as typed": (OTHER, {TO: "HTTP://A.example:80/First?b=1", "WARC-Refers-To-Date": DATE}),
    "fraction": (OTHER, {TO: FIRST, "WARC-Refers-To-Date": "2020-01-01T00:00:00.123456Z"}),
    "nanoseconds": (OTHER, {TO: FIRST, "WARC-Refers-To-Date": "2020-01-01T00:00:00.123456789Z"}),
    "time zone": (OTHER, {TO: FIRST, "WARC-Refers-To-Date": "2020-01-01T02:00:00+02:00"}),
    "wrong digest": (
        OTHER,
        {TO: FIRST, "WARC-Refers-To-Date": DATE, "WARC-Payload-Digest": "sha1:NONE"},
    ),
    "wrong date": (
        OTHER,
        {TO: FIRST, "WARC-Refers-To-Date": "2011", "WARC-Payload-Digest": DIGEST},
    ),
    "no original": (OTHER, {TO: FIRST, "WARC-Refers-To-Date": "2019-01-01T00:00:00Z"}),
    "another URL": (OTHER, {TO: "http://a.example/", "WARC-Refers-To-Date": DATE}),
}


@pytest.mark.parametrize("date", [DATE, "2020-01-01T00:00:00.9Z"])
@pytest.mark.parametrize("name", ["a.warc.gz", *INDICES])
@pytest.mark.parametrize("way", WAYS)
def test_files_and_indexes_find_the_same_originals(
    way: str, name: str, date: str, tmp_path: Path
) -> None:
    url, named = WAYS[way]
    recording = Recording(tmp_path / "a.warc.gz")
    first = {"WARC-Record-ID": "<urn:uuid:00000000-0000-0000-0000-000000000001>"}
    about = {"WARC-Date": date, "WARC-Payload-Digest": DIGEST}
    recording.add(FIRST, b"an older body", about={"WARC-Date": "2018-01-01T00:00:00Z"})
    recording.add("http://c.example/", b"of another page", about={"WARC-Date": date})
    recording.add(FIRST, b"the body", about=about | first)
    recording.add(FIRST, b"a newer body", about={"WARC-Date": "2022-01-01T00:00:00Z"})
    later = {"WARC-Date": "2023-01-01T00:00:00Z"}
    recording.add(url, headers=[("X", "2")], kind="revisit", about=later | named)
    recording.file.close()
    write_index([recording.path], tmp_path / "web.cdxj", tmp_path)
    write_index([recording.path], tmp_path / "web.parquet", tmp_path)
    web = open_web(str(tmp_path / name))
    (known,) = web.resolve([OTHER])
    answer = None if known is None else web.fetch(OTHER)
    if way in {"no original", "another URL", "digest in lower case"}:
        assert answer is None or "lacks the original record" in answer.failure
    elif url == OTHER:
        assert answer is not None
        assert (answer.body, answer.headers) == (b"the body", [("X", "2")])
    else:
        assert fetched(web, FIRST).body in (b"the body", b"a newer body", b"an older body")


@pytest.mark.parametrize("name", ["a.warc.gz", *INDICES])
@pytest.mark.parametrize("wanted", [1, 2])
def test_of_two_captures_in_a_second_the_digest_tells(
    wanted: int, name: str, tmp_path: Path
) -> None:
    recording = Recording(tmp_path / "a.warc.gz")
    for n in (1, 2):
        about = {"WARC-Date": f"2020-01-01T00:00:00.{n}Z", "WARC-Payload-Digest": f"sha1:{n}"}
        recording.add(FIRST, b"body %d" % n, about=about)
    about = {"WARC-Payload-Digest": f"sha1:{wanted}", TO: FIRST}
    about["WARC-Refers-To-Date"] = f"2020-01-01T00:00:00.{wanted}Z"
    recording.add(OTHER, kind="revisit", about=about)
    recording.file.close()
    write_index([recording.path], tmp_path / "web.cdxj", tmp_path)
    write_index([recording.path], tmp_path / "web.parquet", tmp_path)
    assert fetched(open_web(str(tmp_path / name)), OTHER).body == b"body %d" % wanted


def test_an_index_of_others_finds_originals_by_url(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a.warc.gz")
    recording.add(FIRST, b"the body", about={"WARC-Date": DATE, "WARC-Payload-Digest": DIGEST})
    for way in ("https", "fraction", "URL and digest"):
        about = WAYS[way][1]
        recording.add(f"http://b.example/{len(way)}", kind="revisit", about=about)
    recording.file.close()
    index = tmp_path / "web.cdxj"
    write_index([recording.path], index, tmp_path)
    change(index, **{"orig.filename": "", "orig.offset": "", "orig.length": ""})
    web = open_web(str(index))
    for way in ("https", "fraction", "URL and digest"):
        assert fetched(web, f"http://b.example/{len(way)}").body == b"the body"


def test_a_place_of_an_original_outside_the_archive_is_not_read(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a.warc.gz")
    recording.add(FIRST, b"the body", about={"WARC-Date": DATE, "WARC-Payload-Digest": DIGEST})
    recording.add(OTHER, kind="revisit", about={"WARC-Payload-Digest": DIGEST})
    recording.file.close()
    write_index([recording.path], tmp_path / "web.cdxj", tmp_path)
    change(tmp_path / "web.cdxj", **{"orig.filename": "../a.warc.gz"})
    assert "outside" in fetched(open_web(str(tmp_path / "web.cdxj")), OTHER).failure


@pytest.mark.parametrize(
    ("key", "said", "listed"),
    [
        ("com,a)/form?__wb_method=post", {}, False),
        ("com,a)/form?__wb_method=POST&a=1", {"method": "POST"}, False),
        ("com,a)/form?a=1&__wb_method=put&__wb_post_data=x", {}, False),
        ("com,a)/form", {"method": "POST"}, False),
        ("com,a)/form", {"method": "HEAD"}, False),
        ("com,a)/form", {"method": "GET"}, True),
        ("com,a)/form?__wb_method=get", {}, True),
        ("com,a)/form?my__wb_method=post", {}, True),
    ],
)
def test_responses_to_other_methods_in_an_index_are_no_pages(
    key: str, said: dict[str, str], listed: bool, tmp_path: Path
) -> None:
    about = {"url": "http://a.com/form", "mime": "text/html", "status": "200"}
    about |= {"length": "9", "offset": "0", "filename": "a.warc.gz"} | said
    (tmp_path / "web.cdxj").write_text(f"{key} 20200101000000 {json.dumps(about)}\n")
    found = [*open_web(str(tmp_path / "web.cdxj")).urls()]
    assert found == ["http://a.com/form"] * listed


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
