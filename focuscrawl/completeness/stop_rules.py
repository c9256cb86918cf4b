"""Parsing and evaluation of stop rules that users write, such as ``recall 0.9, time 8h``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.completeness.recall_estimate import targets_needed
from focuscrawl.foundation.user_input import ValueParser

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate, TargetCounts


#: stop reasons, one for each kind of rule
RECALL_REACHED, LITTLE_EXPECTED, TIME_OVER = "recall_reached", "little_expected", "time_over"
TARGETS_REACHED = "targets_reached"

#: result of the study of the rule `recall`, for users who rely on the rule
RECALL_RULE_STUDY = (
    "the rule `recall` compares an estimate, which is a guess. In a study, `recall 0.9` stopped "
    "52 % of 27 crawls as intended: at a recall of 0.85 or more, after at most 1.25 times the "
    "necessary fetches. Target pages certify a recall (-a targets=FILE, rule `targets 0.8`)"
)

_MANY = 10_000  # target pages, at most, that an error message requests
_LOWER_END = 2 / 3  # of the requested recall: the lower end of the interval must be at least this

_MIN_FETCHES = 100  # before these fetches, a rule on the next fetches does not apply
NEXT_FETCHES = 100  # default for the estimate of the next harvest

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_NUMBER = r"(\d+\.?\d*|\.\d+)"
_RULES = {
    "recall": re.compile(rf"recall\s+{_NUMBER}"),
    "targets": re.compile(rf"targets\s+{_NUMBER}"),
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
    targets: float | None = None  #: stop if the target pages certify this recall
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
        rules = (self.recall, self.targets, self.harvest, self.seconds)
        return any(rule is not None for rule in rules)

    def reason(
        self, estimate: RecallEstimate | None, seconds: float, found: TargetCounts | None = None
    ) -> str | None:
        """Return the stop reason of the first rule whose condition holds, or None.

        Parameters
        ----------
        estimate : RecallEstimate or None
            The latest estimate.
        seconds : float
            Time since the start of the run.
        found : TargetCounts or None
            Counts of the target pages; None for a crawl without target pages.
        """
        if self.seconds is not None and seconds >= self.seconds:
            return TIME_OVER
        if self.targets is not None and found is not None and found.recall >= self.targets:
            return TARGETS_REACHED
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

    def describe(
        self, reason: str, estimate: RecallEstimate | None, found: TargetCounts | None = None
    ) -> str:
        """Return as text the rule that stopped the crawl, and the numbers that the rule compared.

        Parameters
        ----------
        reason : str
            Return value of `reason`.
        estimate : RecallEstimate or None
            The estimate that the rule applied to.
        found : TargetCounts or None
            The counts that the rule applied to.
        """
        if reason == TARGETS_REACHED and found is not None:
            return f"stopped by the rule `targets {self.targets:g}`: {found.describe()}"
        if reason == TIME_OVER or estimate is None:
            return f"stopped by the rule `time {self.seconds:g}s`: this run has reached its time"
        if reason == RECALL_REACHED:
            return f"stopped by the rule `recall {self.recall:g}`: {estimate.describe()}"
        expected = estimate.next_harvest * self.next_fetches
        return (
            f"stopped by the rule `next {self.next_fetches} < {self.harvest:g}`: {expected:.0f} "
            f"of the next {self.next_fetches:,} pages are expected to be relevant"
        )


def check_reachable(rule: StopExpression, targets: int) -> str | None:
    """Return why target pages cannot certify the recall of a stop rule; None if they can."""
    if rule.targets is None or targets_needed(targets, rule.targets) is not None:
        return None
    if not targets:
        return f"stop rule `targets {rule.targets:g}` needs target pages: name them with `targets`"
    least = next((n for n in range(targets, _MANY) if targets_needed(n, rule.targets)), _MANY)
    return (
        f"stop rule `targets {rule.targets:g}` needs at least {least} target pages, not "
        f"{targets}: add target pages, or request a lower recall"
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
    if name in ("recall", "targets"):
        return {name: number}
    if name == "time":
        return {"seconds": number * _SECONDS[match[2]]}
    if not 1 <= int(match[1]) <= 1_000_000:
        raise ValueError
    return {"next_fetches": int(match[1]), "harvest": number}


STOP_EXPRESSION = ValueParser(
    "rules separated by commas, each of `recall 0.9`, `targets 0.8`, `next 100 < 0.1` and `time "
    "8h` (s, m, h, d) at most once",
    StopExpression.parse,
)
