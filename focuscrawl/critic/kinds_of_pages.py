"""The kinds that pages off the topic are of, found among them: other topics compete with it.

One class of all that is off the topic has every other topic's words, and few of each: to its word
counts a word that only those topics use is hardly more of theirs than of the topic's. Where they
stand apart, each has its words, and what reads links by them tells what a link leads to instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

    from focuscrawl.foundation.arrays import Ints

_EACH = 15  # pages of a kind, on average
_MOST = 40  # kinds
_DIMENSIONS = 40  # latent ones (LSA), in which kinds are told apart
_DRAWS = 3  # of first centres, the best of which counts


def kinds_of(pages: sparse.csr_matrix, random_state: int = 0) -> Ints:
    """Group pages by k-means in the space of their latent semantic analysis.

    Parameters
    ----------
    pages : (n, n_words + dimensions), vectors of pages
    random_state : seed

    Returns
    -------
    Kind of each page, int64 (n,): 0 to at most 39, one for 15 pages; all 0 of few pages
    """
    n_pages, n_columns = pages.shape
    n_kinds = min(_MOST, n_pages // _EACH)
    if n_kinds < 2:
        return np.zeros(n_pages, np.int64)
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import, needed in training only
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415

    latent = TruncatedSVD(min(_DIMENSIONS, n_pages - 1, n_columns - 1), random_state=random_state)
    places = latent.fit_transform(pages)
    places /= np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
    means = KMeans(n_kinds, n_init=_DRAWS, random_state=random_state)
    kinds: Ints = means.fit_predict(places).astype(np.int64)
    return kinds
