"""WACZ files: their records are those of the WARC files inside, and bad ones are refused."""

from __future__ import annotations

import logging
import struct
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, open_web
from focuscrawl.webs.capture_index import write_index

from .archives import INDICES, Recording, fetched, warc_record

pytestmark = pytest.mark.usefixtures("own_cache")

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"


def recorded(folder: Path, *bodies: bytes, name: str = "part.warc.gz") -> bytes:
    """Return a WARC file of pages, each with its number and one of the bodies."""
    recording = Recording(folder / name)
    for body in bodies:
        recording.add(f"http://{body.decode()}.example/", b"<p>" + body)
    recording.file.close()
    return recording.path.read_bytes()


@cache
def small_wacz() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        return packed(path / "web.wacz", recorded(path, b"a"), recorded(path, b"b")).read_bytes()


def packed(path: Path, *warcs: bytes, method: int = ZIP_STORED, ending: str = ".warc.gz") -> Path:
    with ZipFile(path, "w", method) as file:
        file.writestr("datapackage.json", "{}")
        for n, warc in enumerate(warcs):
            file.writestr(f"archive/{n}{ending}", warc)
        file.writestr("archive/readme.txt", b"no recording")
        file.writestr("indexes/index.cdx", b"a wrong index, which is not read")
    return path


def test_it_is_the_web_of_the_warc_files_in_it(tmp_path: Path) -> None:
    parts = recorded(tmp_path, b"a", b"b"), b"", recorded(tmp_path, b"c")
    whole = tmp_path / "whole.warc.gz"
    whole.write_bytes(b"".join(parts))
    web, expected = open_web(str(packed(tmp_path / "web.wacz", *parts))), RecordedWeb(whole)
    assert isinstance(web, RecordedWeb)
    assert (web.name, web.fingerprint) == ("web", expected.fingerprint)
    assert [*web.urls()] == [*expected.urls()] == [f"http://{x}.example/" for x in "abc"]
    assert [fetched(web, url).body for url in web.urls()] == [b"<p>a", b"<p>b", b"<p>c"]
    assert web.truncated_at is None
    again = RecordedWeb(tmp_path / "web.wacz")  # by the cached index
    assert fetched(again, "http://c.example/").body == b"<p>c"


def test_a_plain_warc_file_in_it_is_read(tmp_path: Path) -> None:
    wacz = packed(tmp_path / "web.wacz", warc_record("x", PAGE), ending=".warc")
    assert fetched(RecordedWeb(wacz), "http://a.example/x").body == b"<p>"


@pytest.mark.parametrize("name", INDICES)
def test_an_index_leads_to_the_records_in_it(name: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    packed(tmp_path / "web.wacz", recorded(tmp_path, b"a"), recorded(tmp_path, b"b"))
    assert write_index([tmp_path / "web.wacz"], tmp_path / name, tmp_path) == 2
    web = open_web(str(tmp_path / name))
    assert [fetched(web, url).body for url in web.urls()] == [b"<p>a", b"<p>b"]


def test_the_complete_records_of_a_truncated_warc_file_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cut, whole = recorded(tmp_path, b"a", b"b")[:-9], recorded(tmp_path, b"c")
    with caplog.at_level(logging.WARNING):
        web = RecordedWeb(packed(tmp_path / "web.wacz", cut, whole))
    assert [*web.urls()] == ["http://a.example/", "http://c.example/"]
    assert "web.wacz is truncated or damaged at byte" in caplog.text


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_wacz_file_is_one_line(kept: float, tmp_path: Path) -> None:
    data = packed(tmp_path / "whole.wacz", recorded(tmp_path, b"a")).read_bytes()
    (tmp_path / "web.wacz").write_bytes(data[: max(4, int(len(data) * kept))])
    with pytest.raises(UserError, match=r"web\.wacz is truncated or is not a WACZ file: copy"):
        open_web(str(tmp_path / "web.wacz"))


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    wacz = packed(tmp_path / "web.wacz", bytes(10 << 20), method=ZIP_DEFLATED)
    with pytest.raises(UserError, match=r"archive/0\.warc\.gz is compressed or encrypted"):
        RecordedWeb(wacz)


def test_warc_files_that_overlap_are_refused(tmp_path: Path) -> None:
    warc = recorded(tmp_path, b"a")
    data = packed(tmp_path / "web.wacz", warc, warc).read_bytes()
    heads = [at for at in range(len(data)) if data.startswith(b"PK\x01\x02", at)]
    first, second = (data[at + 42 : at + 46] for at in heads[1:3])  # offsets of the two members
    at = heads[2] + 42
    (tmp_path / "web.wacz").write_bytes(data[:at] + first + data[at + len(second) :])
    with pytest.raises(UserError, match="is not where"):
        RecordedWeb(tmp_path / "web.wacz")


def test_a_list_of_members_that_fills_the_memory_is_not_read(tmp_path: Path) -> None:
    data = packed(tmp_path / "web.wacz", recorded(tmp_path, b"a")).read_bytes()
    end = data.rindex(b"PK\x05\x06")
    tail = bytearray(bytes(9 << 20) + data[end:])
    struct.pack_into("<L", tail, (9 << 20) + 12, 9 << 20)  # size of the list
    (tmp_path / "web.wacz").write_bytes(data[:end] + tail)
    with pytest.raises(UserError, match="contains too many files"):
        RecordedWeb(tmp_path / "web.wacz")


@given(st.data())
def test_a_wacz_file_with_wrong_bytes_is_read_or_refused(data: st.DataObject) -> None:
    whole = small_wacz()
    changed = bytearray(whole[: data.draw(st.integers(len(whole) // 2, len(whole)))])
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(4, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.wacz"
        path.write_bytes(changed)
        try:
            web = RecordedWeb(path)
        except UserError:
            return
        assert all(web.fetch(url) for url in web.urls())


@pytest.mark.parametrize(
    ("warcs", "said"),
    [
        ([], "has no WARC file in the folder archive/"),
        ([b"<html>"], r"archive/0\.warc\.gz is not a WARC file"),
    ],
)
def test_a_zip_file_without_recordings_is_one_line(
    warcs: list[bytes], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        RecordedWeb(packed(tmp_path / "web.wacz", *warcs))
