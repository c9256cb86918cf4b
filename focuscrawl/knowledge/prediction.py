"""URL prediction: the relevance of a page from those of earlier pages like it (METHODS 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes
from focuscrawl.apprentice.sparse_rows import SparseRows, beside
from focuscrawl.apprentice.url_features import address_features, table_of_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Floats


BITS = 18  # features are told apart by hash
NEAREST = 10  # earlier pages that are asked about a URL
MOST = 20_000  # earlier pages kept to be asked: bounds memory and time
_COMMON = 500  # pages: what is on more of them tells too little for its cost
_DOUBT = 0.5  # weight of the mean relevance of all pages, against similarities
_ANCHOR = 3  # salt; 1 and 2 are those of address_features


class LinkDescriber:
    """Says what a link shows of a page before it is fetched: words of the anchor, URL, places."""

    def __init__(self) -> None:
        self._hashes = WordHashes()

    def __call__(self, urls: Sequence[str], anchors: Sequence[str]) -> SparseRows:
        """Return one row of features a link; may hold one several times."""
        words = self._hashes.rows(list(anchors), _ANCHOR, BITS)
        addresses = address_features(urls, table_of_keys(urls), self._hashes, bits=BITS)
        return beside(addresses, words)[0]


class NeighbourPrediction:
    """Predicts the relevance of a page by its nearest neighbours among earlier ones.

    Neighbours are near by the cosine of their descriptions, features weighed by log(n/df). The
    prediction is the mean of the relevances of the `NEAREST` ones, weighed by similarity and
    shrunk to the mean of all pages: (sum s R + a m) / (sum s + a).

    Parameters
    ----------
    described : `SparseRows` of n, descriptions of earlier pages
    relevance : float64 (n,), what was judged of them
    """

    def __init__(self, described: SparseRows, relevance: Floats) -> None:
        n = len(described)
        self._relevance = relevance
        self._mean = float(relevance.mean()) if n else 0.0
        rows = _binary(described)
        df = np.bincount(rows.indices, minlength=1 << BITS)
        idf = np.log(max(n, 1) / np.maximum(df, 1))
        # a feature that is on every page is on few if there are few pages
        idf[df > max(_COMMON, n // 20)] = 0.0
        self._idf = idf
        self._by_feature = _unit(rows, idf).T.tocsr()
        self._describe = LinkDescriber()

    def predict(self, urls: Sequence[str], anchors: Sequence[str]) -> Floats:
        """Return the relevance expected of n links' targets, float64 (n,)."""
        if not len(self._relevance):
            return np.full(len(urls), self._mean)
        asked = _unit(_binary(self._describe(urls, anchors)), self._idf)
        near = asked @ self._by_feature
        link = np.repeat(np.arange(len(urls)), np.diff(near.indptr))
        # the nearest first within each link; of equals the one kept first
        order = np.lexsort((near.indices, -near.data, link))
        place = np.arange(len(order)) - near.indptr[link]
        chosen = order[place < NEAREST]
        similarity, page = near.data[chosen], near.indices[chosen]
        link = link[chosen]
        total = np.bincount(link, similarity * self._relevance[page], len(urls))
        weight = np.bincount(link, similarity, len(urls))
        predicted: Floats = (total + _DOUBT * self._mean) / (weight + _DOUBT)
        return np.round(predicted, 9)


def _binary(rows: SparseRows) -> csr_array:
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and not for every crawl

    matrix = csr_array(
        (np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=(len(rows), 1 << BITS)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _unit(matrix: csr_array, idf: Floats) -> csr_array:
    """Weigh features by `idf` and make rows of length 1; 0 where nothing weighs."""
    matrix.data *= idf[matrix.indices]
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    length = np.sqrt(np.bincount(owner, matrix.data**2, matrix.shape[0]))
    length[length == 0.0] = 1.0
    matrix.data /= length[owner]
    matrix.eliminate_zeros()
    return matrix
