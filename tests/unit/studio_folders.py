"""Folders that a studio serves, and what is in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from focuscrawl.store import CrawlStore
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import StudioContext

if TYPE_CHECKING:
    from pathlib import Path

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
