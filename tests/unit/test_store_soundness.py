"""Damaged stores, and those of strangers: one line, or a crawl that goes on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from longer import long

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.critic.critic_files import find_model
from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import Database, open_database
from focuscrawl.report.status import Status
from focuscrawl.store import CrawlStore, crawl_store, schema
from focuscrawl.store.history import History

from .damaged_stores import (
    SAID,
    hot_journal,
    with_other_bytes,
    with_other_pages,
    with_other_values,
)

FETCHES = 15
#: what `status` does not look at
UNSEEN = {"a title of 50 MB", "a title that is no UTF-8", "a time that is none"}
UNSEEN |= {"metrics nested 100,000 deep", "a model that is cut short", "a memo that is cut short"}
UNSEEN |= {"a memo of large numbers", "a memo that is too long"}


def plan(folder: Path, budget: int = FETCHES) -> CrawlConfig:
    seeds = str(find_model("demo") / "seeds.csv")
    return CrawlConfig(
        topic="/Sports/Cycling", seeds=seeds, budget=budget, web="demo", crawl_dir=str(folder)
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a crawl of fifteen fetches."""
    folder = tmp_path_factory.mktemp("whole")
    replay(open_crawl(plan(folder)))
    store = folder / "crawl.db"
    with closing(sqlite3.connect(store)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store


def said_in_a_line(command: list[str]) -> str | None:
    """Run a command; return what it could not do, None if it could."""
    result = CliRunner().invoke(main, command)
    assert result.exception is None or isinstance(result.exception, SystemExit), command
    if result.exit_code == 0:
        return None
    lines = result.output.strip().splitlines()
    assert (result.exit_code, len(lines)) == (2, 1), result.output
    return lines[0]


def resume(folder: Path) -> bool:
    """Go on with a crawl for two fetches; False if it is refused."""
    try:
        crawl = open_crawl(plan(folder, FETCHES + 2))
    except UserError:
        return False
    replay(crawl)
    return True


def refusals(stores: Iterator[tuple[str, Path]]) -> dict[str, str | None]:
    """Show damaged stores to commands; return what `status` says of each, None if nothing."""
    refused = {}
    for what, path in stores:
        folder = str(path.parent)
        refused[what] = said_in_a_line(["status", folder])
        if refused[what] is not None:
            assert folder in (refused[what] or "")
        else:
            said_in_a_line(["distill", folder])
            said_in_a_line(["why", folder, "http://velo-59.demo.example/"])
            said_in_a_line(["apprentice", "train", folder, "--out", f"{folder}/apprentice"])
        resumed = resume(path.parent)
        assert refused[what] is None or not resumed, "what cannot be read cannot be resumed"
        shutil.rmtree(path.parent)
    return refused


def test_bytes_that_are_damaged_are_said_in_a_line(whole: Path, tmp_path: Path) -> None:
    assert len(refusals(with_other_bytes(whole, tmp_path))) > 40


@pytest.mark.parametrize("seed", long(0, 1))
def test_pages_that_are_damaged_are_said_in_a_line(whole: Path, tmp_path: Path, seed: int) -> None:
    assert len(refusals(with_other_pages(whole, tmp_path, seed))) > 100


def test_a_text_where_numbers_are_looked_up_by_is_said_in_a_line(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    shutil.copy(whole, folder / "crawl.db")
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute("UPDATE link SET target = 'x' WHERE rowid = 7")
    refused = said_in_a_line(["status", str(folder)])
    assert refused is not None
    assert "link.target is x" in refused


def test_values_that_are_no_crawls_are_said_in_a_line(whole: Path, tmp_path: Path) -> None:
    refused = refusals(with_other_values(whole, tmp_path))
    assert {what for what in SAID if refused[what] is None} == UNSEEN
    assert refused["another application's"] is not None


def test_users_may_add_what_they_read_by(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE INDEX mine ON link (source, score DESC)")
        database.execute("CREATE VIEW best AS SELECT url FROM pages ORDER BY relevance DESC")
        database.execute("CREATE TABLE notes (url TEXT DEFAULT 'none' CHECK (url <> ''))")
    with closing(CrawlStore.open(path)) as store:
        assert History(store).n_fetches() == FETCHES


def test_of_a_large_store_what_is_damaged_is_said_when_it_is_read(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "crawl.db"
    content = bytearray(whole.read_bytes())
    with closing(sqlite3.connect(whole)) as database:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'memo'"
        ((root,),) = database.execute(sql).fetchall()
        ((size,),) = database.execute("PRAGMA page_size").fetchall()
    # its first cell names the leaf of the first rows, the second the leaf after that
    cell = int.from_bytes(content[(root - 1) * size + 14 : (root - 1) * size + 16], "big")
    leaf = int.from_bytes(content[(root - 1) * size + cell : (root - 1) * size + cell + 4], "big")
    content[(leaf - 1) * size : leaf * size] = bytes(size)
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        CrawlStore.open(path)
    monkeypatch.setattr(crawl_store, "FULL_CHECK_BYTES", 0)
    with closing(CrawlStore.open(path)) as store:
        assert History(store).n_fetches() == FETCHES  # the rest can be read
        with pytest.raises(UserError, match=rf"^{path} is damaged \(.*malformed\)"):
            list(History(store).fetches())
    with pytest.raises(UserError, match="is damaged"):
        open_crawl(plan(tmp_path))


#: makes a store one of more than 16 MiB
LARGE = "CREATE TABLE notes (of BLOB); INSERT INTO notes VALUES (zeroblob(17000000))"
#: of what is said in SQL, what makes a command fail that reads it
VALUES = (
    *("a relevance that is a text", "a title that is a blob"),
    *("a host of no number", "a link of no page"),
    *("a relevance that is a blob", "a status that is a text"),
    *("a time that is a number", "a time that is no time"),
    *("a duplicate of no URL", "a host that is a blob"),
    *("a host that is a text", "a state that is none", "a referrer that is none"),
    *("a score that is a text", "an event that is a blob"),
)
COMMANDS = {
    "status": [],
    "distill": [],
    "report": [],
    "why": ["http://velo-59.demo.example/"],
}


@pytest.mark.parametrize("what", [*VALUES[:4], *long(*VALUES[4:])])
def test_of_a_large_store_what_makes_a_command_fail_is_said_in_a_line(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path = tmp_path / "crawl.db"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"{SAID[what]}; {LARGE}")
    monkeypatch.setattr(crawl_store, "partly_checked", set())
    results = [
        CliRunner().invoke(main, [name, str(tmp_path), *more]) for name, more in COMMANDS.items()
    ]
    refused = [result for result in results if result.exit_code]
    assert refused
    for result in refused:
        (line,) = result.stderr.splitlines()
        assert result.exit_code == 2
        assert line.startswith(f"focuscrawl: {path} is damaged (")


def test_a_fault_of_ours_is_not_taken_for_a_damaged_store(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(whole, tmp_path / "crawl.db")
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as database:
        database.executescript(LARGE)
    monkeypatch.setattr(crawl_store, "partly_checked", set())

    def fail(*_: object) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr(Status, "text", fail)
    result = CliRunner().invoke(main, ["status", str(tmp_path)])
    assert isinstance(result.exception, TypeError)


def test_opening_a_large_store_reads_few_of_its_pages(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def opened(path: Path, **how: Any) -> Database:
        connection = open_database(path, **how)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr(crawl_store, "open_database", opened)
    for small in (crawl_store.FULL_CHECK_BYTES, 0):
        said.clear()
        monkeypatch.setattr(crawl_store, "FULL_CHECK_BYTES", small)
        CrawlStore.open(whole, read_only=True).close()
        reads_all = [each for each in said if "quick_check" in each or "NOT coalesce" in each]
        assert len(reads_all) == (1 + len(schema.layout().tables) if small else 1)
    assert [each.split("FROM ")[1].split()[0] for each in reads_all] == ["meta"]


# -- files beside it -----------------------------------------------------------------------


def test_the_forged_journal_does_what_it_is_feared_for(whole: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "crawl.db"
    shutil.copy(whole, path)
    path.with_name("crawl.db-journal").write_bytes(hot_journal(path, victim))
    with closing(sqlite3.connect(path)) as database:
        database.execute("SELECT count(*) FROM page").fetchall()
    assert not victim.exists()


def test_a_journal_of_a_crawl_is_rolled_back(whole: Path, tmp_path: Path) -> None:
    """Of one that was killed where there can be no write-ahead log."""
    path, kept = tmp_path / "crawl.db", tmp_path / "kept"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA cache_size = 1")  # what is changed goes into the file at once
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE url SET score = 0.123, url = url || '/changed'")
        kept.mkdir()
        for name in ("crawl.db", "crawl.db-journal"):
            shutil.copy(tmp_path / name, kept / name)
        database.execute("ROLLBACK")
    assert b"/changed" in (kept / "crawl.db").read_bytes()
    with closing(CrawlStore.open(kept / "crawl.db")) as store:
        assert not [url for url in History(store).urls() if url.url.endswith("/changed")]
