"""What the recorder writes is read by us and by warcio, also after a kill."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from focuscrawl.crawl.page_source import open_page_webs
from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, WarcRecorder
from focuscrawl.webs.warc_reading import WarcScan
from focuscrawl.webs.warc_recorder import WarcSeries

from .archives import fetched

pytestmark = pytest.mark.usefixtures("own_cache")

AT = datetime(2024, 2, 3, 4, 5, 6, 789, tzinfo=timezone(timedelta(hours=1)))
HOST = "http://a.example/"


def noise(i: int, size: int = 600) -> bytes:
    return Random(i).randbytes(size)  # does not compress


def test_an_exchange_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "crawl.warc.gz"
    before = datetime.now(UTC)
    with WarcRecorder(path) as recorder:
        recorder.record(
            url="https://a.example/caf%C3%A9?x=1#part",
            at=AT,
            request_headers=[("Accept", "text/html")],
            status=302,
            reason="Moved\r\nX-Evil: 1",
            response_headers=[
                ("Location", "/caf\xc3\xa9"),
                ("Content-Encoding", "gzip"),
                ("Transfer-Encoding", "chunked"),
            ],
            body_raw=gzip.compress(b"moved"),
            ip="192.0.2.1",
        )
    web = RecordedWeb(path)
    answer = fetched(web, "https://a.example/caf%C3%A9?x=1")
    assert (answer.status, answer.body) == (302, b"moved")
    assert answer.headers == [("Location", "/caf\xc3\xa9")]
    with path.open("rb") as file:
        info, response, request = [
            (r.rec_type, dict(r.rec_headers.headers), r.http_headers, r.content_stream().read())
            for r in ArchiveIterator(file)
        ]
    assert [info[0], response[0], request[0]] == ["warcinfo", "response", "request"]
    assert info[1]["WARC-Filename"] == "crawl.warc.gz"
    assert before <= datetime.fromisoformat(info[1]["WARC-Date"]) <= datetime.now(UTC)
    assert request[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]
    for fields in (response[1], request[1]):
        assert fields["WARC-Date"] == "2024-02-03T03:05:06.000789Z"
        assert fields["WARC-IP-Address"] == "192.0.2.1"
        assert fields["WARC-Target-URI"] == "https://a.example/caf%C3%A9?x=1"
    assert request[2].statusline == "/caf%C3%A9?x=1 HTTP/1.1"
    assert request[2].headers == [("Host", "a.example"), ("Accept", "text/html")]
    assert response[2].get_header("X-Evil") is None


@pytest.mark.parametrize("reason", ["length", "time", "disconnect", "unspecified", ""])
def test_the_reason_of_an_incomplete_body_comes_back(reason: str, tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        recorder.record(url=HOST, at=AT, body_raw=b"half a pa", truncated=reason)
    assert fetched(RecordedWeb(path), HOST).truncated == reason
    with path.open("rb") as file:
        found = [
            (r.rec_type, r.rec_headers.get_header("WARC-Truncated")) for r in ArchiveIterator(file)
        ]
    assert found == [("warcinfo", None), ("response", reason or None), ("request", None)]


def test_digests_hold_for_warcio(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        for i in range(5):
            recorder.record(url=f"{HOST}{i}", at=AT, body_raw=b"page" * i)
    checker = Checker(SimpleNamespace(verbose=False, inputs=[str(path)]))
    checker.process_all()
    assert checker.exit_value == 0


def test_other_methods_are_recorded_and_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        for method, body in [("HEAD", b""), ("GET", b"page"), ("POST", b"answer")]:
            asked = b"form" if method == "POST" else b""
            recorder.record(
                url=HOST, at=AT, request_method=method, request_body=asked, body_raw=body
            )
    web = RecordedWeb(path)
    assert web.records == 7
    answer = fetched(web, HOST)
    assert answer.body == b"page"


def test_continued_after_a_cut_at_every_byte(tmp_path: Path) -> None:
    first = tmp_path / "first.warc.gz"
    sizes = []
    with WarcRecorder(first) as recorder:
        start = first.stat().st_size
        for i in range(2):
            recorder.record(url=f"{HOST}{i}", at=AT, body_raw=b"page")
            sizes.append(first.stat().st_size)
    data = first.read_bytes()
    path = tmp_path / "cut.warc.gz"
    for cut in range(start, len(data) + 1):
        path.write_bytes(data[:cut])
        with WarcRecorder(path) as recorder:
            recorder.record(url=f"{HOST}new", at=AT)
        with path.open("rb") as file:
            scan = WarcScan(path, file)
            urls = [record.target for record in scan if record.type == "response"]
        assert (scan.truncated_at, scan.damaged) == (None, 0)
        whole = sum(size <= cut for size in sizes)
        assert urls[:whole] == [f"{HOST}{i}" for i in range(whole)]
        assert urls[-1] == f"{HOST}new"
        assert len(urls) <= whole + 2


_RECORD = """
import itertools, random, resource, signal, sys
from datetime import datetime, UTC
from focuscrawl.errors import UserError
from focuscrawl.webs import WarcRecorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
recorder = WarcRecorder(sys.argv[1])
try:
    for i in itertools.count():
        body = random.randbytes(300_000)
        recorder.record(url=f"http://a.example/{i}", at=datetime.now(UTC), body_raw=body)
        print(i, flush=True)
except UserError as error:
    print(error)
"""


def test_killed_while_it_writes_nothing_recorded_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    done = 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", _RECORD, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 7:
                process.kill()
            done = max(done, int(line))
        process.wait()
        process.stdout.close()
    with WarcRecorder(path) as recorder:
        recorder.record(url="http://b.example/", at=AT)
    web = RecordedWeb(path)
    assert (web.truncated_at, web.damaged) == (None, 0)
    assert set(web.urls()) >= {f"{HOST}{i}" for i in range(done + 1)}
    assert web.fetch("http://b.example/") is not None


def test_a_write_that_fails_leaves_whole_records(tmp_path: Path) -> None:
    """The kernel's file size limit stands in for a full disk."""
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        recorder.record(url=HOST, at=AT)
    size = path.stat().st_size
    command = [sys.executable, "-c", _RECORD, str(path), str(size + 5000)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cannot write {path}: ")
    assert path.stat().st_size == size


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path), pytest.raises(UserError, match="another process"):
        WarcRecorder(path)
    WarcRecorder(path).close()


@pytest.mark.parametrize(
    "content",
    [b"notes", gzip.compress(b"a,b\n", mtime=0), gzip.compress(b"a", mtime=0)[:9]],
    ids=["text", "gzip", "cut gzip"],  # the same in all processes that collect tests
)
def test_other_files_are_never_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.warc.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"other\.warc\.gz"):
        WarcRecorder(path)
    assert path.read_bytes() == content


def test_names_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"end the name in \.warc\.gz"):
        WarcRecorder(tmp_path / "crawl.warc")
    (tmp_path / "folder.warc.gz").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        WarcRecorder(tmp_path / "folder.warc.gz")


def test_the_files_of_a_series_put_together_are_one_recording(tmp_path: Path) -> None:
    folder, full = tmp_path / "crawl", 5000
    for first in (0, 20):
        series = WarcSeries(folder / "pages.warc.gz", full)
        for i in range(first, first + 20):
            series.record(url=f"{HOST}{i}", at=AT, body_raw=noise(i))
        series.close()
        if not first:  # it is killed, and resumed
            last = max(folder.iterdir())
            last.write_bytes(last.read_bytes() + b"\x1f\x8b\x08 half of a record")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"pages-{n:05}.warc.gz" for n in range(1, len(names) + 1)]
    sizes = [(folder / name).stat().st_size for name in names]
    assert len(names) > 4
    assert all(full <= size < full + 2000 for size in sizes[:-1])
    path = tmp_path / "all.warc.gz"
    path.write_bytes(b"".join((folder / name).read_bytes() for name in names))
    web = RecordedWeb(path)
    for i in range(40):
        answer = fetched(web, f"{HOST}{i}")
        assert answer.body == noise(i)


def test_pages_of_a_crawl_are_looked_for_in_all_files_of_a_series(tmp_path: Path) -> None:
    series = WarcSeries(tmp_path / "pages.warc.gz", 600)
    for i in range(3):
        series.record(url=f"{HOST}{i}", at=AT, body_raw=noise(i))
    with pytest.raises(UserError, match=r"is writing .*pages-00003.warc.gz"):
        WarcSeries(tmp_path / "pages.warc.gz", 600)
    series.close()
    webs = open_page_webs({"web": "live"}, tmp_path)
    assert len(webs) == 3
    urls = [f"{HOST}{i}" for i in range(3)]
    assert [web.resolve(urls).count(None) for web in webs] == [2, 2, 2]
