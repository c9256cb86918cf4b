"""Which pages to ask about: those the critic is unsure of, unlike all that were judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.discriminative import as_matrix
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.word_vectors import word_vectors_installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Floats

#: of doubt, added to every page's: a critic that is always sure is asked about unlike pages
_SURE = 0.1


def by_doubt(relevance: Floats, pages: Sequence[Bag], judged: Sequence[Bag]) -> Iterator[int]:
    """Yield the places of pages, each time that with the largest doubt times distance.

    Doubt is the standard deviation of a verdict that is yes with probability R; distance is one
    less the cosine (the mean of two, by words and by meaning) with the nearest page that was
    judged or yielded: so many pages like one doubtful page are one question.

    Parameters
    ----------
    relevance : (n,), R of the pages
    pages : n bags of words
    judged : those of pages whose verdict is known
    """
    if not len(pages):
        return
    vectors = PageVectors.learn(pages, embeddings=word_vectors_installed())
    rows = as_matrix(vectors.read([*pages, *judged]), len(vectors.words))
    asked = rows[: len(pages)]
    doubt = np.sqrt(np.maximum(relevance * (1.0 - relevance), 0.0)) + _SURE
    parts = 2.0 if vectors.dimensions else 1.0  # of a vector, each of length 1
    alike = np.asarray((asked @ rows.T).todense()) / parts
    nearest = alike[:, len(pages) :].max(axis=1, initial=0.0)
    left = np.ones(len(pages), np.bool_)
    while left.any():
        best = int(np.argmax(np.where(left, doubt * (1.0 - nearest), -1.0)))
        left[best] = False
        yield best
        nearest = np.maximum(nearest, alike[:, best])
