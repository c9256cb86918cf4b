"""Recall certified by target pages: known pages that a crawl has to find by links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.completeness.recall_estimate import (
    TargetCounts,
    certified_recall,
    split_examples,
    targets_needed,
)
from focuscrawl.completeness.stop_rules import StopExpression
from focuscrawl.crawl.assembly import open_crawl as open_configured
from focuscrawl.crawl.target_pages import read_targets, target_states, write_targets
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.errors import UserError
from focuscrawl.extensions.metrics_collector import recall_metrics
from focuscrawl.report.status import Status
from focuscrawl.report.summary import Summary
from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import FETCHED, QUEUED
from focuscrawl.topics import read_definition
from focuscrawl.webs.synthetic import SyntheticWeb

from .shelves import Shelf, at, open_crawl, run


@pytest.mark.parametrize(
    ("targets", "recall", "needed"),
    [
        *((14, 0.8, 14), (30, 0.8, 28), (50, 0.8, 45), (100, 0.8, 87)),
        *((29, 0.9, 29), (50, 0.9, 49), (100, 0.9, 96), (28, 0.9, None), (13, 0.1, None)),
    ],
)
def test_the_bound_is_that_of_the_binomial_distribution(
    targets: int, recall: float, needed: int | None
) -> None:
    assert targets_needed(targets, recall) == needed


def test_few_pages_certify_nothing() -> None:
    assert certified_recall(13, 13) == 0.0
    assert certified_recall(0, 30) == 0.0
    assert "no recall is certified" in TargetCounts(13, 13, 13).describe()
    assert "28 of 30 target pages found (19 judged relevant)" in (
        TargetCounts(30, 28, 28, 19).describe()
    )
    assert TargetCounts(30, 28, 29).describe() == (
        "28 of 30 target pages found, 1 more known by links; recall at least 80 % with 95 % "
        "confidence"
    )


@pytest.mark.parametrize(("pages", "held"), [(13, 0), (14, 14), (20, 14), (21, 14), (45, 30)])
def test_two_thirds_of_many_pages_are_held_out(pages: int, held: int) -> None:
    urls = [at(f"/page{number}") for number in range(pages)]
    examples, targets = split_examples(urls)
    assert len(targets) == held
    assert sorted(examples + targets) == sorted(urls)
    assert split_examples(urls) == (examples, targets)
    assert targets != urls[:held] or held in (0, pages)


@pytest.fixture
def web() -> Shelf:
    """Forty relevant pages in a chain."""
    shelf = Shelf()
    for number in range(40):
        shelf.page(f"/jazz{number}", f"jazz {number}", f"/jazz{number + 1}")
    return shelf


def test_a_crawl_stops_when_the_targets_certify_the_recall(web: Shelf, tmp_path: Path) -> None:
    rules = StopExpression.parse("targets 0.8")
    write_targets(tmp_path, [at(f"/jazz{number}") for number in range(1, 31)])
    for fetches in (10, 1000):  # interrupted and resumed
        crawl = open_crawl(tmp_path, web, "/jazz0", stop=rules)
        run(crawl, fetches)
        told = {metric.name: metric.samples[0].value for metric in recall_metrics(crawl)}
        crawl.close(crawl.stop_reason or "interrupted")
    assert crawl.stop_reason == "targets_reached"
    assert crawl.fetched == 29  # the start page and 28 of 30 target pages
    assert told["focuscrawl_targets_found"] == 28.0
    assert told["focuscrawl_targets_met"] == 29.0  # the last page links to another target page
    assert told["focuscrawl_recall_certified"] == pytest.approx(0.8047, abs=1e-4)
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    summary = Summary.of(store)
    assert summary.stopped.startswith("by the rule `targets 0.8`: 28 of 30 target pages found")
    assert dict(summary.lines())["targets"].endswith("recall at least 80 % with 95 % confidence")
    assert "28 of 30 target pages found" in Status.of(store).text()
    states = target_states(store, tmp_path)
    assert states[at("/jazz28")] == FETCHED
    assert states[at("/jazz29")] == QUEUED
    assert states[at("/jazz30")] is None
    store.close()


def test_a_target_page_is_found_with_either_scheme(web: Shelf, tmp_path: Path) -> None:
    write_targets(tmp_path, [at("/jazz1").replace("http:", "https:")])
    crawl = open_crawl(tmp_path, web, "/jazz0")
    run(crawl, 2)
    crawl.close("interrupted")
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    assert Summary.of(store).targets == TargetCounts(1, 1, 1, 1)
    store.close()


def test_a_target_page_that_becomes_a_start_page_does_not_count(
    web: Shelf, tmp_path: Path
) -> None:
    write_targets(tmp_path, [at(f"/jazz{number}") for number in (1, 20, 30)])
    crawl = open_crawl(tmp_path, web, "/jazz0")
    run(crawl, 2)
    crawl.add_seeds([at("/jazz20")])
    run(crawl, 1)
    told = {metric.name: metric.samples[0].value for metric in recall_metrics(crawl)}
    assert (told["focuscrawl_targets"], told["focuscrawl_targets_found"]) == (2.0, 1.0)
    crawl.close("interrupted")
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    assert Summary.of(store).targets == TargetCounts(2, 1, 1, 1)
    store.close()


def _cycling(count: int, split: str = "") -> list[str]:
    """Return relevant pages of the demo web; the split "test" has no examples of its critic."""
    labels = (label for label in SyntheticWeb().labels() if label.topic == "/Sports/Cycling")
    pages = [label.url for label in labels if split in ("", label.split)]
    return [*dict.fromkeys(pages)][:count]


def _config(tmp_path: Path, **given: Any) -> CrawlConfig:
    return CrawlConfig(topic="/Sports/Cycling", web="demo", crawl_dir=str(tmp_path / "c"), **given)


def test_pages_that_the_crawl_knows_are_no_targets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pages = _cycling(40)
    start, targets = pages[:3], tmp_path / "targets.txt"
    targets.write_text("\n".join([*pages, "http://elsewhere.example/"]))
    config = _config(tmp_path, seeds=",".join(start), targets=str(targets))
    crawl = open_configured(config)
    kept = read_targets(tmp_path / "c")
    crawl.close("interrupted")
    examples = set(crawl.critic.examples)
    assert kept == [url for url in pages[3:] if url not in examples]
    assert 0 < len(kept) < 37
    assert "not in the recorded web" in caplog.text
    assert "start pages, examples of the critic" in caplog.text


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (0, r"stop rule `targets 0.8` needs target pages"),
        (5, r"needs at least 14 target pages, not"),
    ],
)
def test_too_few_targets_for_a_rule_are_refused(
    tmp_path: Path, targets: int, message: str
) -> None:
    given = {"targets": ",".join(_cycling(targets, "test"))} if targets else {}
    with pytest.raises(UserError, match=message):
        open_configured(_config(tmp_path, stop=StopExpression.parse("targets 0.8"), **given))
    assert not (tmp_path / "c").exists()


def test_a_definition_holds_target_pages_out_of_its_examples(tmp_path: Path) -> None:
    good, file = tmp_path / "good.txt", tmp_path / "topic.toml"
    good.write_text("\n".join(f"http://a.example/{number}" for number in range(30)))
    made = CliRunner().invoke(main, ["topic", "new", str(file), "--good", str(good), "--hold-out"])
    assert made.exit_code == 0
    assert "10 good pages" in made.output
    assert "20 target pages" in made.output
    definition = read_definition(file)
    assert not {*definition.good} & {*definition.targets}
    judged = definition.with_judgements(good=definition.targets[:1])
    assert len(judged.targets) == 19
    file.write_text(file.read_text().replace("good = [", f'good = ["{definition.targets[0]}",'))
    with pytest.raises(UserError, match="is a target page and in good"):
        read_definition(file)


def test_few_good_pages_are_not_held_out(tmp_path: Path) -> None:
    file = tmp_path / "topic.toml"
    good = [part for n in range(13) for part in ("--good", f"http://a.example/{n}")]
    made = CliRunner().invoke(main, ["topic", "new", str(file), *good, "--hold-out"])
    assert "fewer than 14: no page is held out" in made.output
    assert len(read_definition(file).good) == 13
