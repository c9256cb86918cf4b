"""Forages by the loop and the command: order, resuming, limits, goals; paths of a person."""

from __future__ import annotations

import csv
import json
import threading
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import softmax

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.paths.forager import Forager
from focuscrawl.paths.path_model import load_path_critic, read_model, save_model
from focuscrawl.paths.path_training import WebPages
from focuscrawl.paths.training_paths import Walk, read_paths
from focuscrawl.report.goals import goal_pages
from focuscrawl.report.status import open_store
from focuscrawl.strategies.path_strategy import Paths
from focuscrawl.testing import check_critic, check_strategy
from focuscrawl.webs import open_web

from . import departments
from .departments import record_pages
from .forages import forage, open_forage, rows_of, run_paths, train_model

if TYPE_CHECKING:
    from .departments import Departments


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Departments:
    return departments.make(tmp_path_factory.mktemp("departments"))


@pytest.fixture(scope="module")
def model(web: Departments) -> Path:
    return train_model(web)


@pytest.mark.parametrize("options", [{}, {"adapt": True}, {"printed_scores": True}])
def test_a_forage_goes_to_the_goals_and_resumes_exactly(
    web: Departments, model: Path, tmp_path: Path, options: dict[str, bool]
) -> None:
    door = web.doors[3]
    whole = forage(web, model, tmp_path / "whole", door, budget=24, **options)
    assert web.professors[door] <= set(whole[: 16 if "printed_scores" in options else 12])
    for budget in (1, 3, 7, 16, 24):
        parts = forage(web, model, tmp_path / "parts", door, budget=budget, **options)
    assert parts == whole
    scores = "SELECT url, score, state FROM frontier ORDER BY url"
    assert rows_of(tmp_path / "parts", scores) == rows_of(tmp_path / "whole", scores)


def test_every_site_has_a_frontier_of_its_own(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    # what is given up of one site is none of the other's business
    fetched = forage(web, model, tmp_path / "c", *web.doors[2:], budget=60, per_site=9)
    for door in web.doors[2:]:
        own = [url for url in fetched if url.startswith(door)]
        assert 7 <= len(own) <= 11, own  # the sites link to each other
        assert len(web.professors[door] & set(own)) >= 5
    ended = rows_of(tmp_path / "c", "SELECT detail FROM events WHERE kind = 'stop'")
    assert ended == [("frontier_empty",)]


def test_a_forage_looks_at_its_own_site_first(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    # the sites next door are those learned from: their lists look like lists more than its own
    door = web.doors[3]
    fetched = forage(web, model, tmp_path / "c", door, budget=60)
    own = [url.startswith(door) for url in fetched]
    assert not any(own[own.index(False) :])
    assert web.professors[door] <= set(fetched[: own.index(False)])


def test_it_holds_to_what_every_strategy_does(web: Departments, model: Path) -> None:
    critic = load_path_critic(str(model), "/goal")
    check_strategy(Paths, critic=critic, web=open_web(str(web.warc)), seeds=web.doors[2:])
    check_critic(critic)


def test_a_threshold_ends_a_forage(web: Departments, model: Path, tmp_path: Path) -> None:
    fetched = forage(web, model, tmp_path / "c", web.doors[3], budget=0, threshold=0.2)
    assert web.professors[web.doors[3]] <= set(fetched)
    assert len(fetched) < 40  # of 140
    low = rows_of(tmp_path / "c", "SELECT score FROM frontier WHERE state = 'queued'")
    assert low == []


def test_a_forage_stops_when_little_more_is_to_be_expected(
    model: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    large = departments.make(tmp_path_factory.mktemp("large"), others=70)
    door = large.doors[3]
    stopped = forage(large, model, tmp_path / "c", door, budget=0, stop=0.05)
    assert large.professors[door] <= set(stopped)
    assert len(stopped) < 150  # of 320
    assert rows_of(tmp_path / "c", "SELECT url FROM frontier WHERE state = 'queued'") == []
    # what comes before the stop is what a forage without it fetches, and a resumed one stops there
    assert forage(large, model, tmp_path / "on", door, budget=len(stopped)) == stopped
    for budget in (77, 0):
        parts = forage(large, model, tmp_path / "parts", door, budget=budget, stop=0.05)
    assert parts == stopped


def test_a_model_of_one_site_cannot_tell_when_to_stop(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    known, _ = read_model(model)
    assert known.calibration is not None
    assert known.calibration.goals == 8
    save_model(replace(known, calibration=None), tmp_path / "model", {"paths": 1})
    with pytest.raises(UserError, match="at least two sites"):
        forage(web, tmp_path / "model", tmp_path / "c", web.doors[3], budget=1, stop=0.05)
    assert not (tmp_path / "c").exists()


def test_goals_have_the_path_that_led_to_them(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    forage(web, model, tmp_path / "c", web.doors[3], budget=16)
    with closing(open_store(tmp_path / "c")) as store:
        found = goal_pages(store)
    # when all are found it looks at the neighbours
    own = [page for page in found if page.path[-1].startswith(web.doors[3])]
    assert {page.path[-1] for page in own} == web.professors[web.doors[3]]
    assert {tuple(page.path[:3]) for page in own} == {
        (web.doors[3], f"{web.doors[3]}folk.html", f"{web.doors[3]}fac.html")
    }
    assert [page.probability for page in found] == sorted(
        (page.probability for page in found), reverse=True
    )


def test_a_redirect_takes_the_path_with_it(tmp_path: Path, web: Departments, model: Path) -> None:
    # the same department, but its list has moved
    door = web.doors[3]
    bodies = departments.bodies(web)
    listed = bodies.pop(f"{door}fac.html")
    moved = {f"{door}fac.html": f"{door}moved/list.html"}
    record_pages(tmp_path / "moved.warc.gz", {**bodies, f"{door}moved/list.html": listed}, moved)
    there = replace(web, warc=tmp_path / "moved.warc.gz")
    replay(open_forage(there, model, tmp_path / "c", door, budget=16))
    with closing(open_store(tmp_path / "c")) as store:
        found = goal_pages(store)
    assert {page.path[-1] for page in found} == web.professors[door]
    assert {tuple(page.path[:3]) for page in found} == {
        (door, f"{door}folk.html", f"{door}moved/list.html")
    }


def test_the_strategy_needs_a_model_of_paths(
    tmp_path: Path, web: Departments, model: Path
) -> None:
    plan = CrawlConfig(
        topic="/Sports", strategy="paths", web="demo", crawl_dir=str(tmp_path / "c")
    )
    with pytest.raises(UserError, match="focuscrawl paths train"):
        open_crawl(plan)
    for message, options in (
        ("evidence must be one of", {"evidence": "all"}),
        ("remove evidence=max", {"evidence": "max", "printed_scores": True}),
    ):
        with pytest.raises(UserError, match=message):
            forage(web, model, tmp_path / "c", web.doors[3], budget=1, **options)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(("evidence", "expected"), [("sum", 1.0), ("max", 0.8), ("mean", 0.5)])
def test_paths_to_one_url_add_up(model: Path, evidence: str, expected: float) -> None:
    known, _ = read_model(model)
    k = len(known.states)
    forager = Forager(replace(known, rewards=np.eye(k)[0]), evidence=evidence)
    for page, goal in ((0, 0.8), (1, 0.2)):
        forager.record_fetch(page)
        forager.add_page(page, page - 1, "http://a.example/")
        labels = np.zeros((2, k))
        labels[:, 0], labels[:, 1] = goal, 1.0 - goal
        labels[1] /= 2.0  # the second link of a page to a URL does not count
        found = forager.expand(page, np.array([5, 5]), labels[None])
    assert found.urls.tolist() == [5]
    assert found.scores[0] == pytest.approx(expected)


def test_as_printed_every_path_to_a_page_counts_by_itself(model: Path) -> None:
    known, _ = read_model(model)
    k = len(known.states)
    forager = Forager(replace(known, rewards=np.eye(k)[0]), printed=True)
    rng = np.random.default_rng(1)
    page = rng.normal(size=k)
    forager.add_page(0, -1, "http://a.example/")
    begun = forager.label_probabilities(0, page)
    forager.record_fetch(0)
    edges = known.crf.edge_[k:, :k].max(axis=1)
    np.testing.assert_allclose(begun, softmax(page + edges)[None])  # goal and fail, too
    one, two = rng.dirichlet(np.ones(k), (2, 1, 2))
    forager.expand(0, np.array([1, 2]), one)
    forager.add_page(1, 0, "http://a.example/1")
    assert forager.label_probabilities(1, page).shape == (1, k)
    forager.record_fetch(1)
    found = forager.expand(1, np.array([2, 3]), two)
    assert found.scores[0] == pytest.approx(one[0, 1, 0] + two[0, 0, 0])
    forager.add_page(2, 0, "http://a.example/2")
    ways = forager.label_probabilities(2, page)  # by the front door, and by way of page 1
    expected = [softmax(page + edges + np.log(said)) for said in (one[0, 1], two[0, 0])]
    np.testing.assert_allclose(sorted(ways.tolist()), sorted(map(list, expected)))
    forager.record_fetch(2)
    found = forager.expand(2, np.array([4]), rng.dirichlet(np.ones(k), (2, 1)))
    assert found.urls.tolist() == [4]
    assert found.scores[0] == found.link_scores[0]
    assert 0.0 < found.scores[0] < 2.0


def test_the_command_forages(web: Departments, model: Path, tmp_path: Path) -> None:
    (tmp_path / "sites.txt").write_text(web.doors[3])
    command = ("forage", model, tmp_path / "sites.txt", "--web", web.warc, "--budget", 12)
    done = run_paths(*command, "--out", tmp_path / "f")  # a real process of Scrapy
    assert f"8 goal pages found; pages and paths: {tmp_path / 'f' / 'goals.csv'}" in done.output
    with (tmp_path / "f" / "goals.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["url"] for row in rows} == web.professors[web.doors[3]]
    assert all(row["path"].split(" ")[-1] == row["url"] for row in rows)
    ((options,),) = rows_of(tmp_path / "f", "SELECT value FROM meta WHERE key = 'options'")
    assert json.loads(options) == {"adapt": True, "per_site": 0, "stop": 0.03, "threshold": 0.0}


def test_paths_are_taken_out_of_a_crawl(web: Departments, model: Path, tmp_path: Path) -> None:
    forage(web, model, tmp_path / "c", web.doors[3], budget=12)
    run_paths(
        *("extract", tmp_path / "c", "--labels", web.labels, "--column", "kind"),
        *("--goal", "professor", "--out", tmp_path / "p.jsonl"),
    )
    ends = {path.pages[-1] for path in read_paths(tmp_path / "p.jsonl") if path.succeeds}
    assert ends >= web.professors[web.doors[3]]  # the first fetches are those and the way


def test_what_a_person_can_get_wrong(web: Departments, model: Path, tmp_path: Path) -> None:
    sites = tmp_path / "sites.txt"
    sites.write_text(web.doors[3])
    labels = ("--labels", web.labels, "--column", "kind", "--goal", "professor")
    out = ("--out", tmp_path / "o")
    for arguments, said in (
        (("extract", web.warc, *labels, *out), "name them with --starts"),
        (
            ("extract", web.warc, *labels[:2], "--goal", "x", "--starts", sites, *out),
            "it needs the columns url,topic",
        ),
        (
            ("extract", web.warc, *labels[:-1], "dean", "--starts", sites, *out),
            "no page with the label 'dean'",
        ),
        (("train", sites, "--web", web.warc, *out), "line 1 is not a path"),
        (("train", sites, "--web", web.warc, "--out", model), "exists already"),
        (("forage", tmp_path, sites, *out), "focuscrawl paths train"),
        (("forage", model, tmp_path / "none.txt", *out), "neither a file nor"),
        (("record", "ftp://a", *out), "not an http(s) URL"),
        (("record", "http://nowhere.example/", "--web", web.warc, *out), "is not in"),
    ):
        done = run_paths(*arguments, code=2)
        assert said in done.output
        assert len(done.output.strip().splitlines()) == 1
        assert not (tmp_path / "o").exists()


@pytest.mark.long
def test_scores_as_printed_do_not_adapt(
    web: Departments, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sites.txt").write_text(web.doors[3])
    command = ("forage", model, tmp_path / "sites.txt", "--web", web.warc, "--budget", 3)
    run_paths(*command, "--printed-scores", "--adapt", "--out", tmp_path / "both", code=2)
    assert capfd.readouterr().err.strip().endswith("remove one of them")
    assert not (tmp_path / "both").exists()
    for given in ("--printed-scores", "--no-adapt"):
        run_paths(*command, given, "--out", tmp_path / given[2:])
        ((options,),) = rows_of(
            tmp_path / given[2:], "SELECT value FROM meta WHERE key = 'options'"
        )
        assert "adapt" not in json.loads(options)


def test_a_person_records_paths(web: Departments, tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    keys = "/people,1,m people,1,1,g,2,g,u,u,2,g,99,?,b,2,f".replace(",", "\n")
    done = run_paths("record", web.doors[0], "--web", web.warc, "--out", out, keys=keys)
    assert "link 99 does not exist" in done.output
    found = read_paths(out)
    assert [path.labels for path in found] == [
        (None, "people", None, "goal"),
        (None, "people", None, "goal"),
        (None, "people", "fail"),
    ]
    assert {path.pages[-1] for path in found[:2]} <= web.professors[web.doors[0]]
    run_paths("record", web.doors[1], "--web", web.warc, "--out", out, keys="1\nf\nq\n")
    assert len(read_paths(out)) == 4  # those before are still there


def test_a_page_of_the_live_web_is_visited_and_recorded(tmp_path: Path) -> None:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bodies = {
                "/": b"<title>door</title><a href=/old>people</a>",
                "/new": b"<title>people</title><a href=/ann>Ann</a>",
                "/ann": b"<title>Ann</title>",
            }
            body = bodies.get(self.path, b"")
            self.send_response(200 if body else 302)
            self.send_header("Content-Type", "text/html")
            self.send_header("Location", "/new")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        door = f"http://127.0.0.1:{server.server_address[1]}/"
        out = tmp_path / "live.jsonl"
        refused = run_paths("record", door, "--out", out, code=2)
        assert "allow it with --private 127.0.0.1" in refused.output
        done = run_paths("record", door, "--out", out, "--private", "127.0.0.1", keys="1\n1\ng\n")
        assert "1 path saved" in done.output
    finally:
        server.shutdown()
        server.server_close()
    (path,) = read_paths(out)
    assert path.pages == (door, f"{door}old", f"{door}ann")
    view = WebPages(open_web(str(tmp_path / "live.warc.gz"))).view(f"{door}old")
    assert view is not None
    assert (view.title, view.url) == ("people", f"{door}new")


def test_walks_can_be_labelled_and_end() -> None:
    walk = Walk.start_at("d").follow("list").follow("ann").finish_path(goal=True)
    assert walk.current_page == "list"  # ready for the next of them
    walk = walk.label_page("people").follow("bob").finish_path(goal=True).back().follow("news")
    walk = walk.finish_path(goal=False)
    assert [path.labels for path in walk.saved] == [
        (None, "people", "goal"),
        (None, "people", "goal"),
        (None, "fail"),
    ]
    assert replace(walk, saved=()) == Walk.start_at("d")
    assert walk.back().back().current_page == "d"
