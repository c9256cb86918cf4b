"""Goal pages that ``focuscrawl paths forage`` found, each with a path from the start page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.report.plain_text import format_csv, one_line
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.history import History
from focuscrawl.strategies.path_strategy import PathMemo

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_STRATEGY = "paths"


class GoalPage(NamedTuple):
    """A page that the path model classifies as a goal."""

    seq: int  #: number of the fetch
    probability: float  #: Pr(goal | path and page)
    title: str  #: title of the page
    path: list[str]  #: URLs from the start of the site to the page itself


def goal_pages(store: CrawlStore, *, least: float = 0.5) -> list[GoalPage]:
    """Return the goal pages that a crawl by a path model found, the most probable first.

    Parameters
    ----------
    least : float
        Least probability of a goal page.

    Raises
    ------
    UserError
        The crawl has another strategy than ``paths``.
    """
    strategy = store.identity().get("strategy")
    if strategy != _STRATEGY:
        raise UserError(
            f"{store.location} has the strategy {strategy}: give a crawl of the strategy paths"
        )
    name: dict[int, str] = {}
    before: dict[int, int] = {}
    found = []
    for fetch in History(store).fetches(links=False):
        if fetch.memo is None or fetch.is_revisit:
            continue
        with reporting_damage(store.location):
            memo = PathMemo.from_bytes(fetch.memo)
        name[fetch.url], before[fetch.url] = fetch.url_text, memo.parent
        if memo.goal >= least:
            found.append((fetch.seq, memo.goal, fetch.title or "", fetch.url))
    pages = []
    for seq, probability, title, page in found:
        path = [page]
        while before.get(path[-1], -1) >= 0 and before[path[-1]] not in path:
            path.append(before[path[-1]])
        pages.append(GoalPage(seq, probability, title, [name[each] for each in reversed(path)]))
    return sorted(pages, key=lambda each: (-each.probability, each.seq))


def write_goals(pages: list[GoalPage], out: Path) -> None:
    """Write a CSV file with one row per goal page, including the path from the start page.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    rows: list[list[object]] = [["url", "probability", "seq", "clicks", "title", "path"]]
    for page in pages:
        numbers = [f"{page.probability:.4f}", page.seq, len(page.path) - 1]
        rows.append([page.path[-1], *numbers, one_line(page.title), " ".join(page.path)])
    with reporting_write_errors(out):
        write_atomically(out, format_csv(rows).encode("utf-8", "replace"))
