"""Folders that a studio serves, and what is in them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.store import CrawlStore
from focuscrawl.studio.access import Access
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import StudioContext
from focuscrawl.studio.serving import make_application

if TYPE_CHECKING:
    from starlette.types import Message

    from focuscrawl.studio.served_folder import StudioFolder


def make_context(folder: StudioFolder) -> StudioContext:
    return StudioContext(folder, Jobs(folder.root), read_only=False)


def make_crawl(path: Path) -> Path:
    path.mkdir(parents=True)
    about = {"topic": "/A", "strategy": "apprentice", "web_name": "demo"}
    CrawlStore.create(path / "crawl.db", about).close()
    return path


def write_job(
    root: Path, kind: str = "crawl", subject: str = "x", arguments: list[str] | None = None
) -> Path:
    """Write the files of a job whose process is gone; return its folder."""
    folder = root / ".studio" / "jobs" / "1"
    folder.mkdir(parents=True)
    order = {"kind": kind, "subject": subject, "arguments": arguments or []}
    order["begun"] = "2026-01-01T00:00:00"
    (folder / "order.json").write_text(json.dumps(order))
    return folder


def ask(context: StudioContext, path: str, data: dict[str, str] | None = None) -> tuple[int, str]:
    """Ask the application of the studio; with `data`, it is posted. Return status and body."""
    token, host = "t" * 43, "studio:80"
    sent: list[Message] = []
    access = Access(token, [host], "cookie", read_only=context.read_only)
    path, _, query = path.partition("?")
    headers = {
        "host": host,
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
    }
    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.4"},  # streams wait for no disconnect
        "method": "GET" if data is None else "POST",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Message:
        body = b"" if data is None else json.dumps(data).encode()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(make_application(context, access)(scope, receive, send))
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]).decode()
