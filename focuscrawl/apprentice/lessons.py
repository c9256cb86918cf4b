"""Lessons: what an apprentice remembers of a crawl, learns of it, and how well it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.evidence import FetchOutcomes, least_promising, without_links
from focuscrawl.apprentice.instances import TrainingBuffer
from focuscrawl.apprentice.labels import Labels
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import input_names
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.instances import JudgedUrls
    from focuscrawl.apprentice.link_table import PageFacts
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
    own, value : their labels, see `Labels.of`
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
        self.learned_from = 0  # URLs ever judged when the last lesson started
        self._deferred: list[tuple[int, NDArray[np.uint32] | None, float]] | None = None

    @property
    def deferring(self) -> bool:
        """True while outcomes are deferred."""
        return self._deferred is not None

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch."""
        self.labels.observe(url, relevance)
        self._note(url, self._keys(url), relevance)
        self.observed += 1

    def fetched_before(self, url: int, relevance: float) -> None:
        """Take in a fetch of an earlier round, if its URL has links here."""
        self.table.grow(url + 1)
        if not np.isnan(self.table.y.data[url]):
            return  # known from the links on its page
        self.labels.observe(url, relevance)
        keys = self._keys(url)
        if keys is not None:
            self._note(url, keys, relevance)

    def add(self, url: int, facts: PageFacts, *, forget: bool = False) -> int:
        """Take in the page of a URL; return the number of its first link.

        Parameters
        ----------
        forget : keep nothing of its links
        """
        is_new = self._keys(url) is None
        first = len(self.table)
        self.table.add(url, facts, forget=forget)
        self.labels.found(url, facts.new, self.table.n_urls)
        if is_new:  # a seed: nothing was known of its address when it was observed
            self._note(url, facts.own_keys[0], float(facts.relevance[0]))
        return first

    def keep_scores(self, urls: Ints, scores: Floats) -> None:
        """Note the scores that are given out."""
        self.score.grow(self.table.n_urls)
        self.score.data[urls] = scores

    def defer(self) -> None:
        """Defer outcomes from now on: a lesson is about what was known when it started."""
        self._deferred = []

    def take_in_deferred(self) -> None:
        """Take in what was deferred."""
        deferred, self._deferred = self._deferred, None
        for each in deferred or ():
            self._note(*each)

    def snapshot(self) -> Snapshot:
        """Return what is known now, for a lesson about it."""
        table, buffer = self.table, self.buffer
        y = table.y.data[: table.n_urls]
        judged = buffer.judged
        own, value = self.labels.of(judged.urls, y[judged.urls])
        new, self.learned_from = buffer.ever - self.learned_from, buffer.ever
        return Snapshot(
            observed=self.observed,
            links=len(table),
            pages=len(table.pages),
            links_ever=table.links_ever,
            pages_ever=table.pages_ever,
            new=new,
            judged_ever=buffer.ever,
            y=y,
            judged=judged,
            own=own,
            value=value,
            score=self.score.data.copy(),
        )

    def _keys(self, url: int) -> NDArray[np.uint32] | None:
        return self.table.keys(np.array([url]))[0] if self.table.has_keys(url) else None

    def _note(self, url: int, keys: NDArray[np.uint32] | None, relevance: float) -> None:
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
class ApprenticeLesson:
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
    about: Snapshot
    instances: int
    metrics: dict[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    scorer: Scorer
    forgotten: Bools


def rescore_waiting(
    about: Snapshot, scorer: Scorer, *, version: int, instances: int, state: bytes
) -> ApprenticeLesson:
    """Score all that waited when a lesson started by a new model; changes only `scorer`.

    With more links than the options allow, the least promising pages are forgotten. What only they
    link to has the score 0 from then on.

    Parameters
    ----------
    scorer : without evidence yet
    version, instances, state : see `ApprenticeLesson`
    """
    y, pages = about.y, about.pages
    waiting, scores = scorer.rebuild(about.links, y)
    if about.links > scorer.options.links:
        promise = np.full(len(y), -1.0)
        promise[waiting] = scores
        out = least_promising(
            scorer.table, about.links, about.pages, promise, scorer.options.links
        )
        scorer = scorer.over(scorer.table.without(out, about.links))
        waiting, scores = scorer.rebuild(len(scorer.table), y)
        pages = len(scorer.table.pages)
    nowhere = without_links(scorer.table, scorer.evidence, y)
    return ApprenticeLesson(
        version=version,
        about=about,
        instances=instances,
        metrics={
            **validate(about.judged.predicted[_RECENT], about.own[_RECENT]),
            **drift(about.score[waiting], scores),
        },
        state=state,
        urls=np.concatenate([waiting, nowhere]),
        scores=np.concatenate([scores, np.zeros(len(nowhere))]),
        scorer=scorer,
        forgotten=scorer.table.forgotten(pages, about.pages_ever),
    )


class Replay(NamedTuple):
    """Where the last lesson was, in (fetches observed, links ever known).

    Nothing is scored before.

    Attributes
    ----------
    lesson, adoption : when it started, and when it was adopted
    forgotten : bool (m,), which of the first pages had been forgotten by then
    links : links known when it started, as far as they were not forgotten; -1 before
    """

    lesson: tuple[int, int]
    adoption: tuple[int, int]
    forgotten: Bools
    links: int = -1

    def forgets(self, nth: int) -> bool:
        """Tell whether the n-th page, from 0, had been forgotten by then."""
        return nth < len(self.forgotten) and bool(self.forgotten[nth])

    @staticmethod
    def has_come_to(point: tuple[int, int], now: tuple[int, int]) -> bool:
        """Tell whether what was known at `point` has been repeated."""
        return now[0] >= point[0] and now[1] >= point[1]


def most_contrasting(chosen: Ints, table: LinkTable, about: Snapshot, share: float) -> Ints:
    """Keep the share of instances with the largest |R(u) - R(v)| [A02 section 4].

    Parameters
    ----------
    chosen : int64 (n,), ascending, instances to choose from, as places in ``about.judged``
    """
    if not len(chosen):
        return chosen
    best = np.zeros(len(about.y))  # R(u); not the input, which is 0 where its group is off
    links, urls = slice(about.links), about.judged.urls[chosen]
    np.maximum.at(best, table.target.data[links], table.relevance.data[links])
    most = np.argsort(-np.abs(best[urls] - about.y[urls]), kind="stable")
    return np.sort(chosen[most[: max(1, round(share * len(chosen)))]])
