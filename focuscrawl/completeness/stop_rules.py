"""When a crawl stops itself: what users write, ``recall 0.9, time 8h``, and what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.foundation.user_input import Reader

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate


#: reasons of stopping
RECALL_REACHED, LITTLE_EXPECTED, TIME_OVER = "recall_reached", "little_expected", "time_over"

_LOWER_END = 2 / 3  # of the recall wanted: the least lower end of the interval

_MIN_FETCHES = 100  # fetches before which nothing is expected of the next ones
NEXT_FETCHES = 100  # whose harvest is estimated by default

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_NUMBER = r"(\d+\.?\d*|\.\d+)"
_RULES = {
    "recall": re.compile(rf"recall\s+{_NUMBER}"),
    "next": re.compile(rf"next\s+(\d+)\s*<\s*{_NUMBER}"),
    "time": re.compile(rf"time\s+{_NUMBER}\s*(s|m|min|h|d)"),
}


@dataclass(frozen=True)
class StopExpression:
    """Rules of which the first that applies stops a crawl; none does by default.

    Attributes
    ----------
    text : as written
    recall : stops when so much of what is in reach is here, by estimate, and two thirds of that
        by the lower end of its interval
    next_fetches, harvest : stops when less is expected of so many next fetches, after 100 fetches
    seconds : stops after so many seconds of one run
    """

    text: str = ""
    recall: float | None = None
    next_fetches: int = NEXT_FETCHES
    harvest: float | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, written: object) -> StopExpression:
        """Read what a user has written.

        Raises
        ------
        ValueError
            It is no such expression, or names a rule twice.
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
        """Return the rule that stops a crawl; None: none does.

        Parameters
        ----------
        estimate : the last one; None before the first
        seconds : since the run began
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
        """Describe which rule stopped a crawl, and by which numbers.

        Parameters
        ----------
        reason : that `reason` returned
        estimate : that it went by
        """
        if reason == TIME_OVER or estimate is None:
            return f"time: this run has lasted the {self.seconds:,.0f} s that were asked for"
        low, high = estimate.interval
        recall = f"about {estimate.recall:.2f} ({low:.2f} to {high:.2f}) of what is in reach"
        if reason == RECALL_REACHED:
            return f"recall {self.recall:g}: {recall} is here, after {estimate.fetched:,} fetches"
        return (
            f"next {self.next_fetches} < {self.harvest:g}: {estimate.next_harvest:.3f} is expected"
            f" of them, after {estimate.fetched:,} fetches; {recall} is here"
        )


def _read(rule: str) -> dict[str, float]:
    """Return one rule; ValueError if it is none."""
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


STOP_EXPRESSION = Reader(
    "rules with commas between, each `recall 0.9`, `next 100 < 0.1` or `time 8h` (s, m, h, d), "
    "none twice",
    StopExpression.parse,
)
