"""How far around a link to look: d_max by cross-validation [A02 section 3.4, METHODS 4].

What is compared is how well the words at hand say what a link leads to: the hashed features of
the groups that are on, without the numbers. Those are the same for every d_max, and rates and
hubs are made of the outcomes of other fetches, also of those held out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.learners import Instances, LogisticLearner
from focuscrawl.apprentice.lesson_quality import auc
from focuscrawl.apprentice.options import CLASS_GROUPS
from focuscrawl.apprentice.sparse_rows import SparseRows
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.errors import UserError
from focuscrawl.offline.cross_validation import FOLDS, HIGH, Folds, Parts, predict
from focuscrawl.offline.d_max_features import AROUND, WindowReader
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.apprentice.options import Options
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.protocol import Web

FARTHEST = 8  # d_max from 0 to this are compared: the paper saw nothing to gain beyond 7
FITS = FOLDS * (FARTHEST + 1)
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
    behind: float
    error: float
    auc: float
    high: float
    low: float

    @property
    def balanced(self) -> float:
        """Mean of the accuracy on relevant and on irrelevant fetches."""
        return (self.high + self.low) / 2.0


def chosen(trials: Sequence[Trial]) -> int:
    """Return the smallest d_max that is within one standard error of the least log loss."""
    return min(trial.d_max for trial in trials if trial.behind <= trial.error)


def try_windows(
    store: CrawlStore,
    options: Options,
    *,
    critic: Critic,
    web: Web,
    on_page: Callable[[], object] = lambda: None,
    on_fit: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Cross-validate d_max = 0 ... `FARTHEST` on the fetches of a crawl that is over.

    What is held out: see `focuscrawl.offline.cross_validation`. The same crawl has the same
    trials.

    Parameters
    ----------
    store : of the crawl
    options : groups, learner and evidence of the apprentice; its d_max does not matter
    critic, web : by whom and where the pages are read again
    on_page : called for every page
    on_fit : called `FITS` times, after each fit

    Raises
    ------
    UserError
        No group that is on has to do with d_max, or there are too few fetches of either kind.
    """
    if AROUND not in options.groups:
        raise UserError(f"d_max is for the group {AROUND}, and that is not on: nothing to choose")
    history = History(store)
    pages = [*history.first_fetches()]
    number = {page.url: i for i, page in enumerate(pages)}
    relevance = np.array([page.relevance for page in pages])
    linked = _linked(history, number)
    _check(store, relevance[linked])
    folds = Folds(relevance, linked)
    reader = WindowReader(
        critic, options.groups, farthest=FARTHEST, counts=options.counts, tokens=options.tokens
    )
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
    parts = Parts.of(reader.urls(), folds, relevance)
    tested = parts.tested
    _check(store, parts.y[tested])
    predicted = [predict(known, parts, options, on_fit)[tested] for known in reader.known]
    y = parts.y[tested]
    if options.learner == "nb":  # predicts the bucket, and is not to blame for R(v) in between
        y = (y > HIGH).astype(np.float64)
    return compare(predicted, y, parts.fold[tested])


def _linked(history: History, number: dict[int, int]) -> Ints:
    """Return the fetched URLs that another page links to, ascending."""
    source, target = history.links().T
    targets = np.unique(target[source != target]).tolist()
    return np.sort(np.array([number[url] for url in targets if url in number], np.int64))


def _check(store: CrawlStore, y: Floats) -> None:
    high = y > HIGH
    for kind, n in (("relevant", high.sum()), ("irrelevant", (~high).sum())):
        if n < _LEAST:
            raise UserError(
                f"{store.where}: cross-validation takes {_LEAST} fetches of {kind} pages that "
                f"links were followed to, there are {n}: give --d-max a number"
            )


def compare(predicted: Sequence[Floats], y: Floats, fold: Ints) -> list[Trial]:
    """Make one trial of the predictions at each d_max, all of n fetches with relevance `y`."""
    high = y > HIGH
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
            behind=float(worse[d_max].mean()),
            error=float(error[d_max]),
            auc=_auc(each, high, fold),
            high=float((p[d_max][high] > HIGH).mean()),
            low=float((p[d_max][~high] <= HIGH).mean()),
        )
        for d_max, each in enumerate(predicted)
    ]


def _scaled(predicted: Floats, y: Floats, fold: Ints) -> Floats:
    """Return predictions on the scale that those for the other folds ask for (Platt 1999).

    The more words, the smaller the weight of each in a learner that shrinks them, and the
    larger their sum in one that counts them: without this, the log loss says how sure of itself
    a learner is at each d_max more than what it knows.
    """
    p = np.clip(predicted, _SURE, 1.0 - _SURE)
    odds = np.log(p / (1.0 - p))[:, None]
    scaled = np.empty(len(y))
    for i in np.unique(fold):
        here = fold == i
        scale = LogisticLearner(1, prior=(1.0, 0.0), dense_strength=100.0, steps=30)
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
