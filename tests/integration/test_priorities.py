"""`Request.priority`, as a downloader middleware of the user's reads it in a whole crawl."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.learners import split_packs
from focuscrawl.foundation.arrays import unpack_arrays
from focuscrawl.settings import DOWNLOADER_MIDDLEWARES

from . import warm
from .running import BICYCLES, QUICK, ROOT, Kept, crawl, environment, words
from .test_addon import focused

if TYPE_CHECKING:
    from .conftest import LocalWeb

BUDGET = 60
FIRST = 1_000_000
STRATEGY = '''
"""Prefers long URLs, and expects a little more at the request."""

import numpy as np

from focuscrawl.strategies import LinkStrategy, Maximum


class LongUrls(LinkStrategy):
    def __init__(self, context, *, answer="more"):
        self.evidence, self.answer, self.urls = Maximum(), answer, {}

    def score_links(self, page):
        urls = [page.view.links.urls[i] for i in page.links]
        self.urls |= dict(zip(page.targets.tolist(), urls))
        return np.array([float(len(url)) for url in urls])

    def score_at_request(self, url, score):
        if self.answer == "error":
            raise LookupError(self.urls[url])
        return float("nan") if self.answer == "nan" else score + 0.002
'''


def reading(log: Path) -> dict[str, object]:
    """Return the settings of a crawl whose own middleware writes down the priorities."""
    name = "server.downloadermiddlewares.WritesPriorities"
    middlewares = {**DOWNLOADER_MIDDLEWARES, name: 600}
    return {"DOWNLOADER_MIDDLEWARES": json.dumps(middlewares), "TEST_PRIORITIES": log}


def priorities(log: Path) -> dict[str, int]:
    """Return the priority of each request by URL, without those for robots.txt."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found: dict[str, int] = dict(json.loads(line) for line in lines)
    return {url: found[url] for url in found if not url.endswith("/robots.txt")}


def test_best_first_gives_the_relevance_of_the_best_page(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    log, seed = tmp_path / "priorities", f"{local_web.origins['a']}/"
    given = {**BICYCLES, **QUICK, "DOWNLOAD_TIMEOUT": 2, **reading(log)}
    given |= {"seeds": seed, "budget": 8}
    kept = crawl(tmp_path / "crawl", **given).kept
    found = dict(kept.query("SELECT url, score FROM pages WHERE status = 200"))
    sent = priorities(log)
    assert {url: sent[url] for url in found} == {
        url: FIRST if score is None else round(1000 * score) for url, score in found.items()
    }
    assert {*sent.values()} == {900, FIRST}


def test_the_apprentice_gives_what_its_model_expects_at_the_request(
    demo: dict[str, str], tmp_path: Path
) -> None:
    log, given = tmp_path / "priorities", demo | {"strategy": "apprentice"}
    kept = crawl(tmp_path / "crawl", **reading(log), **given, budget=BUDGET).kept
    states = kept.query("SELECT state FROM models ORDER BY version")
    learned = unpack_arrays(
        split_packs(states[-1][0])[0]
    )  # with the predictions before each fetch
    urls = dict(kept.query("SELECT id, url FROM url"))
    expected = {
        urls[url]: round(1000 * predicted)
        for url, predicted in zip(
            learned["urls"].tolist(), learned["predicted"].tolist(), strict=True
        )
    }
    assert len(expected) > BUDGET / 2
    sent = priorities(log)
    assert {url: sent[url] for url in expected if sent[url] != FIRST} == {
        url: priority for url, priority in expected.items() if sent[url] != FIRST
    }
    # the rates of directories have changed since the frontier got the scores
    scores = dict(kept.query("SELECT url, score FROM pages WHERE score IS NOT NULL"))
    moved = [abs(sent[url] - 1000 * score) for url, score in scores.items()]
    assert np.median(moved) < 100
    assert max(moved) > 1
    assert all(0 <= sent[url] <= 1000 for url in scores)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("more", ""),
        ("error", "strategy failed: LookupError"),
        ("nan", "score_at_request returned nan"),
    ],
)
def test_a_strategy_of_the_users_is_asked(
    demo: dict[str, str], tmp_path: Path, answer: str, said: str
) -> None:
    log, package = tmp_path / "priorities", tmp_path / "package"
    (package / "long_urls-0.1.dist-info").mkdir(parents=True)
    (package / "long_urls.py").write_text(STRATEGY)
    (package / "long_urls-0.1.dist-info" / "METADATA").write_text(
        "Name: long-urls\nVersion: 0.1\n"
    )
    (package / "long_urls-0.1.dist-info" / "entry_points.txt").write_text(
        "[focuscrawl.strategies]\nlong-urls = long_urls:LongUrls\n"
    )
    options = {"FOCUSCRAWL_STRATEGY_OPTIONS": json.dumps({"answer": answer})}
    given = demo | {"strategy": "long-urls", "budget": "20"}
    env = environment()
    env["PYTHONPATH"] += os.pathsep + str(package)
    line = words(tmp_path / "crawl", **reading(log), **options, **given)
    done = warm.run(line, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    scores = dict(Kept(tmp_path / "crawl").query("SELECT url, score FROM pages"))
    more = 0.002 if answer == "more" else 0.0
    assert priorities(log) == {
        url: FIRST if score is None else round(1000 * (score + more))
        for url, score in scores.items()
    }
    assert any(scores.values())


def test_a_middleware_of_another_project_reads_them(local_web: LocalWeb, tmp_path: Path) -> None:
    """Links that the spider did not ask for have the crawl's priority, its requests their own."""
    log = tmp_path / "priorities"
    middlewares = {
        "clubs.middlewares.Badge": 543,
        "server.downloadermiddlewares.WritesPriorities": 600,
    }
    job = focused(
        local_web,
        tmp_path / "job",
        DOWNLOADER_MIDDLEWARES=json.dumps(middlewares),
        TEST_PRIORITIES=log,
        FOCUSCRAWL_FOLLOW=1,
        FOCUSCRAWL_CALLBACK="",
    )
    assert job.returncode == 0, job.stderr
    sent, scores = priorities(log), dict(job.kept.query("SELECT url, score FROM pages"))
    a, c = local_web.origins["a"], local_web.origins["c"]
    assert sent[f"{a}/api/clubs.json"] == 5
    followed = [f"{c}/section-{n}" for n in range(5)]
    assert [sent[url] for url in followed] == [round(1000 * scores[url]) for url in followed]
    assert any(sent[url] for url in followed)
