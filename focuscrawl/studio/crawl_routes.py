"""Routes of the studio for starting and controlling crawls, and for watching a crawl."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl_config import DEFAULT_CRITIC, DEFAULT_STRATEGY
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.report.crawl_plan import PAGES_SHOWN, summarize_start_pages
from focuscrawl.report.status import open_store
from focuscrawl.studio import listing
from focuscrawl.studio.crawl_form import (
    SETTINGS,
    OutlookRunner,
    change_budget,
    encode_choice,
    group_strategies,
    parse_budget,
    parse_crawl_form,
    resume_crawl,
    start_crawl,
)
from focuscrawl.studio.crawl_watch import CrawlWatches
from focuscrawl.studio.page_rendering import (
    PREFIX,
    accepted_response,
    json_endpoint,
    post_route,
    text_value,
)
from focuscrawl.studio.topic_folder import find_topic, read_topics
from focuscrawl.taxonomy import parse_topics

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext

_RUNNING_INTERVAL = 1.0  # seconds between two readings of a running crawl
_STOPPED_INTERVAL = 3.0
_STOP_CHECK_INTERVAL = 0.1  # seconds between two checks whether the studio stops
_KEEP_ALIVE_INTERVAL = 15.0  # seconds between comments, which reveal a broken connection
_FIRST_BUDGET = 300  # fetches: some minutes on the live Web


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the pages and of the JSON API for crawls."""
    outlooks, watches = OutlookRunner(context.folder.root), CrawlWatches(context)

    def create(_: Request, values: Mapping[str, Any]) -> Response:
        new = parse_crawl_form(context.folder, values)
        outlooks.cancel()  # the crawl fetches from the same hosts
        started = {"crawl": new.name, "job": start_crawl(context, new).to_dict()}
        # htmx follows the header, scripts read the body
        page = f"{context.base}/crawls/{quote(new.name)}/live"
        return accepted_response(started, {"HX-Redirect": page})

    def outlook(_: Request, values: Mapping[str, Any]) -> Response:
        new = parse_crawl_form(context.folder, values)
        found = outlooks.get(new, start=True)
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

    def set_budget(request: Request, values: Mapping[str, Any]) -> Response:
        crawl = context.requested_crawl(request)
        change_budget(context, crawl, parse_budget(text_value(values, "budget")))
        return accepted_response(listing.crawl_summary(crawl))

    def resume(request: Request, _: Mapping[str, Any]) -> Response:
        crawl = context.requested_crawl(request)
        resume_crawl(context, crawl.name)
        return accepted_response(listing.crawl_summary(crawl))

    def mark(request: Request, values: Mapping[str, Any]) -> Response:
        name = context.requested_crawl(request).name
        marked = parse_topics(text_value(values, "class"))
        if len(marked) != 1:
            raise UserError("class must be the path of one class, such as /Sports")
        job = context.jobs.start("mark", name, ["topic", "mark", f"./{name}", marked[0]])
        return accepted_response(job.to_dict())

    async def events(request: Request) -> Response:
        name = context.requested_crawl(request).name
        return StreamingResponse(
            _events(request, context, watches, name),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    def estimate(_: Request, values: Mapping[str, Any]) -> Response:
        shown: dict[str, Any] = {"wrong": None, "found": None}
        try:
            new = parse_crawl_form(context.folder, values)
            asked = new.can_fetch_start_pages or text_value(values, "judge") == "1"
            found = outlooks.get(new, start=asked)
            shown["found"] = found
            if found is not None and found.outlook is not None:
                pages = found.outlook.pages
                shown["facts"] = [
                    ("web", f"the recording {new.web}" if new.web else "the live Web"),
                    *found.outlook.facts(new.budget),
                ]
                shown["heading"] = summarize_start_pages(pages)
                shown["pages"], shown["more"] = pages[:PAGES_SHOWN], len(pages[PAGES_SHOWN:])
        except UserError as error:
            shown["wrong"] = str(error)
        return context.render("estimate", shown)

    def live(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        with closing(open_store(crawl.path)) as store:
            marked = store.identity().get("topic", "")
        about = {"topic": find_topic(context.folder, crawl.path), "marked": marked}
        return {"crawl": listing.crawl_summary(crawl), "tab": "live"} | about

    def state(request: Request) -> dict[str, Any]:
        return watches.read_state(request.path_params["name"])

    one = f"{PREFIX}/crawls/{{name:path}}"
    return [
        post_route(f"{PREFIX}/crawls", create),
        post_route(f"{PREFIX}/outlook", outlook),
        post_route(f"{one}/budget", set_budget),
        post_route(f"{one}/go-on", resume),
        post_route(f"{one}/mark", mark),
        Route(f"{one}/events", events),
        Route(f"{one}/live", json_endpoint(state)),
        Route(
            "/crawls/new",
            context.page_endpoint("new_crawl", lambda request: _form_values(context, request)),
        ),
        post_route("/parts/estimate", estimate),
        Route("/crawls/{name:path}/live", context.page_endpoint("live", live)),
    ]


def _form_values(context: StudioContext, request: Request) -> dict[str, Any]:
    """Return the default values and choices of the form of a new crawl."""
    query, folder = request.query_params, context.folder
    topics = {topic: topic.choice() for topic in read_topics(folder)}
    critics = listing.list_critics(folder)
    if not any(each["name"] == DEFAULT_CRITIC for each in critics):
        critics.append({"name": DEFAULT_CRITIC, "classes": ["/Sports/Cycling"]})
    of_topics = {choice[0] for choice in topics.values() if choice is not None}
    asked = query.get("topic", "")
    return {
        "topics": [
            {
                "title": topic.title,
                "value": encode_choice(*choice, topic.name),
                "wanted": topic.name == asked,
            }
            for topic, choice in topics.items()
            if choice is not None
        ],
        "untrained": [topic for topic, choice in topics.items() if choice is None],
        "asked": asked,
        "classes": [
            {
                "title": f"{topic} – {each['name']}",
                "value": encode_choice(each["name"], topic),
                "wanted": False,
            }
            for each in critics
            for topic in each["classes"]
            if topic != OFF_TOPIC and each["name"] not in of_topics
        ],
        "strategies": group_strategies(),
        "strategy": query.get("strategy", DEFAULT_STRATEGY),
        "recordings": folder.recordings(),
        "budget": _FIRST_BUDGET,
        "settings": {field: what for field, (_, what) in SETTINGS.items()},
    }


async def _events(
    request: Request, context: StudioContext, watches: CrawlWatches, name: str
) -> AsyncIterator[str]:
    """Yield an event ``state`` whenever the result of `CrawlWatches.read_state` changes.

    The stream ends when the tab is closed or the studio stops.
    """
    sent, silent = "", 0.0
    while not (context.stopping.is_set() or await request.is_disconnected()):
        try:
            seen = await run_in_threadpool(watches.read_state, name)
        except UserError as error:
            yield f"event: wrong\ndata: {json.dumps({'error': str(error)})}\n\n"
            return
        text = json.dumps(seen, separators=(",", ":"))
        changing = seen["running"] or seen["read"] < seen["fetched"]
        pause = _RUNNING_INTERVAL if changing else _STOPPED_INTERVAL
        if text != sent:
            sent, silent = text, 0.0
            yield f"event: state\ndata: {text}\n\n"
        else:
            silent += pause
            if silent >= _KEEP_ALIVE_INTERVAL:
                silent = 0.0
                yield ": keep-alive\n\n"
        remaining = pause if seen["read"] == seen["fetched"] else _STOP_CHECK_INTERVAL
        while remaining > 0.0 and not context.stopping.is_set():
            await asyncio.sleep(_STOP_CHECK_INTERVAL)
            remaining -= _STOP_CHECK_INTERVAL
