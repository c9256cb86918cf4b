"""Operating a crawl that runs: status, pause, resume, stop, metrics, JSON log, SIGTERM."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from focuscrawl.crawl.crawl_folder import Command, FileControl

from . import warm
from .ports import free_port, listens
from .running import BICYCLES, QUICK, ROOT, Run, crawl, crawl_until, refused, start
from .typed import focuscrawl

if TYPE_CHECKING:
    from .conftest import LocalWeb

ANEW = b"\x1b[4F\x1b[J"  # four lines up, and away with what is there
PAUSED = 2.0  # seconds in which a crawl that is not paused fetches a lot


def ask(*words: object, code: int = 0) -> str:
    """Run ``focuscrawl``; return what it says."""
    return focuscrawl(*words, code=code).output


def status(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(ask("status", folder, "--json"))
    return read


def await_pause(folder: Path) -> None:
    """Wait until a crawl is paused."""
    while status(folder)["state"] != "paused":
        time.sleep(0.05)


def metrics(port: int) -> dict[str, float]:
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        sample.name + "".join(f" {v}" for v in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def stands_still(folder: Path, port: int) -> bool:
    """Tell whether nothing is under way, and all that was fetched is in the store."""
    told = metrics(port)
    fetched = told["focuscrawl_fetches_total"]
    return not told["focuscrawl_in_flight"] and fetched == status(folder)["fetched"]


def watched(folder: Path) -> tuple[str, int]:
    """Look at a crawl in a terminal until it was shown three times, and leave with Ctrl-C."""
    ours, theirs = pty.openpty()
    line = ["status", str(folder), "--every", "0.1"]
    with warm.WarmProcess(
        line, cwd=ROOT, env=os.environ, stdout=theirs, stderr=theirs, program="focuscrawl"
    ) as process:
        os.close(theirs)
        seen = b""
        while seen.count(ANEW) < 2:
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
    os.close(ours)
    return seen.decode(), process.wait()


@pytest.fixture(scope="module")
def operated(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A crawl that is looked at, paused, resumed and stopped; what was seen on the way."""
    folder = tmp_path_factory.mktemp("operated") / "crawl"
    port = free_port()
    given = {"FOCUSCRAWL_METRICS_PORT": port, "FOCUSCRAWL_LOG_JSON": 1, "DOWNLOAD_DELAY": 0.2}
    seen: dict[str, Any] = {"folder": folder}
    with start(folder, **given, **demo, budget=0) as running:
        running.wait_for(10)
        seen["crawling"] = ask("status", folder)
        seen["metrics"] = metrics(port)
        seen["elsewhere"] = listens("127.0.0.2", port)
        seen["pause"] = ask("pause", folder)
        while not stands_still(folder, port):
            time.sleep(0.05)
        seen["paused"] = status(folder)
        began = time.monotonic()
        seen["watched"] = watched(folder)
        time.sleep(max(0.0, began + PAUSED - time.monotonic()))
        seen["after"] = status(folder)
        seen["metrics paused"] = metrics(port)
        seen["resume"] = ask("resume", folder)
        running.wait_for(seen["after"]["fetched"] + 10)
        seen["resumed"] = status(folder)
        seen["stop"] = ask("stop", folder)
        seen["run"] = running.stop(0)
    seen["ended"] = ask("status", folder)
    return seen


def test_status_shows_a_crawl_under_way(operated: dict[str, Any]) -> None:
    name, heading, crawled, recent = operated["crawling"].splitlines()
    assert name == str(operated["folder"])
    assert heading.strip() == "best-first of /Sports/Cycling on demo: crawling"
    assert "URLs queued on" in crawled
    assert "pages/s" in recent


def test_in_a_terminal_status_is_shown_again_and_again(operated: dict[str, Any]) -> None:
    text, code = operated["watched"]
    assert code == 0
    first, second, _ = text.replace("\r", "").split(ANEW.decode())[:3]
    assert first.count("\n") == 4  # so many lines above, the next one begins
    assert all("best-first of /Sports/Cycling on demo: paused" in each for each in (first, second))
    assert "Traceback" not in text


def test_a_paused_crawl_fetches_nothing(operated: dict[str, Any]) -> None:
    assert "paused" in operated["pause"]
    assert operated["paused"]["state"] == "paused"
    assert operated["after"]["fetched"] == operated["paused"]["fetched"]
    assert operated["metrics paused"]["focuscrawl_paused"] == 1


def test_a_resumed_crawl_goes_on(operated: dict[str, Any]) -> None:
    assert "resumed" in operated["resume"]
    assert operated["resumed"]["state"] == "crawling"
    assert operated["resumed"]["fetched"] >= operated["after"]["fetched"] + 10


def test_a_stopped_crawl_ends_in_order(operated: dict[str, Any]) -> None:
    run: Run = operated["run"]
    assert (run.returncode, run.kept.stop_reasons) == (0, ["stopped"])
    assert "stopped       by `focuscrawl stop`" in run.stderr
    assert "Traceback" not in run.stderr
    assert "stopped by `focuscrawl stop`" in operated["ended"]
    told = run.kept.query("SELECT kind FROM events WHERE kind <> 'excluded' ORDER BY id")
    assert [kind for (kind,) in told] == ["start", "seeds", "paused", "resumed", "stop"]
    assert not (run.kept.folder / FileControl.FILE).exists()


def test_metrics_are_those_of_the_crawl(operated: dict[str, Any]) -> None:
    before, paused = operated["metrics"], operated["metrics paused"]
    fetched, waiting = operated["paused"]["fetched"], operated["paused"]["waiting"]
    assert paused["focuscrawl_fetches_total"] == fetched
    assert paused["focuscrawl_frontier_urls"] == waiting
    assert paused["focuscrawl_relevance_total"] == pytest.approx(
        fetched * operated["paused"]["harvest_rate"]
    )
    assert before["focuscrawl_paused"] == paused["focuscrawl_in_flight"] == 0
    assert paused["focuscrawl_responses_total 200"] >= before["focuscrawl_responses_total 200"] > 0
    assert paused["focuscrawl_budget"] == 0
    assert any(name.startswith("focuscrawl_crawl_info") for name in paused)


def test_metrics_are_for_this_machine_alone(operated: dict[str, Any]) -> None:
    assert not operated["elsewhere"]


def test_metrics_for_others_are_warned_of(demo: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    given = {"FOCUSCRAWL_METRICS_PORT": port, "FOCUSCRAWL_METRICS_ADDRESS": "0.0.0.0"}
    with start(tmp_path / "crawl", **given, DOWNLOAD_DELAY=0.2, **demo, budget=0) as running:
        running.wait_for(2)
        assert listens("127.0.0.2", port)
        run = running.stop(signal.SIGTERM)
    (line,) = (each for each in run.stderr.splitlines() if "metrics at" in each)
    assert (
        f"WARNING focuscrawl.extensions.metrics: Serving metrics at http://0.0.0.0:{port}/" in line
    )
    assert "everybody who can reach this address" in line


def test_the_log_is_there_as_json(operated: dict[str, Any]) -> None:
    lines = (operated["folder"] / "log.jsonl").read_text(encoding="utf-8").splitlines()
    read = [json.loads(line) for line in lines]
    today = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d INFO ")  # of the other log
    assert all(map(today.match, operated["run"].stderr.splitlines()[:3]))
    assert {"at", "level", "logger", "message", "crawl"} == set(read[0])
    messages = [line["message"] for line in read]
    assert messages[0].startswith("Crawling /Sports/Cycling on the web demo: 5 start pages")
    assert "Resumed" in messages
    assert "Stopping: waiting for the requests in flight" in messages
    assert messages[-1].startswith("The crawl has stopped\n")
    assert "by `focuscrawl stop`" in messages[-1]
    last, crawled = read[-1], operated["run"].kept
    assert last["reason"] == "stopped"
    assert last["fetched"] == len(crawled.order)
    assert 0.0 < last["harvest_rate"] < 1.0


def test_the_json_log_can_be_all_there_is(demo: dict[str, str], tmp_path: Path) -> None:
    given = {"FOCUSCRAWL_LOG_JSON": "-", "LOG_ENABLED": 0}
    done = crawl(tmp_path / "crawl", **given, **demo, budget=8)
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert "the budget of 8 fetches is spent" in lines[-1]["message"]
    assert (lines[-1]["reason"], lines[-1]["fetched"]) == ("budget", 8)
    assert sum("The crawl has stopped" in line["message"] for line in lines) == 1


def test_paused_before_it_is_started(demo: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    crawl(folder, **demo, budget=10)
    assert "not running" in ask("pause", folder)
    FileControl(folder).send(Command.PAUSE)
    with start(folder, **demo, budget=0) as running:
        await_pause(folder)
        assert status(folder)["fetched"] == 10
        run = running.stop(signal.SIGTERM)
    assert (run.returncode, run.kept.stop_reasons) == (0, ["budget", "interrupted"])
    assert FileControl(folder).command is Command.PAUSE


def test_another_budget_is_exact(demo: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    crawl(folder, **demo, budget=10)
    FileControl(folder).send(Command.PAUSE)
    FileControl(folder).set_budget(3)  # of an earlier run: not meant for this one
    with start(folder, **demo, budget=20) as running:
        await_pause(folder)
        assert "extended" in ask("extend", folder, 14)
        ask("resume", folder)
        run = running.end()
    assert (run.returncode, run.kept.stop_reasons) == (0, ["budget", "budget"])
    assert len(run.kept.urls) == 14
    assert not (folder / FileControl.FILE).exists()
    refused = ask("extend", folder, 30, code=2)
    assert "no crawl is running" in refused
    assert refused.endswith("-a budget=30\n")
    assert "it has made 14 fetches already" in ask("extend", folder, 9, code=2)


def test_a_terminated_crawl_waits_for_no_slow_server(local_web: LocalWeb, tmp_path: Path) -> None:
    """The server would never answer: what it was asked for is for the next run."""
    seeds = f"{local_web.origins['slow']}/,{local_web.origins['b']}/"
    given = QUICK | BICYCLES | {"DOWNLOAD_TIMEOUT": 600, "FOCUSCRAWL_STOP_TIMEOUT": 0.5}
    folder, all_of_b = tmp_path / "crawl", 6
    done = crawl_until(folder, all_of_b, signal.SIGTERM, **given, seeds=seeds, budget=0)
    assert (done.returncode, done.kept.stop_reasons) == (0, ["interrupted"])
    assert "Cancelled 1 request; the URLs are queued again" in done.stderr
    assert "Traceback" not in done.stderr
    kept = done.kept
    assert f"{local_web.origins['slow']}/" not in kept.urls
    assert kept.query("SELECT url, state FROM frontier WHERE state = 'queued'") == [
        (f"{local_web.origins['slow']}/", "queued")
    ]


def test_slips_are_one_line(demo: dict[str, str], tmp_path: Path) -> None:
    for command in ("status", "pause", "resume", "stop"):
        said = ask(command, tmp_path / "none", code=2)
        assert "none contains no crawl" in said
    elsewhere = {
        "FOCUSCRAWL_METRICS_ADDRESS": "192.0.2.1",
        "FOCUSCRAWL_METRICS_PORT": 9410,
    }
    line = refused(tmp_path / "crawl", **elsewhere, **demo)
    assert "FOCUSCRAWL_METRICS_ADDRESS=192.0.2.1 is no address of this machine" in line
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(tmp_path / "crawl", FOCUSCRAWL_METRICS_PORT=port, **demo)
    assert f"FOCUSCRAWL_METRICS_PORT={port} is in use" in line
    assert not (tmp_path / "crawl").exists()


def test_nothing_to_resume_and_nothing_to_stop(operated: dict[str, Any]) -> None:
    assert "not paused" in ask("resume", operated["folder"], code=2)
    assert "no crawl is running" in ask("stop", operated["folder"], code=2)
