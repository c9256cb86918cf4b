"""How far around a link to look: d_max by cross-validation over links [A02 section 3.4].

What is compared is how well the hashed features of the groups that are on say what a link leads
to, without the numbers: those are the same for every d_max, and rates and hubs are made of the
outcomes of other fetches, also of those held out.
"""

from __future__ import annotations

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
from focuscrawl.apprentice.options import (
    CLASS_GROUPS,
    LINK_GROUPS,
    PAGE_GROUPS,
    URL_GROUPS,
    input_names,
)
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.apprentice.training import auc
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import TRAINING_PASSES
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.crawl.page_source import ReadPage
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


CONTEXT_GROUP = "context"  # the group that looks as far as d_max
LARGEST_D_MAX = 8  # d_max from 0 to this are compared: the paper saw nothing to gain beyond 7
N_FOLDS = 5
N_FITS = N_FOLDS * (LARGEST_D_MAX + 1)
HIGH_RELEVANCE = 0.5  # relevance above which a URL is of the high kind (methods 5)
_LEAST = 10  # fetches of either kind
_SURE = 1e-4  # no prediction is taken for surer: `nb` and `regression` say 0 and 1 easily


class Trial(NamedTuple):
    """How well held-out fetches were predicted at one d_max.

    Attributes
    ----------
    d_max : DOM offsets looked at on either side of a link
    log_loss : cross-entropy of R(v), for `nb` of its bucket, and the prediction, which is
        brought to scale first; mean over fetches
    behind : by how much that is above the least of all d_max, and ...
    error : ... the standard error of this difference, over the folds
    auc : chance that a relevant one is predicted above an irrelevant one of the same fold
    high, low : accuracy on the relevant and on the irrelevant ones, those predictions above 1/2
        taken for high [A02 figure 6: positive, negative]
    """

    d_max: int
    log_loss: float
    excess_loss: float
    error: float
    auc: float
    high: float
    low: float

    @property
    def balanced(self) -> float:
        """Mean of the accuracy on relevant and on irrelevant fetches."""
        return (self.high + self.low) / 2.0


def select_d_max(trials: Sequence[Trial]) -> int:
    """Return the smallest d_max that is within one standard error of the least log loss."""
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
    """Cross-validate d_max = 0 ... `LARGEST_D_MAX` on the fetches of a crawl that is over.

    What is held out: see `Folds`. The same crawl has the same trials.

    Parameters
    ----------
    store : of the crawl
    options : groups, learner and evidence of the apprentice; its d_max does not matter
    critic, web : by whom and where the pages are read again
    on_page : called for every page
    on_fit : called `N_FITS` times, after each fit

    Raises
    ------
    UserError
        No group that is on has to do with d_max, or there are too few fetches of either kind.
    """
    if CONTEXT_GROUP not in options.groups:
        raise UserError(
            f"d_max is for the group {CONTEXT_GROUP}, and that is not on: nothing to choose"
        )
    history = History(store)
    pages = [*history.first_fetches()]
    number = {page.url: i for i, page in enumerate(pages)}
    relevance = np.array([page.relevance for page in pages])
    linked = _linked(history, number)
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
            v = np.array([number.get(target, u) for target in read.targets.tolist()], np.int64)
            other = v != u
            shown = folds.parts(u, v[other])
            links = read._replace(links=read.links[other], targets=shown)
            reader.add(u, links, page.relevance)
    parts = FoldInstances.of(reader.urls(), folds, relevance)
    tested = parts.held_out
    _check(store, parts.y[tested])
    predicted = [predict(known, parts, options, on_fit)[tested] for known in reader.known]
    y = parts.y[tested]
    if options.learner == "nb":  # predicts the bucket, and is not to blame for R(v) in between
        y = (y > HIGH_RELEVANCE).astype(np.float64)
    return compare_predictions(predicted, y, parts.fold[tested])


class WindowReader:
    """Extracts hashed features of pages for every d_max from 0 to `LARGEST_D_MAX`.

    Parameters
    ----------
    critic : for the names of its classes
    options : of the apprentice

    Attributes
    ----------
    known : by d_max, links and URLs with the features they have at that d_max
    """

    def __init__(self, critic: Critic, options: Options) -> None:
        self.known = [LinkTable() for _ in range(LARGEST_D_MAX + 1)]
        self._options = options
        hashed = {*LINK_GROUPS, *PAGE_GROUPS, *URL_GROUPS} - {CONTEXT_GROUP}
        others = replace(options, groups=tuple(hashed.intersection(options.groups)))
        self._others = FeatureExtractor(critic, others)

    def add(self, url: int, page: ReadPage, relevance: float) -> None:
        """Take in a page numbered `url` and the links that it was read with."""
        targets = page.targets
        largest = max(url, int(targets.max(initial=0)))
        for known in self.known:
            known.grow(largest + 1)
        features = self._others.extract(
            page.view,
            page.links,
            targets,
            new=self.known[0].url_row.data[targets] < 0,
            relevance=relevance,
            probabilities=page.probabilities,
        )
        around, offset = self._around(page.view, page.links)
        for d_max, known in enumerate(self.known):
            links, _ = hstack(_within(around, offset, d_max), features.links)
            known.add(url, replace(features, links=links))

    def urls(self) -> Ints:
        """Return the numbers of all URLs with links, ascending."""
        return np.flatnonzero(self.known[0].url_row.data >= 0)

    def _around(self, view: PageView, links: Ints) -> tuple[SparseRows, NDArray[np.int32]]:
        """Return the features of the words around links, and how far away each word is."""
        near = window(
            view.words.hashes,
            view.token_leaf,
            view.links.left[links],
            view.links.right[links],
            d_max=LARGEST_D_MAX,
            max_tokens=self._options.tokens or None,
            repeats=self._options.counts,
        )
        return offset_features(near), np.abs(near.offset)


def _within(rows: SparseRows, offset: NDArray[np.int32], d_max: int) -> SparseRows:
    """Return the features of words at most `d_max` leaves away."""
    kept = offset <= d_max
    owner = np.repeat(np.arange(len(rows)), rows.lengths)
    lengths = np.bincount(owner[kept], minlength=len(rows))
    return SparseRows(rows.indices[kept], row_pointers(lengths))


class Folds:
    """Pages and the URLs they link to, shared out; both numbered 0 ... n - 1, in the same way.

    Links of one page are alike, and so are links to one URL: a learner that has seen either
    recognises the other instead of understanding it. So pages and URLs are each shared out among
    the folds, and a fold holds out the links from its pages to its URLs. It learns from the links
    from pages of other folds to URLs of other folds; the rest is left out.

    Parameters
    ----------
    relevance : float64 (n,)
    linked : int64 (m,), distinct, the URLs that are linked to; at least `N_FOLDS` of either kind

    Attributes
    ----------
    of_pages : int64 (n,), the fold of each page, at random
    of_urls : int64 (n,), the fold of each URL, at random, as many of either kind in each; -1
        where nothing links to it
    """

    def __init__(self, relevance: Floats, linked: Ints) -> None:
        n = len(relevance)
        self.of_pages = np.random.default_rng(0).permutation(n) % N_FOLDS
        self.of_urls = np.full(n, -1)
        sharing = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
        for fold, (_, held_out) in enumerate(
            sharing.split(linked, relevance[linked] > HIGH_RELEVANCE)
        ):
            self.of_urls[linked[held_out]] = fold

    def parts(self, source: int, targets: Ints) -> Ints:
        """Return numbers for the links of a page: of v, as the pages of one fold show it."""
        numbers: Ints = targets * N_FOLDS + self.of_pages[source]
        return numbers


class FoldInstances(NamedTuple):
    """n instances, each a URL v as the pages of one fold show it.

    Attributes
    ----------
    number : int64 (n,), see `Folds.parts`
    y : float64 (n,), R(v)
    shown : int64 (n,), the fold of the pages
    fold : int64 (n,), the fold of v
    """

    number: Ints
    y: Floats
    shown: Ints
    fold: Ints

    @classmethod
    def of(cls, number: Ints, folds: Folds, relevance: Floats) -> FoldInstances:
        """Take the numbers apart."""
        v = number // N_FOLDS
        return cls(number, relevance[v], number % N_FOLDS, folds.of_urls[v])

    @property
    def held_out(self) -> Bools:
        """Tell which are held out by their fold, bool (n,): of each v at most one."""
        tested: Bools = self.shown == self.fold
        return tested


def predict(
    known: LinkTable, parts: FoldInstances, options: Options, on_fit: Callable[[], object]
) -> Floats:
    """Predict the relevance of what is held out, by hashed features alone.

    Parameters
    ----------
    known : links to the `parts`, by their numbers
    options : which learner, and whether it sees all links or the first of each part
    on_fit : called after each of the `N_FOLDS` fits

    Returns
    -------
    float64 (n,), NaN for parts that are not tested
    """
    k = len(input_names(options))
    unit_length = new_learner(options).unit_length
    instances, _ = make_instances(
        known,
        len(known),
        parts.number,
        np.zeros((len(parts.number), k)),
        unit_length=unit_length,
        only_first=options.evidence == "first",
        # all parts that are seen together show what a crawl sees
        max_links=max(1, options.max_links_per_url // (N_FOLDS - 1)),
    )
    predicted = np.full(len(instances), np.nan)
    for i in range(N_FOLDS):
        learner = new_learner(options)
        seen = np.flatnonzero((parts.shown != i) & (parts.fold != i))
        v = parts.number[seen] // N_FOLDS
        weight = 1.0 / np.bincount(v)[v]  # each URL counts once, as in a crawl
        of_seen = _take(instances, seen)
        for _ in range(1 if learner.accumulates else TRAINING_PASSES):
            learner.partial_fit(of_seen, parts.y[seen], weight)
        held_out = np.flatnonzero(parts.held_out & (parts.fold == i))
        predicted[held_out] = learner.predict(_take(instances, held_out))
        on_fit()
    return predicted


def _take(instances: Instances, chosen: Ints) -> Instances:
    rows = instances.rows
    values = instances.values[multi_arange(rows.indptr[chosen], rows.lengths[chosen])]
    return Instances(rows.take(chosen), values, instances.dense[chosen])


def _linked(history: History, number: dict[int, int]) -> Ints:
    """Return the places of the URLs that another page links to, ascending."""
    source, target = history.links().T
    targets = np.unique(target[source != target]).tolist()
    return np.sort(np.array([number[url] for url in targets if url in number], np.int64))


def _check(store: CrawlStore, y: Floats) -> None:
    high = y > HIGH_RELEVANCE
    for kind, n in (("relevant", high.sum()), ("irrelevant", (~high).sum())):
        if n < _LEAST:
            raise UserError(
                f"{store.where}: cross-validation takes {_LEAST} fetches of {kind} pages that "
                f"links were followed to, there are {n}: give --d-max a number"
            )


def compare_predictions(predicted: Sequence[Floats], y: Floats, fold: Ints) -> list[Trial]:
    """Make one trial of the predictions at each d_max, all of n fetches with relevance `y`."""
    high = y > HIGH_RELEVANCE
    scaled = [_scaled(each, y, fold) for each in predicted]
    p = np.clip(scaled, _SURE, 1.0 - _SURE)
    loss = -(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))
    mean = loss.mean(axis=1)
    worse = loss - loss[mean.argmin()]
    folds, size = np.unique(fold, return_counts=True)
    of_folds = np.stack([worse[:, fold == i].mean(axis=1) for i in folds])
    # the mean over fetches is one over folds, weighted by their sizes
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
        )
        for d_max, each in enumerate(predicted)
    ]


def _scaled(predicted: Floats, y: Floats, fold: Ints) -> Floats:
    """Return predictions on the scale that those for the other folds ask for (Platt 1999).

    The more words, the smaller the weight of each in a learner that shrinks them, and the
    larger their sum in one that counts them: without this, the log loss would measure how sure
    a learner is at each d_max more than what it knows.
    """
    p = np.clip(predicted, _SURE, 1.0 - _SURE)
    odds = np.log(p / (1.0 - p))[:, None]
    scaled = np.empty(len(y))
    for i in np.unique(fold):
        here = fold == i
        scale = LogisticLearner(1, prior=(1.0, 0.0), dense_variance=100.0, steps=30)
        scale.partial_fit(_numbers(odds[~here]), y[~here])
        scaled[here] = scale.predict(_numbers(odds[here]))
    return scaled


def _numbers(dense: Floats) -> Instances:
    return Instances(SparseRows.empty(len(dense)), np.zeros(0), dense)


def _auc(predicted: Floats, high: Bools, fold: Ints) -> float:
    """Return the chance that of two fetches of one fold the high one is predicted above the low.

    Predictions of different folds are those of different learners, and do not compare.
    """
    found, pairs = [], []
    for i in np.unique(fold):
        here = fold == i
        found.append(auc(predicted[here], high[here]))
        pairs.append(float(high[here].sum() * (~high[here]).sum()))
    return float(np.average(found, weights=pairs)) if any(pairs) else 0.5
