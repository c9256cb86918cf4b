"""Routes of the first page: four steps to a corpus, and lists of crawls, topics and jobs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from focuscrawl.crawl_config import DEFAULT_CRITIC
from focuscrawl.studio.crawl_form import encode_choice, free_name
from focuscrawl.studio.crawl_tally import CrawlTallies
from focuscrawl.studio.exports import list_exports
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import list_crawls, list_critics, list_topics
from focuscrawl.studio.topic_folder import read_topics

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import StudioFolder

_N_JOBS = 20  # shown
_N_CARDS = 6  # crawls or topics shown at first
_MAX_TALLIED = 50  # latest crawls whose relevant pages are counted for their topics
_DEMO_TOPIC = "/Sports/Cycling"
_DEMO_BUDGET = 300  # fetches


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the first page and of its parts."""
    folder, tallies = context.folder, CrawlTallies()

    def jobs(_: Request) -> dict[str, Any]:
        found = context.jobs.latest(_N_JOBS)
        running = sum(job.state is JobState.RUNNING for job in found)
        return {"jobs": found, "n_running": running}

    def crawls(request: Request, n_tallied: int = _N_CARDS) -> dict[str, Any]:
        found, shows_all = list_crawls(folder), request.query_params.get("all") == "yes"
        for each in found[: None if shows_all else n_tallied]:
            if "error" not in each:
                each.update(tallies.read(folder.crawl(each["name"])))
        return {"crawls": found, "all": shows_all, "shown": _N_CARDS}

    def overview(request: Request) -> dict[str, Any]:
        found = crawls(request, _MAX_TALLIED) | read_steps(folder)
        files = {topic.name: topic for topic in read_topics(folder)}
        for each in found["topics"]:
            if (topic := files.get(each["name"])) is not None:
                of_topic = [crawl for crawl in found["crawls"] if topic.has_crawl(crawl)]
                each["n_crawls"] = len(of_topic)
                each["relevant"] = sum(crawl["relevant"] for crawl in of_topic)
                each["choice"] = topic.choice()
        return found | {"critics": list_critics(folder), "demo": _demo_crawl(folder)}

    return [
        Route("/", context.page_endpoint("overview", overview)),
        Route("/parts/crawls", context.page_endpoint("crawls", crawls)),
        Route("/parts/jobs", context.page_endpoint("jobs", jobs)),
    ]


def _demo_crawl(folder: StudioFolder) -> dict[str, str]:
    """Return the values of the form of a new crawl for a crawl of the demo web."""
    return {
        "name": free_name(folder, "demo"),
        "of": encode_choice(DEFAULT_CRITIC, _DEMO_TOPIC),
        "web": "demo",
        "budget": str(_DEMO_BUDGET),
    }


def read_steps(folder: StudioFolder) -> dict[str, Any]:
    """Return the topics that do not belong to a crawl, and which of the four steps are done.

    The four steps are ``topic``, ``crawl``, ``judge`` and ``export``. The result has the fields
    ``topics``, ``first_topic`` and ``first_crawl`` (names, or empty), ``done`` (steps), and
    ``next_step`` (the first step that is not done, or empty). If some topic has a critic,
    ``first_topic`` has a critic.
    """
    crawls = {folder.name_of(path): path for path in folder.crawls()}
    topics, judged = [], False
    for each in list_topics(folder):
        if PurePath(each["name"]).parent.as_posix() in crawls:
            judged = judged or bool(each.get("good") or each.get("bad"))
        else:
            topics.append(each)
    valid = read_topics(folder)
    trained = [topic for topic in valid if topic.choice() is not None]
    reached = {
        "topic": bool(topics or crawls),
        "crawl": bool(crawls),
        "judge": judged,
        "export": any(map(list_exports, crawls.values())),
    }
    return {
        "topics": topics,
        "first_topic": next((each.name for each in trained or valid), ""),
        "first_crawl": next(iter(crawls), ""),
        "done": [step for step, done in reached.items() if done],
        "next_step": next((step for step, done in reached.items() if not done), ""),
    }
