"""``focuscrawl web`` as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs import WarcRecorder

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "http://a.example/": (200, b"<p>caf\xe9"),
    "http://a.example/old": (301, b""),
    "https://b.example/": (200, b"b"),
}


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    path = tmp_path / "small.warc.gz"
    with WarcRecorder(path) as recorder:
        for url, (status, body) in PAGES.items():
            recorder.record(
                request_method="GET",
                url=url,
                request_headers=[],
                request_body=b"",
                status=status,
                reason="OK",
                response_headers=[("Location", "/")] if status == 301 else [],
                body_raw=body,
                ip=None,
                at=datetime(2024, 1, 1, tzinfo=UTC),
            )
    return path


def run(*arguments: str | Path, cache: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from focuscrawl.cli.main import main; main()", "web", *arguments],
        capture_output=True,
        env=os.environ | {"FOCUSCRAWL_CACHE": str(cache)},
        check=False,
    )


def test_info_describes_a_whole_and_a_cut_file(warc: Path, tmp_path: Path) -> None:
    done = run("info", warc, cache=tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert done.stderr == b""
    assert "small: 3 pages on 2 hosts" in text
    assert "statuses 200: 2, 301: 1" in text
    assert "file whole, 7 records" in text
    assert "2 a.example" in text
    warc.write_bytes(warc.read_bytes()[:-30])
    done = run("info", warc, cache=tmp_path)
    assert done.returncode == 0
    assert b"cut at byte" in done.stdout
    assert b"6 whole records" in done.stdout


def test_urls_lists_in_recording_order(warc: Path, tmp_path: Path) -> None:
    assert run("urls", warc, cache=tmp_path).stdout.decode().split() == list(PAGES)


def test_get_prints_the_body_byte_for_byte_or_the_head(warc: Path, tmp_path: Path) -> None:
    assert run("get", warc, "HTTPS://A.example#x", cache=tmp_path).stdout == b"<p>caf\xe9"
    head = run("get", "--head", warc, "http://a.example/old", cache=tmp_path).stdout.decode()
    assert head.splitlines() == ["301 http://a.example/old", "Location: /"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["info", "nowhere.warc"], b"nowhere.warc"),
        (["get", "{warc}", "http://c.example/"], b"http://c.example/"),
        (["get", "{warc}", "mailto:a@b.example"], b"mailto:a@b.example"),
    ],
)
def test_errors_are_one_line(
    warc: Path, tmp_path: Path, arguments: list[str], named: bytes
) -> None:
    done = run(*[a.format(warc=warc) for a in arguments], cache=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.splitlines()
    assert line.startswith(b"focuscrawl: ")
    assert named in line


def test_the_synthetic_web_is_a_web_too(tmp_path: Path) -> None:
    done = run("info", "demo", cache=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(b"demo: ")
