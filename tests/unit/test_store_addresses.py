"""Addresses of databases, however badly written, show nobody a password."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlPlan
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.errors import UserError
from focuscrawl.report.stores import open_store, shown
from focuscrawl.store.postgres import is_database_url, read_database_url

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hush"
MALFORMED = [
    "postgres//user:hush@",
    "postgres//user:hush@host/database",
    "postgres//user:hu/hush@host/database",
    "postgresql:/user:hush@host/database",
    "postgresql:user:hush@host/database",
    "postgressql://user:hush@host/database?crawl=x",
    "postgresql+psycopg2://user:hush@host/database",
    "jdbc:postgresql://user:hush@host/database",
    "POSTGRESQL//user:hush@host/database",
    " postgresql://user:hush@host/database",
    "//user:hush@host/database",
    "user:hush@host/database",
    "user:hush@host:5432",
    "host=h user=u password=hush dbname=d",
    "postgresql://user:hush@[::1/database",
    "postgresql://user:hush@host:port/database",
    "postgresql://user:a@hush@host/database",
    "postgresql://user:hush\udcff@host/database",
    "postgresql://user:hush@",
    "postgresql://user:hush@host",
    "postgresql://host/database?user=u&password=hush",
    "postgresql://user:hush@host/database?crawl=No:hush",
]


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(UserError) as error:
        call(*arguments)
    assert SECRET not in "".join(traceback.format_exception(error.value))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_address_is_not_repeated(text: str) -> None:
    for call in (read_database_url, open_store, shown):
        assert "store" in refused(call, text)


@pytest.mark.parametrize("text", [*MALFORMED, "postgresql://user:hush@host/database?crawl=x"])
def test_nor_is_it_taken_for_a_folder(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = CrawlPlan(topic="/Sports/Cycling", critic="models/demo", web="demo", crawl_dir=text)
    assert "-a store=" in refused(open_crawl, plan)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "text",
    [
        "crawls/cycling-20260101-120000",
        "/data/2026-01-01T10:00:00/me@home/crawl",
        "C:/crawls",
        "me@home",
        "postgres/cycling",
        "passwords/crawl",
    ],
)
def test_folders_are_folders(text: str) -> None:
    assert not is_database_url(text)
    assert shown(text) == text


@pytest.mark.parametrize("text", ["http//user:hush@host/", "htp://user:hush@host/", "user:hush@h"])
def test_a_seed_that_is_no_url_shows_no_password(text: str, tmp_path: Path) -> None:
    refused(read_seeds, text, ())
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{text}\n", encoding="utf-8")
    assert "@h" in refused(read_seeds, str(seeds), ())


@pytest.mark.parametrize("command", ["status", "report", "why", "distill", "pause", "stop"])
def test_the_commands_are_as_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    text = "postgres//user:hush@host/database"
    more = ["http://a.example/"] if command == "why" else []
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [command, text, *more])
    assert done.exit_code == 2
    assert SECRET not in done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("focuscrawl: store is no PostgreSQL URL, and holds no crawl: write ")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:geheim@h/d",
        "postgresql://u:geheim@h:port/d",
        "postgresql://u:geheim@h/",
        "postgresql://u:geheim@h/d?crawl=pg_mine",
        "postgresql://u:geheim@h/d?crawl=Drop%20table",
        "postgresql://u@h/d?password=geheim",
        "geheim",
    ],
)
def test_a_wrong_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UserError) as refused:
        read_database_url(url)
    assert "geheim" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_database_url_is_shown_without_user_and_password() -> None:
    database = read_database_url("postgresql://me:geheim@h:5433/d?crawl=cycling&sslmode=require")
    assert database.shown == "postgresql://h:5433/d?crawl=cycling"
    assert database.url.query == {"sslmode": "require"}
    assert read_database_url("postgres:///d").name == "focuscrawl"
