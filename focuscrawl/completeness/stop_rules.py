"""Parsing and evaluation of stop rules that users write, such as ``recall 0.9, time 8h``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.foundation.user_input import ValueParser

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate


#: stop reasons, one for each kind of rule
RECALL_REACHED, LITTLE_EXPECTED, TIME_OVER = "recall_reached", "little_expected", "time_over"

_LOWER_END = 2 / 3  # of the requested recall: the lower end of the interval must be at least this

_MIN_FETCHES = 100  # before these fetches, a rule on the next fetches does not apply
NEXT_FETCHES = 100  # default for the estimate of the next harvest

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_NUMBER = r"(\d+\.?\d*|\.\d+)"
_RULES = {
    "recall": re.compile(rf"recall\s+{_NUMBER}"),
    "next": re.compile(rf"next\s+(\d+)\s*<\s*{_NUMBER}"),
    "time": re.compile(rf"time\s+{_NUMBER}\s*(s|m|min|h|d)"),
}


@dataclass(frozen=True)
class StopExpression:
    """The stop rules of a crawl; the first rule whose condition holds stops the crawl."""

    text: str = ""  #: the rules as the user wrote them
    #: stop if the estimated recall is at least `recall`, and the lower end of its interval is at
    #: least two thirds of `recall`
    recall: float | None = None
    next_fetches: int = NEXT_FETCHES  #: number of next fetches that `harvest` is about
    #: after 100 fetches, stop if the expected harvest rate of the next fetches is below `harvest`
    harvest: float | None = None
    seconds: float | None = None  #: stop a run after so many seconds

    @classmethod
    def parse(cls, written: object) -> StopExpression:
        """Parse the stop rules that a user wrote.

        Raises
        ------
        ValueError
            `written` has a syntax error or names a rule twice.
        """
        if isinstance(written, cls):
            return written
        text = ",".join(written) if isinstance(written, list | tuple) else str(written)
        found: dict[str, float] = {}
        for rule in filter(None, (each.strip().lower() for each in text.split(","))):
            new = _read(rule)
            if new.keys() & found.keys():
                raise ValueError
            found |= new
        next_fetches = int(found.pop("next_fetches", NEXT_FETCHES))
        return cls(text.strip(), next_fetches=next_fetches, **found)

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return (self.recall, self.harvest, self.seconds) != (None, None, None)

    def reason(self, estimate: RecallEstimate | None, seconds: float) -> str | None:
        """Return the stop reason of the first rule whose condition holds, or None.

        Parameters
        ----------
        estimate : RecallEstimate or None
            The latest estimate.
        seconds : float
            Time since the start of the run.
        """
        if self.seconds is not None and seconds >= self.seconds:
            return TIME_OVER
        if estimate is None:
            return None
        if self.recall is not None and estimate.recall >= self.recall:
            low, _ = estimate.interval
            if low >= _LOWER_END * self.recall:
                return RECALL_REACHED
        known = estimate.next_fetches == self.next_fetches and estimate.fetched >= _MIN_FETCHES
        if self.harvest is not None and known and estimate.next_harvest < self.harvest:
            return LITTLE_EXPECTED
        return None

    def describe(self, reason: str, estimate: RecallEstimate | None) -> str:
        """Return a text that says which rule stopped the crawl, and the numbers that it compared.

        Parameters
        ----------
        reason : str
            Return value of `reason`.
        estimate : RecallEstimate or None
            The estimate that the rule applied to.
        """
        if reason == TIME_OVER or estimate is None:
            return f"stopped by your rule `time {self.seconds:g}s`: this run has reached its time"
        if reason == RECALL_REACHED:
            return f"stopped by your rule `recall {self.recall:g}`: {estimate.describe()}"
        expected = estimate.next_harvest * self.next_fetches
        return (
            f"stopped by your rule `next {self.next_fetches} < {self.harvest:g}`: {expected:.0f} "
            f"of the next {self.next_fetches:,} pages are expected to be relevant"
        )


def _read(rule: str) -> dict[str, float]:
    """Parse one rule; raise ValueError if it is malformed."""
    name = rule.split(None, 1)[0]
    match = _RULES[name].fullmatch(rule) if name in _RULES else None
    if match is None:
        raise ValueError
    number = float(match[2] if name == "next" else match[1])
    if number <= 0.0 or (name != "time" and number > 1.0):
        raise ValueError
    if name == "recall":
        return {"recall": number}
    if name == "time":
        return {"seconds": number * _SECONDS[match[2]]}
    if not 1 <= int(match[1]) <= 1_000_000:
        raise ValueError
    return {"next_fetches": int(match[1]), "harvest": number}


STOP_EXPRESSION = ValueParser(
    "rules separated by commas, each of `recall 0.9`, `next 100 < 0.1` and `time 8h` (s, m, h, "
    "d) at most once",
    StopExpression.parse,
)
