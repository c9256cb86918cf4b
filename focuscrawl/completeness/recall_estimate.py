"""Recall of a crawl: estimates, written to ``completeness.csv``, and bounds by target pages."""

from __future__ import annotations

import csv
import io
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray
from focuscrawl.foundation.files import open_nofollow, write_atomically

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats

logger = logging.getLogger(__name__)

ESTIMATES_FILE = "completeness.csv"
FIRST_ESTIMATE = 20  #: fetches before the first estimate
_LONGEST = 10_000_000  # characters read of a file

# `LinkCalibration`
_EDGES = (0.01, 0.1, 0.3, 0.6, 0.9)  # between the bins of scores
_HALF = 50  # later fetches in the same bin after which a fetch counts half
_FADES = 0.5 ** (1.0 / _HALF)
_PRIOR = 2.0  # relevant pages, expected and found, before the first fetch
_LEAST = 0.001  # least probability: a page with a score of 0 can be relevant
_UNKNOWN = 0.5  # probability of every link if scores only rank links

# `RecallEstimator`
_LATE = 8  # the recent harvest is that of the last eighth of the fetches
_LEAST_LATE = 25  # fetches of the recent harvest, at least
_FEW = 10  # off-topic pages: with fewer pages, the share with groups behind them is unreliable
_UNSEEN = 0.5  # relevant pages in groups, before the first is found
_DECLINE = 1 / 3  # relevant pages a fetch until a source is exhausted, over those so far

# Constants of the 90 % interval. They were chosen so that the interval holds on crawls of uci and
# of the synthetic web, and were measured on other webs.
_TOO_MUCH = 8.0  # the missing pages may be so many times fewer than estimated
_TOO_LITTLE = 1.5  # the missing pages may be so many times more than estimated
_UNDIMINISHED = 10.0  # added to the factor above, times the squared harvest
_BEHIND = 0.2  # of the relevant pages fetched: pages in groups behind off-topic pages
_BEYOND_COUNTING = 2.0  # pages, added to every upper bound


@dataclass(frozen=True)
class RecallEstimate:
    """An estimate of the recall of a crawl, with its 90 % interval."""

    fetched: int  #: fetches before the estimate
    relevant: int  #: relevant pages among these fetches
    waiting: int  #: queued URLs
    discovered: float  #: relevant pages expected among the queued URLs
    undiscovered: float  #: relevant pages expected among URLs that no fetched page links to
    harvest: float  #: share of relevant pages among the last fetches
    next_fetches: int  #: number of next fetches for `next_harvest`
    next_harvest: float  #: expected share of relevant pages among the next fetches

    @property
    def missing(self) -> float:
        """Estimated number of relevant pages that the crawl could reach but has not fetched."""
        return self.discovered + self.undiscovered

    @property
    def recall(self) -> float:
        """Estimated share of fetched pages among the relevant pages that the crawl could reach."""
        return self._share(self.missing)

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound of the 90 % interval of the recall."""
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
        """Return the recall as a short text for a progress bar."""
        return f"recall ~{self.recall:.2f}"

    def describe(self) -> str:
        """Return a phrase with the recall and its interval, for use in a sentence."""
        low, high = self.interval
        return f"estimated recall {100 * self.recall:.0f} % ({100 * low:.0f}–{100 * high:.0f} %)"


class LinkCalibration:
    """Turns the scores of links into probabilities that the links lead to relevant pages.

    Scores are grouped into six bins. In each bin of scores, the scores of queued links are
    multiplied by the ratio of relevant pages found to relevant pages expected. Recent fetches have
    larger weights than earlier fetches, because the best links are fetched first and the strategy
    learns during the crawl.

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
        """Record whether a link with the given `score` led to a relevant page."""
        expected = min(max(score, _LEAST), 1.0) if self._scores_are_relevance else _UNKNOWN
        at = bisect_left(_EDGES, expected)
        self._promised[at] = _PRIOR + _FADES * (self._promised[at] - _PRIOR) + expected
        self._found[at] = _PRIOR + _FADES * (self._found[at] - _PRIOR) + relevant

    def probabilities(self, scores: Floats) -> Floats:
        """Return for each link the probability that the link leads to a relevant page.

        Parameters
        ----------
        scores : NDArray[np.float64] of shape (n_links,)
            inf, the score of seeds and of redirect targets, counts as 1.

        Returns
        -------
        NDArray[np.float64] of shape (n_links,)
        """
        expected = np.full(len(scores), _UNKNOWN)
        if self._scores_are_relevance:
            expected = np.clip(scores, _LEAST, 1.0)
        ratios = np.array(self._found) / np.array(self._promised)
        probable: Floats = np.minimum(1.0, ratios[np.searchsorted(_EDGES, expected)] * expected)
        return probable


class RecallEstimator:
    """Estimates from the fetches of a crawl how many relevant pages are not fetched yet.

    *Discovered* pages are relevant pages whose URLs are queued. The expected number of discovered
    pages is the sum of the probabilities of the queued links (`LinkCalibration`).

    *Undiscovered* pages are relevant pages whose URLs are not queued yet. The number of
    undiscovered pages is the sum of two estimates. First, suppose that n fetches were made and the
    recent harvest rate is h. With probability h, the crawl continues at this rate, and the next n
    fetches find h * n relevant pages. Second, off-topic pages may lead to groups of relevant
    pages. A relevant page starts a *group* if the page is not a seed and no earlier relevant page
    has a link to the page. Relevant pages that were first found on a page of a group belong to the
    same group. The estimate assumes that a queued off-topic page leads, on average, to as many
    pages in groups as a fetched off-topic page did.

    A crawl fetches the best links first, so the share of relevant pages falls over time. The
    estimate assumes a harvest rate that falls to zero along a parabola. If the harvest rate falls
    in this way, queued links and off-topic pages lead to only a third as many relevant pages as
    fetched links and pages did.

    The term "next n fetches" means the n best queued links. The expected harvest rate of the next
    n fetches is the mean probability of the n links, or the harvest rate of the last n / 2 fetches
    if that rate is larger.

    The estimator needs 8 bytes of memory per fetch and 2 bytes per URL.

    Parameters
    ----------
    scores_are_relevance : bool
        Scores are the expected relevance, and the links with the best scores are fetched first.
    """

    def __init__(self, *, scores_are_relevance: bool) -> None:
        self._links = LinkCalibration(scores_are_relevance=scores_are_relevance)
        self._decline = _DECLINE if scores_are_relevance else 1.0
        self._relevant = GrowingArray(np.int64)  # relevant pages so far, by fetch
        self._linked_by_relevant = GrowingArray(np.bool_)  # by URL; True also for seeds
        self._in_group = GrowingArray(np.bool_)  # by URL
        self._in_groups = _UNSEEN  # relevant pages in groups

    @property
    def fetched(self) -> int:
        """Fetches added so far."""
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
        """Add a fetch.

        Parameters
        ----------
        url, referrer : int
            IDs of the page, and of the page on which its link was first found.
        score : float or None
            Score of the link when it was fetched; None for a seed or the target of a redirect.
        targets : Sequence[int]
            IDs of the URLs that the page links to, as far as they are followed.
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
        elif score is None:  # a link to a redirecting URL is a link to its target
            led_to[url] |= led_to[referrer]
        if not relevant:
            return
        in_group[url] = not led_to[url] or (referrer is not None and in_group[referrer])
        self._in_groups += bool(in_group[url])
        led_to[list(targets)] = True

    def estimate(self, scores: Floats, next_fetches: int) -> RecallEstimate:
        """Return an estimate of the crawl's recall.

        Parameters
        ----------
        scores : NDArray[np.float64] of shape (n_queued,)
            Scores of the queued URLs.
        next_fetches : int
            Number of next fetches for `RecallEstimate.next_harvest`.
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
        """Return the mean number of grouped pages behind an off-topic page, at most 1."""
        return min(1.0, self._in_groups / max(_FEW, off_topic))


_READ: dict[str, Callable[[str], Any]] = {
    each.name: float if each.type == "float" else int for each in fields(RecallEstimate)
}
_COLUMNS = [*_READ, "recall", "low", "high"]  # the last three are computed from the others


class EstimateLog:
    """Appends the estimates of a crawl to a CSV file.

    Parameters
    ----------
    path : Path
        The file; estimates of earlier runs are kept.
    fetched : int
        Fetches in the store. Estimates made after more fetches are dropped.

    Attributes
    ----------
    latest : RecallEstimate or None
        The last estimate.
    """

    def __init__(self, path: Path, fetched: int) -> None:
        self._path = path
        self._failed = False
        found, whole = _read(path)
        kept = [*takewhile(lambda estimate: estimate.fetched <= fetched, found)]
        self.latest = kept[-1] if kept else None
        if len(kept) < len(found) or not whole:
            self._write(kept, is_new=True)

    def add(self, estimate: RecallEstimate) -> None:
        """Append an estimate to the CSV file; log one warning if the file cannot be written."""
        is_new, self.latest = self.latest is None, estimate
        self._write([estimate], is_new=is_new)

    def _write(self, estimates: Iterable[RecallEstimate], *, is_new: bool) -> None:
        text = io.StringIO(newline="")
        rows = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        if is_new:
            rows.writeheader()
        for each in estimates:
            low, high = each.interval
            rows.writerow({**asdict(each), "recall": each.recall, "low": low, "high": high})
        try:
            if is_new:
                write_atomically(self._path, text.getvalue())
            else:
                with open(self._path, "a", encoding="utf-8", opener=open_nofollow) as file:
                    file.write(text.getvalue())
        except OSError as error:
            if not self._failed:
                logger.warning(
                    "Estimates of recall cannot be saved to %s: %s", self._path, error.strerror
                )
            self._failed = True


def read_estimates(path: Path) -> list[RecallEstimate]:
    """Read the recall estimates from a CSV file, in the order in which they were made.

    Reading stops at the first invalid line of the file, because a killed crawl may leave an
    incomplete line.

    Raises
    ------
    UserError
        `path` is not a regular file.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[RecallEstimate], bool]:
    """Return the estimates, and whether the file holds nothing else."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_nofollow) as file:
            text = file.read(_LONGEST)
    except FileNotFoundError:
        return [], True
    whole = text.endswith("\n")  # otherwise the last line may be cut off
    text = text[: text.rfind("\n") + 1]
    found: list[RecallEstimate] = []
    try:
        for row in csv.DictReader(io.StringIO(text, newline="")):
            found.append(RecallEstimate(**{name: of(row[name]) for name, of in _READ.items()}))  # noqa: PERF401 - stop at an error
    except (csv.Error, KeyError, TypeError, ValueError):
        whole = False
    return found, whole


#: with fewer target pages, no recall is certified
MIN_TARGETS = 14
_ERROR = 0.05  # highest probability that the recall is below the bound


@lru_cache(maxsize=4096)  # a stop rule asks before each fetch
def certified_recall(found: int, targets: int) -> float:
    """Return the lower bound of the recall with 95 % confidence (Clopper and Pearson, 1934).

    Parameters
    ----------
    found, targets : int
        Number of target pages found, and of all target pages.

    Returns
    -------
    float
        0.0 for fewer than 14 target pages.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import, few crawls need it

    if not found or targets < MIN_TARGETS:
        return 0.0
    return float(betaincinv(found, targets - found + 1, _ERROR))


def targets_needed(targets: int, recall: float) -> int | None:
    """Return how many target pages must be found to certify a recall.

    The result is None if even finding all target pages would not suffice.
    """
    enough = (n for n in range(1, targets + 1) if certified_recall(n, targets) >= recall)
    return next(enough, None)


def split_examples(urls: Sequence[str], random_state: int = 0) -> tuple[list[str], list[str]]:
    """Split known relevant pages into examples and target pages.

    Of 21 or more pages, two thirds become target pages. Of 14 to 20 pages, 14 become target pages.
    With fewer than 14 pages, all pages are examples.

    Returns
    -------
    tuple of list of str and list of str
        Examples, and target pages drawn at random, both in the original order.
    """
    count = max(MIN_TARGETS, 2 * len(urls) // 3) if len(urls) >= MIN_TARGETS else 0
    held = {*Random(random_state).sample(urls, count)}
    return [url for url in urls if url not in held], [url for url in urls if url in held]


@dataclass(frozen=True)
class TargetCounts:
    """Number of target pages of a crawl by state."""

    targets: int  #: all target pages
    fetched: int  #: target pages that the crawl has fetched
    met: int  #: target pages that were fetched, or to which a fetched page links
    relevant: int | None = None  #: fetched target pages with relevance above 0.5, if counted

    @property
    def recall(self) -> float:
        """Lower bound of the recall with 95 % confidence, computed from the target pages."""
        return certified_recall(self.fetched, self.targets)

    def short(self) -> str:
        """Return the counts as a short text for a progress bar."""
        return f"targets {self.fetched}/{self.targets}"

    def describe(self) -> str:
        """Return a phrase with the counts and the certified recall, for use in a sentence."""
        text = f"{self.fetched:,} of {self.targets:,} target pages found"
        if self.relevant is not None and self.relevant < self.fetched:
            text += f" ({self.relevant:,} judged relevant)"
        if self.met > self.fetched:
            text += f", {self.met - self.fetched:,} more known by links"
        if self.targets < MIN_TARGETS:
            return f"{text}; no recall is certified with fewer than {MIN_TARGETS} target pages"
        return f"{text}; recall at least {_percent(self.recall)} with 95 % confidence"


def _percent(share: float) -> str:
    return f"{int(100 * share)} %"  # rounded down, because it is a lower bound
