"""What has to last: everything a crawl keeps, but the times at which it happened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from integration.running import Kept

LONG = os.environ.get("FOCUSCRAWL_ENDURANCE") == "1"

#: pages, links, frontier, what the learner made of them, and what was decided on the way
_KEPT = {
    "pages": """SELECT seq, url, status, relevance, topic, depth, score, referrer, bytes, title,
        duplicate_of, error, links, dropped FROM pages ORDER BY seq""",
    "links": "SELECT * FROM links ORDER BY source, dom_position, target, anchor",
    "frontier": "SELECT * FROM frontier ORDER BY url",
    "models": "SELECT * FROM models ORDER BY version",
    "memos": "SELECT seq, data FROM memo ORDER BY seq",
    "events": """SELECT seq, kind, detail FROM events
        WHERE kind NOT IN ('start', 'seeds', 'stop') ORDER BY id""",
}


def remains(kept: Kept) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a crawl has kept, table by table."""
    return {name: kept.query(sql) for name, sql in _KEPT.items()}


def assert_sound(kept: Kept) -> int:
    """Check what holds at every moment; return how many pages there are."""
    assert kept.query("PRAGMA integrity_check") == [("ok",)]
    assert kept.query("PRAGMA foreign_key_check") == []
    order = kept.order
    assert [seq for seq, _ in order] == list(range(1, len(order) + 1))
    assert len(set(kept.urls)) == len(order)
    links = "SELECT coalesce(sum(links - dropped), 0) FROM page WHERE status = 200"
    assert kept.query("SELECT count(*) FROM link") == kept.query(links)
    return len(order)


def assert_alike(kept: Kept, whole: Kept) -> None:
    """Check that a crawl that was disturbed has kept what an undisturbed one has."""
    assert_sound(kept)
    ours, theirs = remains(kept), remains(whole)
    for name, rows in theirs.items():
        assert ours[name] == rows, name
