"""Forages of departments: a model made by ``focuscrawl paths``, and crawls that go by it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay

if TYPE_CHECKING:
    from click.testing import Result

    from focuscrawl.crawl import Crawl

    from .departments import Departments


def run_paths(*arguments: object, code: int = 0, keys: str | None = None) -> Result:
    """Run ``focuscrawl paths`` to its exit code, with what a person types."""
    done = CliRunner().invoke(main, ["paths", *map(str, arguments)], input=keys)
    assert done.exit_code == code, done.output
    return done


def train_model(web: Departments) -> Path:
    """Return a model of three departments, made by the commands."""
    folder = web.warc.parent
    (folder / "three.txt").write_text("\n".join(web.doors[:3]))
    extracted = run_paths(
        *("extract", web.warc, "--labels", web.labels, "--column", "kind"),
        *("--site-column", "site", "--goal", "professor", "--fails", 3),
        *("--starts", folder / "three.txt", "--out", folder / "paths.jsonl"),
    ).output
    assert "8 paths to goals, 24 to dead ends" in extracted, extracted
    model = folder / "model"
    trained = run_paths("train", folder / "paths.jsonl", "--web", web.warc, "--out", model).output
    assert "trained on 96 paths on 3 sites\n" in trained, trained
    assert "above faculty" in trained, trained
    return model


def open_forage(
    web: Departments, model: Path, folder: Path, *doors: str, budget: int, **options: object
) -> Crawl:
    """Open a forage from these front doors, or what there is of it already."""
    return open_crawl(
        CrawlConfig(
            topic="/goal",
            seeds=",".join(doors),
            critic=str(model),
            strategy="paths",
            options=options,
            budget=budget,
            web=str(web.warc),
            crawl_dir=str(folder),
        )
    )


def forage(
    web: Departments, model: Path, folder: Path, *doors: str, budget: int, **options: object
) -> list[str]:
    """Forage to the end; return all URLs that were fetched, in their order."""
    replay(open_forage(web, model, folder, *doors, budget=budget, **options))
    return [url for (url,) in rows_of(folder, "SELECT url FROM pages ORDER BY seq")]


def rows_of(folder: Path, sql: str) -> list[tuple[str]]:
    """Ask the store of a forage."""
    with closing(sqlite3.connect(folder / "crawl.db")) as store:
        return store.execute(sql).fetchall()
