"""Topics, critics, crawls and jobs of a folder, for the overview and the JSON API."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from focuscrawl import __version__
from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.errors import UserError
from focuscrawl.report.status import open_store, status_of
from focuscrawl.studio.page_rendering import PREFIX, accepted, json_of
from focuscrawl.studio.served_folder import NamedCrawl, kind_and_classes
from focuscrawl.topics.definition import read_definition

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.studio.page_rendering import Desk, Endpoint
    from focuscrawl.studio.served_folder import StudioFolder

_TOPIC = "topic.toml"  # a file of this name has to be a topic: if it is none, the error is listed
_JOBS = 10  # shown

#: events of htmx: pages that listen to them update their crawls, or jobs
CRAWLS_CHANGED = {"HX-Trigger": "crawls-changed"}
JOBS_CHANGED = {"HX-Trigger": "jobs-changed"}
_ASKED = {"pause": Command.PAUSE, "resume": Command.RUN, "stop": Command.STOP}


def topics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the definitions of topics: ``name`` and what they hold, or ``name`` and ``error``."""
    found: list[dict[str, Any]] = []
    for path in folder.toml_files():
        name = folder.name_of(path)
        try:
            definition = read_definition(path)
        except UserError as error:
            if path.name == _TOPIC:
                found.append({"name": name, "error": str(error)})
            continue
        found.append(
            {
                "name": name,
                "topics": list(definition.topics),
                "words": list(definition.words),
                "critic": definition.critic,
                "seeds": len(definition.seeds),
                "good": len(definition.good),
                "bad": len(definition.bad),
            }
        )
    return found


def critics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return ``name``, ``kind`` and ``classes`` of critics, from their manifests alone."""
    found: list[dict[str, Any]] = []
    for path in folder.critics():
        kind, classes = kind_and_classes(path)
        found.append({"name": folder.name_of(path), "kind": kind, "classes": classes})
    return found


def listed_crawls(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the crawls, see `listed_crawl`: those that run, then by their last fetch.

    One that cannot be read has ``name`` and ``error``.
    """
    found: list[dict[str, Any]] = []
    for path in folder.crawls():
        named = NamedCrawl(folder.name_of(path), path)
        try:
            found.append(listed_crawl(named))
        except UserError as error:
            found.append({"name": named.name, "running": False, "error": str(error)})
    by_time = sorted(found, key=lambda each: each.get("last_fetch") or "", reverse=True)
    return sorted(by_time, key=lambda each: not each["running"])


def listed_crawl(named: NamedCrawl) -> dict[str, Any]:
    """Return the state of a crawl; the cost does not grow with the crawl.

    Returns
    -------
    ``name``, ``about``, ``state`` in words, ``running``, ``wanted`` (``run``,
    ``pause`` or ``stop``), ``fetched``, and of the last fetches ``harvest_rate``,
    ``pages_per_second``, ``last_fetch`` (ISO 8601, UTC).

    Raises
    ------
    UserError
        It cannot be read.
    """
    with closing(open_store(named.place)) as store:
        current = named.current(store)
    last = current.last_fetch
    return {
        "name": named.name,
        "about": current.about,
        "state": current.state,
        "running": current.running,
        "wanted": str(named.control.wanted),
        "fetched": current.fetched,
        "harvest_rate": current.recent.harvest_rate,
        "pages_per_second": current.recent.pages_per_second,
        "last_fetch": None if last is None else last.isoformat(timespec="seconds"),
    }


def ask(named: NamedCrawl, wanted: Command) -> dict[str, Any]:
    """Ask a crawl to pause, run or stop, as the commands do; return `listed_crawl`.

    Raises
    ------
    UserError
        There is nothing to resume or stop, or it cannot be asked.
    """
    control = named.control
    if wanted is Command.RUN and control.wanted is not Command.PAUSE:
        raise UserError(f"{named.name} is not paused: nothing to resume")
    if wanted is Command.STOP and not control.in_use:
        raise UserError(f"nobody crawls in {named.name}: nothing to stop")
    control.ask(wanted)
    return listed_crawl(named)


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the overview and its API; `UserError` becomes ``{"error": text}``."""
    folder = desk.folder

    def about(_: Request) -> dict[str, Any]:
        found = {"api": 1, "focuscrawl": __version__, "folder": str(folder.root)}
        return found | {"read_only": desk.read_only}

    def crawl(request: Request) -> dict[str, Any]:
        found = desk.crawl_of(request)
        return listed_crawl(found) | {"status": status_of(found.place).to_dict()}

    def asking(wanted: Command) -> Endpoint:
        return lambda request: accepted(ask(desk.crawl_of(request), wanted), CRAWLS_CHANGED)

    def jobs(_: Request) -> dict[str, Any]:
        return {"jobs": desk.jobs.all()[:_JOBS]}

    def crawls(_: Request) -> dict[str, Any]:
        return {"crawls": listed_crawls(folder)}

    def overview(request: Request) -> dict[str, Any]:
        found = {"topics": topics(folder), "critics": critics(folder)}
        return found | crawls(request) | jobs(request)

    def end_job(request: Request) -> Any:
        return accepted(desk.jobs.end(request.path_params["id"]).plain(), JOBS_CHANGED)

    one_job, one_crawl = f"{PREFIX}/jobs/{{id}}", f"{PREFIX}/crawls/{{name:path}}"
    return [
        Route(PREFIX, json_of(about)),
        Route(f"{PREFIX}/jobs", json_of(lambda _: [job.plain() for job in desk.jobs.all()])),
        Route(one_job, json_of(lambda request: desk.jobs.job(request.path_params["id"]).plain())),
        Route(f"{one_job}/end", end_job, methods=["POST"]),
        Route(f"{PREFIX}/topics", json_of(lambda _: topics(folder))),
        Route(f"{PREFIX}/critics", json_of(lambda _: critics(folder))),
        Route(f"{PREFIX}/crawls", json_of(lambda _: listed_crawls(folder))),
        *(
            Route(f"{one_crawl}/{verb}", asking(wanted), methods=["POST"])
            for verb, wanted in _ASKED.items()
        ),
        Route(one_crawl, json_of(crawl)),
        Route("/", desk.page("overview", overview)),
        Route("/parts/crawls", desk.page("crawls", crawls)),
        Route("/parts/jobs", desk.page("jobs", jobs)),
    ]
