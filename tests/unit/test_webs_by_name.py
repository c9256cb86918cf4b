"""Opening a recorded web: its index in the cache, and what is refused."""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, WarcRecorder, open_web
from focuscrawl.webs.opening import open_web_from_file, open_webs


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(path: Path, pages: int, method: str = "GET") -> Path:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    with WarcRecorder(path) as recorder:
        for i in range(pages):
            url = f"http://a.example/{i}"
            recorder.record(url=url, at=at, request_method=method, body_raw=b"page")
    return path


def test_the_index_is_kept_in_the_cache_and_survives_harm(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 1)
    web = RecordedWeb(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "web.warc.gz"]
    (kept,) = (cache / "webs").iterdir()
    copy = shutil.copy2(path, tmp_path / "copy.warc.gz")
    assert RecordedWeb(copy).fingerprint == web.fingerprint
    assert list((cache / "webs").iterdir()) == [kept]
    for name in ("record.npy", "row.npy", "url_text.npy", "facts.json"):
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


def test_recordings_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(b"a,b,c\n" * 100_000))
    with pytest.raises(UserError, match="no complete WARC record"):
        open_web(str(path))
    plain = gzip.decompress(write(tmp_path / "web.warc.gz", 3).read_bytes())
    path.write_bytes(gzip.compress(plain))
    with pytest.raises(UserError, match="warcio recompress"):
        open_web(str(path))
    with pytest.raises(UserError, match="contains no page"):
        RecordedWeb(write(tmp_path / "posted.warc.gz", 2, method="POST"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.warc", r"nowhere\.warc"),
        ("{0}", "folder"),
        ("{0}/web.warc.xz", "decompress"),
        *((f"demo:{scale}", "demo:") for scale in ("", "no", "0", "-1", "inf", "nan")),
    ],
)
def test_names_that_lead_nowhere(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "web.warc.xz").touch()
    with pytest.raises(UserError, match=said):
        open_web(name.format(tmp_path))


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("s3://b/x.cdxj?endpoint_override=127.0.0.1:9&scheme=http", "on another machine"),
        ("s3://key:secret@b/x.parquet", r"s3://\.\.\., which is on another machine"),
        ("index.cdxj,s3://b/warcs?endpoint_override=127.0.0.1:9", "on another machine"),
        ("hdfs://127.0.0.1:9/x.cdxj@3", "on another machine"),
        ("file:///x.cdxj", "on another machine"),
        ("/proc/kmsg", "a system file"),
        ("/dev/../dev/zero", "a system file"),
        ("/sys/x.cdxj,/tmp", "a system file"),
        ("demo:1e300", "with --web"),
        ("demo:99999@2", "with --web"),
        ("linked.warc.gz", "is a link to"),
        ("linked.warc.gz@7,1", "is a link to"),
        ("waiting.warc.gz", "is not a regular file"),
        ("\0", "which is not a valid name"),
        ("x" * 5_000, "File name too long"),
        ("~nobody/x.warc", "no recorded web"),
        ("demo" + "@1" * 5_000, "which is not a valid name"),
    ],
)
def test_what_a_file_names_is_a_plain_file_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked.warc.gz").symlink_to(write(tmp_path / "web.warc.gz", 1))
    os.mkfifo(tmp_path / "waiting.warc.gz")
    with pytest.raises(UserError, match=said) as refused:
        open_web_from_file(name, "topic.toml")
    assert "secret" not in str(refused.value)


def test_a_file_may_name_recordings_and_the_synthetic_web(tmp_path: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 1)
    for name in (str(path), f"{path}@2", "demo", "demo:0.5@2,1"):
        assert open_web_from_file(name, "topic.toml").fingerprint == open_web(name).fingerprint


def test_what_the_user_names_may_be_a_link_and_no_pipe(tmp_path: Path) -> None:
    link, pipe = tmp_path / "linked.warc.gz", tmp_path / "waiting.warc.gz"
    link.symlink_to(write(tmp_path / "web.warc.gz", 1))
    assert len(RecordedWeb(link)) == 1
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="is not a regular file"):
        open_web(str(pipe))


def test_a_copy_of_a_recording_in_another_process_is_as_plain(tmp_path: Path) -> None:
    path = write(tmp_path / "web.warc.gz", 1)
    copy = pickle.dumps(open_web_from_file(str(path), "topic.toml"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link to"):
        pickle.loads(copy)


def test_a_web_that_the_user_names_too_is_in_their_words(tmp_path: Path) -> None:
    link = tmp_path / "linked.warc.gz"
    link.symlink_to(write(tmp_path / "web.warc.gz", 1))
    assert len(open_webs(str(link), "topic.toml", [str(link), None])) == 1
    with pytest.raises(UserError, match="is a link to"):
        open_webs(str(link), "topic.toml", ["demo"])
