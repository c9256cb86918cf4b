"""SQLite files of strangers: what is in them and beside them does nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.foundation import databases
from focuscrawl.foundation.databases import open_database
from focuscrawl.text.extraction import extract_text
from focuscrawl.text.text_store import FILE, TextStore

from .damaged_stores import endless, hot_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a table of one row."""
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE n (n INTEGER PRIMARY KEY)")
        database.execute("INSERT INTO n VALUES (1)")
    return path


@pytest.mark.parametrize("mode", ["ro", "rw", "rwc"])
@pytest.mark.parametrize("name", ["theirs.db", "theirs.db-journal", "theirs.db-wal"])
def test_nothing_there_is_a_link_or_a_pipe(path: Path, name: str, mode: str) -> None:
    at = path.with_name(name)
    at.unlink(missing_ok=True)
    at.symlink_to(path.with_name("outside"))
    with pytest.raises(UserError, match=f"{name} is a link to"):
        open_database(path, mode=mode)
    at.unlink()
    os.mkfifo(at)
    with pytest.raises(UserError, match=f"{name} is not a regular file"):
        open_database(path, mode=mode)


@pytest.mark.parametrize("mode", ["ro", "rw", "rwc"])
def test_no_journal_names_a_file_to_delete(path: Path, mode: str) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.with_name("theirs.db-journal").write_bytes(hot_journal(path, victim))
    with pytest.raises(UserError, match="would make SQLite delete another file"):
        open_database(path, mode=mode)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "said",
    [
        "CREATE TRIGGER evil AFTER INSERT ON n BEGIN DELETE FROM n; END",
        "CREATE VIRTUAL TABLE evil USING fts5(text)",
    ],
)
def test_nothing_in_it_is_a_program(path: Path, said: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(said)
    with pytest.raises(UserError, match=r"it has the (trigger|virtual table) 'evil'"):
        open_database(path)


def test_what_it_is_called_does_not_say_how_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory&x=%41#b.db"
    with closing(open_database(path)) as database:
        database.execute("CREATE TABLE n (n)")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        open_database(tmp_path / "none.db", mode="ro")


@pytest.mark.parametrize("asked", ["max(n + 1)", "sum(1)"])
def test_reading_what_has_no_end_is_given_up(
    path: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless(path, "n")
    monkeypatch.setattr(databases, "_MIN_STEP_LIMIT", 10_000_000)
    with closing(open_database(path, mode="ro")) as database:
        for _ in range(2):  # of two statements
            with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                database.execute(f"SELECT {asked} FROM n").fetchall()
        assert database.execute("SELECT n FROM n LIMIT 1").fetchall()


# -- texts ---------------------------------------------------------------------------------


def test_an_export_deletes_no_file(tmp_path: Path) -> None:
    TextStore(tmp_path).close()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    journal = hot_journal(tmp_path / FILE, victim)
    (tmp_path / f"{FILE}-journal").write_bytes(journal)
    with pytest.raises(UserError, match="would make SQLite delete another file"):
        TextStore(tmp_path)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "said",
    [
        """CREATE TRIGGER evil AFTER INSERT ON page BEGIN INSERT INTO text
           WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n)
           SELECT CAST(n AS BLOB), x'' FROM n; END""",
        "DROP TABLE text; CREATE VIEW text AS SELECT body AS digest, body AS content FROM page",
        "CREATE INDEX evil ON page (hex(zeroblob(100000000)))",
    ],
)
def test_a_store_of_texts_has_two_tables(tmp_path: Path, said: str) -> None:
    TextStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.executescript(said)
    with pytest.raises(UserError, match=r"it has (the trigger 'evil'|(evil|text)\))"):
        TextStore(tmp_path)


@pytest.mark.parametrize("said", ["[" * 100_000, '{"date": 7}', "null", None])
def test_a_text_of_strangers_is_one_or_a_line(tmp_path: Path, said: str | None) -> None:
    text = extract_text(
        b"<p>One two three four five six seven eight nine ten", "https://a.example/"
    )
    said = json.dumps(asdict(text) | {"title": ["a"]}) if said is None else said
    with TextStore(tmp_path) as store:
        store.put(b"1", "trafilatura", text)
    with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        database.execute("UPDATE text SET content = ?", (zlib.compress(said.encode()),))
    with TextStore(tmp_path) as store, pytest.raises(UserError, match="is damaged"):
        store.get(b"1", "trafilatura")
