"""Alarms: when a fall of the harvest rate or of the speed is more than noise."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis.attribution import Diagnosis, Outcome, Tally, diagnose

if TYPE_CHECKING:
    from collections.abc import Sequence


#: kinds of events: the harvest rate has fallen, and has recovered
ALARM, RECOVERED = "alarm", "recovered"

#: kinds of events: the speed has fallen, and has recovered
SLOW, FAST_AGAIN = "slow", "fast again"

WINDOW = 50  # latest fetches that are held against all before them
_FALL = 0.5  # of the rate before, or less
_SURE = 3.0  # standard errors
_AGAIN = 0.75  # of the rate before the fall: it is over
_HOUR = 3600.0
_MOST = 0.5  # of the latest fetches that a host has to have, to be named


class HarvestMonitor:
    """Watches the harvest rate, fetch by fetch.

    The last `WINDOW` fetches are compared with all before them, as many at least: an alarm is
    half the rate or less, where that is three standard errors of a mean of independent fetches
    below. It ends at three quarters of the rate; a fall to half of the alarm's rate is another
    alarm. Of earlier fetches it keeps counts, and after `visited`, not `add`, a number a URL.

    Parameters
    ----------
    marked : topic paths in focus

    Attributes
    ----------
    alarm : the fall under way, None if there is none
    """

    def __init__(self, marked: Sequence[str]) -> None:
        self.alarm: Diagnosis | None = None
        self._marked = marked
        self._latest: deque[Outcome] = deque()
        self._earlier = Tally()
        self._recent = 0.0  # sum of R of the latest
        self._classes: dict[str, int] = {}
        self._names: list[str] = []  # of the classes, by number
        self._page: dict[int, int] = {}  # by URL, no dense number: 2 * class + whether relevant

    def add_fetch(
        self,
        url: int,
        referrer: int | None,
        *,
        relevance: float,
        topic: str | None,
        judged: bool,
        busy_host: str | None = None,
    ) -> str | None:
        """Take in a fetch.

        Parameters
        ----------
        url, referrer : numbers of the page, and of the page it was first found on
        relevance, topic, judged, busy_host : see `Outcome`

        Returns
        -------
        `ALARM` or `RECOVERED` if this fetch raises or ends an `alarm`
        """
        from_topic, from_relevant = self._origin(referrer)
        number = self._classes.setdefault(topic or "", len(self._names))
        if number == len(self._names):
            self._names.append(topic or "")
        self._page[url] = 2 * number + (relevance > RELEVANT)
        return self.add(Outcome(relevance, judged, topic, from_topic, from_relevant, busy_host))

    def add(self, outcome: Outcome) -> str | None:
        """Take in a fetch as `visited` does, with what is known of its referrer."""
        self._latest.append(outcome)
        self._recent += outcome.relevance
        if len(self._latest) > WINDOW:
            left = self._latest.popleft()
            self._recent -= left.relevance
            self._earlier.add(left)
        return self._check() if self._earlier.fetches >= WINDOW else None

    def _origin(self, referrer: int | None) -> tuple[str | None, bool]:
        kept = -1 if referrer is None else self._page.get(referrer, -1)
        if kept < 0:
            return None, False
        return self._names[kept // 2] or None, bool(kept % 2)

    def _check(self) -> str | None:
        before, now = self._earlier.rate, self._recent / WINDOW
        alarm, seq = self.alarm, self._earlier.fetches + WINDOW
        if alarm is not None and now >= _AGAIN * alarm.before:
            self.alarm = None
            return RECOVERED
        if alarm is None:
            n = self._earlier.fetches
            variance = max(self._earlier.squares / n - before * before, 0.0)
            error = math.sqrt(variance * (1.0 / WINDOW + 1.0 / n))
            fallen = now <= _FALL * before and before - now > _SURE * error
        else:
            fallen = now <= _FALL * alarm.now and now < alarm.now and seq >= alarm.seq + WINDOW
        if not fallen:
            return None
        self.alarm = diagnose(list(self._latest), self._earlier, self._marked)
        return ALARM


class Slowdown(NamedTuple):
    """A crawl that brings relevant pages more slowly than it did.

    Attributes
    ----------
    now, before : relevance gained in an hour, by the latest fetches and by all before them
    pace : by what part the fetches themselves come more slowly; above 1 it is these, and not
        only what they bring
    host : that more than half of the latest fetches went to; None for several
    """

    now: float
    before: float
    pace: float
    host: str | None

    def short(self) -> str:
        """Return it for a progress bar."""
        return f"slow: {self.now:,.0f} relevant pages/h, {self.before:,.0f} before"

    def describe(self) -> str:
        """Return it in one line, with the way out."""
        line = f"{self.now:,.0f} relevant pages an hour, {self.before:,.0f} before"
        if self.pace < 1.0 / _AGAIN:
            return f"{line}: fetches come as fast, and bring less"
        line += f": a fetch takes {self.pace:.1f} times as long"
        if self.host is None:
            return f"{line}; servers are slow, or refuse: focuscrawl status says which"
        return f"{line}; most go to {self.host}, which is asked politely: add seeds of other hosts"


class _Sums:
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
        # of what a fetch gains beyond what its time should bring
        squares = self._gains - 2.0 * speed * self._products + speed * speed * self._times
        return max(squares / self.n, 0.0)


class SpeedMonitor:
    """Watches the relevance gained in a unit of time, fetch by fetch.

    The last `WINDOW` fetches are compared with all before them, as many at least: an alarm is
    half the speed or less, where that is three standard errors below what their time should have
    brought (the usual linear approximation of a ratio of two sums). It ends at three quarters of
    the speed, so a speed that hovers about either bound is reported once. Each run of a crawl is
    watched by itself.

    Attributes
    ----------
    slowdown : what is under way, None if nothing is
    """

    def __init__(self) -> None:
        self.slowdown: Slowdown | None = None
        self._latest: deque[tuple[float, float, str]] = deque()
        self._now, self._earlier = _Sums(), _Sums()
        self._last: float | None = None

    def add_fetch(self, at: float, relevance: float, host: str) -> str | None:
        """Take in a fetch.

        Parameters
        ----------
        at : its time, in seconds of a clock that never goes back
        relevance : R, 0 for what is no page
        host : of its URL

        Returns
        -------
        `SLOW` or `FAST_AGAIN` if this fetch raises or ends an alarm; see `slowdown`
        """
        before, self._last = self._last, at
        if before is None:
            return None
        took = max(at - before, 0.0)
        self._latest.append((took, relevance, host))
        self._now.add(took, relevance)
        if len(self._latest) > WINDOW:
            time, gain, _ = self._latest.popleft()
            self._now.add(time, gain, -1)
            self._earlier.add(time, gain)
        return self._check() if self._earlier.n >= WINDOW else None

    def _check(self) -> str | None:
        now, earlier, slowdown = self._now, self._earlier, self.slowdown
        if now.time <= 0.0 or earlier.time <= 0.0:
            return None
        speed, before = now.gain / now.time, earlier.gain / earlier.time
        if slowdown is not None:
            if speed * _HOUR < _AGAIN * slowdown.before:
                return None
            self.slowdown = None
            return FAST_AGAIN
        spread = earlier.variance(before) * now.n * (1.0 + now.n / earlier.n)
        lost = before * now.time - now.gain
        if speed > _FALL * before or lost <= _SURE * math.sqrt(spread):
            return None
        host, fetches = Counter(host for _, _, host in self._latest).most_common(1)[0]
        self.slowdown = Slowdown(
            speed * _HOUR,
            before * _HOUR,
            (now.time / now.n) / (earlier.time / earlier.n),
            host if fetches > _MOST * now.n else None,
        )
        return SLOW
