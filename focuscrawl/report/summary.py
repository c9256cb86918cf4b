"""The summary that a crawl prints at its end, read from the store of the crawl."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from focuscrawl.completeness.recall_estimate import ESTIMATES_FILE, read_estimates
from focuscrawl.crawl.exploration import EXPLORED
from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.crawl.state import is_redirect
from focuscrawl.crawl.target_pages import count_targets
from focuscrawl.crawl.traps import DISCOUNTED, NEAR_DUPLICATE, Discounts
from focuscrawl.crawl.visit import NOT_MODIFIED, PAGE_FAILED, RENDERED
from focuscrawl.crawl.waiting import OVERTAKEN, SCORE_TOLERANCE
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis import ALARM, FAST_AGAIN, RECOVERED, SLOW, HarvestMonitor
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import URL_LIST_KINDS
from focuscrawl.report.outcomes import (
    DUPLICATE,
    NO_HTML,
    PAGE,
    REDIRECT,
    UNCHANGED,
    crawling_time,
    is_error,
    outcome,
    run_state,
    skipped_hosts,
)
from focuscrawl.report.plain_text import (
    align_columns,
    one_line,
    pluralize,
    printable,
    shorten_middle,
)
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.strategies import find_strategy

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.completeness.recall_estimate import RecallEstimate, TargetCounts
    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.store import CrawlStore


_START = "start"  # kind of the event at the start of a run
RECENT = 100  #: fetches of the recent harvest rate
_HOSTS_SHOWN = 5
_ERRORS_SHOWN = 5
_SKIPPED_SHOWN = 3
_HOST_WIDTH = 48
_HINTS = {"PrivateAddressError": " (see FOCUSCRAWL_PRIVATE_ADDRESSES)"}  # by error


class RevisitCounts(NamedTuple):
    """Numbers of hub pages that were fetched again, and of new links on these pages."""

    fetches: int = 0
    unchanged: int = 0  #: fetches answered with "not modified"
    links: int = 0  #: new links on these hubs

    @classmethod
    def of(cls, store: CrawlStore) -> Self:
        """Count the hub revisits of a crawl."""
        counts = """SELECT count(status), count(CASE WHEN status = ? THEN 1 END),
                           coalesce(sum(links), 0)
                    FROM revisit WHERE seq IS NOT NULL"""
        return cls(*store.row(counts, (NOT_MODIFIED,)))

    def describe(self) -> str:
        """Return the counts of hub revisits as readable text."""
        text = (
            f"{pluralize(self.fetches, 'hub')} fetched again: {pluralize(self.links, 'new link')}"
        )
        return text + (f", {self.unchanged:,} not modified" if self.unchanged else "")


def fetch_notes(store: CrawlStore, seq: int, url: str) -> list[str]:
    """Return what the events of the fetch `seq` tell about it: explored, a near-duplicate."""
    events = History(store).events(EXPLORED, NEAR_DUPLICATE)
    return [event.detail[len(url) + 2 :] for event in events if event.seq == seq]


def replay_discounts(store: CrawlStore) -> Discounts:
    """Compute the discounts of hosts and URL patterns from all fetches, as a resumed crawl does.

    If the crawl recorded no event of a discount, the result has no discounts.
    """
    history, discounts = History(store), Discounts()
    if not history.events(DISCOUNTED, last=1):
        return discounts
    near = {event.seq for event in history.events(NEAR_DUPLICATE)}
    name = {url.id: url.url for url in history.urls()}
    expects = _expects_relevance(store)
    for fetch in history.first_fetches():
        if fetch.error not in URL_LIST_KINDS:
            discounts.count(
                fetch.url_text,
                None if fetch.referrer is None else name[fetch.referrer],
                predicted=fetch.score if expects else 1.0,
                relevance=fetch.relevance if expects else 1.0,
                moved=is_redirect(fetch.status, fetch.error),
                repeats=fetch.seq in near or fetch.duplicate_of is not None,
            )
    return discounts


def _expects_relevance(store: CrawlStore) -> bool:
    try:
        return find_strategy(store.identity()["strategy"]).expects_relevance
    except UserError:  # the strategy is not installed here
        return False


def count_discounted(store: CrawlStore) -> int:
    """Return the number of queued URLs with a discount."""
    discounts = replay_discounts(store)
    hosts = [group.name for group in discounts.groups() if group.halvings]
    names = json.dumps([*dict.fromkeys(host(f"//{name}") for name in hosts)])
    urls = store.rows(_QUEUED_OF_HOSTS, {"hosts": names, "queued": schema.QUEUED})
    return sum(discounts.halvings(url) > 0 for (url,) in urls)


_QUEUED_OF_HOSTS = """
SELECT u.url FROM url u JOIN host h ON h.id = u.host
WHERE h.name IN (SELECT value FROM json_each(:hosts)) AND u.state = :queued AND u.score IS NOT NULL
"""


def replay_harvest_monitor(store: CrawlStore) -> tuple[HarvestMonitor, list[Diagnosis]]:
    """Run the harvest monitor again over all fetches of a crawl, with their current relevance.

    Returns
    -------
    tuple of HarvestMonitor and list of Diagnosis
        The monitor, and every alarm. Alarms in the store can be missing if the topic has changed
        since.
    """
    topics = store.identity().get("topic", "")
    monitor = HarvestMonitor([topic for topic in topics.split(",") if topic])
    alarms = []
    history = History(store)
    overtakes = {event.seq: event.detail for event in history.events(OVERTAKEN)}
    for fetch in history.first_fetches():
        change = monitor.add_fetch(
            fetch.url,
            fetch.referrer,
            relevance=fetch.relevance,
            topic=fetch.topic,
            judged=is_page(fetch.status, fetch.error, fetch.duplicate_of),
            busy_host=overtakes.get(fetch.seq),
        )
        if change == ALARM and monitor.alarm is not None:
            alarms.append(monitor.alarm)
    return monitor, alarms


def is_page(status: int, error: str | None, duplicate_of: object) -> bool:
    """Return whether a fetch returned an HTML page that is not a duplicate."""
    return outcome(status, error, duplicate_of is not None) == PAGE


def active_alarm(store: CrawlStore) -> str | None:
    """Return the message of the active harvest alarm, or else that of the active speed alarm."""
    history = History(store)
    for kind, ends in ((ALARM, (RECOVERED, REDEFINED)), (SLOW, (FAST_AGAIN, _START))):
        for event in history.events(kind, *ends, last=1):
            if event.kind == kind:
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
    """The main numbers of a finished or running crawl, as in its summary (methods.md 1)."""

    identity: dict[str, str]  #: topic, strategy, web, critic and random_state of the crawl
    store_path: str  #: path of the store
    stopped: str  #: why the last run stopped, or the state of the active run
    fetched: int  #: fetches with any outcome
    harvest_rate: float  #: mean relevance of all fetches; 0 before the first fetch
    recent_harvest_rate: float  #: mean relevance of the last `RECENT` fetches
    relevant: int  #: pages with a relevance above ½
    outcomes: dict[str, int]  #: number of fetches by outcome, see `focuscrawl.report.outcomes`
    links: int  #: links on the fetched pages
    dropped: int  #: links that were not queued
    near_duplicates: int  #: number of near-duplicates of earlier pages
    discounted: int  #: number of queued URLs whose scores are halved, see `Discounts`
    states: dict[str, int]  #: number of URLs by state, see `focuscrawl.store.schema.STATES`
    time: timedelta  #: crawling time without breaks
    timed_fetches: int  #: fetches in this time
    model: int  #: version of the last model; 0 for no model
    trained_at: int  #: fetch at which the training of the model started
    #: ``host``, ``fetches`` and ``relevance`` of the hosts with the largest sums of relevance
    best_hosts: list[sqlite3.Row]
    skipped_hosts: dict[str, str]  #: hosts that the last run skipped, each with the reason
    #: fetches made while a much better link was queued for a busy host, by this host
    #: (`focuscrawl.crawl.waiting`)
    overtaken: dict[str, int] = field(default_factory=dict)
    alarm: str | None = None  #: message of the active alarm (`focuscrawl.diagnosis`)
    #: hubs that were fetched again; `fetched` does not include them
    revisits: RevisitCounts = field(default_factory=RevisitCounts)
    #: size in bytes of each recording of the pages, by file name
    recordings: dict[str, int] = field(default_factory=dict)
    completeness: RecallEstimate | None = None  #: the last estimate of recall
    targets: TargetCounts | None = None  #: counts of the target pages, if there are any
    #: pages that a browser rendered. They count for the budget, but not for `fetched`.
    rendered: int = 0
    #: number of pages on which the critic or the strategy failed, and the last error
    page_failures: tuple[int, str] = (0, "")

    @classmethod
    def of(cls, store: CrawlStore) -> Summary:
        """Read the summary of a crawl from its store."""
        fetched, relevance, relevant, links, dropped = store.row(_TOTALS, (RELEVANT,))
        mean = "SELECT coalesce(avg(relevance), 0.0) FROM page WHERE seq > ? AND seq <= ?"
        (recent,) = store.row(mean, (fetched - RECENT, fetched))
        model, models_at = latest_model(store)
        time, timed = crawling_time(store, fetched)
        outcomes, again = _outcomes(store, fetched), RevisitCounts.of(store)
        unchanged = outcomes.get(UNCHANGED, 0) + again.unchanged
        rendered = len(History(store).events(RENDERED))
        failures = History(store).events(PAGE_FAILED)
        return cls(
            identity=store.identity(),
            store_path=store.location,
            stopped=_describe_state(store, fetched + again.fetches + rendered, unchanged),
            fetched=fetched,
            harvest_rate=relevance / fetched if fetched else 0.0,
            recent_harvest_rate=recent,
            relevant=relevant,
            outcomes=outcomes,
            links=links,
            dropped=dropped,
            near_duplicates=len(History(store).events(NEAR_DUPLICATE)),
            discounted=count_discounted(store),
            states=_states(store),
            time=time,
            timed_fetches=timed,
            model=model,
            trained_at=models_at,
            best_hosts=[*store.rows(_BEST_HOSTS, (fetched, _HOSTS_SHOWN))],
            skipped_hosts=skipped_hosts(store),
            overtaken=_overtaken(store),
            alarm=active_alarm(store),
            revisits=again,
            recordings=_recorded(store),
            completeness=next(reversed(load_estimates(store)), None),
            targets=count_targets(store, Path(store.location).parent),
            rendered=rendered,
            page_failures=(len(failures), failures[-1].detail if failures else ""),
        )

    @property
    def loss_rate(self) -> float | None:
        """Loss rate, which is 1 - harvest rate; None before the first fetch."""
        return 1.0 - self.harvest_rate if self.fetched else None

    @property
    def priority_fidelity(self) -> float | None:
        """Share of fetches made while no much better link was queued; None before any fetch."""
        return 1.0 - sum(self.overtaken.values()) / self.fetched if self.fetched else None

    @property
    def pages_per_second(self) -> float | None:
        """Fetches per second of crawling time; None if no time was measured."""
        seconds = self.time.total_seconds()
        return self.timed_fetches / seconds if seconds > 0 else None

    @property
    def web_title(self) -> str:
        """Readable name of the crawled web, such as the live Web or a recording."""
        if self.identity.get("web", "live") == "live":
            return "the live Web"
        name = self.identity.get("web_name", "a recorded web")
        return f"the synthetic web {name}" if re.split("[:@]", name)[0] == "demo" else name

    def lines(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of name and value, without the hosts."""
        states = self.states
        lines = [
            ("topic", one_line(self.identity.get("topic", "?"))),
            ("strategy", f"{self.identity.get('strategy', '?')} on {self.web_title}"),
            ("stopped", one_line(self.stopped)),
            ("fetched", self._describe_fetches()),
        ]
        if self.fetched:
            loss, recent = 1.0 - self.harvest_rate, self.recent_harvest_rate
            last = f"last {min(RECENT, self.fetched)}"
            lines += [
                ("harvest rate", f"{self.harvest_rate:.3f}  ({last}: {recent:.3f})"),
                ("loss rate", f"{loss:.3f}  ({last}: {1.0 - recent:.3f})"),
                ("relevant", self._describe_relevant()),
                *([] if self.targets is None else [("targets", self.targets.describe())]),
                ("duplicates", self._describe_duplicates()),
                ("errors", self.describe_errors()),
                ("links", f"{self.links:,} found, {self.dropped:,} dropped"),
            ]
        failures, last = self.page_failures
        if failures:
            lines.append(("failed on", f"{pluralize(failures, 'page')}, last {one_line(last)}"))
        if self.overtaken:
            lines.append(("priority", self._describe_priority()))
        if self.skipped_hosts:
            lines.append(("skipped", self._describe_skipped_hosts()))
        frontier = f"{pluralize(states.get('queued', 0), 'URL')} queued"
        for state in ("unfollowed", "excluded"):
            if states.get(state):
                frontier += f", {states[state]:,} {state}"
        if self.discounted:
            frontier += f"; {self.discounted:,} queued URLs discounted"
        lines.append(("frontier", frontier))
        if self.model:
            lines.append(("model", f"version {self.model}, trained at fetch {self.trained_at:,}"))
        if self.alarm is not None:
            lines.append(("alarm", one_line(self.alarm)))
        if self.recordings:
            lines.append(("recorded", self._describe_recordings()))
        lines.append(("saved in", self.folder))
        return [(name, printable(value)) for name, value in lines]

    @property
    def folder(self) -> str:
        """Path of the folder of the crawl."""
        return str(Path(self.store_path).parent)

    def text(self) -> str:
        """Return the summary for a terminal, without a final newline."""
        lines = self.lines()
        width = max(len(name) for name, _ in lines)
        text = [f"{name:<{width}}  {value}" for name, value in lines]
        if self.best_hosts:
            total = self.harvest_rate * self.fetched
            rows = [["best hosts", "share", "fetches", "relevance"]]
            rows += [
                [
                    shorten_middle(one_line(name), _HOST_WIDTH),
                    f"{relevance / total:.0%}",
                    f"{fetches:,}",
                    f"{relevance / fetches:.2f}",
                ]
                for name, fetches, relevance in self.best_hosts
            ]
            text[-1:-1] = align_columns(rows, left={0})
        if self.relevant:
            text.append(f"Next: focuscrawl collect {shlex.quote(self.folder)} --out pages.csv")
        return "\n".join(text)

    def _describe_fetches(self) -> str:
        if not self.fetched:
            return "no pages yet"
        words = f"{self.fetched:,}"
        if self.pages_per_second is not None:
            words += f" in {_duration(self.time)}, {self.pages_per_second:.1f} pages/s"
        if self.rendered:
            words += f"; {self.rendered:,} of them also rendered in a browser"
        return f"{words}; {self.revisits.describe()}" if self.revisits.fetches else words

    def _describe_relevant(self) -> str:
        text, estimate = pluralize(self.relevant, "relevant page"), self.completeness
        if estimate is None:
            return text
        recall = estimate.describe()
        return (
            f"{text}. {recall[0].upper()}{recall[1:]}, a guess: about "
            f"{estimate.discovered:,.0f} more queued, {estimate.undiscovered:,.0f} not yet found"
        )

    def _describe_duplicates(self) -> str:
        redirects = pluralize(self.outcomes.get(REDIRECT, 0), "redirect")
        no_html = self.outcomes.get(NO_HTML, 0)
        near = f", {self.near_duplicates:,} near-duplicates" if self.near_duplicates else ""
        same = f"{self.outcomes.get(DUPLICATE, 0):,}{near}"
        lists = sum(self.outcomes.get(kind, 0) for kind in URL_LIST_KINDS)
        text = f"{same}; {redirects}, {no_html:,} no HTML"
        return f"{text}, {pluralize(lists, 'site map')} or feeds" if lists else text

    def _describe_priority(self) -> str:
        host = max(self.overtaken, key=lambda name: self.overtaken[name])
        shown = shorten_middle(one_line(host), _HOST_WIDTH)
        return (
            f"{self.priority_fidelity:.0%} of fetches scored within {SCORE_TOLERANCE:g} of the "
            f"best queued link; otherwise {shown} was busy most often"
        )

    def _describe_skipped_hosts(self) -> str:
        hosts = [*self.skipped_hosts.items()]
        words = [
            f"{shorten_middle(one_line(host), _HOST_WIDTH)} ({one_line(why, 40)})"
            for host, why in hosts[:_SKIPPED_SHOWN]
        ]
        if len(hosts) > _SKIPPED_SHOWN:
            words.append(f"{len(hosts) - _SKIPPED_SHOWN:,} more")
        return f"{pluralize(len(hosts), 'host')}: {', '.join(words)}"

    def _describe_recordings(self) -> str:
        size = f"{_size(sum(self.recordings.values()))} in {', '.join(self.recordings)}"
        return f"{size}, for re-judging and replays (FOCUSCRAWL_WARC=0 turns recording off)"

    def describe_errors(self) -> str:
        """Return the most frequent causes of failed fetches with their counts."""
        errors = [(name, n) for name, n in self.outcomes.items() if is_error(name)]
        words = [
            f"{one_line(name, 40)}: {n:,}{_HINTS.get(name, '')}"
            for name, n in errors[:_ERRORS_SHOWN]
        ]
        rest = sum(n for _, n in errors[_ERRORS_SHOWN:])
        return ", ".join([*words, f"other: {rest:,}"] if rest else words) or "none"


def load_estimates(store: CrawlStore) -> list[RecallEstimate]:
    """Return the recall estimates that a crawl has computed."""
    return read_estimates(Path(store.location).parent / ESTIMATES_FILE)


def latest_model(store: CrawlStore) -> tuple[int, int]:
    """Return the version of the last model, and the number of fetches made before its training."""
    version, trained_at = store.row("SELECT max(version), max(trained_at_seq) FROM models")
    return version or 0, trained_at or 0


def _outcomes(store: CrawlStore, fetched: int) -> dict[str, int]:
    groups = """SELECT status, error, duplicate_of IS NOT NULL AS duplicate, count(*)
                FROM page WHERE seq <= ? GROUP BY status, error, duplicate"""
    counts: Counter[str] = Counter()
    for status, error, duplicate, n in store.rows(groups, (fetched,)):
        counts[outcome(status, error, bool(duplicate))] += n
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _describe_state(store: CrawlStore, fetched: int, unchanged: int) -> str:
    running, words = run_state(store, fetched, unchanged)
    return f"not yet: {words}" if running else words.removeprefix("stopped ")


def _states(store: CrawlStore) -> dict[str, int]:
    rows = store.rows("SELECT state, count(*) FROM url GROUP BY state")
    return {schema.STATES[state]: n for state, n in rows}


def _overtaken(store: CrawlStore) -> dict[str, int]:
    counts = "SELECT detail, count(*) FROM events WHERE kind = ? GROUP BY detail"
    return dict(map(tuple, store.rows(counts, (OVERTAKEN,))))


def _recorded(store: CrawlStore) -> dict[str, int]:
    files = sorted(Path(store.location).parent.glob("*.warc.gz"))
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
