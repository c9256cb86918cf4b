"""Archives as webs: an index, CDXJ or columnar, and WARC files that are written here."""

from __future__ import annotations

import json
import pickle
import shutil
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlPlan
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.replay import replay
from focuscrawl.errors import UserError
from focuscrawl.report.measures import load_pages
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.as_folder import write_folder
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.work import Processes
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import WarcRecorder, capture_index, cdxj, open_web
from focuscrawl.webs.capture_index import write_index
from focuscrawl.webs.captures import Capture, best_of
from focuscrawl.webs.warc import SEEN

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from focuscrawl.webs import archive_web, columnar  # noqa: E402 - they need PyArrow
from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

INDICES = ["web.cdxj", "web.parquet"]
HOSTILE = [
    *("../../etc/passwd", "a/../../b.warc.gz", "/etc/passwd", "..", "s3://other/b.warc.gz"),
    *("file:///etc/passwd", "C:/b.warc.gz", "..\\b.warc.gz", "\\\\host\\b.warc.gz", "b\0.warc"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tiny() -> TinyWeb:
    pages = {f"http://www.a.example/Dir/{n}?b={n}&a=1": f"<p>page {n}" for n in range(9)}
    web = TinyWeb(
        {**pages, "https://b.example/": "b", "http://b.example/%C3%A9": "é"},
        redirects={"http://a.example/old": "https://b.example/"},
    )
    web.put("http://a.example/gone", "gone", 404)
    return web


def archive(web: TinyWeb, folder: Path, index: str) -> Path:
    warc = web.write(folder / "warcs" / "pages.warc.gz")
    write_index([warc], folder / index, folder)
    return folder / index


def lines_of(path: Path) -> list[dict[str, Any]]:
    lines = [line.split(" ", 2) for line in path.read_text(encoding="ascii").splitlines()]
    return [{"key": key, "at": at, **json.loads(about)} for key, at, about in lines]


def change(path: Path, **changes: Any) -> None:
    """Have every line of a CDXJ say something else."""
    lines = []
    for line in lines_of(path):
        about = {name: value for name, value in line.items() if name not in {"key", "at"}}
        lines.append(f"{line['key']} {line['at']} {json.dumps(about | changes)}\n")
    path.write_text("".join(lines), encoding="ascii")


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


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a recording of a small synthetic web, with both indices."""
    folder, web = tmp_path_factory.mktemp("demo"), open_web("demo:0.2")
    with WarcRecorder(folder / "web.warc.gz") as recorder:
        for answer in map(web.fetch, web.urls()):
            assert answer is not None
            recorder.record(
                request_method="GET",
                url=answer.url,
                request_headers=[],
                request_body=b"",
                status=answer.status,
                reason="",
                response_headers=answer.headers,
                body_raw=answer.body,
                ip=None,
                at=datetime(2026, 1, 1, tzinfo=UTC),
            )
    for name in INDICES:
        write_index([folder / "web.warc.gz"], folder / name, folder)
    return folder


def crawled(web: Path, folder: Path, *, rounds: bool) -> list[tuple[str, float]]:
    plan = CrawlPlan(
        topic="/Sports/Cycling",
        seeds="models/demo/seeds.csv",
        web=str(web),
        strategy="apprentice",
        budget=60,
        crawl_dir=None if rounds else str(folder),
    )
    if rounds:
        context_of.cache_clear()
        crawl_in_rounds(RoundsPlan(plan, 15, 3), f"{folder}-r", Processes(1), lambda _: None)
        write_folder(f"{folder}-r", folder)
    else:
        replay(open_crawl(plan))
    pages = load_pages(str(folder))
    return list(zip(pages["url"], pages["relevance"].round(6), strict=True))


@pytest.mark.parametrize("rounds", [False, True])
def test_the_crawl_of_an_archive_is_that_of_the_recording(
    rounds: bool, demo: Path, tmp_path: Path
) -> None:
    expected = crawled(demo / "web.warc.gz", tmp_path / "recording", rounds=rounds)
    assert len(expected) == 60
    for name in INDICES:
        assert crawled(demo / name, tmp_path / name, rounds=rounds) == expected


def capture(url: str = "http://a.example/", at: int = 2020, **said: Any) -> Capture:
    about: dict[str, Any] = {"mime": "text/html", "status": 200, "digest": "", "redirect": ""}
    where = {"filename": "a.warc.gz", "offset": 0, "length": 1}
    return Capture(key="k", timestamp=f"{at}0101000000", url=url, **(about | where | said))


@pytest.mark.parametrize(
    ("captures", "best"),
    [
        ([capture(at=2020), capture(at=2022), capture(at=2021)], 1),
        ([capture(at=2020), capture(at=2022, status=404), capture(at=2021, status=301)], 0),
        ([capture(status=404), capture("https://a.example/", status=302)], 1),
        ([capture(), capture(at=2021, mime="warc/revisit")], 0),
        ([capture(status=404), capture(mime="warc/revisit", status=None)], 1),
        ([capture(status=304), capture(status=100), capture(status=500)], 2),
        ([capture(offset=7), capture(offset=3)], 1),
        ([capture(status=301, redirect="https://a.example/"), capture(status=404)], 1),
        ([capture("http://b.example/"), capture("ftp://a.example/")], None),
    ],
)
def test_which_capture_of_a_url_counts(captures: list[Capture], best: int | None) -> None:
    found = best_of(iter(captures), frozenset({"a.example/"}))
    expected = {} if best is None else {"a.example/": captures[best]}
    assert found == expected


@pytest.mark.parametrize("name", INDICES)
def test_a_revisit_has_the_body_it_refers_to(name: str, tmp_path: Path) -> None:
    first = {"WARC-Date": "2020-01-01T00:00:00Z"}
    about = {"WARC-Refers-To-Target-URI": "http://a.example/first"}
    about |= {"WARC-Refers-To-Date": "2020-01-01T00:00:00Z"}
    warc = tmp_path / "a.warc.gz"
    with warc.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for url, kind, body, said in (
            ("http://a.example/first", "response", b"the body", first),
            ("http://a.example/again", "revisit", b"", about),
            ("http://a.example/lost", "revisit", b"", {"WARC-Refers-To": "<urn:uuid:no>"}),
        ):
            head = StatusAndHeaders("200 OK", [("X-Visit", kind)], protocol="HTTP/1.1")
            record = writer.create_warc_record(
                url, kind, BytesIO(body), len(body), http_headers=head, warc_headers_dict=said
            )
            writer.write_record(record)
    write_index([warc], tmp_path / name, tmp_path)
    web = open_web(str(tmp_path / name))
    again, lost = web.fetch("http://a.example/again"), web.fetch("http://a.example/lost")
    assert again is not None
    assert lost is not None
    assert (again.status, again.body, again.headers) == (
        200,
        b"the body",
        [("X-Visit", "revisit")],
    )
    assert "that it refers to" in lost.failure


def test_what_was_not_asked_for_with_get_is_in_no_index(tmp_path: Path) -> None:
    warc = tmp_path / "a.warc.gz"
    with warc.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for method in ("GET", "POST"):
            url = f"http://a.example/{method}"
            answer = StatusAndHeaders("200 OK", [], protocol="HTTP/1.1")
            asked = StatusAndHeaders(f"{method} / HTTP/1.1", [], is_http_request=True)
            response = writer.create_warc_record(
                url, "response", BytesIO(), 0, http_headers=answer
            )
            request = writer.create_warc_record(url, "request", BytesIO(), 0, http_headers=asked)
            writer.write_request_response_pair(request, response)
    assert write_index([warc], tmp_path / "web.cdxj", tmp_path) == 1
    assert [*open_web(str(tmp_path / "web.cdxj")).urls()] == ["http://a.example/GET"]


# -- large indices -------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=200), st.integers(60, 400))
def test_every_line_is_found_wherever_blocks_end(numbers: list[int], block: int) -> None:
    import tempfile  # noqa: PLC0415 - a fixture would be one for all examples
    from pathlib import Path as RealPath  # noqa: PLC0415

    captures = [
        capture(f"http://a.example/{n}", offset=at)._replace(
            key=f"example,a)/{n}" + "y" * (n % 50)
        )
        for at, n in enumerate(numbers)
    ]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(cdxj, "_BLOCK", block + 350)
        patch.setattr(cdxj, "LONGEST_LINE", block + 300)
        patch.setattr(cdxj, "_TAIL", block // 8)
        path = RealPath(folder) / "a.cdxj"
        path.write_bytes(
            b"!OpenWayback-CDXJ 1.0\n" + b"".join(sorted(map(cdxj.line_of, captures)))
        )
        from pyarrow import fs  # noqa: PLC0415

        index = cdxj.CdxjIndex(fs.LocalFileSystem(), str(path), "a.cdxj")
        keys = sorted({each.key for each in captures})
        assert sorted(index.find([*keys, "a", "zz", f"{keys[0]}!"])) == sorted(captures)
        for key in keys:
            found = sorted(index.find([key]))
            assert found == sorted(each for each in captures if each.key == key)
        assert sorted(index) == sorted(captures)


def test_lines_that_are_too_many_for_memory_are_sorted_in_files(
    tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    whole = index.read_bytes()
    monkeypatch.setattr(capture_index, "_RUN", 4)
    write_index([tmp_path / "warcs" / "pages.warc.gz"], index, tmp_path)
    assert index.read_bytes() == whole


def test_few_row_groups_are_read_and_few_are_held(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pq.read_table(demo / "web.parquet")
    pq.write_table(table, tmp_path / "web.parquet", row_group_size=50)
    shutil.copy2(demo / "web.warc.gz", tmp_path)
    read: list[int] = []
    whole = columnar.ColumnarIndex._read

    def counting(index: columnar.ColumnarIndex, group: columnar._RowGroup) -> Any:
        read.append(group.number)
        return whole(index, group)

    monkeypatch.setattr(columnar.ColumnarIndex, "_read", counting)
    monkeypatch.setattr(columnar, "_HELD", 150)
    web = ArchiveWeb(str(tmp_path / "web.parquet"))
    (url,) = table["url"].to_pylist()[77:78]
    read.clear()
    assert web.resolve([url]) == [url]
    assert read == [1]
    assert web.resolve(sorted(table["url"].to_pylist())) == sorted(table["url"].to_pylist())
    assert isinstance(web._index, columnar.ColumnarIndex)
    assert len(web._index._held) <= 3


def test_a_table_as_common_crawl_publishes_it_is_read_part_by_part(
    tiny: TinyWeb, tmp_path: Path
) -> None:
    table = pq.read_table(archive(tiny, tmp_path, "web.parquet"))
    for name, kind in (("fetch_time", pa.timestamp("us")), ("warc_record_offset", pa.int32())):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(kind))
    table = table.drop_columns(["fetch_redirect"])
    table = table.append_column("url_host_name", table["url"])
    folder = tmp_path / "crawl=1"
    for number, subset in enumerate(("warc", "warc", "crawldiagnostics")):
        part = folder / f"subset={subset}" / f"part-{number}.c000.zstd.parquet"
        part.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.take(list(range(number, len(table), 3))), part)
    recorded = open_web(str(tmp_path / "warcs" / "pages.warc.gz"))
    web = open_web(f"{folder}/*.parquet,{tmp_path}")
    urls = [*recorded.urls()]
    assert web.resolve(urls) == urls
    assert [*map(web.fetch, urls)] == [*map(recorded.fetch, urls)]
    with pytest.raises(UserError, match="not sorted by its keys"):
        [*web.urls()]


# -- what is not as it should be -----------------------------------------------------------


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
        (b" CDX N b a m s k r M S V g\nb)/ 20200101000000 x\n", "a line that is no CDXJ"),
        (b"a)/ 20200101000000 {}\n", "a line that is no CDXJ"),
        (b"a)/ 20200101000000 " + b"[" * 30_000, "a line that is no CDXJ"),
        (b'a)/ 2020 {"url": "x"}\n', "a line that is no CDXJ"),
        (b"\xff\xfe\x00\n", "a line that is no CDXJ"),
        (b"a" * 200_000, "a line without an end"),
    ],
)
def test_what_is_no_cdxj_is_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cdxj"
    path.write_bytes(content)
    line = asked("info", str(path))
    assert said in line
    assert str(path) in line


@pytest.mark.parametrize(
    "changes",
    [
        *({"offset": value} for value in ("-1", "x", "", None, 1.5, True, "9" * 5000, [])),
        *({"length": value} for value in ("0", "-5", "", None, {}, "1e3")),
        *({"status": value} for value in ("abc", "99", "70000")),
        *({"url": value} for value in ("", None, 5)),
        *({"filename": value} for value in ("", None, ["x"])),
    ],
)
def test_what_no_capture_says_is_one_line(
    changes: dict[str, Any], tiny: TinyWeb, tmp_path: Path
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    change(index, **changes)
    assert "a line that is no CDXJ near byte 0" in asked("info", str(index))


def test_lines_out_of_order_are_one_line(tiny: TinyWeb, tmp_path: Path) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    index.write_bytes(b"".join(reversed(index.read_bytes().splitlines(keepends=True))))
    assert "LC_ALL=C sort" in asked("info", str(index))


def test_blocks_out_of_order_are_one_line(
    tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[6:] + lines[:6]))
    monkeypatch.setattr(cdxj, "_BLOCK", len(b"".join(lines[6:])))
    assert "LC_ALL=C sort" in asked("info", str(index))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"url_surtkey": None}, "it has no url_surtkey"),
        ({"warc_record_offset": None}, "it has no warc_record_offset"),
        ({"warc_record_length": [-5]}, "a row that is no capture (a number is none)"),
        ({"fetch_time": [None]}, "a row that is no capture (no time or no key)"),
        ({"fetch_time": [7]}, "a row that is no capture (no time or no key)"),
        ({"url": [b"x"]}, "a row that is no capture (a text is none)"),
        ({"url_surtkey": [5]}, "does not say between which keys"),
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
    monkeypatch.setattr(columnar, "_MOST_ROWS", 5)
    assert "has row groups of 13 rows" in asked("info", str(index))


@pytest.mark.parametrize(
    ("web", "said"),
    [
        ("{0}/none.cdxj", "cannot read"),
        ("{0}/none.parquet", "cannot read"),
        ("{0}", "is a folder"),
        ("{0}/a.cdx", "a sorted .cdxj, unpacked, or .parquet"),
        ("{0}/a.cdxj.gz", "a sorted .cdxj, unpacked, or .parquet"),
        ("s3://bucket/a.index", "no recorded web at"),
        ("nosuch://bucket/a.cdxj", "is on no file system"),
        ("s3://key:hush@bucket/a.cdxj", "it holds no password"),
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
    assert "an index ends in" in asked("index", str(warc), "--out", str(tmp_path / "a.txt"))
    assert "is not below" in asked("index", str(warc), "--out", out)
    for name in INDICES:
        assert "b.warc is not a WARC" in asked("index", *files, "--out", str(tmp_path / name))
    assert "cannot read" in asked("index", "no.warc", "--out", "a.cdxj")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "cache")
    assert left == ["a.warc.gz", "b.warc"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"offset": 3}, "no record of it at byte 3"),
        ({"offset": 10**14}, "at byte 100,000,000,000,000"),
        ({"length": 20}, "no record of it"),
        ({"filename": "none.warc.gz"}, "none.warc.gz is not there"),
        ({"filename": "warcs"}, "warcs"),
        ({"url": "https://b.example/"}, "no record of it"),
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
    answer = web.fetch("https://b.example/")
    assert answer is not None
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
    answer = web.fetch("https://b.example/")
    assert answer is not None
    assert "leads out of" in answer.failure


def test_of_a_record_no_more_is_read_than_may_count(
    tiny: TinyWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    change(index, length=10**14)
    web = ArchiveWeb(str(index))
    whole, sizes = archive_web.ArchiveWeb._opened, []

    class Counting:
        def __init__(self, file: Any) -> None:
            self.file = file

        def read_at(self, size: int, offset: int) -> bytes:
            sizes.append(size)
            data: bytes = self.file.read_at(size, offset)
            return data

    def counting(self: ArchiveWeb, name: str) -> Counting:
        return Counting(whole(self, name))

    monkeypatch.setattr(archive_web.ArchiveWeb, "_opened", counting)
    answer = web.fetch("https://b.example/")
    assert answer is not None
    assert (answer.body, answer.failure) == (b"b", "")  # it ends where its gzip member does
    assert sizes == [SEEN]


def test_of_a_plain_record_all_has_to_be_there(tmp_path: Path) -> None:
    body = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 500
    record = (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
        b"WARC-Date: yesterday\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body + b"\r\n\r\n"
    )
    (tmp_path / "a.warc").write_bytes(record)
    write_index([tmp_path / "a.warc"], tmp_path / "a.cdxj", tmp_path)
    answer = open_web(str(tmp_path / "a.cdxj")).fetch("http://a.example/")
    assert answer is not None
    assert len(answer.body) == 500
    change(tmp_path / "a.cdxj", length=len(record) - 100)
    cut = open_web(str(tmp_path / "a.cdxj")).fetch("http://a.example/")
    assert cut is not None
    assert "not all of it" in cut.failure


def test_pages_whose_file_is_missing_fail_and_the_crawl_goes_on(
    demo: Path, tmp_path: Path
) -> None:
    index = tmp_path / "web.cdxj"
    shutil.copy2(demo / "web.warc.gz", tmp_path)
    lines = lines_of(demo / "web.cdxj")
    index.write_text(
        "".join(
            f"{line['key']} {line['at']} "
            + json.dumps(line | ({"filename": "none.warc.gz"} if at % 3 == 1 else {}))
            + "\n"
            for at, line in enumerate(lines)
        )
    )
    plan = CrawlPlan(
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
    expected = f"not in the archive: {tmp_path}/none.warc.gz is not there"
    assert set(failed["error"]) == {expected}
    assert "is not there" in asked("get", str(index), failed["url"].iloc[0])


def test_it_is_said_early_where_files_are_not(
    tiny: TinyWeb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = archive(tiny, tmp_path, "web.cdxj")
    open_web(f"{index},{tmp_path / 'warcs'}")
    assert "warcs/warcs/pages.warc.gz is not there" in caplog.text
