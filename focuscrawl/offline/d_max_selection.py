"""Choose d_max, the largest DOM offset around a link, by cross-validation [A02 section 3.4].

The cross-validation uses only the hashed features (words near a link) of the active feature
groups. Numeric features are excluded, because they are the same for every d_max and would leak
held-out outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.hashing import SparseRows, hstack, multi_arange, row_pointers
from focuscrawl.apprentice.instances import make_instances
from focuscrawl.apprentice.learners import Instances, LogisticLearner
from focuscrawl.apprentice.link_features import offset_features, window
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.online_training import auc
from focuscrawl.apprentice.options import (
    CLASS_GROUPS,
    LINK_GROUPS,
    PAGE_GROUPS,
    URL_GROUPS,
    input_names,
)
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import TRAINING_PASSES
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.crawl.page_source import ReadPage
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


CONTEXT_GROUP = "context"  # the feature group that depends on d_max
MAX_D_MAX = 8  # largest compared d_max; the paper found no improvement beyond 7
N_FOLDS = 5
N_FITS = N_FOLDS * (MAX_D_MAX + 1)
HIGH_RELEVANCE = 0.5  # relevance above which a URL has the class "high" (methods.md 5)
_MIN_FETCHES = 10  # relevant and irrelevant fetches, each
_MIN_PROBABILITY = 1e-4  # predictions are clipped, as `nb` and `regression` often predict 0 or 1


class Trial(NamedTuple):
    """Quality of the predictions for held-out pages at one d_max (largest DOM offset).

    Attributes
    ----------
    d_max : largest DOM offset on either side of a link
    log_loss : mean cross-entropy of R(v), or of the class for `nb`, and the calibrated prediction
    excess_loss : difference to the smallest log loss of all d_max
    error : standard error of `excess_loss` over the folds
    auc : area under the ROC curve within folds
    high, low : accuracy on relevant and on irrelevant fetches, with the threshold 1/2
        [A02 figure 6: positive, negative]
    accuracy : accuracy on all fetches, with the threshold 1/2 and without calibration, as in [A02]
    """

    d_max: int
    log_loss: float
    excess_loss: float
    error: float
    auc: float
    high: float
    low: float
    accuracy: float

    @property
    def balanced(self) -> float:
        """The balanced accuracy of the predictions."""
        return (self.high + self.low) / 2.0


def select_d_max(trials: Sequence[Trial], *, by_accuracy: bool = False) -> int:
    """Return the smallest d_max whose log loss is within one standard error of the best log loss.

    If `by_accuracy` is set, return the smallest d_max with the maximum accuracy [A02 section 3.4].
    """
    if by_accuracy:
        return max(trials, key=lambda trial: (trial.accuracy, -trial.d_max)).d_max
    return min(trial.d_max for trial in trials if trial.excess_loss <= trial.error)


def cross_validate(
    store: CrawlStore,
    options: Options,
    *,
    critic: Critic,
    web: Web,
    on_page: Callable[[], object] = lambda: None,
    on_fit: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Cross-validate the DOM offsets d_max = 0, ..., `MAX_D_MAX` on a finished crawl.

    The class `Folds` splits the links into folds, which are the same for each call.

    Parameters
    ----------
    options : options of the apprentice; `d_max` is ignored
    critic, web : critic and web to read the pages again
    on_fit : called after each of `N_FITS` fits

    Raises
    ------
    UserError
        The group `CONTEXT_GROUP` is not active, or the crawl has too few relevant or irrelevant
        fetches.
    """
    if CONTEXT_GROUP not in options.groups:
        raise UserError(
            f"d_max has no effect without the feature group {CONTEXT_GROUP}: add the group, or "
            "set --d-max to a number"
        )
    history = History(store)
    pages = [*history.first_fetches()]
    position = {page.url: i for i, page in enumerate(pages)}
    relevance = np.array([page.relevance for page in pages])
    linked = _linked_pages(history, position)
    _check(store, relevance[linked])
    folds = Folds(relevance, linked)
    reader = WindowReader(critic, options)
    names = [url.url for url in history.urls()]
    source = PageSource([web], names)
    judge = critic if CLASS_GROUPS & set(options.groups) else None
    for u, page in enumerate(pages):
        on_page()
        read = source.read_with_links(page.url, judge) if page.is_page else None
        if read is not None:
            v = np.array([position.get(target, u) for target in read.targets.tolist()], np.int64)
            other = v != u
            groups = folds.link_groups(u, v[other])
            links = read._replace(links=read.links[other], targets=groups)
            reader.add(u, links, page.relevance)
    data = FoldInstances.from_groups(reader.urls(), folds, relevance)
    tested = data.held_out
    _check(store, data.y[tested])
    predicted = [predict(table, data, options, on_fit)[tested] for table in reader.tables]
    y = data.y[tested]
    if options.learner == "nb":  # predicts the class, not R(v)
        y = (y > HIGH_RELEVANCE).astype(np.float64)
    return compare_predictions(predicted, y, data.url_fold[tested])


class WindowReader:
    """Extracts the hashed features of links for every DOM offset d_max from 0 to `MAX_D_MAX`.

    Attributes
    ----------
    tables : links and URLs with their features at each d_max
    """

    def __init__(self, critic: Critic, options: Options) -> None:
        self.tables = [LinkTable() for _ in range(MAX_D_MAX + 1)]
        self._options = options
        hashed = {*LINK_GROUPS, *PAGE_GROUPS, *URL_GROUPS} - {CONTEXT_GROUP}
        others = replace(options, groups=tuple(hashed.intersection(options.groups)))
        self._others = FeatureExtractor(critic, others)

    def add(self, url: int, page: ReadPage, relevance: float) -> None:
        """Add the features of the links of the page with the id `url`."""
        targets = page.targets
        largest = max(url, int(targets.max(initial=0)))
        for table in self.tables:
            table.grow(largest + 1)
        features = self._others.extract(
            page.view,
            page.links,
            targets,
            new=self.tables[0].url_row.data[targets] < 0,
            relevance=relevance,
            probabilities=page.probabilities,
        )
        around, offset = self._around(page.view, page.links)
        for d_max, table in enumerate(self.tables):
            links, _ = hstack(_within(around, offset, d_max), features.links)
            table.add(url, replace(features, links=links))

    def urls(self) -> Ints:
        """Return the ids of all link targets, in ascending order."""
        return np.flatnonzero(self.tables[0].url_row.data >= 0)

    def _around(self, view: PageView, links: Ints) -> tuple[SparseRows, NDArray[np.int32]]:
        """Return the features of the words around links, and the distance of each word."""
        near = window(
            None if self._options.counts else view.words.indices,
            view.token_leaf,
            view.links.left[links],
            view.links.right[links],
            d_max=MAX_D_MAX,
            max_tokens=self._options.tokens or None,
        )
        return offset_features(near, view.words.hashes), np.abs(near.offset)


def _within(rows: SparseRows, offset: NDArray[np.int32], d_max: int) -> SparseRows:
    """Return the features of words at most `d_max` leaves away."""
    kept = offset <= d_max
    owner = np.repeat(np.arange(len(rows)), rows.lengths)
    lengths = np.bincount(owner[kept], minlength=len(rows))
    return SparseRows(rows.indices[kept], row_pointers(lengths))


class Folds:
    """Splits links into cross-validation folds by linking page and by link target.

    Links of the same page are similar, and links to the same URL are similar. So both the linking
    pages and the link targets are split into folds. The model of a fold is tested on the links
    from the fold's pages to the fold's targets. The model of a fold is trained on the links from
    pages of other folds to targets of other folds.

    Parameters
    ----------
    relevance : float64 (n_pages,), relevance of the fetched pages
    linked : int64 (m,), distinct positions of the pages that others link to; at least `N_FOLDS`
        relevant and `N_FOLDS` irrelevant pages

    Attributes
    ----------
    of_pages : int64 (n_pages,), random fold of each page as the source of links
    of_urls : int64 (n_pages,), random stratified fold of each page as a target; -1 without links
    """

    def __init__(self, relevance: Floats, linked: Ints) -> None:
        n = len(relevance)
        self.of_pages = np.random.default_rng(0).permutation(n) % N_FOLDS
        self.of_urls = np.full(n, -1)
        splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
        splits = splitter.split(linked, relevance[linked] > HIGH_RELEVANCE)
        for fold, (_, held_out) in enumerate(splits):
            self.of_urls[linked[held_out]] = fold

    def link_groups(self, source: int, targets: Ints) -> Ints:
        """Return a group id per link, computed from the link target and the fold of the page."""
        groups: Ints = targets * N_FOLDS + self.of_pages[source]
        return groups


class FoldInstances(NamedTuple):
    """Instances for cross-validation: a link target with all links to it from one fold of pages.

    Attributes
    ----------
    group : int64 (n_instances,), see `Folds.link_groups`
    y : float64 (n_instances,), relevance of the target
    page_fold : int64 (n_instances,), fold of the pages
    url_fold : int64 (n_instances,), fold of the target
    """

    group: Ints
    y: Floats
    page_fold: Ints
    url_fold: Ints

    @classmethod
    def from_groups(cls, group: Ints, folds: Folds, relevance: Floats) -> FoldInstances:
        """Return the instances (link targets) for group ids that `Folds.link_groups` returned."""
        v = group // N_FOLDS
        return cls(group, relevance[v], group % N_FOLDS, folds.of_urls[v])

    @property
    def held_out(self) -> Bools:
        """Whether each instance is in the test set of a fold, bool (n_instances,)."""
        tested: Bools = self.page_fold == self.url_fold
        return tested


def predict(
    table: LinkTable, data: FoldInstances, options: Options, on_fit: Callable[[], object]
) -> Floats:
    """Predict the relevance of held-out link targets from the hashed features of links.

    Parameters
    ----------
    table : links whose targets are the groups of `data`
    on_fit : called after each of `N_FOLDS` fits

    Returns
    -------
    float64 (n_instances,), NaN for instances that are not held out
    """
    k = len(input_names(options))
    unit_length = new_learner(options).unit_length
    instances, _ = make_instances(
        table,
        len(table),
        data.group,
        np.zeros((len(data.group), k)),
        unit_length=unit_length,
        only_first=options.evidence == "first",
        # all training instances of a target together have the links of an instance of a crawl
        max_links=max(1, options.max_links_per_url // (N_FOLDS - 1)),
    )
    predicted = np.full(len(instances), np.nan)
    for i in range(N_FOLDS):
        learner = new_learner(options)
        train = np.flatnonzero((data.page_fold != i) & (data.url_fold != i))
        v = data.group[train] // N_FOLDS
        weight = 1.0 / np.bincount(v)[v]  # each target counts once, as in a crawl
        training_set = _take(instances, train)
        for _ in range(1 if learner.accumulates else TRAINING_PASSES):
            learner.partial_fit(training_set, data.y[train], weight)
        held_out = np.flatnonzero(data.held_out & (data.url_fold == i))
        predicted[held_out] = learner.predict(_take(instances, held_out))
        on_fit()
    return predicted


def _take(instances: Instances, chosen: Ints) -> Instances:
    rows = instances.rows
    values = instances.values[multi_arange(rows.indptr[chosen], rows.lengths[chosen])]
    return Instances(rows.take(chosen), values, instances.dense[chosen])


def _linked_pages(history: History, position: dict[int, int]) -> Ints:
    """Return the positions of the pages that another page links to, ascending."""
    source, target = history.links().T
    targets = np.unique(target[source != target]).tolist()
    return np.sort(np.array([position[url] for url in targets if url in position], np.int64))


def _check(store: CrawlStore, y: Floats) -> None:
    high = y > HIGH_RELEVANCE
    for kind, n in (("relevant", high.sum()), ("irrelevant", (~high).sum())):
        if n < _MIN_FETCHES:
            raise UserError(
                f"{store.location}: cross-validation needs {_MIN_FETCHES} {kind} pages that were "
                f"reached by links, but the crawl has {n}: set --d-max to a number"
            )


def compare_predictions(predicted: Sequence[Floats], y: Floats, fold: Ints) -> list[Trial]:
    """Return the quality of the predictions at each d_max (largest DOM offset)."""
    high = y > HIGH_RELEVANCE
    calibrated = [_calibrate(each, y, fold) for each in predicted]
    p = np.clip(calibrated, _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)
    loss = -(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))
    mean = loss.mean(axis=1)
    worse = loss - loss[mean.argmin()]
    folds, size = np.unique(fold, return_counts=True)
    of_folds = np.stack([worse[:, fold == i].mean(axis=1) for i in folds])
    # the mean over fetches is the mean over folds, weighted by their sizes
    away = (of_folds - worse.mean(axis=1)) * (size / size.mean())[:, None]
    error = np.sqrt((away**2).sum(axis=0) / (len(folds) * max(len(folds) - 1, 1)))
    return [
        Trial(
            d_max=d_max,
            log_loss=float(mean[d_max]),
            excess_loss=float(worse[d_max].mean()),
            error=float(error[d_max]),
            auc=_auc(each, high, fold),
            high=float((p[d_max][high] > HIGH_RELEVANCE).mean()),
            low=float((p[d_max][~high] <= HIGH_RELEVANCE).mean()),
            accuracy=float(((each > HIGH_RELEVANCE) == high).mean()),
        )
        for d_max, each in enumerate(predicted)
    ]


def _calibrate(predicted: Floats, y: Floats, fold: Ints) -> Floats:
    """Calibrate the predictions of each fold on the other folds (Platt 1999).

    The number of words changes the scale of predictions: regularised weights shrink, sums of naive
    Bayes grow. Without calibration, the log loss would mostly measure this scale.
    """
    p = np.clip(predicted, _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)
    odds = np.log(p / (1.0 - p))[:, None]
    calibrated = np.empty(len(y))
    for i in np.unique(fold):
        inside = fold == i
        calibrator = LogisticLearner(1, prior=(1.0, 0.0), dense_variance=100.0, steps=30)
        calibrator.partial_fit(_dense_instances(odds[~inside]), y[~inside])
        calibrated[inside] = calibrator.predict(_dense_instances(odds[inside]))
    return calibrated


def _dense_instances(dense: Floats) -> Instances:
    return Instances(SparseRows.empty(len(dense)), np.zeros(0), dense)


def _auc(predicted: Floats, high: Bools, fold: Ints) -> float:
    """Return the mean AUC within folds, as predictions of different learners do not compare."""
    found, pairs = [], []
    for i in np.unique(fold):
        here = fold == i
        found.append(auc(predicted[here], high[here]))
        pairs.append(float(high[here].sum() * (~high[here]).sum()))
    return float(np.average(found, weights=pairs)) if any(pairs) else 0.5
