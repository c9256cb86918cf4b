"""What came of a fetch, why a crawl ended, what happened on the way."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.completeness.stop_rules import LITTLE, RECALL, TIME
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


_WORDS = {
    "budget": "the budget of {fetched} fetches is spent",
    "budget, unchanged": "the budget is spent: {fetched} fetches, {unchanged} not modified",
    "frontier_empty": "the frontier is empty: no link is left to follow",
    "seeds_unreachable": "no start page could be had, so there was nothing to follow",
    "hosts_unavailable": "what waits is on hosts left alone; the same command tries them again",
    "no_relevant_page": "no relevant page for too many fetches",
    RECALL: "the recall asked for is reached, by estimate, after {fetched} fetches",
    LITTLE: "less harvest is expected of the next fetches than asked for",
    TIME: "the time of this run is over; the same command goes on from here",
    "interrupted": "interrupted; the same command goes on from here",
    "stopped": "stopped by `focuscrawl stop`; the same command goes on from here",
    "store_error": "the crawl store could not be written",
    "start_error": "the spider's start failed: see the log; the same command goes on from here",
    "error": "the critic or the strategy failed again and again: see the log",
}
KILLED = "killed; the same command goes on from here"
#: kinds of the events after which a crawl is in another state
TURNS = ("start", "stop", "paused", "resumed")
PAUSED = "paused"
#: without a page for so long, nobody was crawling: a killed run leaves no stop event behind
BREAK = timedelta(minutes=10)
_KINDS = {ALARM: "alarm", SLOW: "slow", "start": "restart", REDEFINED: "topic changed"}


def outcome(status: int, error: str | None, duplicate: bool) -> str:
    """Name what came of a fetch.

    Parameters
    ----------
    status : HTTP status; 0 where none was received
    error : the store's reason for no status, or for no judgement
    duplicate : the page was here already

    Returns
    -------
    ``page`` and ``not modified`` (the only ones with a relevance; the latter was asked for only
    if it had changed), ``duplicate``, ``redirect``, ``no HTML``, ``site map``,
    ``site map index``, ``feed``, ``HTTP <status>``, or the cause when no answer came or a
    redirect, of a page that refreshes to another, too, leads nowhere.
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
    """Tell whether an outcome is a failure of the server, the network or the link."""
    return name not in (PAGE, DUPLICATE, REDIRECT, NO_HTML, UNCHANGED, *URL_LIST_KINDS)


class RunState(NamedTuple):
    """What a crawl in a folder is doing, by the process that has the folder.

    Attributes
    ----------
    running : there is such a process
    words : ``crawling``, ``paused``, ``starting``, ``stopping``, ``judging pages again``, or why
        it does not crawl
    """

    running: bool
    words: str


def run_state(store: CrawlStore, fetched: int | None = None, unchanged: int = 0) -> RunState:
    """Return what a crawl in a folder is doing.

    Parameters
    ----------
    fetched, unchanged : see `in_words`; None: count them
    """
    folder = CrawlFolder(Path(store.where).parent)
    while True:  # until nobody has come or gone while the store was read
        doing = folder.phase
        turn = next(iter(History(store).events(*TURNS, last=1)), None)
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
        words = "never began"
    else:
        if fetched is None:  # a sum would take as long as the crawl is
            (fetched,) = store.row("SELECT coalesce(max(seq), 0) FROM page")
        rule = rule_in_words(store)
        words = in_words(turn.detail, fetched, unchanged, rule) if kind == "stop" else KILLED
    return RunState(doing is not None, str(words))


def stop_reason(store: CrawlStore) -> str | None:
    """Return why the last run ended; None if it did not, or did not live to say so."""
    ends = History(store).events("start", "stop", last=1)
    return ends[0].detail if ends and ends[0].kind == "stop" else None


def rule_in_words(store: CrawlStore) -> str:
    """Return which of the user's rules ended the last run, with its numbers; "" if none did."""
    turns = History(store).events("start", RULE)
    return turns[-1].detail if turns and turns[-1].kind == RULE else ""


def hosts_left(store: CrawlStore) -> dict[str, str]:
    """Return the hosts that the last run left alone, and why, in the order of leaving."""
    left: dict[str, str] = {}
    for event in History(store).events("start", HOST_SKIPPED):
        if event.kind == "start":
            left.clear()
        else:
            host, _, why = event.detail.partition(": ")
            left[host] = why
    return left


def in_words(reason: str, fetched: int, unchanged: int = 0, rule: str = "") -> str:
    """Say a stop reason; those of Scrapy itself, or of other extensions, are left as they are.

    Parameters
    ----------
    unchanged : fetches that were answered "not modified"
    rule : see `rule_in_words`
    """
    if rule and reason in (RECALL, LITTLE, TIME):
        return f"{rule}; the same command goes on from here" if reason == TIME else rule
    if reason not in _WORDS:
        return reason
    words = _WORDS.get(f"{reason}, unchanged" if unchanged else reason, _WORDS[reason])
    return words.format(fetched=f"{fetched:,}", unchanged=f"{unchanged:,}")


def time_crawling(store: CrawlStore, fetched: int) -> tuple[timedelta, int]:
    """Return the time between fetches, breaks between runs left out, and the fetches it took.

    A break is where a run ends or begins between two fetches, or more than `BREAK` passed. The
    first fetch of a run takes no time that the store knows of and is not counted. Fetches may be
    recorded after later ones: only what is later than all before takes time.
    """
    stops = {event.seq for event in History(store).events("start", "stop")}
    times = store.rows("SELECT seq, fetched_at FROM page WHERE seq <= ? ORDER BY seq", (fetched,))
    fetches = ((seq, datetime.fromisoformat(at)) for seq, at in times)
    latest = accumulate(fetches, lambda before, fetch: (fetch[0], max(before[1], fetch[1])))
    total, counted = timedelta(), 0
    for (seq, before), (_, after) in pairwise(latest):
        if seq not in stops and after - before <= BREAK:
            total += after - before
            counted += 1
    return total, counted


class Milestone(NamedTuple):
    """Something that happened after a fetch.

    Attributes
    ----------
    seq : number of the fetch
    kind : ``alarm``, ``slow``, ``restart`` or ``topic changed``
    """

    seq: int
    kind: str


def milestones(store: CrawlStore) -> list[Milestone]:
    """Return the milestones of a crawl in their order; its beginning is none."""
    events = History(store).events(*_KINDS)
    return [Milestone(event.seq, _KINDS[event.kind]) for event in events if event.seq]
