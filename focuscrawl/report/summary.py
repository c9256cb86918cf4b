"""Summary of a crawl in twenty lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from focuscrawl.completeness.recall_estimate import FILE, read_estimates
from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.crawl.traps import LIMITED, NEAR_DUPLICATE, RAISED, Quota, Quotas
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.crawl.visit import NOT_MODIFIED, PAGE_FAILED, RENDERED
from focuscrawl.crawl.waiting import OVERTAKEN, SCORE_TOLERANCE
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis import ALARM, FAST_AGAIN, RECOVERED, SLOW, HarvestMonitor
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import URL_LIST_KINDS
from focuscrawl.report.outcomes import (
    DUPLICATE,
    NO_HTML,
    PAGE,
    REDIRECT,
    UNCHANGED,
    hosts_left,
    is_error,
    outcome,
    run_state,
    time_crawling,
)
from focuscrawl.report.plain_text import counted, middle, one_line, printable, table
from focuscrawl.store import schema
from focuscrawl.store.history import History

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import timedelta

    from focuscrawl.completeness.recall_estimate import Estimate
    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.store import CrawlStore


_HOSTS, _PATTERNS = "hosts", "patterns"
_START = "start"  # kind of the event that a run begins
RECENT = 100  # fetches of the harvest rate at the end
_HOSTS_SHOWN = 5
_CAUSES = 5
_LEFT = 3
_HOST_WIDTH = 48
_WAYS_OUT = {"PrivateAddressError": " (see FOCUSCRAWL_PRIVATE_ADDRESSES)"}  # by error


class Again(NamedTuple):
    """Second and later fetches of pages, which are in no count of pages.

    Attributes
    ----------
    fetches : those made
    unchanged : of these, answered "not modified"
    links : that the pages did not have before
    """

    fetches: int = 0
    unchanged: int = 0
    links: int = 0

    @classmethod
    def of(cls, store: CrawlStore) -> Self:
        """Count them."""
        counts = """SELECT count(status), count(CASE WHEN status = ? THEN 1 END),
                           coalesce(sum(links), 0)
                    FROM revisit WHERE seq IS NOT NULL"""
        return cls(*store.row(counts, (NOT_MODIFIED,)))

    def in_words(self) -> str:
        """Say it in a few words; nothing if there were none."""
        if not self.fetches:
            return ""
        words = f"{counted(self.fetches, 'hub')} again: {counted(self.links, 'new link')}"
        return words + (f", {self.unchanged:,} not modified" if self.unchanged else "")


def trap_events(store: CrawlStore) -> dict[str, int]:
    """Return how many ``hosts`` and ``patterns`` were limited, and other events by their kind."""
    counts: Counter[str] = Counter()
    for event in History(store).events(LIMITED, RAISED, NEAR_DUPLICATE):
        name = event.detail.partition(": ")[0]
        of_limit = _PATTERNS if "/" in name else _HOSTS
        counts[of_limit if event.kind == LIMITED else event.kind] += 1
    return dict(counts)


def limits_in_words(events: Mapping[str, int]) -> str | None:
    """Return what `trap_events` tells of limits; None if none was reached."""
    held = [counted(events[name], name[:-1]) for name in (_HOSTS, _PATTERNS) if events.get(name)]
    if not held:
        return None
    words = f"{' and '.join(held)} held back"
    if events.get(RAISED):
        words += f", limits raised {counted(events[RAISED], 'time')}"
    return words


def near_duplicate(store: CrawlStore, seq: int, url: str) -> str | None:
    """Return what the page fetched as number `seq` is much alike, in words; None if nothing."""
    told = History(store).events(NEAR_DUPLICATE)
    return next((event.detail[len(url) + 2 :] for event in told if event.seq == seq), None)


def held_back(store: CrawlStore, url: str) -> str | None:
    """Return which limit holds back a URL that waits, in words; None if none does.

    The accounts of the crawl are kept again from its pages, as a resumed crawl does.
    """
    history, names = History(store), {host(url), url_pattern(url)}
    if not any(event.detail.partition(": ")[0] in names for event in history.events(LIMITED)):
        return None
    account = _accounts(history).closed_quota(url)
    return None if account is None else _in_words(account)


def _accounts(history: History) -> Quotas:
    nothing_new = {event.seq for event in history.events(NEAR_DUPLICATE)}
    raised_at = Counter(event.seq for event in history.events(RAISED))
    name = {url.id: url.url for url in history.urls()}
    quotas = Quotas()
    for fetch in history.first_fetches():
        repeats = fetch.seq in nothing_new or fetch.duplicate_of is not None
        earns = fetch.relevance > RELEVANT and not repeats
        referrer = None if fetch.referrer is None else name[fetch.referrer]
        for _ in quotas.count(fetch.name, referrer, earns=earns, repeats=repeats):
            pass
        for _ in range(raised_at[fetch.seq]):
            quotas.raise_limits()
    return quotas


def _in_words(account: Quota) -> str:
    return f"held back: of {account.kind} {account.name}, {account.description}"


def watch_again(store: CrawlStore) -> tuple[HarvestMonitor, list[Diagnosis]]:
    """Watch a crawl again as it is judged now; return the watch, and every alarm it gave.

    An alarm of the store's events may be missing here: the crawl has followed another
    definition of its topic since.
    """
    topics = store.identity().get("topic", "")
    watch = HarvestMonitor([topic for topic in topics.split(",") if topic])
    alarms = []
    history = History(store)
    overtakes = {event.seq: event.detail for event in history.events(OVERTAKEN)}
    for fetch in history.first_fetches():
        told = watch.add_fetch(
            fetch.url,
            fetch.referrer,
            relevance=fetch.relevance,
            topic=fetch.topic,
            judged=is_page(fetch.status, fetch.error, fetch.duplicate_of),
            busy_host=overtakes.get(fetch.seq),
        )
        if told == ALARM and watch.alarm is not None:
            alarms.append(watch.alarm)
    return watch, alarms


def is_page(status: int, error: str | None, duplicate_of: object) -> bool:
    """Tell whether a fetch brought a page, and a new one."""
    return outcome(status, error, duplicate_of is not None) == PAGE


def last_alarm(store: CrawlStore) -> str | None:
    """Return what the last alarm of a crawl told, if it is not over; else of its speed."""
    history = History(store)
    for told, over in ((ALARM, (RECOVERED, REDEFINED)), (SLOW, (FAST_AGAIN, _START))):
        for event in history.events(told, *over, last=1):
            if event.kind == told:
                return event.detail
    return None


_TOTALS = """
SELECT coalesce(max(seq), 0), coalesce(sum(relevance), 0.0),
       count(CASE WHEN relevance > ? THEN 1 END), coalesce(sum(links), 0),
       coalesce(sum(dropped), 0)
FROM page
"""
_BEST_HOSTS = """
SELECT h.name AS host, count(*) AS fetches, sum(p.relevance) AS relevance
FROM page p JOIN url u ON u.id = p.url JOIN host h ON h.id = u.host
WHERE p.seq <= ? GROUP BY h.id, h.name HAVING sum(p.relevance) > 0
ORDER BY sum(p.relevance) DESC, h.name LIMIT ?
"""


@dataclass(frozen=True)
class Summary:
    """What a crawl achieved, in numbers (methods 1).

    Attributes
    ----------
    identity : what the crawl was started with: topic, strategy, web, critic, random_state
    where : the store
    stopped : why it ended, in words
    fetched : fetches, whatever came of them
    harvest_rate, recent_harvest_rate : mean relevance of all fetches, and of the last `RECENT`;
        0 before the first
    relevant : pages of a relevance above ½
    outcomes : fetches by what came of them, see `focuscrawl.report.outcomes`
    links, dropped : links on the pages fetched; of these, left out before the frontier
    traps : what limits held back, and near-duplicates, see `focuscrawl.report.summary`
    states : URLs by state, see `focuscrawl.store.schema.STATES`
    time, timed : time spent between fetches, breaks of a resumed crawl left out; for how many
    model, models_at : version of the last model and the fetch it was trained at; 0 for none
    best_hosts : those with the largest sums of relevance: ``host``, ``fetches``, ``relevance``
    left : hosts that the last run left alone, and why
    overtaken : by host, fetches during which the best link waited there, and was much better
        (`focuscrawl.crawl.waiting`)
    alarm : why the harvest rate has fallen, if it has (`focuscrawl.diagnosis`)
    again : what came of hubs that were fetched again; not among `fetched`
    failed_on : pages that the critic or the strategy failed on, and how it did on the last
    rendered : pages whose scripts a browser ran; not among `fetched`, but of the budget
    recorded : bytes of each recording of its pages, by the name of the file
    completeness : its last estimate of how complete it is; None before the first
    """

    identity: dict[str, str]
    where: str
    stopped: str
    fetched: int
    harvest_rate: float
    recent_harvest_rate: float
    relevant: int
    outcomes: dict[str, int]
    links: int
    dropped: int
    traps: dict[str, int]
    states: dict[str, int]
    time: timedelta
    timed: int
    model: int
    models_at: int
    best_hosts: list[sqlite3.Row]
    left: dict[str, str]
    overtaken: dict[str, int] = field(default_factory=dict)
    alarm: str | None = None
    again: Again = field(default_factory=Again)
    recorded: dict[str, int] = field(default_factory=dict)
    completeness: Estimate | None = None
    rendered: int = 0
    failed_on: tuple[int, str] = (0, "")

    @classmethod
    def of(cls, store: CrawlStore) -> Summary:
        """Read the summary of a crawl, which may be running; the frontier is only counted."""
        fetched, relevance, relevant, links, dropped = store.row(_TOTALS, (RELEVANT,))
        mean = "SELECT coalesce(avg(relevance), 0.0) FROM page WHERE seq > ? AND seq <= ?"
        (recent,) = store.row(mean, (fetched - RECENT, fetched))
        model, models_at = newest_lesson(store)
        time, timed = time_crawling(store, fetched)
        outcomes, again = _outcomes(store, fetched), Again.of(store)
        unchanged = outcomes.get(UNCHANGED, 0) + again.unchanged
        rendered = len(History(store).events(RENDERED))
        failures = History(store).events(PAGE_FAILED)
        return cls(
            identity=store.identity(),
            where=store.where,
            stopped=_stopped(store, fetched + again.fetches + rendered, unchanged),
            fetched=fetched,
            harvest_rate=relevance / fetched if fetched else 0.0,
            recent_harvest_rate=recent,
            relevant=relevant,
            outcomes=outcomes,
            links=links,
            dropped=dropped,
            traps=trap_events(store),
            states=_states(store),
            time=time,
            timed=timed,
            model=model,
            models_at=models_at,
            best_hosts=[*store.rows(_BEST_HOSTS, (fetched, _HOSTS_SHOWN))],
            left=hosts_left(store),
            overtaken=_overtaken(store),
            alarm=last_alarm(store),
            again=again,
            recorded=_recorded(store),
            completeness=next(reversed(estimates_of(store)), None),
            rendered=rendered,
            failed_on=(len(failures), failures[-1].detail if failures else ""),
        )

    @property
    def loss_rate(self) -> float | None:
        """1 - harvest rate; None before the first fetch."""
        return 1.0 - self.harvest_rate if self.fetched else None

    @property
    def priority_fidelity(self) -> float | None:
        """Share of the fetches that were of one of the best links known; None before the first."""
        return 1.0 - sum(self.overtaken.values()) / self.fetched if self.fetched else None

    @property
    def pages_per_second(self) -> float | None:
        """Fetches a second while it crawled; None where the store cannot tell."""
        seconds = self.time.total_seconds()
        return self.timed / seconds if seconds > 0 else None

    @property
    def web(self) -> str:
        """What was crawled, in words."""
        web = self.identity.get("web", "live")
        return "the live Web" if web == "live" else self.identity.get("web_name", "a recorded web")

    def lines(self) -> list[tuple[str, str]]:
        """Return the summary as (name, value), hosts left out; for terminal and HTML alike."""
        states = self.states
        lines = [
            ("topic", one_line(self.identity.get("topic", "?"))),
            ("strategy", f"{self.identity.get('strategy', '?')} on {self.web}"),
            ("stopped", one_line(self.stopped)),
            ("fetched", self._fetched_in_words()),
        ]
        if self.fetched:
            loss, recent = 1.0 - self.harvest_rate, self.recent_harvest_rate
            last = f"last {min(RECENT, self.fetched)}"
            lines += [
                ("harvest rate", f"{self.harvest_rate:.3f}  ({last}: {recent:.3f})"),
                ("loss rate", f"{loss:.3f}  ({last}: {1.0 - recent:.3f})"),
                ("relevant", self._relevant_in_words()),
                ("duplicates", self._duplicates_in_words()),
                ("errors", self.errors_in_words()),
                ("links", f"{self.links:,} found, {self.dropped:,} dropped"),
            ]
        failed_on, last = self.failed_on
        if failed_on:
            lines.append(("failed on", f"{counted(failed_on, 'page')}, the last {one_line(last)}"))
        if self.overtaken:
            lines.append(("priority", self._priority_in_words()))
        if self.left:
            lines.append(("left alone", self._left_in_words()))
        frontier = f"{counted(states.get('queued', 0), 'URL')} waiting"
        for state in ("unfollowed", "excluded"):
            if states.get(state):
                frontier += f", {states[state]:,} {state}"
        lines.append(("frontier", frontier))
        limits = limits_in_words(self.traps)
        if limits is not None:
            lines.append(("limits", limits))
        if self.model:
            lines.append(("model", f"version {self.model}, trained at fetch {self.models_at:,}"))
        if self.alarm is not None:
            lines.append(("alarm", one_line(self.alarm)))
        if self.recorded:
            lines.append(("recorded", self._recorded_in_words()))
        lines.append(("kept in", self.home))
        return [(name, printable(value)) for name, value in lines]

    @property
    def home(self) -> str:
        """Folder of the crawl."""
        return str(Path(self.where).parent)

    def text(self) -> str:
        """Return the summary for a terminal: at most 20 lines, without a final newline."""
        lines = self.lines()
        width = max(len(name) for name, _ in lines)
        text = [f"{name:<{width}}  {value}" for name, value in lines]
        if self.best_hosts:
            total = self.harvest_rate * self.fetched
            rows = [["best hosts", "share", "fetches", "mean R"]]
            rows += [
                [
                    middle(one_line(name), _HOST_WIDTH),
                    f"{relevance / total:.0%}",
                    f"{fetches:,}",
                    f"{relevance / fetches:.2f}",
                ]
                for name, fetches, relevance in self.best_hosts
            ]
            text[-1:-1] = table(rows, left={0})
        return "\n".join(text)

    def _fetched_in_words(self) -> str:
        if not self.fetched:
            return "nothing yet"
        words = f"{self.fetched:,}"
        if self.pages_per_second is not None:
            words += f" in {_duration(self.time)}, {self.pages_per_second:.1f} pages/s"
        if self.rendered:
            words += f"; {self.rendered:,} of them in a browser once more"
        return f"{words}; {self.again.in_words()}" if self.again.fetches else words

    def _relevant_in_words(self) -> str:
        words = f"{counted(self.relevant, 'page')} with R > {RELEVANT}"
        return words if self.completeness is None else f"{words}, {self.completeness.in_words()}"

    def _duplicates_in_words(self) -> str:
        redirects = counted(self.outcomes.get(REDIRECT, 0), "redirect")
        no_html = self.outcomes.get(NO_HTML, 0)
        near = self.traps.get(NEAR_DUPLICATE, 0)
        same = f"{self.outcomes.get(DUPLICATE, 0):,}" + (f", {near:,} more nearly" if near else "")
        lists = sum(self.outcomes.get(kind, 0) for kind in URL_LIST_KINDS)
        said = f"{same}; {redirects}, {no_html:,} no HTML"
        return f"{said}, {counted(lists, 'site map')} or feeds" if lists else said

    def _priority_in_words(self) -> str:
        host = max(self.overtaken, key=lambda name: self.overtaken[name])
        return (
            f"{self.priority_fidelity:.0%} of fetches within {SCORE_TOLERANCE:g} of the best link "
            f"known; others most often while {middle(one_line(host), _HOST_WIDTH)} was busy"
        )

    def _left_in_words(self) -> str:
        """Name the first hosts that were left alone; the rest is counted."""
        hosts = [*self.left.items()]
        words = [
            f"{middle(one_line(host), _HOST_WIDTH)} ({one_line(why, 40)})"
            for host, why in hosts[:_LEFT]
        ]
        if len(hosts) > _LEFT:
            words.append(f"{len(hosts) - _LEFT:,} more")
        return f"{counted(len(hosts), 'host')}: {', '.join(words)}"

    def _recorded_in_words(self) -> str:
        size = f"{_size(sum(self.recorded.values()))} in {', '.join(self.recorded)}"
        return f"{size}, for judging anew and replays (FOCUSCRAWL_WARC=0: no more)"

    def errors_in_words(self) -> str:
        """Return the most frequent causes of failed fetches, with their numbers."""
        errors = [(name, n) for name, n in self.outcomes.items() if is_error(name)]
        words = [
            f"{one_line(name, 40)}: {n:,}{_WAYS_OUT.get(name, '')}" for name, n in errors[:_CAUSES]
        ]
        rest = sum(n for _, n in errors[_CAUSES:])
        return ", ".join([*words, f"other: {rest:,}"] if rest else words) or "none"


def estimates_of(store: CrawlStore) -> list[Estimate]:
    """Return the estimates that a crawl has made of how complete it is."""
    return read_estimates(Path(store.where).parent / FILE)


def newest_lesson(store: CrawlStore) -> tuple[int, int]:
    """Return the number of the newest lesson, and the fetches when it was begun; 0 for none."""
    version, begun = store.row("SELECT max(version), max(trained_at_seq) FROM models")
    return version or 0, begun or 0


def _outcomes(store: CrawlStore, fetched: int) -> dict[str, int]:
    groups = """SELECT status, error, duplicate_of IS NOT NULL AS duplicate, count(*)
                FROM page WHERE seq <= ? GROUP BY status, error, duplicate"""
    counts: Counter[str] = Counter()
    for status, error, duplicate, n in store.rows(groups, (fetched,)):
        counts[outcome(status, error, bool(duplicate))] += n
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _stopped(store: CrawlStore, fetched: int, unchanged: int) -> str:
    running, words = run_state(store, fetched, unchanged)
    return f"not yet: it is {words}" if running else words


def _states(store: CrawlStore) -> dict[str, int]:
    rows = store.rows("SELECT state, count(*) FROM url GROUP BY state")
    return {schema.STATES[state]: n for state, n in rows}


def _overtaken(store: CrawlStore) -> dict[str, int]:
    counts = "SELECT detail, count(*) FROM events WHERE kind = ? GROUP BY detail"
    return dict(map(tuple, store.rows(counts, (OVERTAKEN,))))


def _recorded(store: CrawlStore) -> dict[str, int]:
    files = sorted(Path(store.where).parent.glob("*.warc.gz"))
    return {path.name: path.stat().st_size for path in files}


def _size(n: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def _duration(time: timedelta) -> str:
    seconds = time.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
