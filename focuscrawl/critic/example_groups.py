"""Whether the examples of a topic belong together, or fall apart into two groups."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.pieces import is_part

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.from_little import LittlePages
    from focuscrawl.critic.page_vectors import PageVectors

_NAMES = 5  # words that name a group
_SMALLEST = 3  # pages in a group
#: Mean silhouette from which on two groups are apart, and mean cosine of two examples below which
#: a topic is broad; chosen on topics of two recorded webs and mixtures of them (docs/critics.md).
#: By words alone all pages are nearly orthogonal.
_APART, _APART_BY_WORDS = 0.28, 0.05
_BROAD, _BROAD_BY_WORDS = 0.06, 0.012


class Cohesion(NamedTuple):
    """How well examples belong together.

    Attributes
    ----------
    broad : they have hardly more in common with each other than with any other page
    groups : words that name each of two groups that they fall apart into; empty if they do not
    """

    broad: bool
    groups: tuple[tuple[str, ...], ...]


def cohesion_of(vectors: PageVectors, pages: LittlePages) -> Cohesion:
    """Compare the good pages with each other, by meaning, or by words without embeddings.

    Cosines are those of the differences from the mean of the unlabelled pages: two pages that
    have no more in common than any two have a cosine of 0.

    Parameters
    ----------
    vectors : has made `pages`
    pages : two good ones at least
    """
    n_words = len(vectors.words)
    meaning = vectors.dimensions > 0
    columns = slice(n_words, None) if meaning else slice(n_words)
    cosines = _cosines(pages.good[:, columns], pages.unlabelled[:, columns])
    n = len(cosines)
    mean = float(cosines[~np.eye(n, dtype=bool)].mean())
    broad = mean < (_BROAD if meaning else _BROAD_BY_WORDS)
    if n < 2 * _SMALLEST:
        return Cohesion(broad, ())
    first = _one_of_two(cosines, _APART if meaning else _APART_BY_WORDS)
    if first is None:
        return Cohesion(broad, ())
    words = pages.good[:, :n_words], pages.unlabelled[:, :n_words]
    return Cohesion(False, tuple(_names(vectors, *words, group) for group in (first, ~first)))


def _cosines(good: sparse.csr_matrix, unlabelled: sparse.csr_matrix) -> NDArray[np.float64]:
    centre = np.asarray(unlabelled.mean(axis=0)).ravel()
    along = good @ centre
    products = (good @ good.T).toarray() - along[:, None] - along + centre @ centre
    length = np.sqrt(np.maximum(np.diag(products), 1e-12))
    cosines: NDArray[np.float64] = products / length[:, None] / length
    return cosines


def _one_of_two(cosines: NDArray[np.float64], apart: float) -> NDArray[np.bool_] | None:
    """Return which examples are in the first of two groups; None if they belong together."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import
    from sklearn.metrics import silhouette_score  # noqa: PLC0415

    groups = KMeans(2, n_init=10, random_state=0).fit_predict(cosines)
    first: NDArray[np.bool_] = groups == groups[0]
    if min(first.sum(), (~first).sum()) < _SMALLEST or cosines[first][:, ~first].mean() >= 0.0:
        return None
    distances = np.maximum(1.0 - cosines, 0.0)
    np.fill_diagonal(distances, 0.0)
    return first if silhouette_score(distances, groups, metric="precomputed") > apart else None


def _names(
    vectors: PageVectors,
    good: sparse.csr_matrix,
    unlabelled: sparse.csr_matrix,
    group: NDArray[np.bool_],
) -> tuple[str, ...]:
    """Return the words that the pages of a group have and others have not."""
    means = [np.asarray(rows.mean(axis=0)).ravel() for rows in (good[~group], unlabelled)]
    own = np.asarray(good[group].mean(axis=0)).ravel()
    best = np.argsort(np.maximum(*means) - own, kind="stable")
    words = (vectors.words[i] for i in best.tolist())
    return tuple(islice((word for word in words if not is_part(word)), _NAMES))
