"""Lessons: what an apprentice remembers of a crawl, learns of it, and how well it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.evidence import (
    FetchOutcomes,
    select_pages_to_forget,
    urls_without_links,
)
from focuscrawl.apprentice.instances import TrainingBuffer
from focuscrawl.apprentice.labels import Labels
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import input_names
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.instances import JudgedUrls
    from focuscrawl.apprentice.link_table import PageFeatures
    from focuscrawl.apprentice.options import Options
    from focuscrawl.apprentice.scorer import Scorer
    from focuscrawl.foundation.arrays import Bools


class Snapshot(NamedTuple):
    """All that was known when a lesson started. Nothing in it changes.

    Attributes
    ----------
    observed : fetches
    links, pages : known links and pages
    links_ever, pages_ever : the same, those forgotten included
    new : URLs judged since the last lesson
    judged_ever : URLs ever judged
    y : float64 by URL, R(v), NaN where it was not fetched
    judged : those of the training buffer
    own, value : their labels, see `Labels.label`
    score : float64 by URL, as last given out
    """

    observed: int
    links: int
    pages: int
    links_ever: int
    pages_ever: int
    new: int
    judged_ever: int
    y: Floats
    judged: JudgedUrls
    own: Floats
    value: Floats
    score: Floats


class CrawlMemory:
    """Takes in fetches and pages; while a lesson is under way, outcomes are deferred.

    Attributes
    ----------
    table : links and URLs
    outcomes : rates of relevance by path prefix and URL pattern
    labels : values of fetches
    buffer : URLs that were judged, with the inputs they had before
    score : float64 by URL, as last given out
    observed : fetches
    """

    def __init__(self, options: Options) -> None:
        self.table = LinkTable()
        self.outcomes = FetchOutcomes()
        self.labels = Labels(options)
        self.buffer = TrainingBuffer(options.memory, len(input_names(options)))
        self.score = GrowingArray(np.float64)
        self.observed = 0
        self.judged_at_training = 0  # URLs ever judged when the last lesson started
        self._deferred: list[tuple[int, NDArray[np.uint32] | None, float]] | None = None

    @property
    def deferring(self) -> bool:
        """True while outcomes are deferred."""
        return self._deferred is not None

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch."""
        self.labels.observe(url, relevance)
        self._apply_outcome(url, self._keys(url), relevance)
        self.observed += 1

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:
        """Take in a fetch of an earlier round, if its URL has links here."""
        self.table.grow(url + 1)
        if not np.isnan(self.table.y.data[url]):
            return  # known from the links on its page
        self.labels.observe(url, relevance)
        keys = self._keys(url)
        if keys is not None:
            self._apply_outcome(url, keys, relevance)

    def add(self, url: int, features: PageFeatures, *, forget: bool = False) -> int:
        """Take in the page of a URL; return the number of its first link.

        Parameters
        ----------
        forget : keep nothing of its links
        """
        is_new = self._keys(url) is None
        first = len(self.table)
        self.table.add(url, features, forget=forget)
        self.labels.add_links(url, features.new, self.table.n_urls)
        if is_new:  # a seed: nothing was known of its address when it was observed
            self._apply_outcome(url, features.own_keys[0], float(features.relevance[0]))
        return first

    def store_scores(self, urls: Ints, scores: Floats) -> None:
        """Note the scores that are given out."""
        self.score.grow(self.table.n_urls)
        self.score.data[urls] = scores

    def start_deferring(self) -> None:
        """Defer outcomes from now on: a lesson is about what was known when it started."""
        self._deferred = []

    def apply_deferred(self) -> None:
        """Take in what was deferred."""
        deferred, self._deferred = self._deferred, None
        for each in deferred or ():
            self._apply_outcome(*each)

    def snapshot(self) -> Snapshot:
        """Return what is known now, for a lesson about it."""
        table, buffer = self.table, self.buffer
        y = table.y.data[: table.n_urls]
        judged = buffer.judged
        own, value = self.labels.label(judged.urls, y[judged.urls])
        new, self.judged_at_training = buffer.n_added - self.judged_at_training, buffer.n_added
        return Snapshot(
            observed=self.observed,
            links=len(table),
            pages=len(table.pages),
            links_ever=table.links_ever,
            pages_ever=table.pages_ever,
            new=new,
            judged_ever=buffer.n_added,
            y=y,
            judged=judged,
            own=own,
            value=value,
            score=self.score.data.copy(),
        )

    def _keys(self, url: int) -> NDArray[np.uint32] | None:
        return self.table.keys(np.array([url]))[0] if self.table.has_keys(url) else None

    def _apply_outcome(self, url: int, keys: NDArray[np.uint32] | None, relevance: float) -> None:
        if self._deferred is not None:
            self._deferred.append((url, keys, relevance))
            return
        self.table.y.data[url] = relevance
        if keys is not None:
            self.outcomes.observe(keys, relevance)


BINS = 10  # of the histograms of `drift`


def validate(predicted: Floats, y: Floats) -> dict[str, float]:
    """Compare predictions (n,) with the relevance (n,) that the fetches showed.

    Returns
    -------
    ``auc`` (0.5 where all outcomes are alike), ``log_loss``, ``brier``, ``predicted`` and
    ``relevance`` (their means: the same for a calibrated apprentice), ``judged`` (n); empty
    for n = 0
    """
    if not len(y):
        return {}
    p = np.clip(predicted, 1e-6, 1.0 - 1e-6)
    return {
        "auc": auc(predicted, y > 0.5),
        "log_loss": float(-np.mean(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))),
        "brier": float(np.mean((predicted - y) ** 2)),
        "predicted": float(predicted.mean()),
        "relevance": float(y.mean()),
        "judged": float(len(y)),
    }


def auc(scores: Floats, high: Bools) -> float:
    """Return the chance that a high one scores above a low one, ties half; 0.5 without both."""
    n_high = int(high.sum())
    n_low = len(high) - n_high
    if not n_high or not n_low:
        return 0.5
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # of equals, the mean of theirs
    return float((ranks[high].sum() - n_high * (n_high + 1) / 2) / (n_high * n_low))


def drift(before: Floats, after: Floats) -> dict[str, float | list[int]]:
    """Compare the scores of n waiting URLs before and after a lesson, both in [0, 1].

    Returns
    -------
    ``drift``: mean |after - before| [A02 figure 13]; ``waiting``: n; ``histogram_before``,
    ``histogram_after``: how many scores are in each of `BINS` equal parts of [0, 1]; empty for
    n = 0
    """
    if not len(before):
        return {}
    edges = np.linspace(0.0, 1.0, BINS + 1)
    return {
        "drift": float(np.abs(after - before).mean()),
        "waiting": float(len(before)),
        "histogram_before": np.histogram(before, edges)[0].tolist(),
        "histogram_after": np.histogram(after, edges)[0].tolist(),
    }


_RECENT = slice(-200, None)  # the latest predictions, by which a lesson is judged


@dataclass(frozen=True, slots=True)
class ApprenticeUpdate:
    """A new model, and the scores it gives to all that waits; see `Apprentice.learn`.

    Attributes
    ----------
    version : of the model
    about : what was known when the lesson started
    instances : judged URLs learned from, or links if each is an instance
    metrics : progressive validation, how well fetches were predicted before they were learned, and
        how far the scores of what waits moved: see `validate` and `drift`
    state : a part of `Apprentice.state`
    urls, scores : int64 (m,), float64 (m,): all URLs with links that were not fetched
    scorer : for `Apprentice.adopt`; its table is another one if links were forgotten
    forgotten : bool (m,), which of all pages ever known by then are not known any more; m = 0 as
        long as all are
    """

    version: int
    snapshot: Snapshot
    instances: int
    metrics: dict[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    scorer: Scorer
    forgotten: Bools


def rescore_queued(
    snapshot: Snapshot, scorer: Scorer, *, version: int, instances: int, state: bytes
) -> ApprenticeUpdate:
    """Score all that waited when a lesson started by a new model; changes only `scorer`.

    With more links than the options allow, the least promising pages are forgotten. What only they
    link to has the score 0 from then on.

    Parameters
    ----------
    scorer : without evidence yet
    version, instances, state : see `ApprenticeUpdate`
    """
    y, pages = snapshot.y, snapshot.pages
    waiting, scores = scorer.rebuild_evidence(snapshot.links, y)
    if snapshot.links > scorer.options.links:
        promise = np.full(len(y), -1.0)
        promise[waiting] = scores
        out = select_pages_to_forget(
            scorer.table, snapshot.links, snapshot.pages, promise, scorer.options.links
        )
        scorer = scorer.with_table(scorer.table.without_pages(out, snapshot.links))
        waiting, scores = scorer.rebuild_evidence(len(scorer.table), y)
        pages = len(scorer.table.pages)
    nowhere = urls_without_links(scorer.table, scorer.evidence, y)
    return ApprenticeUpdate(
        version=version,
        snapshot=snapshot,
        instances=instances,
        metrics={
            **validate(snapshot.judged.predicted[_RECENT], snapshot.own[_RECENT]),
            **drift(snapshot.score[waiting], scores),
        },
        state=state,
        urls=np.concatenate([waiting, nowhere]),
        scores=np.concatenate([scores, np.zeros(len(nowhere))]),
        scorer=scorer,
        forgotten=scorer.table.forgotten_pages(pages, snapshot.pages_ever),
    )


class ResumePoint(NamedTuple):
    """Where the last lesson was, in (fetches observed, links ever known).

    Nothing is scored before.

    Attributes
    ----------
    lesson, adoption : when it started, and when it was adopted
    forgotten : bool (m,), which of the first pages had been forgotten by then
    links : links known when it started, as far as they were not forgotten; -1 before
    """

    update: tuple[int, int]
    adoption: tuple[int, int]
    forgotten: Bools
    links: int = -1

    def is_forgotten(self, nth: int) -> bool:
        """Tell whether the n-th page, from 0, had been forgotten by then."""
        return nth < len(self.forgotten) and bool(self.forgotten[nth])

    @staticmethod
    def is_reached(point: tuple[int, int], now: tuple[int, int]) -> bool:
        """Tell whether what was known at `point` has been repeated."""
        return now[0] >= point[0] and now[1] >= point[1]


def select_contrasting(chosen: Ints, table: LinkTable, snapshot: Snapshot, share: float) -> Ints:
    """Keep the share of instances with the largest |R(u) - R(v)| [A02 section 4].

    Parameters
    ----------
    chosen : int64 (n,), ascending, instances to choose from, as places in ``snapshot.judged``
    """
    if not len(chosen):
        return chosen
    best = np.zeros(len(snapshot.y))  # R(u); not the input, which is 0 where its group is off
    links, urls = slice(snapshot.links), snapshot.judged.urls[chosen]
    np.maximum.at(best, table.target.data[links], table.relevance.data[links])
    most = np.argsort(-np.abs(best[urls] - snapshot.y[urls]), kind="stable")
    return np.sort(chosen[most[: max(1, round(share * len(chosen)))]])
