"""Deployed on a real Scrapyd: the steps of docs/how-to/deploy.md, one after the other.

``make deploy-check`` runs these tests alone.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from focuscrawl.webs.synthetic import SyntheticWeb

from . import warm
from .ports import await_listener, free_port
from .running import DEMO, ROOT, TOPIC, Kept, crawl, environment
from .scrapyd import PROJECT, Scrapyd, copy_project, deploy, serving, with_password
from .serving import asked

#: with the critic that is trained as documented
ARGUMENTS = DEMO | {"critic": "models/cycling", "topic": "/Cycling", "strategy": "best-first"}
ARGUMENTS["seeds"] = ",".join(SyntheticWeb().seeds(TOPIC))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    with serving(tmp_path_factory.mktemp("scrapyd") / "server") as found:
        yield found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project, with the critic of docs/tutorials/corpus.md."""
    folder = tmp_path_factory.mktemp("project") / "copy"
    copy_project(folder)
    _train_as_documented(folder)
    return folder


@pytest.fixture(scope="module")
def deployed(server: Scrapyd, project: Path) -> Scrapyd:
    done = deploy(server, project)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spiders"] == 1
    return server


def _train_as_documented(project: Path) -> None:
    """Train a critic on the seeds of docs/tutorials/corpus.md, ``models/cycling``."""
    document = (ROOT / "docs" / "tutorials" / "corpus.md").read_text(encoding="utf-8")
    (seeds,) = re.findall(
        r'^```text title="seeds.txt"\n(.*?)^```$', document, re.MULTILINE | re.DOTALL
    )
    (project / "seeds.txt").write_text(seeds, encoding="utf-8")
    command = [
        *("critic", "train", "--words", "road cycling, bicycle, peloton"),
        *("--good", "seeds.txt", "--name", "Cycling"),
        *("--web", "demo", "--out", "models/cycling"),
    ]
    done = warm.run(command, cwd=project, env=environment(), program="focuscrawl")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def crawl_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deployed") / "crawl"


@pytest.fixture(scope="module")
def cancelled(deployed: Scrapyd, crawl_dir: Path) -> str:
    """A job that was cancelled while it crawled, and would not have ended by itself."""
    job = deployed.schedule(**ARGUMENTS, budget=0, crawl_dir=crawl_dir)
    wait_for_pages(deployed, job, crawl_dir)
    deployed.ask("cancel", project=PROJECT, job=job)
    deployed.finished(job)
    return job


def wait_for_pages(server: Scrapyd, job: str, crawl_dir: Path) -> None:
    pages = 0
    while pages < 20:
        time.sleep(0.05)
        assert job not in jobs(server, "finished")
        if (crawl_dir / "crawl.db").exists():
            pages = len(Kept(crawl_dir).order)


def jobs(server: Scrapyd, state: str) -> list[str]:
    return [each["id"] for each in server.ask("listjobs", project=PROJECT)[state]]


@pytest.fixture(scope="module")
def budget(cancelled: str, crawl_dir: Path) -> int:
    """How far the crawl is to go."""
    return len(Kept(crawl_dir).order) + 50


@pytest.fixture(scope="module")
def resumed(deployed: Scrapyd, budget: int, crawl_dir: Path) -> str:
    """A second job with the same arguments, and a budget."""
    job = deployed.schedule(**ARGUMENTS, budget=budget, crawl_dir=crawl_dir)
    deployed.finished(job)
    return job


def test_the_egg_is_built_and_uploaded(deployed: Scrapyd) -> None:
    assert deployed.ask("listprojects")["projects"] == [PROJECT]
    assert deployed.ask("listspiders", project=PROJECT)["spiders"] == ["focused"]
    (egg,) = deployed.eggs().values()
    with ZipFile(BytesIO(egg)) as archive:
        packed = set(archive.namelist())
    kept = [path for path in (ROOT / "focuscrawl").rglob("*") if path.is_file()]
    files = {str(path.relative_to(ROOT)) for path in kept if path.suffix != ".pyc"}
    assert files <= packed
    assert {f"focuscrawl/models/demo/{name}" for name in ("model.npz", "seeds.csv")} <= packed


def test_a_cancelled_job_ends_in_order(deployed: Scrapyd, cancelled: str, crawl_dir: Path) -> None:
    entry = deployed.finished(cancelled)
    log = deployed.read(entry["log_url"])
    assert "Crawling /" in log
    assert "stopped       interrupted" in log
    assert "Traceback" not in log
    kept = Kept(crawl_dir)
    assert kept.stop_reasons[0] == "interrupted"
    items = deployed.read(entry["items_url"]).splitlines()
    assert len(items) >= 20
    assert [json.loads(item)["seq"] for item in items] == list(range(1, len(items) + 1))


def test_scheduled_again_it_goes_on_as_on_the_command_line(
    deployed: Scrapyd,
    resumed: str,
    budget: int,
    crawl_dir: Path,
    project: Path,
    tmp_path: Path,
) -> None:
    entry = deployed.finished(resumed)
    assert f"the budget of {budget} fetches is spent" in deployed.read(entry["log_url"])
    kept = Kept(crawl_dir)
    assert kept.stop_reasons == ["interrupted", "budget"]
    critic = {"critic": project / "models" / "cycling"}
    there = crawl(tmp_path / "crawl", **ARGUMENTS | critic, budget=budget)
    assert kept.order == there.kept.order
    items = deployed.read(entry["items_url"]).splitlines()
    first = json.loads(items[0])["seq"]
    assert len(items) == budget - first + 1


@pytest.mark.long
def test_a_restart_of_scrapyd_ends_its_crawls_in_order_and_has_them_go_on(
    deployed: Scrapyd, tmp_path: Path
) -> None:
    folder, budget = tmp_path / "server", 120
    slow, fast = tmp_path / "slow", tmp_path / "fast"
    shutil.copytree(deployed.folder / "eggs", folder / "eggs")
    with serving(folder) as server:
        done = server.schedule(**{**ARGUMENTS, "budget": 5}, crawl_dir=fast)
        server.finished(done)
        # it would be through before anybody has seen that it crawls
        delay = {"setting": "DOWNLOAD_DELAY=0.5"}
        job = server.schedule(**ARGUMENTS, **delay, budget=budget, crawl_dir=slow)
        wait_for_pages(server, job, slow)
    assert Kept(slow).stop_reasons == ["interrupted"]
    with serving(folder) as server:
        assert jobs(server, "finished") == [done]
        entry = server.finished(job)
        assert "stopped       the budget" in server.read(entry["log_url"])
        items = server.read(entry["items_url"]).splitlines()
    kept = Kept(slow)
    assert kept.stop_reasons == ["interrupted", "budget"]
    assert [json.loads(item)["seq"] for item in items] == list(range(1, budget + 1))
    with serving(folder) as server:
        assert sorted(jobs(server, "finished")) == sorted([done, job])
        assert jobs(server, "running") == jobs(server, "pending") == []


def test_a_slip_is_one_line_in_the_log_of_the_job(deployed: Scrapyd, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    wrong = {"critic": "models/demo", "topic": "/Sports/Cyclin"}
    job = deployed.schedule(**ARGUMENTS | wrong, crawl_dir=folder)
    log = deployed.read(deployed.finished(job)["log_url"])
    (line,) = log.splitlines()
    assert "unknown topic /Sports/Cyclin; similar topics: /Sports/Cycling" in line
    assert not folder.exists()


def test_nothing_is_written_where_the_egg_is(deployed: Scrapyd, resumed: str) -> None:
    (name,) = deployed.eggs()
    assert name == f"{PROJECT}/1.egg"
    written = {path.name for path in deployed.folder.iterdir()}
    assert written <= {
        *("scrapyd.conf", "scrapyd_jobs.py", "__pycache__", "scrapyd.log", "twistd.pid", "venv"),
        *("dbs", "eggs", "items", "logs"),
    }


@pytest.mark.parametrize(
    "given", [{}, {"SCRAPYD_USERNAME": "me"}, {"SCRAPYD_USERNAME": "me", "SCRAPYD_PASSWORD": ""}]
)
def test_the_image_starts_no_scrapyd_without_a_password(
    given: dict[str, str], tmp_path: Path
) -> None:
    with with_password(tmp_path / "server", **given) as process:
        said, _ = process.communicate(timeout=600)
    assert process.returncode == 2
    (line,) = said.splitlines()
    assert "SCRAPYD_PASSWORD" in line


def test_the_image_s_scrapyd_does_nothing_for_those_who_do_not_know_its_password(
    tmp_path: Path,
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    known = {"SCRAPYD_USERNAME": "me", "SCRAPYD_PASSWORD": "pass%word"}
    with with_password(tmp_path / "server", **known, SCRAPYD_HTTP_PORT=str(port)) as process:
        assert process.stdout is not None
        while "Site starting on" not in (line := process.stdout.readline()):
            assert line, "Scrapyd did not start"
        await_listener(port)
        for path in ("", "daemonstatus.json", "addversion.json", "logs/", "jobs", "none"):
            for credentials in ("", "me:", "me:wrong", ":pass%word", "you:pass%word"):
                assert asked(f"{url}/{path}", None, as_a_user(credentials))[0] == 401
        status = f"{url}/daemonstatus.json"
        assert asked(status, None, as_a_user("me:pass%word"))[0] == 200


def as_a_user(credentials: str) -> dict[str, str]:
    packed = b64encode(credentials.encode()).decode()
    return {"Authorization": f"Basic {packed}"} if credentials else {}
