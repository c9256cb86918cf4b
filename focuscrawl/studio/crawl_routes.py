"""Routes of crawls: the form of a new one, and the page of one while it runs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl_config import DEFAULT_CRITIC, DEFAULT_STRATEGY
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.report.crawl_plan import PAGES_SHOWN, summarize_start_pages
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
from focuscrawl.studio.page_rendering import PREFIX, accepted, json_of, post, text_of
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk

_EVERY = 1.0  # seconds between two looks at a crawl that runs
_AT_REST = 3.0
_STEP = 0.1  # seconds after which a stream notices that the studio stops
_SIGN = 15.0  # seconds after which a comment is sent, so that both ends notice a broken connection
_FIRST_BUDGET = 300  # fetches of a first crawl: minutes on the live Web


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the pages and their API."""
    outlooks, watches = Outlooks(desk.folder.root), Watches(desk)

    def create(_: Request, values: Mapping[str, Any]) -> Response:
        new = read_crawl(desk.folder, values)
        outlooks.end()  # the crawl fetches from the same hosts
        begun = {"crawl": new.name, "job": begin(desk, new).plain()}
        # htmx opens the page of the crawl, scripts read the body
        page = f"{desk.base}/crawls/{quote(new.name)}/live"
        return accepted(begun, {"HX-Redirect": page})

    def outlook(_: Request, values: Mapping[str, Any]) -> Response:
        new = read_crawl(desk.folder, values)
        found = outlooks.ask(new, begin=True)
        assert found is not None
        known = found.outlook
        return JSONResponse(
            {
                "running": not found.is_known(),
                "error": found.error,
                "outlook": None if known is None else known.to_dict(),
                "facts": None if known is None else dict(known.facts(new.budget)),
            }
        )

    def more(request: Request, values: Mapping[str, Any]) -> Response:
        crawl = desk.crawl_of(request)
        give_budget(desk, crawl, read_budget(text_of(values, "budget")))
        return accepted(listing.listed_crawl(crawl))

    def again(request: Request, _: Mapping[str, Any]) -> Response:
        crawl = desk.crawl_of(request)
        go_on(desk, crawl.name)
        return accepted(listing.listed_crawl(crawl))

    def mark(request: Request, values: Mapping[str, Any]) -> Response:
        name = desk.crawl_of(request).name
        marked = read_topics(text_of(values, "class"))
        if len(marked) != 1:
            raise UserError("mark which class? Name one")
        job = desk.jobs.begin("mark", name, ["topic", "mark", f"./{name}", marked[0]])
        return accepted(job.plain())

    async def events(request: Request) -> Response:
        name = desk.crawl_of(request).name
        return StreamingResponse(
            _events(request, desk, watches, name),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    def guess(_: Request, values: Mapping[str, Any]) -> Response:
        shown: dict[str, Any] = {"wrong": None, "found": None}
        try:
            new = read_crawl(desk.folder, values)
            asked = new.is_told_where or text_of(values, "judge") == "1"
            found = outlooks.ask(new, begin=asked)
            shown["found"] = found
            if found is not None and found.outlook is not None:
                pages = found.outlook.pages
                shown["facts"] = found.outlook.facts(new.budget)
                shown["heading"] = summarize_start_pages(pages)
                shown["pages"], shown["more"] = pages[:PAGES_SHOWN], len(pages[PAGES_SHOWN:])
        except UserError as error:
            shown["wrong"] = str(error)
        return desk.render("estimate", shown)

    def live(request: Request) -> dict[str, Any]:
        return {"crawl": listing.listed_crawl(desk.crawl_of(request)), "tab": "live"}

    def state(request: Request) -> dict[str, Any]:
        return watches.look(request.path_params["name"])

    one = f"{PREFIX}/crawls/{{name:path}}"
    return [
        post(f"{PREFIX}/crawls", create),
        post(f"{PREFIX}/outlook", outlook),
        post(f"{one}/budget", more),
        post(f"{one}/go-on", again),
        post(f"{one}/mark", mark),
        Route(f"{one}/events", events),
        Route(f"{one}/live", json_of(state)),
        Route("/crawls/new", desk.page("new_crawl", lambda request: _form(desk, request))),
        post("/parts/estimate", guess),
        Route("/crawls/{name:path}/live", desk.page("live", live)),
    ]


def _form(desk: Desk, request: Request) -> dict[str, Any]:
    """Return what the form of a new crawl proposes."""
    query, folder = request.query_params, desk.folder
    wanted = query.get("topic", "")
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
    return {
        "choices": choices,
        "wanted": wanted,
        "definitions": [each["name"] for each in listing.topics(folder) if "error" not in each],
        "strategies": strategy_names(),
        "strategy": query.get("strategy", DEFAULT_STRATEGY),
        "classes": query.get("classes", ""),
        "web": query.get("web", ""),
        "recordings": folder.recordings(),
        "budget": _FIRST_BUDGET,
        "name": place.rpartition("/")[2] or "first",
        "settings": {field: what for field, (_, what) in SETTINGS.items()},
    }


async def _events(request: Request, desk: Desk, watches: Watches, name: str) -> AsyncIterator[str]:
    """Yield an event ``state`` whenever what `Watches.look` returns changes.

    The events end when the tab is closed or the studio stops.
    """
    sent, silent = "", 0.0
    while not (desk.over.is_set() or await request.is_disconnected()):
        try:
            seen = await run_in_threadpool(watches.look, name)
        except UserError as error:
            yield f"event: wrong\ndata: {json.dumps({'error': str(error)})}\n\n"
            return
        text = json.dumps(seen, separators=(",", ":"))
        pause = _EVERY if seen["running"] or seen["read"] < seen["fetched"] else _AT_REST
        if text != sent:
            sent, silent = text, 0.0
            yield f"event: state\ndata: {text}\n\n"
        else:
            silent += pause
            if silent >= _SIGN:
                silent = 0.0
                yield ": here\n\n"
        waits = pause if seen["read"] == seen["fetched"] else _STEP
        while waits > 0.0 and not desk.over.is_set():
            await asyncio.sleep(_STEP)
            waits -= _STEP
