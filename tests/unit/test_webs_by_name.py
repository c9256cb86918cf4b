"""Opening a recorded web: its index in the cache, and what is refused."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, WarcRecorder, open_web

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(path: Path, pages: int, method: str = "GET") -> Path:
    with WarcRecorder(path) as recorder:
        for i in range(pages):
            recorder.record(
                request_method=method,
                url=f"http://a.example/{i}",
                request_headers=[],
                request_body=b"",
                status=200,
                reason="OK",
                response_headers=[],
                body_raw=b"page",
                ip=None,
                at=datetime(2024, 1, 1, tzinfo=UTC),
            )
    return path


def test_the_index_is_kept_in_the_cache_and_survives_harm(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 1)
    web = RecordedWeb(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "web.warc.gz"]
    (kept,) = (cache / "webs").iterdir()
    copy = shutil.copy2(path, tmp_path / "copy.warc.gz")
    assert RecordedWeb(copy).fingerprint == web.fingerprint
    assert list((cache / "webs").iterdir()) == [kept]
    for name in ("row.npy", "url_text.npy", "facts.json"):
        for harm in (b"", (kept / name).read_bytes()[:-3], None):
            if harm is None:
                (kept / name).unlink()
            else:
                (kept / name).write_bytes(harm)
            assert list(RecordedWeb(copy).urls()) == ["http://a.example/0"]
    assert list((cache / "webs").iterdir()) == [kept]


def test_a_recording_that_grew_is_indexed_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 1)
    assert len(RecordedWeb(path)) == 1
    assert len(RecordedWeb(write(path, 3))) == 3


def test_two_processes_may_open_a_new_recording_at_once(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 2000)
    code = (
        "import sys; from focuscrawl.webs import open_web; "
        "w = open_web(sys.argv[1]); print(len(w), w.fetch('http://a.example/7').body)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [process.communicate() for process in running] == [("2000 b'page'\n", "")] * 3
    assert len(list((cache / "webs").iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"WAR", b"<html>", b"\x1f\x8b\x08", b"WARC/1.1\r\n"])
def test_what_is_no_warc_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.warc"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^[^\n]*bad\.warc[^\n]*$"):
        open_web(str(path))


def test_other_gzip_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(b"a,b,c\n" * 100_000))
    with pytest.raises(UserError, match="no whole WARC record"):
        open_web(str(path))
    plain = gzip.decompress(write(tmp_path / "web.warc.gz", 3).read_bytes())
    path.write_bytes(gzip.compress(plain))
    with pytest.raises(UserError, match="warcio recompress"):
        open_web(str(path))


def test_a_web_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no page"):
        RecordedWeb(write(tmp_path / "web.warc.gz", 2, method="POST"))


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.warc"):
        open_web("nowhere.warc")
    with pytest.raises(UserError, match="folder"):
        open_web(str(tmp_path))
    (tmp_path / "web.warc.xz").touch()
    with pytest.raises(UserError, match="unpack"):
        open_web(str(tmp_path / "web.warc.xz"))
    for scale in ["", "no", "0", "-1", "inf", "nan"]:
        with pytest.raises(UserError, match="demo:"):
            open_web(f"demo:{scale}")


def test_the_demo_has_a_size() -> None:
    small, ordinary = open_web("demo:0.5"), open_web("demo")
    assert 0 < len(list(small.urls())) < len(list(ordinary.urls()))


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match="FOCUSCRAWL_CACHE"):
        RecordedWeb(write(tmp_path / "web.warc.gz", 1))
