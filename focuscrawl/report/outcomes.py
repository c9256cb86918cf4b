"""Describes the outcomes of fetches, and the state, stop reason and milestones of a crawl."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.completeness.stop_rules import (
    LITTLE_EXPECTED,
    RECALL_REACHED,
    TARGETS_REACHED,
    TIME_OVER,
)
from focuscrawl.crawl.crawl_folder import CrawlFolder, CrawlPhase
from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.crawl.stopping import RULE
from focuscrawl.crawl.visit import META_REFRESH, NOT_MODIFIED
from focuscrawl.diagnosis import ALARM, SLOW
from focuscrawl.frontier.hosts import HOST_SKIPPED
from focuscrawl.page.documents import URL_LIST_KINDS
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


PAGE = "page"
DUPLICATE = "duplicate"
REDIRECT = "redirect"
NO_HTML = "no HTML"
UNCHANGED = "not modified"


#: stop reasons of a person or a signal; None: killed
STOPPED_EARLY = ("interrupted", "stopped", None)
SEEDS_UNREACHABLE = "seeds_unreachable"  #: stop reason of a crawl without a single page
HARVEST_FELL = "harvest_fell"  #: stop reason of `FOCUSCRAWL_STOP_AT_ALARM`
_RESUME = "the same command resumes the crawl"
_STOP_REASONS = {
    "budget": "the budget of {fetched} fetches is spent",
    "budget, unchanged": "the budget is spent: {fetched} fetches, {unchanged} not modified",
    "frontier_empty": "the frontier is empty: no links are left to follow",
    SEEDS_UNREACHABLE: "no start page could be fetched; check the seeds with `focuscrawl plan`",
    "hosts_unavailable": "all queued URLs are on skipped hosts; the same command tries them again",
    "no_relevant_page": "too many fetches in a row without a relevant page",
    RECALL_REACHED: "stopped by the recall rule after {fetched} fetches",
    TARGETS_REACHED: "stopped by the rule on target pages after {fetched} fetches",
    LITTLE_EXPECTED: "stopped by the rule on the harvest of the next fetches",
    TIME_OVER: f"stopped by the time rule; {_RESUME}",
    HARVEST_FELL: f"the harvest rate fell; {_RESUME}",
    "interrupted": f"interrupted; {_RESUME}",
    "stopped": f"stopped by `focuscrawl stop`; {_RESUME}",
    "store_error": "the crawl database could not be written",
    "start_error": f"the spider failed to start: see the log; {_RESUME}",
    "error": "an error that would occur for every page: see the log",
}
KILLED = f"killed; {_RESUME}"
#: kinds of the events that start, pause, resume or stop a run
RUN_EVENTS = ("start", "stop", "paused", "resumed")
PAUSED = "paused"
#: a longer gap between two fetches means that no run was active; a killed run has no stop event
MAX_GAP = timedelta(minutes=10)
_MILESTONES = {ALARM: "alarm", SLOW: "slow", "start": "restart", REDEFINED: "topic changed"}


def outcome(status: int, error: str | None, duplicate: bool) -> str:
    """Return the outcome of a fetch, such as page, redirect or duplicate.

    Parameters
    ----------
    status : int
        HTTP status; 0 if there was no response.
    error : str or None
        Reason in the store why there was no response, or why the page was not judged.
    duplicate : bool
        The page is a duplicate of an earlier one.

    Returns
    -------
    str
        ``page`` or ``not modified`` for pages with a relevance. Otherwise ``duplicate``,
        ``redirect``, ``no HTML``, ``site map``, ``site map index``, ``feed``, ``HTTP <status>``,
        or the cause of a failed request or of a redirect without a usable target.
    """
    if duplicate:
        return DUPLICATE
    cause = (error or "").partition(":")[0].strip()
    if status == 0 or (cause and 200 <= status < 400):
        return REDIRECT if cause == META_REFRESH else cause or "no answer"
    if status == NOT_MODIFIED:
        return UNCHANGED
    if 300 <= status < 400:
        return REDIRECT
    return PAGE if 200 <= status < 300 else f"HTTP {status}"


def is_error(name: str) -> bool:
    """Return whether an outcome is an error of the server, the network or the link."""
    return name not in (PAGE, DUPLICATE, REDIRECT, NO_HTML, UNCHANGED, *URL_LIST_KINDS)


class RunState(NamedTuple):
    """Whether a process runs a crawl, and the state of the process or the stop reason."""

    running: bool  #: a process holds the lock of the crawl's folder
    #: state of the process (`CrawlFolder.phase`), ``paused``, or the reason why the last run
    #: stopped
    description: str


def run_state(store: CrawlStore, fetched: int | None = None, unchanged: int = 0) -> RunState:
    """Return the state of a crawl as text, such as the reason why the crawl stopped."""
    folder = CrawlFolder(Path(store.location).parent)
    while True:  # until the process has not changed while the store was read
        doing = folder.phase
        turn = next(iter(History(store).events(*RUN_EVENTS, last=1)), None)
        if folder.phase is doing:
            break
    kind = "" if turn is None else turn.kind
    if doing is CrawlPhase.CRAWLING:
        words = {PAUSED: PAUSED, "": CrawlPhase.STARTING, "stop": CrawlPhase.STARTING}.get(
            kind, doing
        )
    elif doing is not None:
        words = doing
    elif turn is None:
        words = "never started"
    else:
        if fetched is None:  # count(*) would read the whole table
            (fetched,) = store.row("SELECT coalesce(max(seq), 0) FROM page")
        rule = stop_rule_message(store)
        words = (
            describe_stop_reason(turn.detail, fetched, unchanged, rule)
            if kind == "stop"
            else KILLED
        )
    return RunState(doing is not None, str(words))


def stop_reason(store: CrawlStore) -> str | None:
    """Return why the last run of a crawl stopped; None if the run is active or was killed."""
    ends = History(store).events("start", "stop", last=1)
    return ends[0].detail if ends and ends[0].kind == "stop" else None


def stop_rule_message(store: CrawlStore) -> str:
    """Return the message of the user's stop rule that stopped the last run, or ""."""
    turns = History(store).events("start", RULE)
    return turns[-1].detail if turns and turns[-1].kind == RULE else ""


def skipped_hosts(store: CrawlStore) -> dict[str, str]:
    """Return the hosts that the last run of a crawl skipped, each with the reason."""
    left: dict[str, str] = {}
    for event in History(store).events("start", HOST_SKIPPED):
        if event.kind == "start":
            left.clear()
        else:
            host, _, why = event.detail.partition(": ")
            left[host] = why
    return left


def describe_stop_reason(reason: str, fetched: int, unchanged: int = 0, rule: str = "") -> str:
    """Return the stop reason of a crawl as a sentence; unknown reasons stay unchanged.

    Parameters
    ----------
    reason : str
        Stop reason in the store.
    fetched, unchanged : int
        Fetches, and fetches answered with "not modified".
    rule : str
        Message of `stop_rule_message`.
    """
    if rule and reason in (RECALL_REACHED, TARGETS_REACHED, LITTLE_EXPECTED, TIME_OVER):
        return f"{rule}; {_RESUME}" if reason == TIME_OVER else rule
    if reason not in _STOP_REASONS:
        return reason
    words = _STOP_REASONS.get(
        f"{reason}, unchanged" if unchanged else reason, _STOP_REASONS[reason]
    )
    return words.format(fetched=f"{fetched:,}", unchanged=f"{unchanged:,}")


def crawling_time(store: CrawlStore, fetched: int) -> tuple[timedelta, int]:
    """Return the time that a crawl spent fetching, and the number of fetches in that time.

    The time between two fetches does not count if a run of the crawl started or stopped in
    between, or if the time is longer than `MAX_GAP`. The first fetch of a run does not count,
    because the store does not contain the start time of this fetch. Fetches can be recorded out of
    order, so a fetch counts only if its time is later than the times of all fetches recorded
    before.
    """
    stops = {event.seq for event in History(store).events("start", "stop")}
    times = store.rows("SELECT seq, fetched_at FROM page WHERE seq <= ? ORDER BY seq", (fetched,))
    fetches = ((seq, datetime.fromisoformat(at)) for seq, at in times)
    latest = accumulate(fetches, lambda before, fetch: (fetch[0], max(before[1], fetch[1])))
    total, counted = timedelta(), 0
    for (seq, before), (_, after) in pairwise(latest):
        if seq not in stops and after - before <= MAX_GAP:
            total += after - before
            counted += 1
    return total, counted


class Milestone(NamedTuple):
    """An event of a crawl that is marked in figures of curves."""

    seq: int  #: number of the fetch before the event
    kind: str  #: ``alarm``, ``slow``, ``restart`` or ``topic changed``


def milestones(store: CrawlStore) -> list[Milestone]:
    """Return the events that figures mark, in order and without the start of the first run."""
    events = History(store).events(*_MILESTONES)
    return [Milestone(event.seq, _MILESTONES[event.kind]) for event in events if event.seq]
