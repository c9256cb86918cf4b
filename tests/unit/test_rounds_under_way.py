"""What live fetches of a round have so far, where the tables are on another file system."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.rounds.live_rounds import UnderWay
from focuscrawl.rounds.tables import Tables
from focuscrawl.webs import WarcRecorder, open_web

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def fetch(under_way: UnderWay, number: int) -> None:
    """Record a page as a crawl does: in its WARC file, then in its store."""
    with WarcRecorder(under_way.folder / "pages.warc.gz") as recorder:
        recorder.record(
            request_method="GET",
            url=f"http://a.example/{number}",
            request_headers=[],
            request_body=b"",
            status=200,
            reason="OK",
            response_headers=[("Content-Type", "text/html")],
            body_raw=b"<p>bicycle",
            ip=None,
            at=datetime.now(UTC),
        )
    with closing(sqlite3.connect(under_way.folder / "crawl.db")) as store, store:
        store.execute("CREATE TABLE IF NOT EXISTS page (number)")
        store.execute("INSERT INTO page VALUES (?)", (number,))


def had(under_way: UnderWay) -> tuple[list[str], list[int]]:
    """Return the pages recorded, and those in the store."""
    recorded = open_web(str(under_way.folder / "pages.warc.gz")).urls()
    with closing(sqlite3.connect(under_way.folder / "crawl.db")) as store:
        stored = [number for (number,) in store.execute("SELECT number FROM page")]
    return sorted(url.rpartition("/")[2] for url in recorded), stored


def test_another_machine_goes_on_from_the_last_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tables, "local", lambda *_: None)  # as of tables on S3
    tables = Tables(str(tmp_path / "tables"))
    first = UnderWay(tables, 3, 7)
    first.copy()  # nothing yet
    for number in (1, 2):
        fetch(first, number)
        first.copy()
    recording = first.folder / "pages.warc.gz"
    whole = recording.read_bytes()
    fetch(first, 3)
    with recording.open("r+b") as file:  # it is killed while it writes the third one
        file.truncate(len(whole) + 20)
    first.copy()
    second = UnderWay(tables, 3, 7)
    assert had(second) == (["1", "2"], [1, 2, 3])
    assert (second.folder / "pages.warc.gz").read_bytes() == whole
    fetch(second, 4)
    second.copy()
    third = UnderWay(tables, 3, 7)
    assert had(third) == (["1", "2", "4"], [1, 2, 3, 4])
    for each in (first, second, third):
        each.close()
        assert not each.folder.exists()
    tables.remove("under-way")
    assert not [*(tmp_path / "tables").glob("under-way/*")]


def test_beside_the_tables_it_is_kept_until_the_round_is_over(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path))
    fetch(UnderWay(tables, 0, 1), 1)
    again = UnderWay(tables, 0, 1)
    assert again.folder == tmp_path / "under-way" / "000-00001"
    assert had(again) == (["1"], [1])
