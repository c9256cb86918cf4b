"""Indices of archives: which capture of a URL counts, how little is read of many."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.webs import capture_index, captures, cdxj_index, open_web
from focuscrawl.webs.capture_index import write_index
from focuscrawl.webs.captures import select_captures

from .archives import archive, capture

if TYPE_CHECKING:
    from focuscrawl.testing import TinyWeb
    from focuscrawl.webs.captures import Capture

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
fs = pytest.importorskip("pyarrow.fs")

from focuscrawl.webs import columnar  # noqa: E402 - it needs PyArrow
from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(
    ("known", "best"),
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
def test_which_capture_of_a_url_counts(known: list[Capture], best: int | None) -> None:
    found = select_captures(iter(known), frozenset({"a.example/"}))
    expected = {} if best is None else {"a.example/": known[best]}
    assert found == expected


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=200), st.integers(60, 400))
def test_every_line_is_found_wherever_blocks_end(numbers: list[int], block: int) -> None:

    kept = [
        capture(f"http://a.example/{n}", offset=at)._replace(
            key=f"example,a)/{n}" + "y" * (n % 50)
        )
        for at, n in enumerate(numbers)
    ]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(cdxj_index, "_BLOCK", block + 350)
        patch.setattr(cdxj_index, "MAX_LINE_BYTES", block + 300)
        patch.setattr(cdxj_index, "_TAIL", block // 8)
        path = Path(folder) / "a.cdxj"
        path.write_bytes(
            b"!OpenWayback-CDXJ 1.0\n" + b"".join(sorted(map(captures.format_cdxj_line, kept)))
        )

        index = cdxj_index.CdxjIndex(fs.LocalFileSystem(), str(path), "a.cdxj")
        keys = sorted({each.key for each in kept})
        assert sorted(index.find([*keys, "a", "zz", f"{keys[0]}!"])) == sorted(kept)
        for key in keys:
            found = sorted(index.find([key]))
            assert found == sorted(each for each in kept if each.key == key)
        assert sorted(index) == sorted(kept)


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
    whole = columnar.ColumnarIndex._batches

    def counting(index: columnar.ColumnarIndex, group: columnar._RowGroup) -> Any:
        read.append(group.number)
        return whole(index, group)

    monkeypatch.setattr(columnar.ColumnarIndex, "_batches", counting)
    monkeypatch.setattr(columnar, "_CACHED_ROWS", 150)
    web = ArchiveWeb(str(tmp_path / "web.parquet"))
    (url,) = table["url"].to_pylist()[77:78]
    read.clear()
    assert web.resolve([url]) == [url]
    assert read == [1]
    assert web.resolve(sorted(table["url"].to_pylist())) == sorted(table["url"].to_pylist())
    assert isinstance(web._index, columnar.ColumnarIndex)
    assert len(web._index._cached) <= 3


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
    with pytest.raises(UserError, match="is not sorted"):
        [*web.urls()]
