"""What the recorder writes is read by us and by warcio, also after a kill."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, WarcRecorder
from focuscrawl.webs.warc_reading import Scan

if TYPE_CHECKING:
    from pathlib import Path

AT = datetime(2024, 2, 3, 4, 5, 6, 789, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


def write(recorder: WarcRecorder, url: str, body: bytes = b"page", status: int = 200) -> None:
    recorder.record(
        request_method="GET",
        url=url,
        request_headers=[("User-Agent", "test")],
        request_body=b"",
        status=status,
        reason="OK",
        response_headers=[("Content-Type", "text/html")],
        body_raw=body,
        ip=None,
        at=AT,
    )


def test_an_exchange_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        recorder.record(
            request_method="GET",
            url="https://a.example/caf%C3%A9?x=1#part",
            request_headers=[("Accept", "text/html")],
            request_body=b"",
            status=302,
            reason="Moved\r\nX-Evil: 1",
            response_headers=[
                ("Location", "/caf\xc3\xa9"),
                ("Content-Encoding", "gzip"),
                ("Transfer-Encoding", "chunked"),
            ],
            body_raw=gzip.compress(b"moved"),
            ip="192.0.2.1",
            at=AT,
        )
    web = RecordedWeb(path)
    answer = web.fetch("https://a.example/caf%C3%A9?x=1")
    assert answer is not None
    assert (answer.status, answer.body) == (302, b"moved")
    assert answer.headers == [("Location", "/caf\xc3\xa9")]
    with path.open("rb") as file:
        info, response, request = [
            (r.rec_type, dict(r.rec_headers.headers), r.http_headers, r.content_stream().read())
            for r in ArchiveIterator(file)
        ]
    assert [info[0], response[0], request[0]] == ["warcinfo", "response", "request"]
    assert info[1]["WARC-Filename"] == "crawl.warc.gz"
    assert request[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]
    for fields in (response[1], request[1]):
        assert fields["WARC-Date"] == "2024-02-03T03:05:06.000789Z"
        assert fields["WARC-IP-Address"] == "192.0.2.1"
        assert fields["WARC-Target-URI"] == "https://a.example/caf%C3%A9?x=1"
    assert request[2].statusline == "/caf%C3%A9?x=1 HTTP/1.1"
    assert request[2].headers == [("Host", "a.example"), ("Accept", "text/html")]
    assert response[2].get_header("X-Evil") is None


class _Arguments:
    verbose = False

    def __init__(self, path: Path) -> None:
        self.inputs = [str(path)]


def test_digests_hold_for_warcio(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        for i in range(5):
            write(recorder, f"http://a.example/{i}", b"page" * i)
    checker = Checker(_Arguments(path))
    checker.process_all()
    assert checker.exit_value == 0


def test_other_methods_are_recorded_and_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        for method, body in [("HEAD", b""), ("GET", b"page"), ("POST", b"answer")]:
            recorder.record(
                request_method=method,
                url="http://a.example/",
                request_headers=[],
                request_body=b"form" if method == "POST" else b"",
                status=200,
                reason="OK",
                response_headers=[],
                body_raw=body,
                ip=None,
                at=AT,
            )
    web = RecordedWeb(path)
    assert web.records == 7
    answer = web.fetch("http://a.example/")
    assert answer is not None
    assert answer.body == b"page"


def test_continued_after_a_cut_at_every_byte(tmp_path: Path) -> None:
    first = tmp_path / "first.warc.gz"
    sizes = []
    with WarcRecorder(first) as recorder:
        begun = first.stat().st_size
        for i in range(2):
            write(recorder, f"http://a.example/{i}")
            sizes.append(first.stat().st_size)
    data = first.read_bytes()
    path = tmp_path / "cut.warc.gz"
    for cut in range(begun, len(data) + 1):
        path.write_bytes(data[:cut])
        with WarcRecorder(path) as recorder:
            write(recorder, "http://a.example/new")
        with path.open("rb") as file:
            scan = Scan(path, file)
            urls = [record.target for record in scan if record.type == "response"]
        assert (scan.truncated_at, scan.damaged) == (None, 0)
        whole = sum(size <= cut for size in sizes)
        assert urls[:whole] == [f"http://a.example/{i}" for i in range(whole)]
        assert urls[-1] == "http://a.example/new"
        assert len(urls) <= whole + 2


def test_killed_while_it_writes_nothing_recorded_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    code = (
        "import itertools, random, sys\n"
        "from datetime import datetime, UTC\n"
        "from focuscrawl.webs import WarcRecorder\n"
        "recorder = WarcRecorder(sys.argv[1])\n"
        "for i in itertools.count():\n"
        "    recorder.record(request_method='GET', url=f'http://a.example/{i}',"
        " request_headers=[], request_body=b'', status=200, reason='OK', response_headers=[],"
        " body_raw=random.randbytes(300_000), ip=None, at=datetime.now(UTC))\n"
        "    print(i, flush=True)\n"
    )
    done = 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 7:
                process.kill()
            done = max(done, int(line))
        process.wait()
        process.stdout.close()
    with WarcRecorder(path) as recorder:
        write(recorder, "http://b.example/")
    web = RecordedWeb(path)
    assert (web.truncated_at, web.damaged) == (None, 0)
    assert set(web.urls()) >= {f"http://a.example/{i}" for i in range(done + 1)}
    assert web.fetch("http://b.example/") is not None


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
    with pytest.raises(UserError, match=r"\*\.warc\.gz"):
        WarcRecorder(tmp_path / "crawl.warc")
    (tmp_path / "folder.warc.gz").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        WarcRecorder(tmp_path / "folder.warc.gz")


def test_a_write_that_fails_leaves_whole_records(tmp_path: Path) -> None:
    """The kernel's file size limit stands in for a full disk."""
    path = tmp_path / "crawl.warc.gz"
    with WarcRecorder(path) as recorder:
        write(recorder, "http://a.example/1")
    size = path.stat().st_size
    code = (
        "import random, resource, signal, sys\n"
        "from datetime import datetime, UTC\n"
        "from focuscrawl.errors import UserError\n"
        "from focuscrawl.webs import WarcRecorder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 5000}, {size + 5000}))\n"
        "recorder = WarcRecorder(sys.argv[1])\n"
        "try:\n"
        "    recorder.record(request_method='GET', url='http://a.example/2',"
        " request_headers=[], request_body=b'', status=200, reason='OK', response_headers=[],"
        " body_raw=random.randbytes(300_000), ip=None, at=datetime.now(UTC))\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cannot write {path}: ")
    assert path.stat().st_size == size


def test_dates_are_universal(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    before = datetime.now(UTC)
    WarcRecorder(path).close()
    with path.open("rb") as file:
        date = next(iter(ArchiveIterator(file))).rec_headers.get_header("WARC-Date")
    assert before <= datetime.fromisoformat(date) <= datetime.now(UTC)
