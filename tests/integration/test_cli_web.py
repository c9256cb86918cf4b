"""``focuscrawl web`` as a user runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from focuscrawl.webs import WarcRecorder

from .typed import focuscrawl, mistaken

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


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


def test_info_describes_a_whole_and_a_cut_file(warc: Path) -> None:
    done = focuscrawl("web", "info", warc)
    assert done.stderr == ""
    for said in (
        "small: 3 pages on 2 hosts",
        "statuses 200: 2, 301: 1",
        "file complete, 7 records",
        "2 a.example",
    ):
        assert said in done.stdout
    warc.write_bytes(warc.read_bytes()[:-30])
    done = focuscrawl("web", "info", warc)
    assert "truncated at byte" in done.stdout
    assert "6 complete records" in done.stdout
    assert focuscrawl("web", "info", "demo").stdout.startswith("demo: ")


def test_urls_and_answers_are_printed_as_they_were_recorded(warc: Path) -> None:
    assert focuscrawl("web", "urls", warc).stdout.split() == list(PAGES)
    body = focuscrawl("web", "get", warc, "HTTPS://A.example#x").stdout_bytes
    assert body == b"<p>caf\xe9"  # byte for byte
    head = focuscrawl("web", "get", "--head", warc, "http://a.example/old").stdout
    assert head.splitlines() == ["301 http://a.example/old", "Location: /"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["info", "nowhere.warc"], "nowhere.warc"),
        (["get", "{warc}", "http://c.example/"], "http://c.example/"),
        (["get", "{warc}", "mailto:a@b.example"], "mailto:a@b.example"),
    ],
)
def test_errors_are_one_line(warc: Path, arguments: list[str], named: str) -> None:
    assert named in mistaken("web", *[each.format(warc=warc) for each in arguments])
