"""TF-IDF centroid: links of the pages most like the relevant ones come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.hashing import bucket
from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sums
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_history import LinkLog
from focuscrawl.strategies.messages import Expansion
from focuscrawl.strategies.rescoring_strategy import RescoringStrategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.strategies.messages import JudgedPage, RecalledPage, Scores, StrategyContext

_BITS = 18  # terms are told apart by hash
_RELEVANT = 0.5


class Topic(NamedTuple):
    """What a lesson comes to.

    Attributes
    ----------
    idf : float64 (n_terms,)
    centroid : float64 (n_terms,), of length 1, or 0 while no page is relevant
    best : by URL, the greatest cosine of the pages known to the lesson
    """

    idf: Floats
    centroid: Floats
    best: Maximum

    def cosine(self, terms: NDArray[np.int32], counts: NDArray[np.uint8]) -> float:
        """Compare one page with the centroid."""
        weights = _tf(counts) * self.idf[terms]
        norm = float(np.sqrt(weights @ weights))
        return float(weights @ self.centroid[terms]) / norm if norm else 0.0


class TfidfCentroid(RescoringStrategy[Topic]):
    """Priority of v = the greatest cosine between a page that links to v and the centroid.

    The vector-space view of a topic (Salton and Buckley, Term-weighting approaches in automatic
    text retrieval, 1988), the priority of the naive best-first crawler of Menczer, Pant and
    Srinivasan, Topical Web crawlers, ACM TOIT (2004), section 3. A page weighs a term
    (1 + log tf) log(N/df), over the N pages fetched so far; the *centroid* is the mean of
    the unit vectors of all pages with R > 1/2 among them. Centroid and cosines are worked out
    anew every so often; until there has been a relevant page all cosines are 0.

    Parameters
    ----------
    every, growth : fetches from one centroid to the next, at least and as a share of all
    """

    def __init__(self, context: StrategyContext, *, every: int = 10, growth: float = 0.05) -> None:
        super().__init__("tfidf-centroid", every, growth, LinkLog())
        nothing = np.zeros(1 << _BITS)
        self._topic = Topic(nothing, nothing, Maximum())
        self._relevance = GrowingArray(np.float64)  # by page
        self._terms = RowStore()  # of each page
        self._count = GrowingArray(np.uint8)  # how often it has each

    def expand(self, page: JudgedPage) -> Expansion:
        """Score every link with the cosine of its page."""
        terms, counts = self._read(page.view)
        cosine, changed = self._take_in(page, terms, counts)
        memo = terms.tobytes() + counts.tobytes()
        return Expansion(np.full(len(page.targets), cosine), *changed, memo=memo)

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the words and links of an earlier run."""
        assert page.memo is not None
        n = len(page.memo) // 5
        terms = np.frombuffer(page.memo, np.int32, n)
        counts = np.frombuffer(page.memo, np.uint8, n, 4 * n)
        return self._take_in(page, terms, counts)[1]

    def work_out(self, observed: int, pages: int) -> tuple[Topic, Scores]:
        """Make the centroid of the relevant ones of the first `pages` pages, score all by it."""
        of_pages = self._terms.rows(pages)
        terms, counts = of_pages.indices, self._count.data[: len(of_pages.indices)]
        page = np.repeat(np.arange(pages), of_pages.lengths)
        idf = np.log(max(pages, 1) / np.maximum(np.bincount(terms, minlength=1 << _BITS), 1))
        weights = _tf(counts) * idf[terms]
        norms = np.sqrt(sums(page, weights**2, pages))
        norms[norms == 0.0] = 1.0  # a page of nothing but words that all pages have
        units = weights / norms[page]
        relevant = (self._relevance.data[:pages] > _RELEVANT)[page]
        total = sums(terms[relevant], units[relevant], 1 << _BITS)
        length = float(np.linalg.norm(total))
        centroid = total / length if length else total
        cosines = sums(page, units * centroid[terms], pages)
        _, target, page_of_link = self.log.links(pages)
        best = Maximum()
        return Topic(idf, centroid, best), best.add(target, cosines[page_of_link])

    def take_over(self, model: Topic, pages: int) -> Scores:
        """Compare pages with a new centroid from now on, those read meanwhile first."""
        self._topic = model
        of_pages = self._terms.rows(self.log.pages)
        scores: dict[int, float] = {}
        for i, (_, targets) in enumerate(self.log.pages_since(pages), pages):
            terms = slice(*of_pages.indptr[i : i + 2].tolist())
            cosine = model.cosine(of_pages.indices[terms], self._count.data[terms])
            urls, new = self._weigh(targets, cosine)
            scores.update(zip(urls.tolist(), new.tolist(), strict=True))
        return np.array(list(scores), np.int64), np.array(list(scores.values()), np.float64)

    def _take_in(
        self,
        page: JudgedPage | RecalledPage,
        terms: NDArray[np.int32],
        counts: NDArray[np.uint8],
    ) -> tuple[float, Scores]:
        targets = np.unique(page.targets)
        self._terms.append(terms)
        self._count.extend(counts)
        self._relevance.extend([page.relevance])
        self.log.add_links(page.url, targets)
        cosine = self._topic.cosine(terms, counts)
        return cosine, self._weigh(targets, cosine)

    def _weigh(self, targets: Ints, cosine: float) -> Scores:
        return self._topic.best.add(targets, np.full(len(targets), cosine))

    def _read(self, view: PageView) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the terms of a page and how often it has them."""
        terms, counts = np.unique(bucket(view.words.hashes, 0, _BITS), return_counts=True)
        return terms, np.minimum(counts, 255).astype(np.uint8)


def _tf(counts: NDArray[np.uint8]) -> Floats:
    return 1.0 + np.log(counts.astype(np.float64))
