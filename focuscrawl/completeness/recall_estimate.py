"""Estimates of how complete a crawl is, and their record in its folder."""

from __future__ import annotations

import csv
import io
import logging
from bisect import bisect_left
from dataclasses import asdict, dataclass, fields
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.foundation.files import open_plain, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from focuscrawl.foundation.arrays import Floats


logger = logging.getLogger(__name__)

ESTIMATES_FILE = "completeness.csv"
_LONGEST = 10_000_000  # characters read of a file

# of `LinkCalibration`
_EDGES = (0.01, 0.1, 0.3, 0.6, 0.9)  # of the bins of scores
_HALF = 50  # fetches of a bin after which one counts half
_FADES = 0.5 ** (1.0 / _HALF)
_PRIOR = 2.0  # relevant pages as promised, before any fetch
_LEAST = 0.001  # probability: a score of 0 is no promise that a page is off the topic
_UNKNOWN = 0.5  # of every link, where scores are no probabilities

# of `RecallEstimator`
_LATE = 8  # the harvest is of one fetch in so many, the last ones
_LEAST_LATE = 25  # fetches
_FEW = 10  # pages off the topic, below which their yield is not to be relied on
_UNSEEN = 0.5  # relevant pages behind those off the topic, before any was found
_DECLINE = 1 / 3  # what a source brings till it is empty, over what it brought so far, a fetch

# Constants of the 90 % interval, chosen on crawls of uci and the synthetic web so that it holds
# on them, and measured on others.
_TOO_MUCH = 8.0  # what is left may be so many times less than estimated
_TOO_LITTLE = 1.5  # and so many times more
_UNDIMINISHED = 10.0  # more yet, times the harvest squared, while it has not fallen
_BEHIND = 0.2  # of the relevant pages here: groups of pages behind pages off the topic
_BEYOND_COUNTING = 2.0  # pages, whatever is estimated


@dataclass(frozen=True)
class RecallEstimate:
    """How complete a crawl is.

    Attributes
    ----------
    fetched : fetches when it was made
    relevant : relevant pages among them
    waiting : URLs in the frontier
    discovered : relevant pages expected among those
    undiscovered : relevant pages expected beyond them, that no page fetched links to
    harvest : share of relevant pages among the last fetches
    next_fetches, next_harvest : share of relevant pages that is expected of so many next fetches
    """

    fetched: int
    relevant: int
    waiting: int
    discovered: float
    undiscovered: float
    harvest: float
    next_fetches: int
    next_harvest: float

    @property
    def missing(self) -> float:
        """Relevant pages in reach that are not here."""
        return self.discovered + self.undiscovered

    @property
    def recall(self) -> float:
        """Share of the relevant pages in reach that is here; 0 where there is none."""
        return self._share(self.missing)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the recall is in nine cases of ten."""
        if not self.waiting:
            return self.recall, self.recall
        off_topic = max(self.fetched - self.relevant, 1)
        unexplored = min(1.0, self.waiting / off_topic)
        most = self.missing * (_TOO_LITTLE + _UNDIMINISHED * self.harvest**2)
        most += _BEHIND * self.relevant * unexplored + _BEYOND_COUNTING
        least = self.missing / _TOO_MUCH
        return self._share(most), self._share(least if least >= _BEYOND_COUNTING else 0.0)

    def _share(self, left: float) -> float:
        return self.relevant / (self.relevant + left) if self.relevant else 0.0

    def short(self) -> str:
        """Return it in a few characters, for a progress bar."""
        return f"recall ~{self.recall:.2f}"

    def describe(self) -> str:
        """Return it in a line."""
        low, high = self.interval
        return (
            f"about {self.recall:.2f} ({low:.2f} to {high:.2f}) of those in reach; "
            f"left: {self.discovered:,.0f} in the frontier, {self.undiscovered:,.0f} beyond"
        )


class LinkCalibration:
    """Probabilities that links lead to relevant pages, learned from the fetches of a crawl.

    Scores are put into six bins. In each, the scores of all that wait are multiplied by what
    recent links brought over what they promised. The best links of a bin are fetched first, and
    the strategy learns meanwhile, so late fetches count more.

    Parameters
    ----------
    scores_are_relevance : bool
        False: scores only rank links, and only the harvest counts.
    """

    def __init__(self, *, scores_are_relevance: bool) -> None:
        self._scores_are_relevance = scores_are_relevance
        self._promised = [_PRIOR] * (len(_EDGES) + 1)
        self._found = [_PRIOR] * (len(_EDGES) + 1)

    def learn(self, score: float, *, relevant: bool) -> None:
        """Take in the outcome of a link that had `score` when it was fetched."""
        expected = min(max(score, _LEAST), 1.0) if self._scores_are_relevance else _UNKNOWN
        at = bisect_left(_EDGES, expected)
        self._promised[at] = _PRIOR + _FADES * (self._promised[at] - _PRIOR) + expected
        self._found[at] = _PRIOR + _FADES * (self._found[at] - _PRIOR) + relevant

    def probabilities(self, scores: Floats) -> Floats:
        """Return the chance that links lead to relevant pages, float64 (n,).

        Parameters
        ----------
        scores : float64 (n,); inf, of seeds and where redirects lead, counts as 1
        """
        expected = np.full(len(scores), _UNKNOWN)
        if self._scores_are_relevance:
            expected = np.clip(scores, _LEAST, 1.0)
        ratios = np.array(self._found) / np.array(self._promised)
        probable: Floats = np.minimum(1.0, ratios[np.searchsorted(_EDGES, expected)] * expected)
        return probable


class RecallEstimator:
    """Estimates from the fetches of a crawl how many relevant pages are left.

    *Discovered*: the sum of the probabilities of the links that wait (`LinkCalibration`).

    *Not discovered* are two kinds. After n fetches with a recent harvest h, there are hn relevant
    pages in as many fetches more, if the harvest lasts, and it lasts with probability h. And pages
    off the topic may lead to groups of relevant ones. A page starts a *group* if no relevant page
    fetched before it links to it, and it is no seed; what is first found on a page of a group
    belongs to it. What pages off the topic have led to, a page, is expected of each that waits.

    A crawl that fetches the best links first gets ever less from them. If that falls to nothing as
    a parabola does, links that wait and pages off the topic bring a third of what such ones did.

    The *next* fetches are of the best links that wait. If the last ones, half as many, brought
    more than these promise, the next ones are expected to bring as much, by links that do not wait
    yet.

    A crawl of n fetches takes 8 n bytes, and one of m URLs 2 m.

    Parameters
    ----------
    scores_are_relevance : bool
        Scores are the expected relevance, and the links with the best scores are fetched first.
    """

    def __init__(self, *, scores_are_relevance: bool) -> None:
        self._links = LinkCalibration(scores_are_relevance=scores_are_relevance)
        self._decline = _DECLINE if scores_are_relevance else 1.0
        self._relevant = GrowingArray(np.int64)  # pages, by fetches
        self._linked_by_relevant = GrowingArray(
            np.bool_
        )  # by URL: by a relevant page, or it is a seed
        self._in_group = GrowingArray(np.bool_)  # by URL
        self._in_groups = _UNSEEN  # relevant pages in groups

    @property
    def fetched(self) -> int:
        """Fetches seen."""
        return len(self._relevant)

    def add_fetch(
        self,
        url: int,
        referrer: int | None,
        score: float | None,
        targets: Sequence[int],
        *,
        relevant: bool,
    ) -> None:
        """Take in a fetch.

        Parameters
        ----------
        url, referrer : numbers of the page, and of the page it was first found on
        score : that it was fetched with; None for a seed, and for where a redirect leads
        targets : of its links that are followed
        """
        before = int(self._relevant.data[-1]) if len(self._relevant) else 0
        self._relevant.extend([before + relevant])
        if score is not None:
            self._links.learn(score, relevant=relevant)
        highest = max(url, -1 if referrer is None else referrer, max(targets, default=-1))
        for array in (self._linked_by_relevant, self._in_group):
            array.grow(highest + 1)
        led_to, in_group = self._linked_by_relevant.data, self._in_group.data
        if referrer is None:
            led_to[url] = True
        elif score is None:  # whoever links to a URL that redirects links to where it leads
            led_to[url] |= led_to[referrer]
        if not relevant:
            return
        in_group[url] = not led_to[url] or (referrer is not None and in_group[referrer])
        self._in_groups += bool(in_group[url])
        led_to[list(targets)] = True

    def estimate(self, scores: Floats, next_fetches: int) -> RecallEstimate:
        """Return how complete the crawl is.

        Parameters
        ----------
        scores : of the URLs that wait, float64 (n,)
        next_fetches : how many fetches `RecallEstimate.next_harvest` is of
        """
        probabilities = self._links.probabilities(scores)
        n, relevant = self.fetched, int(self._relevant.data[-1])
        harvest = self._recent_harvest(max(_LEAST_LATE, n // _LATE))
        promised = float(probabilities.sum())
        behind = self._group_yield(n - relevant) * max(len(scores) - promised, 0.0)
        lasting = harvest**2 * n if len(scores) else 0.0
        soon = min(next_fetches, len(scores))
        if soon < len(scores):
            best = np.partition(probabilities, len(scores) - soon)[len(scores) - soon :]
        else:
            best = probabilities
        next_harvest = 0.0
        if soon:
            next_harvest = max(
                float(best.mean()), self._recent_harvest(max(_LEAST_LATE, soon // 2))
            )
        return RecallEstimate(
            fetched=n,
            relevant=relevant,
            waiting=len(scores),
            discovered=self._decline * promised,
            undiscovered=lasting + self._decline * behind,
            harvest=harvest,
            next_fetches=next_fetches,
            next_harvest=next_harvest,
        )

    def _recent_harvest(self, fetches: int) -> float:
        """Return the share of relevant pages among the last fetches."""
        n = self.fetched
        late = min(n, fetches)
        before = int(self._relevant.data[n - late - 1]) if n > late else 0
        return (int(self._relevant.data[-1]) - before) / late

    def _group_yield(self, off_topic: int) -> float:
        """Return how many relevant pages a page off the topic led to, at most 1."""
        return min(1.0, self._in_groups / max(_FEW, off_topic))


_READ: dict[str, Callable[[str], Any]] = {
    each.name: float if each.type == "float" else int for each in fields(RecallEstimate)
}
_COLUMNS = [*_READ, "recall", "low", "high"]  # these follow from the others


class EstimateLog:
    """Appends the estimates of a crawl to a table.

    Parameters
    ----------
    path : of the table; estimates of earlier runs stay
    fetched : estimates of later fetches are dropped: the store does not know of them

    Attributes
    ----------
    latest : the last estimate; None before the first
    """

    def __init__(self, path: Path, fetched: int) -> None:
        self._path = path
        self._failed = False
        found, whole = _read(path)
        kept = [*takewhile(lambda estimate: estimate.fetched <= fetched, found)]
        self.latest = kept[-1] if kept else None
        if len(kept) < len(found) or not whole:
            self._write(kept, anew=True)

    def add(self, estimate: RecallEstimate) -> None:
        """Append an estimate; a full disk does not stop the crawl."""
        anew, self.latest = self.latest is None, estimate
        self._write([estimate], anew=anew)

    def _write(self, estimates: Iterable[RecallEstimate], *, anew: bool) -> None:
        text = io.StringIO(newline="")
        rows = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        if anew:
            rows.writeheader()
        for each in estimates:
            low, high = each.interval
            rows.writerow({**asdict(each), "recall": each.recall, "low": low, "high": high})
        try:
            if anew:
                write_whole(self._path, text.getvalue())
            else:
                with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
                    file.write(text.getvalue())
        except OSError as error:
            if not self._failed:
                logger.warning("%s cannot be written: %s", self._path, error.strerror)
            self._failed = True


def read_estimates(path: Path) -> list[RecallEstimate]:
    """Return the estimates in a table, in the order they were made.

    A line that is none ends it: the crawl was killed while it wrote. UserError if there is
    something else than a plain file.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[RecallEstimate], bool]:
    """Return the estimates, and whether there is nothing else in the file."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_plain) as file:
            text = file.read(_LONGEST)
    except FileNotFoundError:
        return [], True
    whole = text.endswith("\n")  # else the last line may be the beginning of one
    text = text[: text.rfind("\n") + 1]
    found: list[RecallEstimate] = []
    try:
        for row in csv.DictReader(io.StringIO(text, newline="")):
            found.append(RecallEstimate(**{name: of(row[name]) for name, of in _READ.items()}))  # noqa: PERF401 - up to the first that is none
    except (csv.Error, KeyError, TypeError, ValueError):
        whole = False
    return found, whole
