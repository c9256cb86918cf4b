"""Server-sent events: what a crawl does, to every tab that shows it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from threading import Event

    from starlette.requests import Request

    from focuscrawl.studio.crawling.watches import Watches

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
