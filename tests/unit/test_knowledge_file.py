"""Knowledge files that cannot be used: one line, and nothing is changed."""

from __future__ import annotations

import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.crawl.revisit_policy import KnownPages
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Knowledge, add_crawl
from focuscrawl.knowledge.knowledge_file import SCHEMA_VERSION, open_draft

from .damaged_stores import hot_journal
from .test_knowledge_update import crawl, fetch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "boats.db"
    pages = [fetch(f"http://h.example/{i}", texts=("boat",)) for i in range(50)]
    add_crawl(path, crawl(1, *pages, trained_apprentice=b"what was learned"))
    return path


def refused(path: Path) -> str:
    """Return why neither reading nor learning works; the file stays as it is."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(UserError) as reading:
        Knowledge(path)
    if before is not None:
        with pytest.raises(UserError):
            add_crawl(path, crawl(2, fetch("http://h.example/new")))
        assert path.read_bytes() == before
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    message = str(reading.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_no_file(tmp_path: Path) -> None:
    assert "focuscrawl knowledge learn" in refused(tmp_path / "none.db")
    with pytest.raises(UserError, match="cannot read"):
        Knowledge(tmp_path)


def test_cut_short(path: Path) -> None:
    whole = path.read_bytes()
    for left in (len(whole) - 1, len(whole) // 2, 4096, 50, 0):
        path.write_bytes(whole[:left])
        assert "truncated" in refused(path)


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            f"UPDATE meta SET value = '{SCHEMA_VERSION + 1}' WHERE key = 'schema_version'",
            "upgrade focuscrawl",
        ),
        ("DELETE FROM meta WHERE key = 'kind'", "another database"),
        ("DROP TABLE seed", "table seed is missing"),
        (  # a view calls nothing
            "DROP TABLE waiting; CREATE VIEW waiting AS "
            "SELECT 1 AS key, load_extension('x') AS url, 0.5 AS score",
            "table waiting is missing",
        ),
    ],
)
def test_another_schema(path: Path, sql: str, said: str) -> None:
    change(path, sql)
    assert said in refused(path)


def test_no_database(path: Path) -> None:
    path.write_text("no database at all, and longer than the head of one" * 9)
    assert "no SQLite database" in refused(path)


def test_flipped_bytes_are_a_line(path: Path) -> None:
    whole = path.read_bytes()
    for seed in range(40):
        rng, content = random.Random(seed), bytearray(whole)
        for _ in range(len(content) // 300):
            content[rng.randrange(100, len(content))] = rng.randrange(256)
        path.write_bytes(content)
        shown = CliRunner().invoke(main, ["knowledge", "show", str(path)])
        assert isinstance(shown.exception, SystemExit | None), (seed, shown.exception)
        assert shown.exit_code in (0, 2)


def test_a_changed_apprentice_is_not_believed(path: Path) -> None:
    with closing(Knowledge(path)) as known:
        assert known.trained_apprentice == b"what was learned"
    change(path, "UPDATE model SET data = x'00'")
    with closing(Knowledge(path)) as known, pytest.raises(UserError, match="damaged"):
        _ = known.trained_apprentice


def test_another_topic_or_critic(path: Path) -> None:
    with closing(Knowledge(path)) as known:
        assert known.check("/Boats", "c1") is known
        with pytest.raises(UserError, match="/Boats, not /Knots"):
            known.check("/Knots", "c1")
        with pytest.raises(UserError, match="another critic"):
            known.check("/Boats", "c2")


def test_crawls_learned_at_the_same_time_are_all_known(tmp_path: Path) -> None:
    path = tmp_path / "new.db"  # each finds none when it begins
    with ThreadPoolExecutor(4) as several:
        crawls = [crawl(n, fetch(f"http://h.example/{n}")) for n in range(1, 9)]
        learned = list(several.map(partial(add_crawl, path), crawls))
    assert sum(each.new for each in learned) == 8
    with closing(Knowledge(path)) as known:
        assert (len(known), len([*known.history()])) == (8, 8)


def test_what_a_killed_process_left_is_no_hindrance(path: Path) -> None:
    path.with_name(f".{path.name}.lock").write_bytes(b"half of it" * 1000)
    assert add_crawl(path, crawl(2, fetch("http://h.example/new"))).new == 1
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_waits_for_a_draft_is_left_alone(path: Path, tmp_path: Path) -> None:
    """A link in place of the lock or of a draft, a journal for one."""
    outside = tmp_path / "outside"
    outside.write_text("precious")
    for name in (f".{path.name}.0.draft", f".{path.name}.0.draft-journal"):
        path.with_name(name).symlink_to(outside)
    assert add_crawl(path, crawl(2, fetch("http://h.example/new"))).new == 1
    assert outside.read_text() == "precious"
    lock = path.with_name(f".{path.name}.lock")
    lock.symlink_to(outside)
    with pytest.raises(UserError, match="is a link to"):
        add_crawl(path, crawl(3, fetch("http://h.example/newer")))
    assert outside.read_text() == "precious"
    lock.unlink()
    lock.with_name(f"{lock.name}-journal").write_bytes(hot_journal(path, outside))
    assert add_crawl(path, crawl(4, fetch("http://h.example/newest"))).new == 1
    assert outside.read_text() == "precious"


def test_the_file_is_replaced_at_the_end_only(path: Path) -> None:
    before = path.read_bytes()
    with open_draft(path) as draft:
        draft.execute("DELETE FROM page")
        assert path.read_bytes() == before
    assert path.read_bytes() != before
    with closing(Knowledge(path)) as known:
        assert len(known) == 0


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        add_crawl(tmp_path / "file" / "boats.db", crawl(1, fetch("http://h.example/")))


def test_seeds_and_validators_of_a_stranger_are_not_trusted(path: Path) -> None:
    url = "http://h.example/0"
    change(path, "INSERT INTO seed VALUES (0, 'file:///etc/passwd', 1, 1)")
    change(path, f"UPDATE page SET etag = '\"a\"\r\nX-Evil: 1' WHERE url = '{url}'")
    with closing(Knowledge(path)) as known:
        assert "file:" not in "".join(known.seeds())
        page = known.page(url)
        assert page is not None
        assert "Evil" in str(page.etag)
        urls = UrlTable()
        number = urls.add(url, 0, None)
        assert (
            KnownPages(known, urls, known.visit_values(100.0, 0.1)).conditional_headers(number)
            == {}
        )
        assert KnownPages(known, urls).conditional_headers(number) == {}


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("exemplar.words", "x'FFFFFFFF'", "exemplars"),
        ("exemplar.words", "x'01'", "exemplars"),
        ("exemplar.words", "'text'", "exemplars"),
        ("exemplar.relevance", "7", "exemplars"),
        ("exemplar.relevance", "'text'", "exemplars"),
        ("page.relevance", "1.5", "relevances"),
        ("page.relevance", "'text'", "relevances"),
        ("page.visited", "'text'", "pages"),
        ("page.accesses", "'text'", "pages"),
        ("meta.value", "'many'", "crawls"),
    ],
)
def test_values_of_a_stranger_are_checked(path: Path, column: str, value: str, named: str) -> None:
    table, _, name = column.partition(".")
    where = " WHERE key = 'crawls'" if table == "meta" else ""
    change(path, f"UPDATE {table} SET {name} = {value}{where}")

    def read() -> None:
        known = Knowledge(path)
        known.predict(["http://never.example/"], [""])
        known.visit_values(100.0, 0.1)

    with pytest.raises(UserError, match=f"invalid {named}"):
        read()
