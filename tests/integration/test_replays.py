"""Replays that fetch the same URLs, by the same scores, as they did when `replays.json` was kept.

A change of structure must not change one of them. Where a change of behaviour is intended, look at
what differs, and keep the new ones: ``FOCUSCRAWL_RENEW_REPLAYS=1 pytest -n 0 -m "long or not long"
tests/integration/test_replays.py``; the commit says why.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.strategies.base import strategy_names

from .running import TOPIC, Kept, crawl

KEPT = Path(__file__).with_name("replays.json")
RENEWED = bool(os.environ.get("FOCUSCRAWL_RENEW_REPLAYS"))
STEP = 20  # fetches to a digest, so that it can be told where two replays part
ONE = ("-s", "CONCURRENT_REQUESTS=1")
SEEDS = "models/demo/seeds.csv"
BUDGETS = {0: 140, 1: 60}  # by random_state
DRAWING = ("random", "td-values")  # strategies that fetch others where it is another
TOLERANCE = 1e-5  # of means of scores; they differed by 2e-7 with BLAS of another processor


def replayed(folder: Path, **arguments: object) -> Kept:
    """Crawl, one request at a time."""
    done = crawl(folder, *ONE, **arguments)
    assert done.returncode == 0, done.stderr
    return done.kept


def summarize(kept: Kept, *, trained: bool) -> dict[str, list[Any]]:
    """Return digests of the URLs and of their scores in the order of the fetches, `STEP` each.

    The last digits of a critic that was trained here depend on the processor. Of its scores, the
    means are returned.
    """
    fetches = kept.query("SELECT url, score FROM pages ORDER BY seq")
    steps = [fetches[first : first + STEP] for first in range(0, len(fetches), STEP)]
    urls = [_digest([url for url, _ in step]) for step in steps]
    all_scores = [[score for _, score in step] for step in steps]
    if trained:
        finite = ([each for each in step if each and isfinite(each)] for step in all_scores)
        means = [round(fmean(step), 7) if step else None for step in finite]
        return {"urls": urls, "scores": means}
    scores = [_digest([each and round(each, 9) + 0.0 for each in step]) for step in all_scores]
    return {"urls": urls, "scores": scores}


def _digest(values: list[object]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def _differ(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) > TOLERANCE
    return one != other


@pytest.fixture
def compare() -> Callable[..., None]:
    """Compare a replay with the one that is kept under its name."""

    def with_the_kept(name: str, kept: Kept, *, trained: bool = False) -> None:
        all_kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        found = summarize(kept, trained=trained)
        if RENEWED:
            renewed = dict(sorted({**all_kept, name: found}.items()))
            KEPT.write_text(json.dumps(renewed, indent=1) + "\n", encoding="utf-8")
            return
        for what, expected in all_kept[name].items():
            assert len(found[what]) == len(expected)
            pairs = zip(expected, found[what], strict=True)
            parted = [i for i, (one, other) in enumerate(pairs) if _differ(one, other)]
            assert not parted, (
                f"{name}: other {what} than kept, first among fetches "
                f"{parted[0] * STEP + 1} to {(parted[0] + 1) * STEP}; see the top of {__file__}"
            )

    return with_the_kept


@pytest.fixture(scope="module")
def path_critic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the paths to pages of the topic, of a crawl of the synthetic web."""
    folder = tmp_path_factory.mktemp("paths")
    kept = replayed(
        folder / "crawl", web="demo", topic=TOPIC, seeds=SEEDS, strategy="breadth-first", budget=80
    )
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["url", "topic"])
        for url, relevance, depth in kept.query("SELECT url, relevance, depth FROM pages"):
            writer.writerow([url, "goal" if depth and relevance > 0.5 else "other"])
    extract = ("extract", folder / "crawl", "--labels", folder / "labels.csv", "--goal", "goal")
    small = ("--paths", 4, "--fails", 1, "--out", folder / "paths.jsonl")
    train = ("train", folder / "paths.jsonl", "--web", "demo", "--out", folder / "model")
    for words in ((*extract, *small), train):
        done = CliRunner().invoke(main, ["paths", *map(str, words)])
        assert done.exit_code == 0, done.output
    return folder / "model"


@pytest.mark.parametrize(
    ("strategy", "random_state"),
    [*((name, 0) for name in strategy_names()), *((name, 1) for name in DRAWING)],
)
def test_a_replay_of_the_synthetic_web(
    strategy: str,
    random_state: int,
    path_critic: Path,
    tmp_path: Path,
    compare: Callable[..., None],
) -> None:
    given: dict[str, object] = {"topic": TOPIC, "seeds": SEEDS}
    if strategy == "paths":
        seeds = Path(SEEDS).read_text(encoding="utf-8").splitlines()
        own = [line.removeprefix(f"{TOPIC},") for line in seeds if line.startswith(f"{TOPIC},")]
        given = {"topic": "/goal", "seeds": ",".join(own), "critic": path_critic}
    given |= {"web": "demo", "strategy": strategy, "random_state": random_state}
    kept = replayed(tmp_path / "crawl", **given, budget=BUDGETS[random_state])
    compare(f"demo, {strategy}, {random_state}", kept)


TOPICS = {
    "uci": ("/Computers/Software_Engineering", "/Science/Biology/Bioinformatics"),
    "wikipedia": ("/Computers/Internet", "/Science/Biology/Birds"),
}


@pytest.fixture(scope="module")
def recorded_web(
    request: pytest.FixtureRequest, webs_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, object]:
    """Arguments of crawls of a recorded web, with a critic of its own labels."""
    name: str = request.param
    web: Path = request.getfixturevalue(f"{name}_warc")
    critic = tmp_path_factory.mktemp("critics") / name
    labels = webs_dir / name / "labels.csv"
    words = ("critic", "train", labels, "--web", web, "--out", critic)
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return {"web": web, "critic": critic, "seeds": webs_dir / name / "seeds.csv"}


@pytest.mark.long
@pytest.mark.webs
@pytest.mark.parametrize("recorded_web", [*TOPICS], indirect=True)
@pytest.mark.parametrize("strategy", ["best-first", "apprentice"])
def test_replays_of_a_recorded_web(
    strategy: str,
    recorded_web: dict[str, object],
    tmp_path: Path,
    compare: Callable[..., None],
) -> None:
    name = Path(str(recorded_web["web"])).stem
    for number, topic in enumerate(TOPICS[name]):
        kept = replayed(
            tmp_path / str(number), **recorded_web, topic=topic, strategy=strategy, budget=200
        )
        compare(f"{name}, {topic}, {strategy}", kept, trained=True)
