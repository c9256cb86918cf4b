"""Archives that are not as they should be: one line, or a page that fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.report.measures import load_pages
from focuscrawl.webs import cdxj_index, open_web
from focuscrawl.webs.capture_index import write_index
from focuscrawl.webs.warc_reading import MAX_RECORD_BYTES

from .archives import INDICES, archive, change, fetched, warc_record

if TYPE_CHECKING:
    from focuscrawl.testing import TinyWeb

pq = pytest.importorskip("pyarrow.parquet")

from focuscrawl.webs import columnar  # noqa: E402 - it needs PyArrow
from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_cache")

HOSTILE = [
    *("../../etc/passwd", "a/../../b.warc.gz", "/etc/passwd", "..", "s3://other/b.warc.gz"),
    *("file:///etc/passwd", "C:/b.warc.gz", "..\\b.warc.gz", "\\\\host\\b.warc.gz", "b\0.warc"),
]


def asked(*arguments: str) -> str:
    """Run a command on webs that is refused, and return the line that says why."""
    done = CliRunner().invoke(main, ["web", *arguments])
    assert done.exit_code == 2, done.output
    (line,) = done.output.splitlines()
    assert line.startswith("focuscrawl: ")
    return line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"!OpenWayback-CDXJ 1.0\n", "is empty"),
        (b" CDX N b a m s k r M S V g\nb)/ 20200101000000 x\n", "an invalid CDXJ line"),
        (b"a)/ 20200101000000 {}\n", "an invalid CDXJ line"),
        (b"a)/ 20200101000000 " + b"[" * 30_000, "an invalid CDXJ line"),
        (b'a)/ 2020 {"url": "x"}\n', "an invalid CDXJ line"),
        (b"\xff\xfe\x00\n", "an invalid CDXJ line"),
        (b"a" * 200_000, "a line of more than"),
    ],
)
def test_what_is_no_cdxj_is_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cdxj"
    path.write_bytes(content)
    line = asked("info", str(path))
    assert said in line
    assert str(path) in line


def test_a_cdxj_that_was_cut_is_told_when_it_is_opened(tmp_path: Path) -> None:
    said = '{"url": "http://a.example/", "filename": "a.warc", "offset": "0", "length": "9"}'
    lines = [f"example,a)/{n:05} 20200101000000 {said}\n" for n in range(2000)]
    path = tmp_path / "a.cdxj"
    path.write_text("".join(lines)[:-9])
    with pytest.raises(UserError, match=r"a\.cdxj has an invalid CDXJ line near byte 1"):
        open_web(str(path))


WRONG: dict[str, list[Any]] = {
    "offset": ["-1", "x", "", None, 1.5, True, "9" * 5000, []],
    "length": ["0", "-5", "", None, {}, "1e3"],
    "status": ["abc", "99", "70000", [], {}],
    "url": ["", None, 5],
    "filename": ["", None, ["x"]],
}


@pytest.mark.parametrize(
    "changes", [{name: value} for name, values in WRONG.items() for value in values]
)
def test_what_no_capture_says_is_one_line(
    changes: dict[str, Any], tiny: TinyWeb, tmp_path: Path
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    change(index, **changes)
    assert "an invalid CDXJ line near byte 0" in asked("info", str(index))


@pytest.mark.parametrize("blocks", [1, 2])
def test_lines_out_of_order_are_one_line(
    blocks: int, tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[6:] + lines[:6]))
    if blocks == 2:  # each of them in order
        monkeypatch.setattr(cdxj_index, "_BLOCK", len(b"".join(lines[6:])))
    assert "LC_ALL=C sort" in asked("info", str(index))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"url_surtkey": None}, "the column url_surtkey is missing"),
        ({"warc_record_offset": None}, "the column warc_record_offset is missing"),
        ({"warc_record_length": [-5]}, "an invalid row (a field is not a whole number)"),
        ({"fetch_time": [None]}, "an invalid row (time or key is missing)"),
        ({"fetch_time": [7]}, "an invalid row (time or key is missing)"),
        ({"url": [b"x"]}, "an invalid row (a field is not a text)"),
        ({"url_surtkey": [5]}, "has no statistics of the column"),
    ],
)
def test_what_is_no_columnar_index_is_one_line(
    columns: dict[str, Any], said: str, tiny: TinyWeb, tmp_path: Path
) -> None:
    index = archive(tiny, tmp_path, "web.parquet")
    table = pq.read_table(index).slice(0, 1)
    for name, values in columns.items():
        table = table.drop_columns([name])
        table = table if values is None else table.append_column(name, [values])
    pq.write_table(table, index)
    assert said in asked("info", str(index))
    pq.write_table(table.slice(0, 0), index)
    assert "web.parquet" in asked("info", str(index))
    index.write_bytes(b"PAR1 no more")
    assert "cannot read" in asked("info", str(index))


def test_row_groups_beyond_measure_are_refused(
    tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.parquet")
    monkeypatch.setattr(columnar, "_MAX_GROUP_ROWS", 5)
    assert "has row groups of 13 rows" in asked("info", str(index))


@pytest.mark.parametrize(
    ("web", "said"),
    [
        ("{0}/none.cdxj", "cannot read"),
        ("{0}/none.parquet", "does not exist"),
        ("{0}", "/*.parquet for the tables of an index"),
        ("{0}/a.cdx", "a sorted, uncompressed .cdxj file, the .idx file"),
        ("{0}/a.cdxj.gz", "a sorted, uncompressed .cdxj file, the .idx file"),
        ("s3://bucket/a.index", "there is no recorded web"),
        ("nosuch://bucket/a.cdxj", "cannot open the file system of"),
        ("s3://key:hush@bucket/a.cdxj", "must not contain a password"),
        ("s3://key:hush@[bucket/a.cdxj", "cannot open the file system of"),
    ],
)
def test_names_that_lead_to_no_index(web: str, said: str, tmp_path: Path) -> None:
    line = asked("info", web.format(tmp_path))
    assert said in line
    assert "hush" not in line


def test_no_index_is_half_written(tiny: TinyWeb, tmp_path: Path) -> None:
    warc = tiny.write(tmp_path / "a.warc.gz")
    (tmp_path / "b.warc").write_bytes(b"no WARC")
    out, files = str(tmp_path / "x" / "a.cdxj"), [str(warc), str(tmp_path / "b.warc")]
    assert "cannot write" in asked("index", str(warc), "--out", out, "--base", str(tmp_path))
    assert "end the name in" in asked("index", str(warc), "--out", str(tmp_path / "a.txt"))
    assert "is not below" in asked("index", str(warc), "--out", out)
    for name in INDICES:
        assert "b.warc is not a WARC" in asked("index", *files, "--out", str(tmp_path / name))
    assert "cannot read" in asked("index", "no.warc", "--out", "a.cdxj")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "cache")
    assert left == ["a.warc.gz", "b.warc"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"offset": 3}, "no record of this URL at byte 3"),
        ({"offset": 10**14}, "at byte 100,000,000,000,000"),
        ({"length": 20}, "no record of this URL"),
        ({"filename": "none.warc.gz"}, "none.warc.gz does not exist"),
        ({"filename": "warcs"}, "warcs"),
        ({"url": "https://b.example/"}, "no record of this URL"),
    ],
)
def test_a_record_that_is_not_there_is_a_failure(
    changes: dict[str, Any], why: str, tiny: TinyWeb, tmp_path: Path
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    change(index, **changes)
    lines = index.read_text().splitlines(keepends=True)
    if "url" in changes:  # the key says where it is looked for
        index.write_text(next(line for line in lines if line.startswith("example,b)/ ")))
        change(index, offset=0)
    web = open_web(str(index))
    answer = fetched(web, "https://b.example/")
    assert (answer.status, answer.body) == (0, b"")
    assert why in answer.failure


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_name_leads_out_of_the_archive(
    name: str, tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    shutil.copy2(tmp_path / "warcs" / "pages.warc.gz", tmp_path / "b.warc.gz")
    change(index, filename=name)
    (tmp_path / "base").mkdir()
    web = ArchiveWeb(str(index), str(tmp_path / "base"))

    def opened(path: str) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(web, "_open", opened)
    answer = fetched(web, "https://b.example/")
    assert "which is outside" in answer.failure


def test_of_a_record_no_more_is_read_than_may_count(
    tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    change(index, length=10**14)
    web = ArchiveWeb(str(index))
    data, sizes = (tmp_path / "warcs" / "pages.warc.gz").read_bytes(), []

    def read_at(size: int, offset: int) -> bytes:
        sizes.append(size)
        return data[offset : offset + size]

    monkeypatch.setattr(web, "_open_warc", lambda _: SimpleNamespace(read_at=read_at))
    answer = fetched(web, "https://b.example/")
    assert (answer.body, answer.failure) == (b"b", "")  # it ends where its gzip member does
    assert sizes == [MAX_RECORD_BYTES]


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tiny: TinyWeb, tmp_path: Path) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    (tmp_path / "warcs" / "pages.warc.gz").unlink()
    os.mkfifo(tmp_path / "warcs" / "pages.warc.gz")
    answer = fetched(open_web(str(index)), "https://b.example/")
    assert "is not a regular file" in answer.failure


@pytest.mark.parametrize("name", ["warcs", "warcs/pages.warc.gz"])
def test_no_link_in_an_archive_is_followed(tiny: TinyWeb, tmp_path: Path, name: str) -> None:
    index = archive(tiny, tmp_path / "theirs", "web.cdxj")
    (index.parent / name).rename(tmp_path / "outside")
    (index.parent / name).symlink_to(tmp_path / "outside")
    answer = fetched(open_web(str(index)), "https://b.example/")
    assert f"{name} is a link to" in answer.failure
    with pytest.raises(UserError, match=r"is a link to .* --base"):
        write_index([index.parent / "warcs" / "pages.warc.gz"], index, index.parent)
    (tmp_path / "by-link").symlink_to(tmp_path / "theirs")  # the way there is the user's
    (index.parent / name).unlink()
    (tmp_path / "outside").rename(index.parent / name)
    answer = fetched(open_web(str(tmp_path / "by-link" / "web.cdxj")), "https://b.example/")
    assert not answer.failure


def test_no_link_in_a_folder_of_tables_is_followed(tiny: TinyWeb, tmp_path: Path) -> None:
    index = archive(tiny, tmp_path, "web.parquet")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.parquet").symlink_to(index)
    line = asked("info", f"{tmp_path}/tables/*.parquet,{tmp_path}")
    assert "a.parquet is a link to" in line


@pytest.mark.parametrize("name", INDICES)
def test_a_pipe_in_place_of_an_index_keeps_nobody_waiting(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    assert "is not a regular file" in asked("info", str(tmp_path / name))


def record(date: str, body: bytes) -> bytes:
    return warc_record("", b"HTTP/1.1 200 OK\r\n\r\n" + body, more=f"\r\nWARC-Date: {date}")


@pytest.mark.parametrize("date", ["", "yesterday", "0001-01-01T00:00:00Z", "0001-01-01T00+05:00"])
@pytest.mark.parametrize("name", INDICES)
def test_a_record_of_no_time_is_found_all_the_same(name: str, date: str, tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(record(date, b"x"))
    write_index([tmp_path / "a.warc"], tmp_path / name, tmp_path)
    web = open_web(str(tmp_path / name))
    assert [*web.urls()] == ["http://a.example/"]
    answer = fetched(web, "http://a.example/")
    assert answer.body == b"x"


def test_of_a_plain_record_all_has_to_be_there(tmp_path: Path) -> None:
    whole = record("yesterday", b"x" * 500)
    (tmp_path / "a.warc").write_bytes(whole)
    write_index([tmp_path / "a.warc"], tmp_path / "a.cdxj", tmp_path)
    change(tmp_path / "a.cdxj", length=len(whole) - 100)
    cut = fetched(open_web(str(tmp_path / "a.cdxj")), "http://a.example/")
    assert "an incomplete record" in cut.failure


def test_pages_whose_file_is_missing_fail_and_the_crawl_goes_on(
    demo: Path, tmp_path: Path
) -> None:
    index = tmp_path / "web.cdxj"
    shutil.copy2(demo / "web.warc.gz", tmp_path)
    lines = (demo / "web.cdxj").read_text().splitlines(keepends=True)
    lines[1::3] = [line.replace("web.warc.gz", "none.warc.gz") for line in lines[1::3]]
    index.write_text("".join(lines))
    plan = CrawlConfig(
        topic="/Sports/Cycling",
        seeds="models/demo/seeds.csv",
        web=str(index),
        strategy="breadth-first",
        budget=40,
        crawl_dir=str(tmp_path / "crawl"),
    )
    replay(open_crawl(plan))
    pages = load_pages(str(tmp_path / "crawl"))
    failed = pages[pages["status"] == 0]
    assert len(pages) == 40
    assert 3 < len(failed) < 37
    expected = f"not in the archive: {tmp_path}/none.warc.gz does not exist"
    assert set(failed["error"]) == {expected}
    assert "does not exist" in asked("get", str(index), failed["url"].iloc[0])
