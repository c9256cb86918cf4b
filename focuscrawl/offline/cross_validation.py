"""Cross-validation over links: neither the page u nor the URL v of a held-out link was seen.

Links of one page are alike, and so are links to one URL: a learner that has seen either of them
recognises the other instead of understanding it. So pages and URLs are each shared out among the
folds, and a fold holds out the links from its pages to its URLs. What is learned from are the
links from pages of other folds to URLs of other folds; the rest is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from focuscrawl.apprentice.dense_inputs import input_names
from focuscrawl.apprentice.instances import make_instances
from focuscrawl.apprentice.learners import Instances
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.apprentice.sparse_rows import ranges
from focuscrawl.offline.apprentice_training import LESSONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Bools, Floats, Ints

FOLDS = 5
HIGH = 0.5  # relevance above which a URL is of the high kind (METHODS 5)


class Folds:
    """Pages and the URLs they link to, shared out; both numbered 0 ... n - 1, in the same way.

    Parameters
    ----------
    relevance : float64 (n,)
    linked : int64 (m,), distinct, the URLs that are linked to; at least `FOLDS` of either kind

    Attributes
    ----------
    of_pages : int64 (n,), the fold of each page, at random
    of_urls : int64 (n,), the fold of each URL, at random, as many of either kind in each; -1
        where nothing links to it
    """

    def __init__(self, relevance: Floats, linked: Ints) -> None:
        n = len(relevance)
        self.of_pages = np.random.default_rng(0).permutation(n) % FOLDS
        self.of_urls = np.full(n, -1)
        sharing = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        for fold, (_, held_out) in enumerate(sharing.split(linked, relevance[linked] > HIGH)):
            self.of_urls[linked[held_out]] = fold

    def parts(self, source: int, targets: Ints) -> Ints:
        """Return numbers for the links of a page: of v, as the pages of one fold show it."""
        numbers: Ints = targets * FOLDS + self.of_pages[source]
        return numbers


class Parts(NamedTuple):
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
    def of(cls, number: Ints, folds: Folds, relevance: Floats) -> Parts:
        """Take the numbers apart."""
        v = number // FOLDS
        return cls(number, relevance[v], number % FOLDS, folds.of_urls[v])

    @property
    def tested(self) -> Bools:
        """Tell which are held out by their fold, bool (n,): of each v at most one."""
        tested: Bools = self.shown == self.fold
        return tested


def predict(
    known: LinkTable, parts: Parts, options: Options, on_fit: Callable[[], object]
) -> Floats:
    """Predict the relevance of what is held out, by hashed features alone.

    Parameters
    ----------
    known : links to the `parts`, by their numbers
    options : which learner, and whether it sees all links or the first of each part
    on_fit : called after each of the `FOLDS` fits

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
        most=max(1, options.most_links_into // (FOLDS - 1)),
    )
    predicted = np.full(len(instances), np.nan)
    for i in range(FOLDS):
        learner = new_learner(options)
        seen = np.flatnonzero((parts.shown != i) & (parts.fold != i))
        v = parts.number[seen] // FOLDS
        weight = 1.0 / np.bincount(v)[v]  # each URL counts once, as in a crawl
        of_seen = _take(instances, seen)
        for _ in range(1 if learner.remembers else LESSONS):
            learner.partial_fit(of_seen, parts.y[seen], weight)
        held_out = np.flatnonzero(parts.tested & (parts.fold == i))
        predicted[held_out] = learner.predict(_take(instances, held_out))
        on_fit()
    return predicted


def _take(instances: Instances, chosen: Ints) -> Instances:
    rows = instances.rows
    values = instances.values[ranges(rows.indptr[chosen], rows.lengths[chosen])]
    return Instances(rows.take(chosen), values, instances.dense[chosen])
