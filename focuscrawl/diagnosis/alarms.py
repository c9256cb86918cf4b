"""Detects significant falls of a crawl's harvest rate or speed."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis.attribution import Diagnosis, Outcome, Tally, diagnose

if TYPE_CHECKING:
    from collections.abc import Sequence


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
