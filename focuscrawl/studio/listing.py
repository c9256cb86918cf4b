"""Topics, critics and crawls of a folder, for the pages and the JSON API."""

from __future__ import annotations

import json
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl import __version__
from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.report.status import open_store, status_of
from focuscrawl.studio.page_rendering import PREFIX, render
from focuscrawl.studio.served_folder import NamedCrawl
from focuscrawl.topics.definition import read_definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk
    from focuscrawl.studio.served_folder import StudioFolder


_TOPIC = "topic.toml"  # a file of this name is meant for a topic, so it is said what is wrong


def topics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the definitions of topics: ``name`` and what they say, or ``name`` and ``error``."""
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
    """Return ``name``, ``kind`` and ``classes`` of critics, by their manifests alone."""
    found: list[dict[str, Any]] = []
    for path in folder.critics():
        manifest = json.loads(read_regular(path / MANIFEST))
        classes = manifest.get("classes")
        found.append(
            {
                "name": folder.name_of(path),
                "kind": manifest["kind"],
                "classes": list(map(str, classes)) if isinstance(classes, list) else [],
            }
        )
    return found


def listed_crawls(desk: Desk) -> list[dict[str, Any]]:
    """Return the crawls, those that run first, then by when they fetched last; see `crawl`.

    One that cannot be read has ``name`` and ``error``.
    """
    folder = desk.folder
    named = [NamedCrawl(folder.name_of(path), path) for path in folder.crawls()]
    found: list[dict[str, Any]] = []
    for each in named:
        try:
            found.append(listed_crawl(each))
        except UserError as error:
            found.append({"name": each.name, "running": False, "error": str(error)})
    by_time = sorted(found, key=lambda each: each.get("last_fetch") or "", reverse=True)
    return sorted(by_time, key=lambda each: not each["running"])


def listed_crawl(named: NamedCrawl) -> dict[str, Any]:
    """Return how a crawl is doing; what is read does not grow with the crawl.

    Returns
    -------
    ``name``, ``about``, ``state`` in words, ``running``, ``wanted`` (``run``,
    ``pause`` or ``stop``), ``fetched``, and of late ``harvest_rate``, ``pages_per_second``,
    ``last_fetch`` (ISO 8601, UTC).

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
    """Ask something of a crawl, as ``focuscrawl pause``, ``resume``, ``stop`` do.

    Returns
    -------
    See `crawl`.

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


Endpoint: TypeAlias = "Callable[[Request], JSONResponse]"

#: what pages listen to, to show crawls anew at once
CRAWLS_CHANGED = {"HX-Trigger": "crawls-changed"}
#: the same, of commands that were begun here
JOBS_CHANGED = {"HX-Trigger": "jobs-changed"}
_ASKED = {"pause": Command.PAUSE, "resume": Command.RUN, "stop": Command.STOP}


def api_routes(desk: Desk) -> list[Route]:
    """Return the routes of the API; what is wrong is said in ``{"error": one sentence}``."""
    folder = desk.folder

    def about(_: Request) -> JSONResponse:
        return JSONResponse(
            {"api": 1, "focuscrawl": __version__, "folder": str(folder.root)}
            | {"read_only": desk.read_only}
        )

    def listed(what: Callable[[StudioFolder], list[dict[str, Any]]]) -> Endpoint:
        return lambda _: JSONResponse(what(folder))

    def crawls(_: Request) -> JSONResponse:
        return JSONResponse(listed_crawls(desk))

    def crawl(request: Request) -> JSONResponse:
        found = desk.crawl(request.path_params["name"])
        return JSONResponse(listed_crawl(found) | {"status": status_of(found.place).plain()})

    def asking(wanted: Command) -> Endpoint:
        def endpoint(request: Request) -> JSONResponse:
            asked = ask(desk.crawl(request.path_params["name"]), wanted)
            return JSONResponse(asked, HTTPStatus.ACCEPTED, headers=CRAWLS_CHANGED)

        return endpoint

    def jobs(_: Request) -> JSONResponse:
        return JSONResponse([job.plain() for job in desk.jobs.all()])

    def job(request: Request) -> JSONResponse:
        return JSONResponse(desk.jobs.job(request.path_params["id"]).plain())

    def end_job(request: Request) -> JSONResponse:
        job = desk.jobs.end(request.path_params["id"])
        return JSONResponse(job.plain(), HTTPStatus.ACCEPTED, headers=JOBS_CHANGED)

    return [
        Route(PREFIX, about),
        Route(f"{PREFIX}/jobs", jobs),
        Route(f"{PREFIX}/jobs/{{id}}", job),
        Route(f"{PREFIX}/jobs/{{id}}/end", end_job, methods=["POST"]),
        Route(f"{PREFIX}/topics", listed(topics)),
        Route(f"{PREFIX}/critics", listed(critics)),
        Route(f"{PREFIX}/crawls", crawls),
        *(
            Route(f"{PREFIX}/crawls/{{name:path}}/{verb}", asking(wanted), methods=["POST"])
            for verb, wanted in _ASKED.items()
        ),
        Route(f"{PREFIX}/crawls/{{name:path}}", crawl),
    ]


def page_routes(desk: Desk) -> list[Route]:
    """Return the routes of these pages."""
    folder = desk.folder

    def overview(_: Request) -> Response:
        listed = {
            "topics": topics(folder),
            "critics": critics(folder),
            "crawls": listed_crawls(desk),
            "jobs": desk.jobs.all()[:10],
        }
        return render(desk, "overview", listed)

    def crawls(_: Request) -> Response:
        return render(desk, "crawls", {"crawls": listed_crawls(desk)})

    def jobs(_: Request) -> Response:
        return render(desk, "jobs", {"jobs": desk.jobs.all()[:10]})

    return [
        Route("/", overview),
        Route("/parts/crawls", crawls),
        Route("/parts/jobs", jobs),
    ]
