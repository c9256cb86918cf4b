"""Indexes in compressed blocks (ZipNum), as that of Common Crawl: look-ups and damage."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.webs import cdxj_index, open_web
from focuscrawl.webs.captures import Capture, format_cdxj_line
from focuscrawl.webs.cdxj_index import BlockIndex

from .archives import archive, write_blocks

if TYPE_CHECKING:
    from focuscrawl.testing import TinyWeb

pytestmark = pytest.mark.usefixtures("own_cache")


def capture(n: int, at: int) -> Capture:
    url = f"http://a.example/{n}"
    return Capture(
        f"example,a)/{n}", "20260101000000", url, "text/html", 200, "", "a.warc.gz", at, 9, ""
    )


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=60),
    st.integers(1, 7),
    st.integers(1, 3),
    st.integers(600, 900),
)
def test_every_capture_is_found_wherever_blocks_end(
    numbers: list[int], per_block: int, per_file: int, read: int
) -> None:
    kept = [capture(n, at) for at, n in enumerate(numbers)]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdxj_index, "_BLOCK", read)
        lines = sorted(map(format_cdxj_line, kept))
        path = write_blocks(lines, Path(name), per_block=per_block, per_file=per_file)
        index = BlockIndex(fs.LocalFileSystem(), str(path), "cluster.idx")
        keys = sorted({each.key for each in kept})
        assert sorted(index.find([*keys, "a", "zz", f"{keys[0]}!"])) == sorted(kept)
        for key in keys:
            assert sorted(index.find([key])) == sorted(each for each in kept if each.key == key)
        assert sorted(index) == sorted(kept)


@pytest.fixture
def index(tiny: TinyWeb, tmp_path: Path) -> Path:
    """Return the index of a web in blocks of two lines, two blocks in a file."""
    lines = archive(tiny, tmp_path, "web.cdxj").read_bytes().splitlines(keepends=True)
    return write_blocks(lines, tmp_path, per_block=2, per_file=2)


def test_it_is_the_web_that_was_indexed(index: Path) -> None:
    web, expected = open_web(str(index)), open_web(str(index.with_name("web.cdxj")))
    urls = [*expected.urls()]
    assert len(urls) > 4
    assert [*web.urls()] == urls
    assert web.resolve([*urls, "http://none.example/"]) == [*urls, None]
    assert [*map(web.fetch, urls)] == [*map(expected.fetch, urls)]
    assert web.name == "cluster"


def replacing(text: str, by: str) -> Callable[[Path], None]:
    def change(index: Path) -> None:
        index.write_text(re.sub(text, by, index.read_text(), count=1))

    return change


def truncate(index: Path) -> None:
    index.with_name("cdx-00000.gz").write_bytes(index.with_name("cdx-00000.gz").read_bytes()[:-9])


def put_a_bomb(index: Path) -> None:
    packed = gzip.compress(bytes(64 << 20))
    index.with_name("cdx-00000.gz").write_bytes(packed)
    first = index.read_text().split("\t")[0]
    index.write_text(f"{first}\tcdx-00000.gz\t0\t{len(packed)}\t1\n")


def of_another(index: Path) -> None:
    index.with_name("cdx-00000.gz").write_bytes(gzip.compress(b"org,other)/ 20200101000000 {}\n"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (truncate, "is not the index of cdx-00000.gz, or a file is truncated"),
        (of_another, "is not the index of cdx-00000.gz"),
        (put_a_bomb, "is not the index of cdx-00000.gz"),
        (replacing(r"\t0\t\d+", "\t0\t99999999999"), "is not the index of cdx-00000.gz"),
        (replacing(r"\t0\t", "\t-1\t"), "is not the index of cdx-00000.gz"),
        (replacing(r"cdx-00000\.gz", "../cdx-00000.gz"), "outside its folder"),
        (replacing(r"cdx-00000\.gz", "cdx-9.gz"), "cannot read cdx-9.gz"),
        (lambda index: index.write_text("a b\n"), "is no index of compressed blocks"),
        (lambda index: index.write_text(""), "is empty"),
        (lambda index: index.with_name("cdx-00000.gz").unlink(), "cannot read cdx-00000.gz"),
    ],
)
def test_a_damaged_or_wrong_index_is_one_line(
    change: Callable[[Path], object], said: str, index: Path
) -> None:
    change(index)
    with pytest.raises(UserError, match=re.escape(said)) as error:
        [*open_web(str(index)).urls()]
    assert "\n" not in str(error.value)
