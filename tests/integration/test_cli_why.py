"""``focuscrawl why`` on crawls of the apprentice."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from focuscrawl.apprentice.options import GROUPS
from focuscrawl.report.why import Reasons, explain_score
from focuscrawl.store import CrawlStore

from .running import DEMO, ROOT, Kept, crawl
from .typed import focuscrawl

PAPER = {"learner": "nb", "evidence": "first", "groups": [*GROUPS], "batch": 20, "d_max": 2}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Kept]:
    made: dict[str, Kept] = {}

    def of(kind: str) -> Kept:
        if kind not in made:
            options = {"default": {}, "paper": PAPER}[kind]
            folder = tmp_path_factory.mktemp("why") / kind
            given = {"FOCUSCRAWL_STRATEGY_OPTIONS": json.dumps(options)}
            made[kind] = crawl(folder, **DEMO, **given, budget=60).kept
        return made[kind]

    return of


def why(folder: Path, url: str) -> dict[str, str]:
    """Return the lines of reasons by side."""
    said = focuscrawl("why", folder, url).output
    sides = r"^  ((?:words )?(?:for|against)|total) +(\S.*)"
    return dict(re.findall(sides, said, re.MULTILINE))


def reasons_of(kept: Kept, numbers: list[int]) -> list[Reasons]:
    store = CrawlStore.open(kept.folder / "crawl.db", read_only=True)
    try:
        found = [explain_score(store, number) for number in numbers]
    finally:
        store.close()
    assert None not in found
    return [each for each in found if each is not None]


@pytest.mark.parametrize("kind", ["default", "paper"])
def test_reasons_add_up_to_the_score(kind: str, crawled: Callable[[str], Kept]) -> None:
    kept = crawled(kind)
    rows = kept.query(
        "SELECT id, score FROM url WHERE state = 0 AND score IS NOT NULL ORDER BY score"
    )
    chosen = [*rows[:3], *rows[-3:]]
    for (_, score), found in zip(
        chosen, reasons_of(kept, [number for number, _ in chosen]), strict=True
    ):
        total = sum(found.parts.values())
        assert found.score == pytest.approx(1.0 / (1.0 + np.exp(-total)))
        # places and twins may have been fetched since it was scored: by lessons that are rare
        assert found.score == pytest.approx(score, abs=0.1)
        assert [*found.words.values()] == sorted(found.words.values(), key=lambda x: -abs(x))
        if kind == "default":
            words = found.parts["links (words)"] + found.parts["address (words)"]
            assert sum(found.words.values()) == pytest.approx(words, abs=0.01)  # all have names


@pytest.mark.parametrize("kind", ["default", "paper"])
def test_why_says_what_counts_for_and_against(kind: str, crawled: Callable[[str], Kept]) -> None:
    kept = crawled(kind)
    lines = why(kept.folder, kept.urls[49])
    assert re.fullmatch(r"[+-]\d+\.\d+, which is a score of [01]\.\d{3}", lines["total"])
    assert re.match(r"\w[\w ()+,]* \+\d", lines["for"])
    said = f"{lines['for']}, {lines.get('against', '')}"
    names = re.findall(r"([A-Za-z][\w ()]*?) [+-]\d", said)
    glossary = (ROOT / "docs" / "explanation" / "apprentice.md").read_text().partition("## Why")[2]
    assert names
    for name in names:
        assert f"| {name} |" in glossary, name


@pytest.mark.parametrize("kind", ["default", "paper"])
def test_why_does_not_contradict_itself(kind: str, crawled: Callable[[str], Kept]) -> None:
    """Of two scores it says which is which."""
    kept = crawled(kind)
    waiting = "SELECT url FROM frontier WHERE state = 'queued' ORDER BY score DESC LIMIT 1"
    for url, words in (
        (kept.urls[49], "when fetched"),
        (kept.query(waiting)[0][0], "in frontier"),
    ):
        said = focuscrawl("why", kept.folder, url).output
        score = float(re.findall(r"^score +([\d.]+)", said, re.MULTILINE)[0])
        total = float(re.findall(r"a score of ([\d.]+)", said)[0])
        assert " now\n" not in said
        assert (words in said) == (abs(score - total) >= 0.0005), said


def test_why_names_the_words_that_weighed_most(crawled: Callable[[str], Kept]) -> None:
    kept = crawled("paper")
    ((number,),) = kept.query("SELECT url FROM page WHERE seq = 50")
    lines = why(kept.folder, kept.urls[49])
    (found,) = reasons_of(kept, [number])
    for side, sign in (("words for", 1), ("words against", -1)):
        strongest = [(name, x) for name, x in found.words.items() if x * sign > 0.02][:5]
        assert lines[side] == ", ".join(f"{name} {x:+.2f}" for name, x in strongest)
    names = ", ".join(found.words)
    for form in (
        *("in the link", "1 before", "2 after", "in the URL"),
        *("in the page's title", "in the anchor"),
    ):
        assert re.search(rf"'\w+' {form}", names)
    assert "on a page of /Sports/Cycling" in names


def test_the_reasons_for_a_fetch_do_not_depend_on_the_relevance_of_its_page(
    crawled: Callable[[str], Kept], tmp_path: Path
) -> None:
    kept = crawled("default")
    learned = kept.query("SELECT max(trained_at_seq) FROM models")[0][0]
    rows = kept.query(
        f"SELECT seq, url FROM page WHERE seq > {learned} AND score IS NOT NULL ORDER BY seq"
    )
    assert rows
    for seq, url_id in rows:
        changed = Kept(shutil.copytree(kept.folder, tmp_path / str(seq)))
        with closing(sqlite3.connect(changed.folder / "crawl.db")) as store, store:
            store.execute("UPDATE page SET relevance = 1 - relevance WHERE seq = ?", (seq,))
        (before,), (after,) = reasons_of(kept, [url_id]), reasons_of(changed, [url_id])
        assert before == after


def test_a_seed_that_nobody_links_to_has_no_reasons(crawled: Callable[[str], Kept]) -> None:
    kept = crawled("default")
    alone = kept.query(
        "SELECT url FROM url WHERE score IS NULL"
        " AND id NOT IN (SELECT target FROM link) ORDER BY id LIMIT 1"
    )
    assert why(kept.folder, alone[0][0]) == {}
