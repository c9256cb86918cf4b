"""Stores of earlier schemas: opened by migrating them, or read as they are."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.store import CrawlStore, StoreWriter, VisitRecord, migrations
from focuscrawl.store.schema import SCHEMA_VERSION, metadata

#: what schema 1 did not have; every later schema adds a line
_LATER = (
    "ALTER TABLE page DROP COLUMN worker",
    "DROP TABLE answer",
    "DROP TABLE alembic_version",
    "DROP VIEW revisits",
    "DROP TABLE revisit",
)


def columns(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as database:
        names = sorted(table.name for table in metadata.sorted_tables)
        return {name: database.execute(f"PRAGMA table_info({name})").fetchall() for name in names}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as schema 1 had it, with a URL in it."""
    path = tmp_path / "crawl.db"
    store = CrawlStore.create(path, {"topic": "/A"})
    writer = StoreWriter(store.engine)
    writer.put(VisitRecord(events=[(0, "start", "once")]))
    writer.close()
    store.close()
    with closing(sqlite3.connect(path)) as database, database:
        for statement in _LATER:
            database.execute(statement)
        database.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
    return path


def test_an_old_store_becomes_like_a_new_one(old: Path, tmp_path: Path) -> None:
    CrawlStore.create(tmp_path / "new.db", {"topic": "/A"}).close()
    assert columns(old) != columns(tmp_path / "new.db")
    store = CrawlStore.open(old)
    assert store.identity() == {"topic": "/A", "schema_version": str(SCHEMA_VERSION)}
    assert [row.detail for row in store.rows(sa.text("SELECT detail FROM events"))] == ["once"]
    assert [*store.rows(sa.text("SELECT * FROM pages"))] == []
    store.close()
    assert columns(old) == columns(tmp_path / "new.db")
    CrawlStore.open(old).close()  # nothing left to do


def test_without_alembic_an_old_store_is_left_as_it_is(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = columns(old)
    monkeypatch.setitem(sys.modules, "alembic", None)  # as if it were not installed
    with pytest.raises(UserError) as refused:
        CrawlStore.open(old)
    assert str(refused.value) == (
        f"{old}, a store of schema 1, needs alembic, which is not installed: "
        "pip install 'focuscrawl[migrations]'"
    )
    assert columns(old) == before
    CrawlStore.open(old, read_only=True).close()


def test_reading_changes_nothing(old: Path) -> None:
    before = old.read_bytes()
    store = CrawlStore.open(old, read_only=True)
    assert store.identity()["schema_version"] == "1"
    assert [*store.rows(sa.text("SELECT * FROM pages"))] == []
    store.close()
    assert old.read_bytes() == before


def test_a_migration_that_fails_leaves_the_old_store(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = columns(old)
    store = CrawlStore.open(old, read_only=True)
    store.close()
    with closing(sqlite3.connect(old)) as database, database:
        # what the last step of the migration would make is there already
        database.execute("CREATE TABLE ix_revisit_url (id)")
    with pytest.raises(UserError, match="ix_revisit_url"):
        CrawlStore.open(old)
    assert columns(old) == before


def test_every_schema_has_its_script() -> None:
    scripts = Path(migrations.__file__).parent / "versions"
    names = sorted(path.stem for path in scripts.glob("*.py"))
    assert names == [migrations.revision(v) for v in range(1, SCHEMA_VERSION + 1)]
