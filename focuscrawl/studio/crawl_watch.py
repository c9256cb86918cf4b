"""Reads the state of a running crawl for the studio's page that shows the crawl.

Each page and event in the store is read only once, so the cost of an update of the studio's page
does not grow with the crawl. Memory is also bounded.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.completeness.recall_estimate import ESTIMATES_FILE
from focuscrawl.crawl.rejudging import REDEFINED, parse_moved
from focuscrawl.crawl.target_pages import count_targets
from focuscrawl.crawl.waiting import OVERTAKEN
from focuscrawl.crawl_config import DEFAULT_BUDGET
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis import HarvestMonitor, Outcome
from focuscrawl.report.outcomes import PAGE, is_error, outcome
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import RECENT, load_estimates
from focuscrawl.store.history import StoredEvent
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import NamedCrawl


_MAX_HOSTS = 10_000
SHOWN = 10  #: hosts


class BestHosts:
    """Counts fetches and total relevance of hosts, and keeps the hosts with the highest totals.

    The relevance totals of hosts never decrease, so it is enough to keep the ten highest totals
    sorted. With more than 10,000 hosts, the half with the lowest totals is dropped. If a dropped
    host is fetched again, its total starts at 0.
    """

    def __init__(self) -> None:
        self._hosts: dict[int, tuple[int, float]] = {}
        self._best: dict[int, float] = {}  # the highest totals

    def add(self, host: int, relevance: float) -> None:
        """Add a fetch and its relevance to the totals of a host."""
        fetches, total = self._hosts.get(host, (0, 0.0))
        total += relevance
        self._hosts[host] = (fetches + 1, total)
        if host in self._best or len(self._best) < SHOWN:
            self._best[host] = total
        else:
            least = min(self._best, key=self._rank)
            if total > self._best[least]:
                del self._best[least]
                self._best[host] = total
        if len(self._hosts) > _MAX_HOSTS:
            kept = sorted(self._hosts.items(), key=lambda item: -item[1][1])
            self._hosts = dict(kept[: _MAX_HOSTS // 2])

    def best(self) -> list[tuple[int, int, float]]:
        """Return the id, the number of fetches and the total relevance of each of the best hosts.

        The host with the highest total relevance comes first.
        """
        ranked = sorted(self._best, key=self._rank, reverse=True)
        return [(host, *self._hosts[host]) for host in ranked]

    def _rank(self, host: int) -> tuple[float, int]:
        return self._best[host], -host

    def __len__(self) -> int:
        return len(self._hosts)


_MAX_POINTS = 500


class Curve:
    """Curves of the loss rate of all fetches, and of the harvest rate of the latest fetches.

    If a curve has more than 500 points, every other point is dropped, and new points are added
    half as often.

    Attributes
    ----------
    fetched : int
        Number of fetches so far.
    relevance : float
        Sum of their relevance.
    relevant : int
        Number of fetches whose relevance is above 0.5.
    """

    def __init__(self) -> None:
        self.fetched, self.relevance, self.relevant = 0, 0.0, 0
        self._every = 1
        self._latest: deque[float] = deque(maxlen=RECENT)
        self._recent = 0.0
        self._points: list[tuple[int, float, float]] = []

    @property
    def harvest_rate(self) -> float | None:
        """Mean relevance of all fetches; None before the first fetch."""
        return self.relevance / self.fetched if self.fetched else None

    @property
    def recent_harvest_rate(self) -> float | None:
        """Mean relevance of the last `RECENT` fetches; None before the first fetch."""
        return self._recent / len(self._latest) if self._latest else None

    def add(self, relevance: float) -> None:
        """Add the relevance of the next fetch."""
        if len(self._latest) == RECENT:
            self._recent -= self._latest[0]
        self._latest.append(relevance)
        self._recent += relevance
        self.fetched += 1
        self.relevance += relevance
        self.relevant += relevance > RELEVANT
        if self.fetched % self._every == 0:
            self._points.append(self._point())
            if len(self._points) > _MAX_POINTS:
                self._points = self._points[1::2]
                self._every *= 2

    def to_dict(self) -> dict[str, list[float]]:
        """Return the points of the curves as lists ``fetches``, ``loss`` and ``harvest``."""
        points = self._points
        if points and points[-1][0] != self.fetched:
            points = [*points, self._point()]
        return {
            "fetches": [each[0] for each in points],
            "loss": [each[1] for each in points],
            "harvest": [each[2] for each in points],
        }

    def _point(self) -> tuple[int, float, float]:
        loss = 1.0 - self.relevance / self.fetched
        return self.fetched, round(loss, 4), round(self._recent / len(self._latest), 4)


BUDGET = "budget"  #: kind of the events that change the budget

_EVENT_KINDS = ("start", BUDGET, OVERTAKEN, REDEFINED)
_BUDGET_PATTERN = re.compile(r"(?:^|, )budget=(\d+)")


def describe_moved(details: Sequence[str]) -> str:
    """Describe how many pages became relevant or off-topic, given details of `REDEFINED`."""
    if not details:
        return ""
    moves = [parse_moved(each) for each in details]
    up, down = moves[-1]
    latest = (
        f"After the latest judgements, {pluralize(up, 'page')} became relevant, and "
        f"{pluralize(down, 'page')} became off-topic."
    )
    if len(moves) == 1:
        return latest
    change = sum(up - down for up, down in moves)
    return f"{latest} All judgements changed the number of relevant pages by {change:+,}."


class EventLog:
    """The events of a crawl that were read so far.

    Attributes
    ----------
    budget : int
        Current budget of the crawl.
    redefined : list of str
        Details of the changes of the topic.
    """

    def __init__(self) -> None:
        self.budget = DEFAULT_BUDGET
        self.redefined: list[str] = []
        self._last = 0
        self._overtaken: dict[int, str] = {}

    def read(self, store: CrawlStore) -> bool:
        """Read new events from the store; return whether the crawl's topic has changed."""
        new = """SELECT id, seq, kind, detail, at FROM events
                 WHERE id > ? AND kind IN (SELECT value FROM json_each(?)) ORDER BY id"""
        redefined = False
        for event_id, *row in store.rows(new, (self._last, json.dumps(_EVENT_KINDS))):
            self._last = event_id
            event = StoredEvent(*row)
            if event.kind == OVERTAKEN:
                self._overtaken[event.seq] = event.detail
            elif event.kind == REDEFINED:
                redefined = True
                self.redefined.append(event.detail)
            elif event.kind == BUDGET:
                self.budget = int(event.detail)
            else:
                match = _BUDGET_PATTERN.search(event.detail)
                self.budget = int(match[1]) if match else DEFAULT_BUDGET
        return redefined

    def pop_overtaken(self, seq: int) -> str | None:
        """Return (once) the busy host whose better link waited during the fetch `seq`."""
        return self._overtaken.pop(seq, None)


_N_LATEST = 25  # fetches shown
_N_LESSONS = 8


class LatestFetches:
    """The latest fetches of a crawl, each with the link that led to the fetch."""

    def __init__(self) -> None:
        self._seq = 0
        self._fetches: deque[dict[str, Any]] = deque(maxlen=_N_LATEST)

    def read(self, store: CrawlStore, seq: int) -> None:
        """Read new fetches from the store, up to the fetch number `seq`."""
        rows = """
            SELECT p.seq, p.relevance, p.score, p.title, p.topic, p.status, p.error,
                   p.duplicate_of, u.url, r.url AS referrer,
                   (SELECT l.anchor FROM link l WHERE l.target = p.url AND l.source = u.referrer
                    ORDER BY l.score DESC LIMIT 1) AS anchor
            FROM page p JOIN url u ON u.id = p.url LEFT JOIN url r ON r.id = u.referrer
            WHERE p.seq <= ? AND p.seq > ? ORDER BY p.seq
        """
        for row in store.rows(rows, (seq, max(self._seq, seq - _N_LATEST))):
            fetch = {
                "seq": row["seq"],
                "url": row["url"],
                "title": (row["title"] or "")[:200],
                "relevance": round(row["relevance"], 3),
                "score": None if row["score"] is None else round(row["score"], 3),
                "topic": row["topic"],
                "outcome": outcome(row["status"], row["error"], row["duplicate_of"] is not None),
                "referrer": row["referrer"],
                "anchor": (row["anchor"] or "")[:200],
            }
            self._fetches.appendleft(fetch)
        self._seq = seq

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the latest fetches as JSON-serializable values, latest first."""
        return [*self._fetches]


def latest_lessons(store: CrawlStore) -> list[dict[str, Any]]:
    """Return the latest trainings of the apprentice, latest first."""
    newest = """SELECT version, trained_at_seq, instances, metrics FROM models
                ORDER BY version DESC LIMIT ?"""
    found = []
    for version, at, instances, measured in store.rows(newest, (_N_LESSONS,)):
        metrics = json.loads(measured)
        lesson = {"lesson": version, "at": at, "instances": instances}
        lesson |= {name: metrics.get(name) for name in ("auc", "predicted", "relevance", "drift")}
        found.append(lesson)
    return found


_EXHAUSTED = 0.8  # recall above which a fall of the harvest rate is no reason for an alarm
_MAX_PAGES_READ = 20_000  # in one update: takes about a second
_COUNT_INTERVAL_FACTOR = 50.0  # the frontier is counted at most 1/50 of the time
_MIN_COUNT_INTERVAL = 2.0  # seconds between two counts


class CrawlWatch:
    """Reads the state of one crawl for all browser tabs that show the crawl."""

    def __init__(self, crawl: NamedCrawl) -> None:
        self._crawl = crawl
        self._lock = Lock()
        self._store: CrawlStore | None = None
        self._events = EventLog()
        self._harvest_watch: HarvestMonitor | None = None
        self._reset()
        self._frontier: dict[str, Any] = {"bins": [], "total": 0, "seeds": 0, "at": None}
        self._count_frontier_at = 0.0
        self._recall: list[float] | None = None
        self._recall_read_at = 0  # st_mtime_ns of the file

    def read_state(self) -> dict[str, Any]:
        """Read new pages and events of the crawl; return the state for the JSON API."""
        with self._lock:
            store = self._open_store()
            (fetched,) = store.row("SELECT coalesce(max(seq), 0) FROM page")
            # read after the number of pages, so that the events of all these pages exist
            if self._events.read(store):
                self._reset()
                self._events = EventLog()
                self._events.read(store)
            if self._harvest_watch is None:
                topics = store.identity().get("topic", "").split(",")
                self._harvest_watch = HarvestMonitor([topic for topic in topics if topic])
            self._read(store, self._harvest_watch, min(fetched, self._seq + _MAX_PAGES_READ))
            self._count_frontier(store)
            return self._plain(store, fetched)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    # -- reading -------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._seq = 0
        self._curve = Curve()
        self._outcomes: Counter[str] = Counter()
        self._hosts = BestHosts()
        self._latest = LatestFetches()
        self._harvest_watch = None

    def _open_store(self) -> CrawlStore:
        if self._store is None:
            self._store = open_store(self._crawl.path)
        return self._store

    def _read(self, store: CrawlStore, harvest_watch: HarvestMonitor, last: int) -> None:
        new = """
            SELECT p.seq, p.status, p.error, p.relevance, p.topic, p.duplicate_of IS NOT NULL,
                   u.host, f.topic, coalesce(f.relevance, 0.0)
            FROM page p JOIN url u ON u.id = p.url
                 LEFT JOIN page f ON f.url = u.referrer AND f.seq < p.seq
            WHERE p.seq > ? AND p.seq <= ? ORDER BY p.seq
        """
        for row in store.rows(new, (self._seq, last)):
            seq, status, error, relevance, topic, again, host, from_topic, from_relevance = row
            result = outcome(status, error, bool(again))
            self._curve.add(relevance)
            self._outcomes[result] += 1
            self._hosts.add(host, relevance)
            on_topic, overtaken = from_relevance > RELEVANT, self._events.pop_overtaken(seq)
            harvest_watch.add(
                Outcome(relevance, result == PAGE, topic, from_topic, on_topic, overtaken)
            )
        self._seq = last
        self._latest.read(store, last)

    def _count_frontier(self, store: CrawlStore) -> None:
        """Count the queued URLs by score; a large frontier is counted less often."""
        started = time.monotonic()
        if started < self._count_frontier_at:
            return
        counts = """SELECT CAST(score * 10 AS INTEGER) AS tenth, count(*) FROM url
                    WHERE state = ? GROUP BY tenth"""
        bins, seeds = [0] * 10, 0
        for tenth, n in store.rows(counts, (QUEUED,)):
            if tenth is None:
                seeds = n
            else:
                bins[min(max(tenth, 0), 9)] += n
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._frontier = {"bins": bins, "total": sum(bins) + seeds, "seeds": seeds, "at": now}
        took = time.monotonic() - started
        self._count_frontier_at = started + max(_MIN_COUNT_INTERVAL, _COUNT_INTERVAL_FACTOR * took)

    # -- showing -------------------------------------------------------------------------------

    def _plain(self, store: CrawlStore, fetched: int) -> dict[str, Any]:
        current = self._crawl.read_state(store)
        speed, left = current.recent.pages_per_second, self._events.budget - fetched
        has_end = current.running and self._events.budget > 0 and speed > 0.0
        alarm = None if self._harvest_watch is None else self._harvest_watch.alarm
        recall = self._read_recall(store)
        exhausted = alarm is not None and recall is not None and recall[0] >= _EXHAUSTED
        if exhausted:
            alarm = None
        shown_alarm = alarm and {
            "sentence": alarm.sentence(),
            "text": alarm.describe(),
            "proposals": [each.topic for each in alarm.proposals],
        }
        targets = count_targets(store, self._crawl.path)
        return {
            "name": self._crawl.name,
            "about": current.about,
            "state": current.state,
            "targets": None if targets is None else targets.describe(),
            "running": current.running,
            "wanted": str(self._crawl.control.command),
            "budget": self._events.budget,
            "fetched": fetched,
            "read": self._seq,
            "seconds_left": max(left, 0) / speed if has_end else None,
            "relevant": self._curve.relevant,
            "changed": describe_moved(self._events.redefined),
            "recall": recall,
            "errors": sum(n for name, n in self._outcomes.items() if is_error(name)),
            "harvest_rate": self._curve.harvest_rate,
            # over the pages read so far, as the harvest rate of all pages
            "recent_harvest_rate": self._curve.recent_harvest_rate,
            "pages_per_second": speed,
            "curve": self._curve.to_dict(),
            "waiting": self._frontier,
            "hosts": self._best_hosts(store),
            "outcomes": self._plain_outcomes(),
            "alarm": shown_alarm,
            "exhausted": exhausted,
            "lessons": latest_lessons(store),
            "latest": self._latest.to_dict(),
        }

    def _read_recall(self, store: CrawlStore) -> list[float] | None:
        """Return the latest estimate of recall and the ends of its interval, or None."""
        try:
            changed_at = (self._crawl.path / ESTIMATES_FILE).stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if changed_at != self._recall_read_at:
            self._recall_read_at = changed_at
            latest = next(reversed(load_estimates(store)), None)
            self._recall = None if latest is None else [latest.recall, *latest.interval]
        return self._recall

    def _best_hosts(self, store: CrawlStore) -> list[dict[str, Any]]:
        best = self._hosts.best()
        hosts = json.dumps([host for host, _, _ in best])
        named = "SELECT id, name FROM host WHERE id IN (SELECT value FROM json_each(?))"
        names = dict(map(tuple, store.rows(named, (hosts,))))
        return [
            {"host": names.get(host, "?"), "fetches": n, "relevance": round(total, 2)}
            for host, n, total in best
        ]

    def _plain_outcomes(self) -> list[dict[str, Any]]:
        return [
            {"outcome": name, "fetches": n, "error": is_error(name)}
            for name, n in self._outcomes.most_common()
            if name != PAGE
        ]


_MAX_WATCHES = 8  # crawls; the least recently shown is closed first
_REUSE_TIME = 0.9  # seconds for which a state is reused


class CrawlWatches:
    """Reads the states of all crawls that browser tabs show."""

    def __init__(self, context: StudioContext) -> None:
        self._context = context
        self._lock = Lock()
        self._watches: OrderedDict[tuple[str, int], _SharedWatch] = OrderedDict()

    def read_state(self, name: str) -> dict[str, Any]:
        """Return the state of the crawl with the given name, see `CrawlWatch.read_state`."""
        crawl = self._context.crawl(name)
        # another crawl may have taken the name
        key = (name, (crawl.path / "crawl.db").stat().st_ino)
        with self._lock:
            shared = self._watches.get(key)
            if shared is None:
                shared = self._watches[key] = _SharedWatch(CrawlWatch(crawl))
            self._watches.move_to_end(key)
            n_old = len(self._watches) - _MAX_WATCHES
            old = [self._watches.popitem(last=False)[1] for _ in range(n_old)]
        for each in old:
            each.watch.close()
        return shared.read_state()


class _SharedWatch:
    def __init__(self, watch: CrawlWatch) -> None:
        self.watch = watch
        self._lock = Lock()
        self._seen: dict[str, Any] = {}
        self._until = 0.0

    def read_state(self) -> dict[str, Any]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._seen = self.watch.read_state()
                self._until = time.monotonic() + _REUSE_TIME
            return self._seen
