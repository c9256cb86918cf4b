"""Crawl stores that nobody should have: damaged, of something else, or made to do harm."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

_HEADER = 100  # bytes
#: said in SQL, by what it is
SAID: dict[str, str] = {
    "no table link": "DROP TABLE link",
    "no table meta": "DROP TABLE meta",
    "no view pages": "DROP VIEW pages",
    "a view for a table": """
        ALTER TABLE page RENAME TO kept; CREATE VIEW page AS SELECT * FROM kept""",
    "a view without end": """
        DROP VIEW pages; CREATE VIEW pages AS
        WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n) SELECT seq FROM n""",
    "a trigger": """
        CREATE TRIGGER evil AFTER INSERT ON page BEGIN DELETE FROM url; END""",
    "a trigger on meta": """
        CREATE TRIGGER evil AFTER UPDATE ON meta BEGIN DELETE FROM page; END""",
    "a column that is computed": """
        ALTER TABLE page ADD COLUMN evil TEXT AS (hex(zeroblob(100000000))) VIRTUAL""",
    "an index that is computed": """
        CREATE INDEX evil ON page (hex(zeroblob(1 + seq * 0 + 10)))""",
    "a check": """
        ALTER TABLE host RENAME TO kept;
        CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                           CHECK (length(zeroblob(1000)) < 10 OR id < 5));
        INSERT INTO host SELECT * FROM kept WHERE id < 5""",
    "columns under other names": "ALTER TABLE page RENAME COLUMN relevance TO importance",
    "another schema": "UPDATE meta SET value = '99' WHERE key = 'schema_version'",
    "a schema that is a blob": "UPDATE meta SET value = x'00ff' WHERE key = 'schema_version'",
    "a schema of 5,000 digits": """
        UPDATE meta SET value = printf('%.5000d', 3) WHERE key = 'schema_version'""",
    "a schema in other digits": "UPDATE meta SET value = '²' WHERE key = 'schema_version'",
    "a time that is none": "UPDATE meta SET value = 'yesterday' WHERE key = 'now'",
    "a name that is a blob": "INSERT INTO meta VALUES (x'00ff', x'ff00')",
    "no version": "DELETE FROM meta WHERE key = 'schema_version'",
    "a relevance that is a text": "UPDATE page SET relevance = 'very' WHERE seq = 7",
    "a relevance that is a blob": "UPDATE page SET relevance = x'00' WHERE seq = 7",
    "a relevance that is none": "UPDATE page SET relevance = 9e999 WHERE seq = 7",
    "a relevance of 1e300": "UPDATE page SET relevance = 1e300 WHERE seq = 7",
    "a status that is a text": "UPDATE page SET status = 'fine' WHERE seq = 7",
    "a status of 19 digits": "UPDATE page SET status = 9223372036854775807 WHERE seq = 7",
    "a title that is a blob": "UPDATE page SET title = x'ff00fe' WHERE seq = 7",
    "a title that is no UTF-8": "UPDATE page SET title = CAST(x'ff00fe' AS TEXT) WHERE seq = 7",
    "a title of 50 MB": "UPDATE page SET title = hex(zeroblob(25000000)) WHERE seq = 7",
    "a time that is a number": "UPDATE page SET fetched_at = 1e300 WHERE seq = 7",
    "a time that is no time": "UPDATE page SET fetched_at = 'soon' WHERE seq = 7",
    "a digest that is a text": "UPDATE page SET digest = 'abc' WHERE seq = 7",
    "a digest of 17 bytes": "UPDATE page SET digest = zeroblob(17) WHERE seq = 7",
    "a size below 0": "UPDATE page SET size = -9223372036854775808 WHERE seq = 7",
    "a place of 19 digits": "UPDATE page SET seq = 9223372036854775807 WHERE seq = 7",
    "a page of no URL": "UPDATE page SET url = 99999999 WHERE seq = 7",
    "a duplicate of no URL": "UPDATE page SET duplicate_of = 99999999 WHERE seq = 7",
    "a URL of 19 digits": "UPDATE url SET id = 9223372036854775807 WHERE id = 9",
    "a URL far away": "UPDATE url SET id = 3000000000 WHERE id = (SELECT max(id) FROM url)",
    "a URL below 0": "UPDATE url SET id = -1 WHERE id = 9",
    "a URL that is missing": "DELETE FROM url WHERE id = 9",
    "a URL that is a blob": "UPDATE url SET url = x'ff00' WHERE id = 9",
    "a URL that is no URL": "UPDATE url SET url = 'file:///etc/passwd' WHERE id = 9",
    "a URL with a line end": "UPDATE url SET url = 'http://h/' || char(10) || 'x' WHERE id = 9",
    "a host that is missing": "DELETE FROM host WHERE id = 1",
    "a host that is a blob": "UPDATE host SET name = x'ff00' WHERE id = 1",
    "a host of no number": "UPDATE url SET host = 99999999 WHERE id = 9",
    "a host below 0": "UPDATE url SET host = -5 WHERE id = 9",
    "a host that is a text": "UPDATE url SET host = 'h' WHERE id = 9",
    "a depth of 19 digits": "UPDATE url SET depth = 9223372036854775807 WHERE id = 9",
    "a state that is none": "UPDATE url SET state = 9999 WHERE id = 9",
    "a referrer that is none": "UPDATE url SET referrer = 99999999 WHERE id = 9",
    "a score that is a text": "UPDATE url SET score = 'high' WHERE state = 0",
    "a link to no URL": "UPDATE link SET target = 99999999 WHERE id = 9",
    "a link to a URL far away": "UPDATE link SET target = 9223372036854775807 WHERE id = 9",
    "a link below 0": "UPDATE link SET target = -7 WHERE id = 9",
    "a link of no page": "UPDATE link SET source = 99999999 WHERE id = 9",
    "a link of 19 digits": "UPDATE link SET id = 9223372036854775807 WHERE id = 9",
    "an anchor that is a blob": "UPDATE link SET anchor = x'ff00' WHERE id = 9",
    "a position that is a text": "UPDATE link SET dom_position = 'first' WHERE id = 9",
    "a memo that is cut short": "UPDATE memo SET data = x'0102'",
    "a memo that is a text": "UPDATE memo SET data = 'memo'",
    "a memo that is too long": "UPDATE memo SET data = CAST(data || data AS BLOB)",
    "a memo of large numbers": "UPDATE memo SET data = CAST(replace(hex(data), '0', 'f') AS BLOB)",
    "a model that is cut short": "INSERT INTO models VALUES (9, 50, 9, '{}', x'00')",
    "a model that is a text": "INSERT INTO models VALUES (9, 50, 9, 'no', 'model')",
    "metrics nested 100,000 deep": """
        INSERT INTO models VALUES (9, 50, 9, replace(hex(zeroblob(50000)), '0', '['), NULL)""",
    "an event that is a blob": "INSERT INTO events VALUES (999, x'ff', x'ff', x'ff', x'ff')",
    "a revisit of no URL": """
        INSERT INTO revisit (id, url, asked_at, size, links) VALUES (1, 99999999, 5, 0, 0)""",
    "a revisit that is a text": """
        INSERT INTO revisit (id, url, asked_at, seq, status, size, links, first_link)
        VALUES (1, 3, 'then', 'then', 'fine', 0, 'many', 'none')""",
}


def with_other_bytes(whole: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Make stores of a whole one that end early, or have another header, or are something else.

    Parameters
    ----------
    whole : a crawl's store, with nothing left in its write-ahead log
    folder : where they are made, each in a folder of its own

    Yields
    ------
    What was done to it, and its path
    """
    return _written(folder, _bytes_changed(whole.read_bytes()))


def with_other_pages(whole: Path, folder: Path, seed: int) -> Iterator[tuple[str, Path]]:
    """Make stores of a whole one with some of its pages flipped, zeroed and swapped."""
    return _written(folder, _pages_changed(whole.read_bytes(), seed))


def with_other_values(whole: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Make stores of a whole one by what is `SAID`, and another application's."""
    content = whole.read_bytes()
    for number, (what, said) in enumerate(SAID.items()):
        path = folder / f"said-{number}" / "crawl.db"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as database:
            database.executescript(said)
            database.execute("PRAGMA journal_mode = WAL")
        yield what, path
    path = folder / "another" / "crawl.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE meta (key, value); CREATE TABLE moz_places (url)")
    yield "another application's", path


def hot_journal(store: Path, victim: Path) -> bytes:
    """Return a journal of SQLite's with nothing to undo, of a transaction with `victim`."""
    magic = bytes.fromhex("d9d505f920a163d7")
    content = store.read_bytes()
    page = int.from_bytes(content[16:18], "big")
    numbers = (0, 0, len(content) // page, 512, page)
    header = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    name = str(victim).encode()
    pending = (0x40000000 // page + 1).to_bytes(4, "big")
    end = name + len(name).to_bytes(4, "big") + (sum(name) & 0xFFFFFFFF).to_bytes(4, "big")
    return header.ljust(512, b"\0") + pending + end + magic


def _written(folder: Path, changes: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, Path]]:
    for number, (what, changed) in enumerate(changes):
        path = folder / str(number) / "crawl.db"
        path.parent.mkdir(parents=True)
        path.write_bytes(changed)
        yield what, path


def _bytes_changed(whole: bytes) -> Iterator[tuple[str, bytes]]:
    page = int.from_bytes(whole[16:18], "big")
    for size in (0, 15, 99, 100, 4096, len(whole) // 2, len(whole) - page, len(whole) - 1):
        yield f"cut to {size} bytes", whole[:size]
    yield "all zeros", bytes(len(whole))
    yield "text", b"no database at all\n" * 500
    for at in [*range(0, 72, 3), *range(92, _HEADER)]:
        yield f"byte {at} flipped", _flipped(whole, [at])


def _pages_changed(whole: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    draw = random.Random(seed)
    page = int.from_bytes(whole[16:18], "big")
    pages = len(whole) // page
    for number in (0, *sorted(draw.sample(range(1, pages), min(40, pages - 1)))):
        start = number * page
        head = [start + (_HEADER if number == 0 else 0) + i for i in range(12)]
        inside = [start + draw.randrange(_HEADER, page) for _ in range(20)]
        yield f"head of page {number} flipped", _flipped(whole, head)
        yield f"page {number} flipped", _flipped(whole, inside)
        yield f"page {number} zeroed", whole[:start] + bytes(page) + whole[start + page :]
    one, other = draw.sample(range(1, pages), 2)
    yield "pages swapped", _swapped(whole, one, other, page)


def _flipped(whole: bytes, at: list[int]) -> bytes:
    changed = bytearray(whole)
    for each in at:
        changed[each] ^= 0xFF
    return bytes(changed)


def _swapped(whole: bytes, one: int, other: int, page: int) -> bytes:
    pages = [whole[at : at + page] for at in range(0, len(whole), page)]
    pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def endless(path: Path, table: str) -> None:
    """Make a table of an SQLite file one of more rows than anybody could read."""
    with closing(sqlite3.connect(path)) as database:
        root_of = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((root,),) = database.execute(root_of, (table,))
        ((size,),) = database.execute("PRAGMA page_size")
        ((pages,),) = database.execute("PRAGMA page_count")
    content = bytearray(path.read_bytes())
    leaf = root
    while content[(leaf - 1) * size] == 0x05:  # an inner page of a table, whose last child is ...
        leaf = int.from_bytes(content[(leaf - 1) * size + 8 : (leaf - 1) * size + 12], "big")
    # ... kept elsewhere, as the root has to stay where it is
    moved = pages + 4
    content += bytes(4 * size)
    content[(moved - 1) * size : moved * size] = content[(leaf - 1) * size : leaf * size]
    tower = [root, *range(pages + 1, pages + 4), moved]
    for number, below in pairwise(tower):
        cells = 400
        start = size - 5 * cells
        page = bytearray(size)
        page[0] = 0x05  # an inner page of a table
        page[3:5] = cells.to_bytes(2, "big")
        page[5:7] = start.to_bytes(2, "big")
        page[8:12] = below.to_bytes(4, "big")
        for cell in range(cells):
            at = start + 5 * cell
            page[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
            page[at : at + 5] = below.to_bytes(4, "big") + b"\x01"
        content[(number - 1) * size : number * size] = page
    content[28:32] = (len(content) // size).to_bytes(4, "big")
    path.write_bytes(content)
