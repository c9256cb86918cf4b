"""Runs: what their processes are told, what is kept, what has to be crawled (again)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab.planning import draw_seeds, plan_runs
from focuscrawl.lab.run_process import crawl_runs, runs_to_crawl
from focuscrawl.lab.study import Contender, Run, Study, StudyWeb
from focuscrawl.webs import open_web
from studies.topic_tasks import plan_tasks

SEEDS = Path(__file__).parents[2] / "models" / "demo" / "seeds.csv"
COST = {"seconds": 1.0, "cpu_seconds": 1.0, "megabytes": 1.0}


def make(folder: Path, contender: Contender, first: Run | None = None) -> Run:
    return Run(
        web="demo",
        recording="demo",
        critic="models/demo",
        topic="/Sports",
        draw=0,
        budget=5,
        comparison_budget=5,
        oracle_loss=0.0,
        seeds=("http://a.example/",),
        contender=contender,
        folder=folder / contender.label,
        trained_on=first,
        within=first,
    )


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Run, Run]:
    first = replace(make(tmp_path, Contender("first", "random")), apprentice_options=({},))
    second = Contender("second", "apprentice", trained_on="first", within="first")
    return first, make(tmp_path, second, first)


def finish(run: Run, *, crawl: bool) -> None:
    run.folder.mkdir(exist_ok=True)
    run.record_done(COST)
    run.fetches_path.write_bytes(b"PAR1, PAR1")
    if crawl:
        run.crawl_dir.mkdir()
        for options in run.apprentice_options:
            run.apprentice_path(options).mkdir()


def test_a_run_is_done_under_its_own_terms_only(pair: tuple[Run, Run]) -> None:
    first, second = pair
    finish(first, crawl=True)
    assert (first.is_done, second.is_done) == (True, False)
    finish(second, crawl=True)
    assert first.cost == COST
    assert not replace(first, budget=6).is_done
    assert not replace(first, contender=Contender("first", "random", {"a": 1})).is_done
    # what it was trained on is one of its terms
    assert replace(second).is_done
    assert not replace(second, trained_on=replace(first, draw=1)).is_done
    for content in (b"PAR1, PA", b""):  # cut short
        first.fetches_path.write_bytes(content)
        assert not first.is_done
    first.fetches_path.unlink()
    assert not first.is_done


def test_what_its_process_is_told(pair: tuple[Run, Run]) -> None:
    first, second = pair
    train, crawl = first.train_command({}), second.crawl_command()
    assert train[:4] == ["focuscrawl", "apprentice", "train", str(first.crawl_dir)]
    assert train[4:6] == ["--web", "demo"]  # another strategy has to be read again
    assert "--web" not in second.train_command({})
    assert f"apprentice={first.apprentice_path({})}" in crawl
    assert f"within={first.crawl_dir}" in crawl
    assert not any(part.startswith("FOCUSCRAWL_LIMITS") for part in crawl)  # as users crawl
    without = Contender("second", "random", settings={"FOCUSCRAWL_LIMITS": 0})
    assert "FOCUSCRAWL_LIMITS=0" in replace(second, contender=without).crawl_command()


def test_apprentices_of_other_options_are_trained_on_the_same_crawl(tmp_path: Path) -> None:
    options = {"learner": "nb", "counts": True}
    contenders = [
        Contender("early", "best-first"),
        Contender("ours", "apprentice", trained_on="early"),
        Contender("theirs", "apprentice", options, trained_on="early"),
        Contender("recall", "apprentice", {**options}, trained_on="early", within="early"),
    ]
    early, ours, theirs, recall = plan_runs(study(contenders), tmp_path)
    assert early.apprentice_options == ({}, options)
    begun = [
        next(part for part in run.crawl_command() if part.startswith("apprentice="))
        for run in (ours, theirs, recall)
    ]
    assert begun[0] == f"apprentice={early.apprentice_path({})}" != begun[1] == begun[2]
    train = early.train_command(options)
    assert json.loads(train[train.index("--options") + 1]) == options
    assert train[-1] == str(early.apprentice_path(options))


def test_a_crawl_that_is_needed_and_gone_is_repeated(pair: tuple[Run, Run]) -> None:
    first, second = pair
    runs = [first, second]
    assert runs_to_crawl(runs) == {first, second}
    finish(first, crawl=True)
    assert runs_to_crawl(runs) == {second}
    first.apprentice_path({}).rmdir()
    assert runs_to_crawl(runs) == {first, second}
    first.crawl_dir.rmdir()
    assert runs_to_crawl(runs) == {first, second}
    finish(second, crawl=False)
    assert runs_to_crawl(runs) == set()
    assert runs_to_crawl(runs, keep=True) == {first, second}


def test_what_nobody_needs_any_more_is_tidied_up(pair: tuple[Run, Run]) -> None:
    for run in pair:
        finish(run, crawl=True)
    for keep in (True, False):
        assert list(crawl_runs(pair, 1, keep=keep)) == []
        assert [run.crawl_dir.exists() for run in pair] == [keep, keep]


def study(contenders: list[Contender], web: StudyWeb | None = None) -> Study:
    given = web or StudyWeb("demo", "demo", "none", str(SEEDS), "models/demo", 5, ("/Sports",))
    return Study("t", 1, 7, 1000, contenders[0].label, (given,), tuple(contenders))


def test_runs_come_behind_those_they_need(tmp_path: Path) -> None:
    contenders = [
        Contender("late", "apprentice", trained_on="early"),
        Contender("early", "best-first", budget=9),
    ]
    early, late = plan_runs(study(contenders), tmp_path)
    assert (early.contender.label, late.contender.label) == ("early", "late")
    assert late.trained_on is early
    assert (early.apprentice_options, late.apprentice_options) == (({},), ())
    assert (early.budget, early.comparison_budget) == (9, 7)
    assert (late.budget, late.comparison_budget) == (7, 7)
    assert 0 <= early.oracle_loss < 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("contender", "said"),
    [
        (Contender("a", "best-frist"), "did you mean best-first"),
        (Contender("a", "apprentice", {"bach": 1}), "a: strategy apprentice has no option 'bach'"),
        (Contender("a", "hard-focus", {"a": 1}), "It has no options"),
    ],
)
def test_strategies_that_there_are_not(tmp_path: Path, contender: Contender, said: str) -> None:
    with pytest.raises(UserError, match=said):
        plan_runs(study([contender]), tmp_path)


def test_seeds_from_a_portal_are_the_same_for_all(tmp_path: Path) -> None:
    demo = open_web("demo")
    url = next(iter(demo.urls()))
    portal = tmp_path / "portal.txt"
    portal.write_text(f"{url}\nhttp://nowhere.example/\n")
    web = StudyWeb("demo", "demo", "none", None, None, 5, ("/Sports",), str(portal))
    assert draw_seeds(web, demo, "/Sports", 0) == draw_seeds(web, demo, "/Home", 3) == [url]
    portal.write_text("http://nowhere.example/\n")
    with pytest.raises(UserError, match="no start URL of /Sports is recorded in the web demo"):
        draw_seeds(web, demo, "/Sports", 0)


def test_draws_of_seeds_are_examples_for_training(tmp_path: Path) -> None:
    demo = open_web("demo")
    urls = list(demo.urls())[:30]
    labels = tmp_path / "labels.csv"
    rows = [f"{url},/A/B,{'test' if i % 3 else 'train'}" for i, url in enumerate(urls)]
    labels.write_text("\n".join(["url,topic,split", *rows]))
    web = StudyWeb("demo", "demo", str(labels), str(SEEDS), None, 4, ("/A",))
    first, second = (draw_seeds(web, demo, "/A", draw) for draw in (1, 2))
    assert first == draw_seeds(web, demo, "/A", 1)
    assert first != second
    assert len(first) == len(second) == 4
    assert {*first, *second} <= set(urls[::3])


def test_tasks_have_the_seeds_and_the_budget_of_the_first_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = study([Contender("base", "best-first")])
    with monkeypatch.context() as patched:
        patched.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
        (task,) = plan_tasks(replace(asked, budget=30), tmp_path, "critics")
        assert task.budget == 30
        assert not (tmp_path / "cache" / "whole").exists()  # the web as a whole is not asked for
    (task,) = plan_tasks(replace(asked, budget=0.5), tmp_path, "critics")
    run = plan_runs(replace(asked, budget=0.5), tmp_path)[0]
    assert (task.budget, task.seeds, task.critic) == (run.comparison_budget, run.seeds, run.critic)
