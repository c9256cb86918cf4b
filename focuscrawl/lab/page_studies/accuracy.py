"""How well the words around a link tell where it leads: figures 6 and 7, and section 3.8."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.apprentice.learners import NaiveBayesLearner
from focuscrawl.apprentice.learners.matrix import Instances as Learned
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.lab.page_studies.instances import D_MAX

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.lab.page_studies.instances import Instances
    from focuscrawl.lab.whole_web import WholeWeb

_FOLDS = 5
_TOP = 3  # classes of u that are named
_LIKELY = 0.1  # if they are at least so probable
_SETTLED = 5  # the d_max of [A02 section 3.8]


def accuracy_table(instances: Instances, whole: WholeWeb) -> pd.DataFrame:
    """Cross-validate the paper's apprentice, naive Bayes in two buckets [A02 section 2.3].

    All links into a page are in the same fold: what is predicted are pages never seen.

    Returns
    -------
    One row a kind of folds, of features, and d_max. ``folds``: with ``links``, links are put
    into folds at random; with ``pages``, all links into a page are in the same fold, so that
    what is predicted are pages never linked to in training. ``features``: ``offsets``, pairs
    (t, d) [figure 6]; ``text``, the same words without d [figure 7]; and, at d_max = 5,
    ``offsets`` with ``class names`` of u, with ``class prefixes`` or with ``co-citation``
    [section 3.8]. ``positive``, ``negative``: shares of the links to relevant and to other pages
    that are told right; ``average``: of all links. ``instances``, ``high``: how many links, and
    to relevant pages.
    """
    rng = np.random.default_rng(0)
    return pd.concat(
        [
            _table(instances, whole, _folds(each, rng)).assign(folds=name)
            for name, each in (("links", np.arange(len(instances))), ("pages", instances.target))
        ],
        ignore_index=True,
    )


def _table(instances: Instances, whole: WholeWeb, fold: NDArray[np.int64]) -> pd.DataFrame:
    offsets, words = instances.tokens.offsets, instances.tokens.words
    owner = np.repeat(np.arange(len(instances)), np.diff(instances.tokens.indptr))
    pairs = (words << np.uint64(8)) | (offsets + D_MAX).astype(np.uint64)
    rows = []
    for name, keys in (("offsets", pairs), ("text", words)):
        feature = np.unique(keys, return_inverse=True)[1]
        for d_max in range(D_MAX + 1):
            near = np.abs(offsets) <= d_max
            told = _told(feature[near], owner[near], instances.high, fold)
            rows.append({"features": name, "d_max": d_max, **told})
    near = np.abs(offsets) <= _SETTLED
    for name, keys, whose in _others(instances, whole):
        apart = keys | np.uint64(1 << 63)  # from all words
        both = np.concatenate([pairs[near], apart])
        feature = np.unique(both, return_inverse=True)[1]
        told = _told(feature, np.concatenate([owner[near], whose]), instances.high, fold)
        rows.append({"features": f"offsets + {name}", "d_max": _SETTLED, **told})
    return pd.DataFrame(rows).assign(instances=len(instances), high=int(instances.high.sum()))


def _others(
    instances: Instances, whole: WholeWeb
) -> list[tuple[str, NDArray[np.uint64], NDArray[np.int64]]]:
    """Return the other kinds of features: name, keys, and the instance each is of."""
    probabilities = whole.probabilities[instances.source]
    top = np.argsort(-probabilities, axis=1, kind="stable")[:, :_TOP]
    row, place = np.nonzero(np.take_along_axis(probabilities, top, axis=1) >= _LIKELY)
    names = top[row, place]
    prefixes, of_class = _prefixes(whole.classes)
    lengths = np.diff(of_class)[names]
    every = np.concatenate(
        [np.zeros(0, np.int64), *(prefixes[of_class[c] : of_class[c + 1]] for c in names.tolist())]
    )
    cocited = instances.cocited[np.abs(instances.cocited[:, 1]) <= _SETTLED]
    kinds = (cocited[:, 1] + D_MAX) * 2 + cocited[:, 2]
    return [
        ("class names", names.astype(np.uint64), row),
        ("class prefixes", every.astype(np.uint64), np.repeat(row, lengths)),
        ("co-citation", kinds.astype(np.uint64), cocited[:, 0]),
    ]


def _prefixes(classes: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give numbers to the prefixes of class names, ``/`` and the whole name among them."""
    numbers: dict[str, int] = {}
    found, lengths = [], []
    for name in classes:
        parts = name.split("/")
        paths = ["/".join(parts[: i + 1]) or "/" for i in range(len(parts))]
        found += [numbers.setdefault(path, len(numbers)) for path in paths]
        lengths.append(len(paths))
    return np.array(found, np.int64), pointers(np.array(lengths, np.int64))


def _folds(group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    groups, place = np.unique(group, return_inverse=True)
    folds: NDArray[np.int64] = rng.permutation(len(groups))[place] % _FOLDS
    return folds


def _told(
    feature: NDArray[np.int64],
    owner: NDArray[np.int64],
    high: NDArray[np.bool_],
    fold: NDArray[np.int64],
) -> dict[str, float]:
    """Cross-validate naive Bayes on (feature, owner) pairs; a repeated feature counts again."""
    order = np.argsort(owner, kind="stable")
    indices = feature[order].astype(np.int32)
    rows = SparseRows(indices, pointers(np.bincount(owner, minlength=len(high))))
    n_features = int(feature.max(initial=0)) + 1
    right = np.zeros(len(high), bool)
    for number in range(_FOLDS):
        test = fold == number
        learner = NaiveBayesLearner(n_features)
        learner.partial_fit(_of(rows, ~test), high[~test].astype(np.float64))
        right[test] = (learner.predict(_of(rows, test)) > 0.5) == high[test]
    return {
        "positive": float(right[high].mean()) if high.any() else np.nan,
        "negative": float(right[~high].mean()) if not high.all() else np.nan,
        "average": float(right.mean()) if len(high) else np.nan,
    }


def _of(rows: SparseRows, chosen: NDArray[np.bool_]) -> Learned:
    taken = rows.take(np.flatnonzero(chosen))
    return Learned(taken, np.ones(len(taken.indices)), np.zeros((len(taken), 0)))
