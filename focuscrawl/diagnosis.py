"""Detects falls of the harvest rate or the speed of a crawl, and their causes [F99 2 and 4.2].

The modules `focuscrawl.extensions.alarm` and `focuscrawl.report.summary` report alarms, their
causes and remedies.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.taxonomy import ROOT, ancestors, lies_under, parent

NO_PAGE = "errors, redirects, duplicates"  # and documents other than HTML
BUSY, FAILING, STAGNATING, DRIFTING = "busy", "failing", "stagnating", "drifting"
_EXPLANATIONS = {
    FAILING: "most fetches without gain are errors, redirects or duplicates",
    STAGNATING: "the links of relevant pages are used up",
    DRIFTING: "links of relevant pages lead off topic",
}
_SHOWN = 3
_LEAST_SHARE = 0.05  # of the latest fetches, for a class to be proposed


class Outcome(NamedTuple):
    """Outcome of a fetch.

    Attributes
    ----------
    judged : bool
        Whether the fetch brought a new page; otherwise `relevance` is 0.
    from_topic, from_relevant
        Class of the page where the URL was found first, and whether that page is relevant.
    busy_host : str | None
        Host of the best queued link, if the link was much better but the host was busy.
    """

    relevance: float
    judged: bool
    topic: str | None
    from_topic: str | None
    from_relevant: bool
    busy_host: str | None = None


class Share(NamedTuple):
    """An off-topic class, and its share of fetches before the fall of the harvest rate and now."""

    topic: str
    now: float
    before: float


class Proposal(NamedTuple):
    """A class that the user could add to the relevant classes, a sibling or parent of one of them.

    Attributes
    ----------
    share : float
        Share of the latest fetches that would become relevant.
    link_precision : float | None
        Share of relevant pages among all pages found first on pages of the class.
    """

    topic: str
    relation: str
    share: float
    link_precision: float | None


@dataclass(frozen=True)
class Diagnosis:
    """A fall of the harvest rate and its cause.

    Attributes
    ----------
    now, before : float
        Harvest rate of the latest fetches and of all fetches before them.
    cause : str
        Cause of most off-topic fetches. ``busy``: better links waited for busy hosts; ``failing``:
        the fetches brought no new page; ``drifting``: the pages are off topic although relevant
        pages link to them; ``stagnating``: the links of relevant pages are used up.
    lost_to : tuple[Share, ...]
        Off-topic classes with the largest shares.
    busy_host : str | None
        If the cause is ``busy``: host that the best links waited for.
    """

    seq: int
    now: float
    before: float
    cause: str
    lost_to: tuple[Share, ...]
    proposals: tuple[Proposal, ...]
    busy_host: str | None = None

    def short(self) -> str:
        """Return a short text about the fall for a progress bar."""
        if self.busy_host is not None:
            return f"{self.cause}: {self.busy_host}"
        if not self.lost_to:
            return self.cause
        largest = self.lost_to[0]
        return (
            f"{self.cause}: {largest.topic.rpartition('/')[2] or largest.topic} {largest.now:.0%}"
        )

    def sentence(self) -> str:
        """Return the cause of the fall of the harvest rate as a sentence for a person."""
        return f"The harvest rate has fallen: {self._reason()}."

    def _reason(self) -> str:
        if self.busy_host is not None:
            return f"the best links are on the busy host {self.busy_host}"
        return _EXPLANATIONS.get(self.cause, self.cause)

    def describe(self) -> str:
        """Return the fall of the harvest rate, its cause and the proposed classes in one line."""
        fall = f"from {self.before:.2f} to {self.now:.2f} ({self.cause})"
        parts = [f"The harvest rate fell {fall}: {self._reason()}."]
        if self.busy_host is not None:
            parts.append("Set a larger FOCUSCRAWL_PATIENCE to wait for the host.")
        if self.lost_to:
            shares = (f"{x.topic} {x.now:.0%} ({x.before:.0%} before)" for x in self.lost_to)
            parts.append(f"Off-topic fetches: {', '.join(shares)}.")
        if self.proposals:
            proposals = ", ".join(map(_describe_proposal, self.proposals))
            parts.append(f"To find more pages, mark {proposals} as on-topic.")
        return " ".join(parts)


@dataclass
class Tally:
    """Running counts of fetches."""

    fetches: int = 0
    relevance: float = 0.0  # sum
    squares: float = 0.0  # sum of the squared relevance
    lost: Counter[str] = field(default_factory=Counter)  # off-topic fetches by class
    #: numbers of fetches and of relevant fetches by the class of the referrer
    found: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, each: Outcome) -> None:
        """Count a fetch."""
        self.fetches += 1
        self.relevance += each.relevance
        self.squares += each.relevance * each.relevance
        if each.relevance <= RELEVANT:
            self.lost[each.topic or "unknown" if each.judged else NO_PAGE] += 1
        if each.from_topic is not None:
            counts = self.found[each.from_topic]
            counts[0] += 1
            counts[1] += each.relevance > RELEVANT

    @property
    def rate(self) -> float:
        """Mean relevance."""
        return self.relevance / self.fetches


def diagnose(latest: Sequence[Outcome], earlier: Tally, marked: Sequence[str]) -> Diagnosis:
    """Diagnose why the latest fetches are less relevant than the fetches before them.

    The argument `marked` contains the topic paths of the relevant classes.
    """
    now = Tally()
    for each in latest:
        now.add(each)
    cause = _find_cause(latest)
    return Diagnosis(
        seq=now.fetches + earlier.fetches,
        now=now.rate,
        before=earlier.rate,
        cause=cause,
        lost_to=_largest_shares(now, earlier),
        proposals=_propose_classes(latest, (earlier, now), marked),
        busy_host=_count_busy_hosts(latest).most_common(1)[0][0] if cause == BUSY else None,
    )


def _find_cause(latest: Sequence[Outcome]) -> str:
    lost = [each for each in latest if each.relevance <= RELEVANT]
    if _count_busy_hosts(latest).total() > len(lost) / 2:
        return BUSY
    if sum(not each.judged for each in lost) > len(lost) / 2:
        return FAILING
    return DRIFTING if sum(each.from_relevant for each in lost) > len(lost) / 2 else STAGNATING


def _count_busy_hosts(latest: Sequence[Outcome]) -> Counter[str]:
    """Count the busy hosts of better links during off-topic fetches."""
    return Counter(
        each.busy_host
        for each in latest
        if each.relevance <= RELEVANT and each.busy_host is not None
    )


def _largest_shares(now: Tally, earlier: Tally) -> tuple[Share, ...]:
    shares = [
        Share(topic, n / now.fetches, earlier.lost[topic] / earlier.fetches)
        for topic, n in sorted(now.lost.items(), key=lambda item: (-item[1], item[0]))
    ]
    return tuple(shares[:_SHOWN])


def _propose_classes(
    latest: Sequence[Outcome], tallies: Sequence[Tally], marked: Sequence[str]
) -> tuple[Proposal, ...]:
    """Propose siblings and parents of relevant classes, but not the root."""
    seen = {each.topic for each in latest if each.topic is not None}
    candidates: dict[str, str] = {}
    for topic in marked:
        above = [path for path in ancestors(topic) if path != ROOT]
        if not above:
            continue
        candidates.update(dict.fromkeys(above, "parent"))
        for path in seen:
            branch = next((p for p in (path, *ancestors(path)) if parent(p) == above[-1]), None)
            if branch is not None and not lies_under(branch, marked):
                candidates.setdefault(branch, "sibling")
    found = []
    for topic, relation in candidates.items():
        gained = sum(
            each.judged and each.relevance <= RELEVANT and lies_under(each.topic or ROOT, [topic])
            for each in latest
        )
        if gained < _LEAST_SHARE * len(latest):
            continue
        counts = [
            count
            for tally in tallies
            for path, count in tally.found.items()
            if lies_under(path, [topic])
        ]
        n_found = sum(n for n, _ in counts)
        precision = sum(relevant for _, relevant in counts) / n_found if n_found else None
        found.append(Proposal(topic, relation, gained / len(latest), precision))
    # among equal shares, the most specific class first
    found.sort(key=lambda each: (-each.share, -each.topic.count("/"), each.topic))
    return tuple(found[:_SHOWN])


def _describe_proposal(each: Proposal) -> str:
    shown = f"{each.topic} ({each.relation}, {each.share:.0%} more relevant pages"
    if each.link_precision is None:
        return f"{shown})"
    return f"{shown}, {each.link_precision:.0%} of links from its pages are relevant)"


#: kinds of events: the harvest rate has fallen, has recovered
ALARM, RECOVERED = "alarm", "recovered"

#: kinds of events: the speed has fallen, has recovered
SLOW, FAST_AGAIN = "slow", "fast again"

WINDOW = 50  # latest fetches, compared with all fetches before them
_FALL = 0.5  # an alarm starts at this part of the earlier rate
_RECOVERY = 0.75  # an alarm ends at this part of the earlier rate
_STANDARD_ERRORS = 3.0  # smallest significant fall
_HOUR = 3600.0
_MAIN_HOST = 0.5  # share of the latest fetches above which a host is named


class HarvestMonitor:
    """Detects falls of the harvest rate of a crawl.

    After each fetch, the monitor compares the last `WINDOW` fetches with all earlier fetches, if
    there are at least `WINDOW` earlier fetches. An alarm starts if the harvest rate has halved and
    the difference exceeds three standard errors. The standard error is computed as if the fetches
    were independent. The alarm ends when the harvest rate reaches three quarters of the rate
    before the alarm. If the rate halves again during an alarm, the monitor raises another alarm.

    Parameters
    ----------
    marked : Sequence[str]
        Relevant topic paths.
    """

    def __init__(self, marked: Sequence[str]) -> None:
        self.alarm: Diagnosis | None = None
        self._marked = marked
        self._latest: deque[Outcome] = deque()
        self._earlier = Tally()
        self._latest_relevance = 0.0  # sum over the latest fetches
        self._classes: dict[str, int] = {}
        self._class_names: list[str] = []
        self._pages: dict[int, int] = {}  # URL id: 2 * class + whether relevant, to save memory

    def add_fetch(
        self,
        url_id: int,
        referrer_id: int | None,
        *,
        relevance: float,
        topic: str | None,
        judged: bool,
        busy_host: str | None = None,
    ) -> str | None:
        """Add a fetch; return `ALARM` or `RECOVERED` if an alarm starts or ends with the fetch.

        The argument `referrer_id` is the id of the page on which the URL was first found. The
        class `Outcome` describes the other parameters.
        """
        from_topic, from_relevant = self._referrer(referrer_id)
        index = self._classes.setdefault(topic or "", len(self._class_names))
        if index == len(self._class_names):
            self._class_names.append(topic or "")
        self._pages[url_id] = 2 * index + (relevance > RELEVANT)
        return self.add(Outcome(relevance, judged, topic, from_topic, from_relevant, busy_host))

    def add(self, outcome: Outcome) -> str | None:
        """Add a fetch like `add_fetch`; `outcome` has the linking page's class and relevance."""
        self._latest.append(outcome)
        self._latest_relevance += outcome.relevance
        if len(self._latest) > WINDOW:
            oldest = self._latest.popleft()
            self._latest_relevance -= oldest.relevance
            self._earlier.add(oldest)
        return self._check() if self._earlier.fetches >= WINDOW else None

    def _referrer(self, referrer_id: int | None) -> tuple[str | None, bool]:
        """Return the class of a referrer, and whether the referrer is relevant."""
        page = -1 if referrer_id is None else self._pages.get(referrer_id, -1)
        if page < 0:
            return None, False
        return self._class_names[page // 2] or None, bool(page % 2)

    def _check(self) -> str | None:
        before, now = self._earlier.rate, self._latest_relevance / WINDOW
        alarm, seq = self.alarm, self._earlier.fetches + WINDOW
        if alarm is not None and now >= _RECOVERY * alarm.before:
            self.alarm = None
            return RECOVERED
        if alarm is None:
            reference, n = before, self._earlier.fetches
        else:
            reference, n = alarm.now, WINDOW
            if seq < alarm.seq + WINDOW:
                return None
        variance = max(self._earlier.squares / self._earlier.fetches - before * before, 0.0)
        error = math.sqrt(variance * (1.0 / WINDOW + 1.0 / n))
        fallen = now <= _FALL * reference and reference - now > _STANDARD_ERRORS * error
        if not fallen:
            return None
        self.alarm = diagnose(list(self._latest), self._earlier, self._marked)
        return ALARM


class Slowdown(NamedTuple):
    """A fall of the number of relevant pages per hour.

    Attributes
    ----------
    now, before : float
        Sum of relevance per hour, of the latest fetches and of all fetches before them.
    fetch_time_ratio : float
        Mean time of the latest fetches relative to that of earlier fetches.
    host : str | None
        Host of more than half of the latest fetches; None: no such host.
    """

    now: float
    before: float
    fetch_time_ratio: float
    host: str | None

    def short(self) -> str:
        """Return a short text about the slowdown for a progress bar."""
        return f"slow: {self.now:,.0f} relevant pages/h, {self.before:,.0f} before"

    def describe(self) -> str:
        """Return the slowdown, its cause and a remedy in one line."""
        line = f"{self.now:,.0f} relevant pages per hour, {self.before:,.0f} before"
        if self.fetch_time_ratio < 1.0 / _RECOVERY:
            return f"{line}: fetches are as fast as before, but fewer pages are relevant"
        line += f": a fetch takes {self.fetch_time_ratio:.1f} times as long"
        if self.host is None:
            return f"{line}; servers are slow or refuse requests: see `focuscrawl status`"
        return (
            f"{line}; most requests wait for the host {self.host}, because of politeness: add "
            "start pages on other hosts"
        )


class _FetchSums:
    """Sums over fetches: times, gains (relevance), their squares and products."""

    def __init__(self) -> None:
        self.n = 0
        self.time = self.gain = 0.0
        self._times = self._gains = self._products = 0.0

    def add(self, time: float, gain: float, sign: int = 1) -> None:
        self.n += sign
        self.time += sign * time
        self.gain += sign * gain
        self._times += sign * time * time
        self._gains += sign * gain * gain
        self._products += sign * time * gain

    def variance(self, speed: float) -> float:
        # variance of the gain of a fetch minus the gain that its time predicts
        squares = self._gains - 2.0 * speed * self._products + speed * speed * self._times
        return max(squares / self.n, 0.0)


class SpeedMonitor:
    """Detects falls of a crawl's speed (relevance gained per unit of time).

    After each fetch, the monitor compares the last `WINDOW` fetches with all earlier fetches of
    the same run, if there are at least `WINDOW` earlier fetches. An alarm starts if the speed has
    halved and the loss of relevance exceeds three standard errors. The standard error is that of
    the linear approximation of a ratio of two sums. The alarm ends when the speed reaches three
    quarters of the speed before the alarm. The thresholds for the start and the end of an alarm
    differ, so that a speed close to one threshold does not cause repeated alarms.
    """

    def __init__(self) -> None:
        self.slowdown: Slowdown | None = None
        self._latest: deque[tuple[float, float, str]] = deque()
        self._now, self._earlier = _FetchSums(), _FetchSums()
        self._last_fetch: float | None = None

    def add_fetch(self, at: float, relevance: float, host: str) -> str | None:
        """Add a fetch; return `SLOW` or `FAST_AGAIN` if an alarm starts or ends with the fetch.

        The argument `at` is the time of the fetch in seconds of a monotonic clock.
        """
        before, self._last_fetch = self._last_fetch, at
        if before is None:
            return None
        seconds = max(at - before, 0.0)
        self._latest.append((seconds, relevance, host))
        self._now.add(seconds, relevance)
        if len(self._latest) > WINDOW:
            seconds, gain, _ = self._latest.popleft()
            self._now.add(seconds, gain, -1)
            self._earlier.add(seconds, gain)
        return self._check() if self._earlier.n >= WINDOW else None

    def _check(self) -> str | None:
        now, earlier, slowdown = self._now, self._earlier, self.slowdown
        if now.time <= 0.0 or earlier.time <= 0.0:
            return None
        speed, before = now.gain / now.time, earlier.gain / earlier.time
        if slowdown is not None:
            if speed * _HOUR < _RECOVERY * slowdown.before:
                return None
            self.slowdown = None
            return FAST_AGAIN
        spread = earlier.variance(before) * now.n * (1.0 + now.n / earlier.n)
        lost = before * now.time - now.gain
        if speed > _FALL * before or lost <= _STANDARD_ERRORS * math.sqrt(spread):
            return None
        host, fetches = Counter(host for _, _, host in self._latest).most_common(1)[0]
        self.slowdown = Slowdown(
            speed * _HOUR,
            before * _HOUR,
            (now.time / now.n) / (earlier.time / earlier.n),
            host if fetches > _MAIN_HOST * now.n else None,
        )
        return SLOW
