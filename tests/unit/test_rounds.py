"""Crawls in rounds: the order of fetches, nothing lost or fetched twice, what is refused."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from longer import long

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import check_config, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.report.measures import load_pages
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds, driver, read_plan
from focuscrawl.rounds.context import load_context
from focuscrawl.rounds.tables import Tables
from focuscrawl.rounds.tasks import LocalMaster
from focuscrawl.testing import TinyWeb

from .rounds import SEEDS, KilledError, Mortal, crawl, fetches, plan

PLAN = f"""
topic = "/Sports/Cycling"
seeds = "{SEEDS}"
web = "demo"
budget = 30
strategy = "best-first"
round = 10
buckets = 2
"""


_LEARNING = plan("apprentice", 36, 6, 2, options={"memory": 12})


@pytest.mark.parametrize(("strategy", "buckets"), [("best-first", 1), *long(("breadth-first", 3))])
def test_rounds_of_one_fetch_are_the_crawl_of_one_process(
    strategy: str, buckets: int, tmp_path: Path
) -> None:
    given = plan(strategy, 15, 1, buckets)
    crawl(given, tmp_path / "rounds")
    one = open_crawl(CrawlConfig(**vars(given.crawl) | {"crawl_dir": str(tmp_path / "one")}))
    replay(one)
    pages = load_pages(str(tmp_path / "one"))
    expected = list(zip(pages["url"], pages["relevance"].round(6), strict=True))
    assert fetches(tmp_path / "rounds", tmp_path / "folder") == expected


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a crawl of twenty fetches."""
    root = tmp_path_factory.mktemp("crawled")
    crawl(plan("best-first", 20, 10, 2), root)
    return root


@pytest.fixture
def root(crawled: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return shutil.copytree(crawled, tmp_path / "rounds")


def test_two_at_once_do_not_share_a_folder(root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    busy = pytest.raises(UserError, match="another process is crawling in")
    with Tables(str(root)).locked(), busy:
        crawl(plan("best-first", 30, 10, 2), root)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert crawl(plan("best-first", 30, 10, 2), root)["fetched"] == 30


def test_a_plan_that_another_process_changed_meanwhile_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "plan.json"
    changed = path.read_text(encoding="utf-8").replace('"fetches": 10', '"fetches": 5')

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        path.write_text(changed, encoding="utf-8")
        return check_config(*args, **kwargs)

    monkeypatch.setattr(driver, "check_config", meanwhile)
    with pytest.raises(UserError, match="another process has just started a crawl"):
        crawl(plan("best-first", 30, 10, 2), root)
    assert path.read_text(encoding="utf-8") == changed


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a crawl whose apprentice has learned."""
    root = tmp_path_factory.mktemp("learned")
    assert crawl(_LEARNING, root)["model"] >= 3
    return root


def test_a_round_records_what_its_time_went_to(learned: Path) -> None:
    last = Tables(str(learned)).read_json("rounds/last.json")
    assert last is not None
    seconds, laps = last["seconds"], last["laps"]
    assert [*seconds] == ["choose", "fetch", "learn", "take in", "commit"]
    fetched, taken_in = ("open", "crawl"), ("read", "join", "score", "rank", "write")
    assert {*laps} == {*fetched, *taken_in}
    for stage, whole in ((fetched, "fetch"), (taken_in, "take in")):
        assert 0.0 < sum(laps[lap] for lap in stage) <= seconds[whole]


def test_what_no_round_will_read_is_removed(learned: Path) -> None:
    for kind in ("candidates", "discounts", "outcomes"):
        assert all(len([*folder.iterdir()]) == 1 for folder in (learned / kind).iterdir())
    last = int(max(path.stem for path in (learned / "rounds").glob("0*.json")))
    judged = {int(path.name) for path in (learned / "judged").glob("*/*")}
    assert judged <= {last - 2, last - 1, last}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("models/*.npz", "", r"models/\d+.npz is damaged \(.*\): crawl again"),
        ("models/*.json", "{}", r"models/\d+.json is damaged \(no version and learned_in"),
        ("outcomes/000/*", "x", r"outcomes/000/\d+ is damaged"),
        ("judged/00?/*", "x", r"judged/00\d/\d+ is damaged"),
        ("discounts/000/*", "x", r"discounts/000/\d+.parquet cannot be read"),
        ("plan.json", "[" * 100_000, r"plan.json is damaged \(not JSON"),
        (
            "urls/000/notes.txt",
            "x",
            "notes.txt is not a table of a round: move the file",
        ),
        ("judged/000/old", "x", "judged/000/old is not a table of a round"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_one_line(
    name: str, content: str, message: str, learned: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(learned, tmp_path / "tables")
    for path in [*root.glob(name)] or [root / name]:
        path.write_text(content)
    more = _LEARNING.model_copy(update={"crawl": _LEARNING.crawl.with_values(budget=42)})
    with pytest.raises(UserError, match=message) as refused:
        crawl(more, root)
    assert "\n" not in str(refused.value)


def test_tasks_are_told_as_they_are_done(tmp_path: Path) -> None:
    told: dict[str, list[int]] = {}

    @contextmanager
    def watch(what: str, tasks: int) -> Iterator[Callable[[int], object]]:
        told[what] = [tasks]
        yield told[what].append

    given = plan("best-first", 12, 6, 2)
    crawl_in_rounds(given, str(tmp_path), LocalMaster(1), lambda _: None, watch=watch)
    assert [*told][:3] == ["round 0: update", "round 1: fetch", "round 1: update"]
    assert all(sum(done) == tasks for tasks, *done in told.values())


@pytest.mark.parametrize("writes", [33, *long(3, 9, 16, 24, 47)])
def test_wherever_it_is_killed_it_goes_on_as_if_it_had_not_been(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = plan("apprentice", 40, 10, 2)
    crawl(given, tmp_path / "whole")
    Mortal.left = writes
    with monkeypatch.context() as mortal:
        mortal.setattr("focuscrawl.rounds.driver.Tables", Mortal)
        mortal.setattr("focuscrawl.rounds.context.Tables", Mortal)
        with pytest.raises(KilledError):
            crawl(given, tmp_path / "killed")
    last = crawl(given, tmp_path / "killed")
    assert last["fetched"] == 40
    found = fetches(tmp_path / "killed", tmp_path / "a")
    assert found == fetches(tmp_path / "whole", tmp_path / "b")
    assert len({url for url, _ in found}) == 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, float]]:
    """The forty fetches of a crawl in one process."""
    root = tmp_path_factory.mktemp("whole")
    crawl(plan("best-first", 40, 10, 3), root / "tables")
    return fetches(root / "tables", root / "folder")


def test_processes_crawl_what_one_does_and_more_budget_goes_on(
    whole: list[tuple[str, float]], tmp_path: Path
) -> None:
    crawl(plan("best-first", 15, 10, 3), tmp_path / "several")
    last = crawl(plan("best-first", 40, 10, 3), tmp_path / "several", workers=2)
    assert last["fetched"] == 40
    assert fetches(tmp_path / "several", tmp_path / "folder") == whole


def test_a_frontier_that_runs_out_ends_the_crawl(tmp_path: Path) -> None:
    page = TinyWeb({"http://a.example/": "<p>bicycle"}).write(tmp_path / "one.warc.gz")
    given = RoundsPlan(
        crawl=CrawlConfig(
            topic="/Sports/Cycling", seeds="http://a.example/", web=str(page), budget=10
        ),
        round=5,
        buckets=2,
    )
    last = crawl(given, tmp_path / "rounds")
    assert (last["fetched"], last["stop"]) == (1, "frontier_empty")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("budgets = 3", "has the unknown entry 'budgets': did you mean budget?"),
        ("round = 0", "round must be a share of the budget, as '1%', or a number of fetches"),
        ("round = '120%x'", "round must be a share of the budget"),
        ("buckets = 0", "buckets must be a whole number"),
        ("x = [", "is not a valid TOML file"),
        ("settings = {DOWNLOAD_DELAY = 2026-01-01}", "settings has a date or time"),
    ],
)
def test_a_slip_in_a_plan_is_one_line(said: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rounds.toml"
    key = said.split(" ", maxsplit=1)[0]
    kept = "\n".join(line for line in PLAN.splitlines() if not line.startswith(key + " "))
    path.write_text(f"{kept}\n{said}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        read_plan(path)


def test_what_a_plan_has_to_say(tmp_path: Path) -> None:
    path = tmp_path / "rounds.toml"
    path.write_text('topic = "/a"\nweb = "demo"\n', encoding="utf-8")
    with pytest.raises(UserError, match="lacks the entry 'budget'"):
        read_plan(path)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
    path.write_text(PLAN.replace("round = 10", 'round = "10%"'), encoding="utf-8")
    assert read_plan(path).fetches == 3


def test_the_command_crawls_and_tells_round_by_round(tmp_path: Path) -> None:
    path = tmp_path / "rounds.toml"
    path.write_text(PLAN, encoding="utf-8")
    command = ["rounds", str(path), "--out", str(tmp_path / "tables")]
    folder = ["--master", "processes[1]", "--folder", str(tmp_path / "crawl")]
    done = CliRunner().invoke(main, [*command, *folder])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("round 1: ")
    refused = CliRunner().invoke(main, [*command, "--pages", "3"])
    assert (refused.exit_code, "--pages needs --folder" in refused.output) == (2, True)
    assert lines[-2] == "the budget of 30 fetches is spent"
    assert len(load_pages(str(tmp_path / "crawl"))) == 30
    again = CrawlConfig(
        topic="/Sports/Cycling",
        seeds=SEEDS,
        web="demo",
        strategy="best-first",
        crawl_dir=str(tmp_path / "crawl"),
    )
    with pytest.raises(UserError, match="resume that crawl with its tables"):
        open_crawl(again)


def test_what_does_not_go_together_is_refused(root: Path, tmp_path: Path) -> None:
    for given, message in (
        (plan("breadth-first", 20, 10, 2), "another crawl: its strategy is best-first"),
        (plan("best-first", 20, 10, 3), "another crawl: its buckets is 2, not 3"),
    ):
        with pytest.raises(UserError, match=message):
            crawl(given, root)
    with pytest.raises(UserError, match="cannot run in rounds"):
        crawl(plan("pagerank", 5, 5, 2), tmp_path / "other")
    assert not (tmp_path / "other").exists()
    for table in root.glob("urls/*/*"):
        table.write_bytes(b"PAR1 no more")
    with pytest.raises(UserError, match=r"urls/00\d/.*parquet cannot be read"):
        crawl(plan("best-first", 30, 10, 2), root)
    (root / "plan.json").write_text('{"format": 9}', encoding="utf-8")
    with pytest.raises(UserError, match="tables of format 9, this focuscrawl reads 3"):
        crawl(plan("best-first", 30, 10, 2), root)


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("sprak://", "--master sprak:// is not a valid master: use processes"),
        ("local[2", "is not a valid master"),
        ("processes[0]", "is not a valid master"),
        ("spark://127.0.0.1", "is not a valid master"),
    ],
)
def test_a_master_that_is_none_is_one_line(master: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rounds.toml"
    path.write_text(PLAN, encoding="utf-8")
    out = tmp_path / "tables"
    done = CliRunner().invoke(main, ["rounds", str(path), "--out", str(out), "--master", master])
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.splitlines()) == 1
    assert not out.exists()


def test_a_process_that_dies_is_one_line_and_its_disk_is_not_missed(
    whole: list[tuple[str, float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, disk = plan("best-first", 40, 10, 3), tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.setattr(tempfile, "tempdir", None)

    @contextmanager
    def watch(what: str, tasks: int) -> Iterator[Callable[[int], object]]:
        if what == "round 3: fetch":
            for process in multiprocessing.active_children():
                process.kill()
        yield lambda done: done

    load_context.cache_clear()
    with (
        closing(LocalMaster(2)) as workers,
        pytest.raises(UserError, match="a process died in the stage fetch of round 3"),
    ):
        crawl_in_rounds(given, str(tmp_path / "lost"), workers, lambda _: None, watch=watch)
    shutil.rmtree(disk)
    disk.mkdir()
    last = crawl(given, tmp_path / "lost")
    assert last["fetched"] == 40
    assert fetches(tmp_path / "lost", tmp_path / "folder") == whole
    assert not [*disk.iterdir()]  # nothing is kept there from task to task
