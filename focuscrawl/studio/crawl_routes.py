"""Addresses about crawls that start, run and stop."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl_config import DEFAULT_CRITIC, DEFAULT_STRATEGY
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.report.outlook import SHOWN, heading
from focuscrawl.strategies.registry import strategy_names
from focuscrawl.studio import listing
from focuscrawl.studio.crawl_form import (
    SETTINGS,
    Outlooks,
    begin,
    choice,
    give_budget,
    go_on,
    read_budget,
    read_crawl,
)
from focuscrawl.studio.crawl_watch import Watches
from focuscrawl.studio.page_rendering import PREFIX, render, text_of, with_values
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from threading import Event

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk


_EVERY = 1.0  # seconds between two looks while it crawls
_AT_REST = 3.0
_STEP = 0.1  # seconds after which it is seen that the studio ends
_SIGN = 15.0  # seconds after which a tab hears something, so that both ends know of each other


def stream(request: Request, watches: Watches, name: str, over: Event) -> StreamingResponse:
    """Return a stream of events ``state``, each all that `Watch.look` tells, when it changes.

    It ends with the tab, and when `over` is set.
    """
    return StreamingResponse(
        _events(request, watches, name, over),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    request: Request, watches: Watches, name: str, over: Event
) -> AsyncIterator[str]:
    sent, silent = "", 0.0
    while not (over.is_set() or await request.is_disconnected()):
        try:
            seen = await run_in_threadpool(watches.look, name)
        except UserError as error:
            yield _event("wrong", json.dumps({"error": str(error)}))
            return
        text = json.dumps(seen, separators=(",", ":"))
        pause = _EVERY if seen["running"] or seen["read"] < seen["fetched"] else _AT_REST
        if text != sent:
            sent, silent = text, 0.0
            yield _event("state", text)
        else:
            silent += pause
            if silent >= _SIGN:
                silent = 0.0
                yield ": here\n\n"
        waits = pause if seen["read"] == seen["fetched"] else _STEP
        while waits > 0.0 and not over.is_set():
            await asyncio.sleep(_STEP)
            waits -= _STEP


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


_NAMED = f"{PREFIX}/crawls/{{name:path}}"
_FIRST_BUDGET = 300  # fetches of a first run: minutes on the live Web


def routes(desk: Desk) -> list[Route]:
    """Return the routes of this subject."""
    outlooks = Outlooks(desk.folder.root)
    return [*_api(desk, outlooks), *_pages(desk, outlooks)]


def _api(desk: Desk, outlooks: Outlooks) -> list[Route]:
    watches = Watches(desk)

    def create(_: Request, values: Mapping[str, Any]) -> Response:
        made = read_crawl(desk.folder, values)
        outlooks.end()  # the crawl asks the same hosts
        begun = {"crawl": made.name, "job": begin(desk, made).plain()}
        # htmx opens the page of the crawl, scripts read what was begun
        page = f"{desk.base}/crawls/{quote(made.name)}/live"
        return JSONResponse(begun, HTTPStatus.ACCEPTED, headers={"HX-Redirect": page})

    def outlook(_: Request, values: Mapping[str, Any]) -> Response:
        made = read_crawl(desk.folder, values)
        found = outlooks.ask(made, begin=True)
        assert found is not None
        known = found.outlook
        return JSONResponse(
            {
                "running": not found.is_known(),
                "error": found.error,
                "outlook": None if known is None else known.plain(),
                "facts": None if known is None else dict(known.facts(made.budget)),
            }
        )

    def more(request: Request, values: Mapping[str, Any]) -> Response:
        crawl = desk.crawl(request.path_params["name"])
        budget = read_budget(text_of(values, "budget"))
        give_budget(desk, crawl, budget)
        return JSONResponse(listing.listed_crawl(crawl), HTTPStatus.ACCEPTED)

    def again(request: Request, _: Mapping[str, Any]) -> Response:
        crawl = desk.crawl(request.path_params["name"])
        go_on(desk, crawl.name)
        return JSONResponse(listing.listed_crawl(crawl), HTTPStatus.ACCEPTED)

    def mark(request: Request, values: Mapping[str, Any]) -> Response:
        name = request.path_params["name"]
        desk.folder.crawl(name)
        marked = read_topics(text_of(values, "class"))
        if len(marked) != 1:
            raise UserError("mark which class? Name one")
        job = desk.jobs.begin("mark", name, ["topic", "mark", f"./{name}", marked[0]])
        return JSONResponse(job.plain(), HTTPStatus.ACCEPTED)

    async def events(request: Request) -> Response:
        name = desk.crawl(request.path_params["name"]).name
        return stream(request, watches, name, desk.over)

    def state(request: Request) -> Response:
        return JSONResponse(watches.look(request.path_params["name"]))

    return [
        Route(f"{PREFIX}/crawls", with_values(create), methods=["POST"]),
        Route(f"{PREFIX}/outlook", with_values(outlook), methods=["POST"]),
        Route(f"{_NAMED}/budget", with_values(more), methods=["POST"]),
        Route(f"{_NAMED}/go-on", with_values(again), methods=["POST"]),
        Route(f"{_NAMED}/mark", with_values(mark), methods=["POST"]),
        Route(f"{_NAMED}/events", events),
        Route(f"{_NAMED}/live", state),
    ]


def _pages(desk: Desk, outlooks: Outlooks) -> list[Route]:
    folder = desk.folder

    def new(request: Request) -> Response:
        wanted = request.query_params.get("topic", "")
        critics = listing.critics(folder)
        if not any(each["name"] == DEFAULT_CRITIC for each in critics):
            critics.append({"name": DEFAULT_CRITIC, "classes": ["/Sports/Cycling"]})
        place = wanted.rpartition("/")[0]
        choices = [
            {
                "critic": each["name"],
                "classes": [
                    {"name": topic, "value": choice(each["name"], topic)}
                    for topic in each["classes"]
                    if topic != OFF_TOPIC
                ],
                "wanted": bool(place) and each["name"].startswith(f"{place}/"),
            }
            for each in critics
        ]
        shown = {
            "choices": choices,
            "wanted": wanted,
            "definitions": [
                each["name"] for each in listing.topics(folder) if "error" not in each
            ],
            "strategies": strategy_names(),
            "strategy": request.query_params.get("strategy", DEFAULT_STRATEGY),
            "classes": request.query_params.get("classes", ""),
            "web": request.query_params.get("web", ""),
            "recordings": folder.recordings(),
            "budget": _FIRST_BUDGET,
            "name": place.rpartition("/")[2] or "first",
            "settings": {field: what for field, (_, what) in SETTINGS.items()},
        }
        return render(desk, "new_crawl", shown)

    def guess(_: Request, values: Mapping[str, Any]) -> Response:
        shown: dict[str, Any] = {"wrong": None, "found": None}
        try:
            made = read_crawl(folder, values)
            asked = made.is_told_where or text_of(values, "judge") == "1"
            found = outlooks.ask(made, begin=asked)
            shown["found"] = found
            if found is not None and found.outlook is not None:
                shown["facts"] = found.outlook.facts(made.budget)
                shown["heading"] = heading(found.outlook.pages)
                shown["pages"] = found.outlook.pages[:SHOWN]
                shown["more"] = len(found.outlook.pages) - len(shown["pages"])
        except UserError as error:
            shown["wrong"] = str(error)
        return render(desk, "estimate", shown)

    def live(request: Request) -> Response:
        crawl = listing.listed_crawl(desk.crawl(request.path_params["name"]))
        return render(desk, "live", {"crawl": crawl, "tab": "live"})

    return [
        Route("/crawls/new", new),
        Route("/parts/estimate", with_values(guess), methods=["POST"]),
        Route("/crawls/{name:path}/live", live),
    ]


__all__ = ["routes"]
