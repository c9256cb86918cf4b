"""Data for training an apprentice; model updates; metrics of predictions."""

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

    from focuscrawl.apprentice.instances import JudgedUrls, TrainingSet
    from focuscrawl.apprentice.link_table import PageFeatures
    from focuscrawl.apprentice.options import Options
    from focuscrawl.apprentice.scorer import Scorer
    from focuscrawl.foundation.arrays import Bools


class Snapshot(NamedTuple):
    """The data for a training of the apprentice, as of the start of the training.

    Attributes
    ----------
    observed : fetches
    links, pages : links and pages in the table
    links_ever, pages_ever : links and pages that were ever added, including forgotten pages
    new : URLs judged since the last training
    judged_ever : URLs judged in the whole crawl
    y : float64 (n_urls,), relevance R(v) by URL id; NaN for unfetched URLs
    judged : contents of the training buffer
    own, value : float64 (n_judged,), labels of `judged`, see `Labels.label`
    score : float64 (n_urls,), last scores by URL id
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
    """Stores fetches and pages; holds back the outcomes of fetches while a training runs.

    Attributes
    ----------
    table : links, pages and URLs
    outcomes : rates of relevance by path prefix and URL pattern
    labels : labels of fetched URLs
    buffer : judged URLs with the inputs that they had before the fetch
    score : last scores by URL id
    observed : fetches
    """

    def __init__(self, options: Options) -> None:
        self.table = LinkTable()
        self.outcomes = FetchOutcomes()
        self.labels = Labels(options)
        self.buffer = TrainingBuffer(options.memory, len(input_names(options)))
        self.score = GrowingArray(np.float64)
        self.observed = 0
        self.judged_at_training = 0  # `buffer.n_added` when the last training started
        self._deferred: list[tuple[int, NDArray[np.uint32] | None, float]] | None = None

    @property
    def deferring(self) -> bool:
        """True while outcomes of fetches are postponed until the training ends."""
        return self._deferred is not None

    def observe(self, url: int, relevance: float) -> None:
        """Record a fetch."""
        self.labels.observe(url, relevance)
        self._apply_outcome(url, self._keys(url), relevance)
        self.observed += 1

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:
        """Record a fetch of an earlier round (batch of fetches) if links to its URL are known."""
        self.table.grow(url + 1)
        if not np.isnan(self.table.y.data[url]):
            return  # `observe` has recorded this fetch
        self.labels.observe(url, relevance)
        keys = self._keys(url)
        if keys is not None:
            self._apply_outcome(url, keys, relevance)

    def add(self, urls: Ints, features: PageFeatures, *, forget: bool = False) -> int:
        """Add pages and their links (with `forget`, no links); return the first link's position.

        Parameters
        ----------
        urls : int64 (n_pages,), URL ids of the pages
        """
        first, page = len(self.table), features.page_of("new")
        named_by = dict(zip(features.new[::-1].tolist(), page[::-1].tolist(), strict=True))
        new = []  # seeds, whose URLs had no keys yet when their fetches were recorded
        for at, url in enumerate(urls.tolist()):
            if at <= named_by.get(url, at) and not self.table.has_keys(url):
                named_by[url] = at
                new.append(at)
        self.table.add(urls, features, forget=forget)
        self.labels.add_links(urls[page], features.new, self.table.n_urls)
        for at in new:
            relevance = float(features.relevance[at])
            self._apply_outcome(int(urls[at]), features.own_keys[at], relevance)
        return first

    def store_scores(self, urls: Ints, scores: Floats) -> None:
        """Store the scores that the apprentice returns to the crawl."""
        self.score.grow(self.table.n_urls)
        self.score.data[urls] = scores

    def start_deferring(self) -> None:
        """Hold back the outcomes of fetches from now on; a training uses only earlier outcomes."""
        self._deferred = []

    def apply_deferred(self) -> None:
        """Record the deferred outcomes."""
        deferred, self._deferred = self._deferred, None
        for each in deferred or ():
            self._apply_outcome(*each)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the present state, for a training."""
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
    """Return metrics that compare predicted relevance with the relevance of fetched pages.

    Parameters
    ----------
    predicted, y : NDArray[np.float64] of shape (n,)

    Returns
    -------
    dict[str, float]
        ``auc`` (0.5 if all pages are of one kind), ``log_loss``, ``brier``, ``judged`` (n), and
        the means ``predicted`` and ``relevance``, equal for a calibrated model. Empty for n = 0.
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
    """Return the area under the ROC curve; 0.5 if all pages are relevant or all are irrelevant."""
    n_high = int(high.sum())
    n_low = len(high) - n_high
    if not n_high or not n_low:
        return 0.5
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # ties share their mean rank
    return float((ranks[high].sum() - n_high * (n_high + 1) / 2) / (n_high * n_low))


def drift(before: Floats, after: Floats) -> dict[str, float | list[int]]:
    """Return metrics that compare the scores of queued URLs before and after a training.

    Parameters
    ----------
    before, after : float64 (n,), scores in [0, 1]

    Returns
    -------
    dict[str, float or list[int]]
        ``drift``: mean ``|after - before|`` [A02 figure 13]; ``waiting``: n;
        ``histogram_before`` and ``histogram_after``, with `BINS` bins each. Empty for n = 0.
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


_RECENT = slice(-200, None)  # predictions that `validate` checks after a training


@dataclass(frozen=True, slots=True)
class ApprenticeUpdate:
    """A new model of an apprentice, and the model's scores of all queued URLs.

    Attributes
    ----------
    snapshot : state of the crawl when the training started
    training_set : the training instances; None if another process has trained the model
    metrics : results of `validate` (progressive validation: predictions made before the fetch) and
        of `drift`
    state : A part of `Apprentice.state`
    urls, scores : (m,), all unfetched URLs with links, and their scores
    scorer : for `Apprentice.adopt`; if pages were forgotten, with a new link table
    forgotten : bool (pages_ever,), forgotten pages in the order added; empty if no page was
        forgotten
    """

    version: int
    snapshot: Snapshot
    training_set: TrainingSet | None
    metrics: dict[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    scorer: Scorer
    forgotten: Bools

    @property
    def instances(self) -> int:
        """Number of training instances; 0 if another process has trained the model."""
        return 0 if self.training_set is None else len(self.training_set.instances)


def rescore_queued(
    snapshot: Snapshot,
    scorer: Scorer,
    *,
    version: int,
    training_set: TrainingSet | None,
    state: bytes,
) -> ApprenticeUpdate:
    """Score the queued URLs of a snapshot with a new model; the function modifies only `scorer`.

    If the table has more links than the options allow, the pages that link to URLs with the lowest
    scores are forgotten. URLs to which only forgotten pages link get the score 0.

    Parameters
    ----------
    scorer : scorer with the new model and without evidence
    version, training_set, state : see `ApprenticeUpdate`
    """
    y, pages = snapshot.y, snapshot.pages
    queued, scores = scorer.rebuild_evidence(snapshot.links, y)
    if snapshot.links > scorer.options.links:
        queued_score = np.full(len(y), -1.0)
        queued_score[queued] = scores
        forgotten = select_pages_to_forget(
            scorer.table, snapshot.links, snapshot.pages, queued_score, scorer.options.links
        )
        scorer = scorer.with_table(scorer.table.without_pages(forgotten, snapshot.links))
        queued, scores = scorer.rebuild_evidence(len(scorer.table), y)
        pages = len(scorer.table.pages)
    unlinked = urls_without_links(scorer.table, scorer.evidence, y)
    return ApprenticeUpdate(
        version=version,
        snapshot=snapshot,
        training_set=training_set,
        metrics={
            **validate(snapshot.judged.predicted[_RECENT], snapshot.own[_RECENT]),
            **drift(snapshot.score[queued], scores),
        },
        state=state,
        urls=np.concatenate([queued, unlinked]),
        scores=np.concatenate([scores, np.zeros(len(unlinked))]),
        scorer=scorer,
        forgotten=scorer.table.forgotten_pages(pages, snapshot.pages_ever),
    )


class ResumePoint(NamedTuple):
    """The fetch after which a resumed crawl computes scores again.

    The fetches before this one are only loaded from the store.

    Attributes
    ----------
    training, adoption : start of the training; adoption of the new model
    forgotten : bool (m,), forgotten pages among the first m pages
    links : links in the table at the start of the training; -1 before the start is reached
    """

    training: tuple[int, int]
    adoption: tuple[int, int]
    forgotten: Bools
    links: int = -1

    def is_forgotten(self, nth: int) -> bool:
        """Return whether the page at index `nth` was forgotten."""
        return nth < len(self.forgotten) and bool(self.forgotten[nth])

    @staticmethod
    def is_reached(point: tuple[int, int], now: tuple[int, int]) -> bool:
        """Return whether all stored fetches and links before `point` have been loaded."""
        return now[0] >= point[0] and now[1] >= point[1]


def select_contrasting(chosen: Ints, table: LinkTable, snapshot: Snapshot, share: float) -> Ints:
    """Select training links whose source page and target differ most in relevance [A02 section 4].

    Parameters
    ----------
    chosen : int64 (n,), candidate instances, as ascending positions in ``snapshot.judged``
    """
    if not len(chosen):
        return chosen
    best = np.zeros(len(snapshot.y))  # R(u); the input is 0 if its feature group is off
    links, urls = slice(snapshot.links), snapshot.judged.urls[chosen]
    np.maximum.at(best, table.target.data[links], table.relevance.data[links])
    most = np.argsort(-np.abs(best[urls] - snapshot.y[urls]), kind="stable")
    return np.sort(chosen[most[: max(1, round(share * len(chosen)))]])
