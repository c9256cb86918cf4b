"""Lists the topics, critics and crawls in the studio's folder."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from focuscrawl import __version__
from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.errors import UserError
from focuscrawl.report.status import open_store, status_of
from focuscrawl.studio.page_rendering import PREFIX, accepted_response, json_endpoint
from focuscrawl.studio.served_folder import NamedCrawl, read_kind_and_classes
from focuscrawl.studio.topic_folder import TOPIC_FILE
from focuscrawl.topics.definition import read_definition

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.studio.page_rendering import Endpoint, StudioContext
    from focuscrawl.studio.served_folder import StudioFolder


#: headers that let pages update their list of crawls, or of jobs (events of htmx)
CRAWLS_CHANGED = {"HX-Trigger": "crawls-changed"}
JOBS_CHANGED = {"HX-Trigger": "jobs-changed"}
_COMMANDS = {"pause": Command.PAUSE, "resume": Command.RUN, "stop": Command.STOP}


def list_topics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return a dict for each topic definition; only ``name`` and ``error`` for an invalid file."""
    found: list[dict[str, Any]] = []
    for path in folder.toml_files():
        name = folder.name_of(path)
        try:
            definition = read_definition(path)
        except UserError as error:
            if path.name == TOPIC_FILE:  # other files may be no definitions
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


def list_critics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the name, the kind and the classes of each critic from its manifest."""
    found: list[dict[str, Any]] = []
    for path in folder.critics():
        kind, classes = read_kind_and_classes(path)
        found.append({"name": folder.name_of(path), "kind": kind, "classes": classes})
    return found


def list_crawls(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the `crawl_summary` of each crawl, running crawls first, then by last fetch.

    For a crawl that cannot be read, the result has only ``name`` and ``error``.
    """
    found: list[dict[str, Any]] = []
    for path in folder.crawls():
        named = NamedCrawl(folder.name_of(path), path)
        try:
            found.append(crawl_summary(named))
        except UserError as error:
            found.append({"name": named.name, "running": False, "error": str(error)})
    by_time = sorted(found, key=lambda each: each.get("last_fetch") or "", reverse=True)
    return sorted(by_time, key=lambda each: not each["running"])


def crawl_summary(named: NamedCrawl) -> dict[str, Any]:
    """Return the state of a crawl; the time needed does not depend on the size of the crawl.

    The result has the fields ``name``, ``about``, ``state`` (text), ``running``, ``wanted``
    (``run``, ``pause`` or ``stop``), ``fetched``, ``harvest_rate`` and ``pages_per_second`` of
    recent fetches, and ``last_fetch`` (ISO 8601, UTC).
    """
    with closing(open_store(named.path)) as store:
        state = named.read_state(store)
    last = state.last_fetch
    return {
        "name": named.name,
        "about": state.about,
        "state": state.state,
        "running": state.running,
        "wanted": str(named.control.command),
        "fetched": state.fetched,
        "harvest_rate": state.recent.harvest_rate,
        "pages_per_second": state.recent.pages_per_second,
        "last_fetch": None if last is None else last.isoformat(timespec="seconds"),
    }


def send_command(named: NamedCrawl, wanted: Command) -> dict[str, Any]:
    """Pause, resume or stop a crawl; return its `crawl_summary`."""
    control = named.control
    if wanted is Command.RUN and control.command is not Command.PAUSE:
        raise UserError(f"{named.name} is not paused, so it cannot be resumed")
    if wanted is Command.STOP and not control.in_use:
        raise UserError(f"{named.name} is not running, so it cannot be stopped")
    control.send(wanted)
    return crawl_summary(named)


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the JSON API for lists."""
    folder = context.folder

    def about(_: Request) -> dict[str, Any]:
        found = {"api": 1, "focuscrawl": __version__, "folder": str(folder.root)}
        return found | {"read_only": context.read_only}

    def crawl(request: Request) -> dict[str, Any]:
        found = context.requested_crawl(request)
        return crawl_summary(found) | {"status": status_of(found.path).to_dict()}

    def command_endpoint(wanted: Command) -> Endpoint:
        return lambda request: accepted_response(
            send_command(context.requested_crawl(request), wanted), CRAWLS_CHANGED
        )

    def stop_job(request: Request) -> Any:
        return accepted_response(
            context.jobs.stop(request.path_params["id"]).to_dict(), JOBS_CHANGED
        )

    one_job, one_crawl = f"{PREFIX}/jobs/{{id}}", f"{PREFIX}/crawls/{{name:path}}"
    return [
        Route(PREFIX, json_endpoint(about)),
        Route(
            f"{PREFIX}/jobs",
            json_endpoint(lambda _: [job.to_dict() for job in context.jobs.all()]),
        ),
        Route(
            one_job,
            json_endpoint(lambda request: context.jobs.job(request.path_params["id"]).to_dict()),
        ),
        Route(f"{one_job}/end", stop_job, methods=["POST"]),
        Route(f"{PREFIX}/topics", json_endpoint(lambda _: list_topics(folder))),
        Route(f"{PREFIX}/critics", json_endpoint(lambda _: list_critics(folder))),
        Route(f"{PREFIX}/crawls", json_endpoint(lambda _: list_crawls(folder))),
        *(
            Route(f"{one_crawl}/{verb}", command_endpoint(wanted), methods=["POST"])
            for verb, wanted in _COMMANDS.items()
        ),
        Route(one_crawl, json_endpoint(crawl)),
    ]
