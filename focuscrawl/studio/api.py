"""The JSON API, version 1: what the pages show and do, for scripts."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl import __version__
from focuscrawl.crawl.remote_control import Command
from focuscrawl.report.stores import status_of
from focuscrawl.studio import listing
from focuscrawl.studio.rendering import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from focuscrawl.studio.desk import Desk
    from focuscrawl.studio.folder import StudioFolder

Endpoint: TypeAlias = "Callable[[Request], JSONResponse]"

#: what pages listen to, to show crawls anew at once
CRAWLS_CHANGED = {"HX-Trigger": "crawls-changed"}
#: the same, of commands that were begun here
JOBS_CHANGED = {"HX-Trigger": "jobs-changed"}
_ASKED = {"pause": Command.PAUSE, "resume": Command.RUN, "stop": Command.STOP}


def routes(desk: Desk) -> list[Route]:
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
        return JSONResponse(listing.crawls(desk))

    def crawl(request: Request) -> JSONResponse:
        found = desk.crawl(request.path_params["name"])
        return JSONResponse(listing.crawl(found) | {"status": status_of(found.place).plain()})

    def asking(wanted: Command) -> Endpoint:
        def endpoint(request: Request) -> JSONResponse:
            asked = listing.ask(desk.crawl(request.path_params["name"]), wanted)
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
        Route(f"{PREFIX}/topics", listed(listing.topics)),
        Route(f"{PREFIX}/critics", listed(listing.critics)),
        Route(f"{PREFIX}/crawls", crawls),
        *(
            Route(f"{PREFIX}/crawls/{{name:path}}/{verb}", asking(wanted), methods=["POST"])
            for verb, wanted in _ASKED.items()
        ),
        Route(f"{PREFIX}/crawls/{{name:path}}", crawl),
    ]
