"""TF-IDF centroid, and keywords in URLs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from focuscrawl.apprentice.hashing import hash_features
from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.critic.bag_of_words import BagRows
from focuscrawl.critic.page_vectors import tf_idf
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sums
from focuscrawl.strategies.base import Expansion
from focuscrawl.strategies.baselines import First, LinkStrategy, Maximum
from focuscrawl.strategies.knowledge_strategy import query_terms
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_BITS = 18  # terms are told apart by hash


class TopicCentroid(NamedTuple):
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
        page = BagRows(terms, counts.astype(np.float64), np.array([0, len(terms)]))
        return float(tf_idf(page, self.idf).counts @ self.centroid[terms])


class TfidfCentroid(RescoringStrategy[TopicCentroid]):
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
        self._topic = TopicCentroid(nothing, nothing, Maximum())
        self._relevance = GrowingArray(np.float64)  # by page
        self._terms = RowStore()  # of each page
        self._count = GrowingArray(np.uint8)  # how often it has each

    def expand(self, page: JudgedPage) -> Expansion:
        """Score every link with the cosine of its page."""
        terms, counts = self._read(page.view)
        cosine, changed = self._add_page(page, terms, counts)
        memo = terms.tobytes() + counts.tobytes()
        return Expansion(np.full(len(page.targets), cosine), *changed, memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the words and links of an earlier run."""
        assert page.memo is not None
        n = len(page.memo) // 5
        terms = np.frombuffer(page.memo, np.int32, n)
        counts = np.frombuffer(page.memo, np.uint8, n, 4 * n)
        return self._add_page(page, terms, counts)[1]

    def fit_model(self, observed: int, pages: int) -> tuple[TopicCentroid, Scores]:
        """Make the centroid of the relevant ones of the first `pages` pages, score all by it."""
        of_pages = self._terms.rows(pages)
        terms, counts = of_pages.indices, self._count.data[: len(of_pages.indices)]
        page = np.repeat(np.arange(pages), of_pages.lengths)
        idf = np.log(max(pages, 1) / np.maximum(np.bincount(terms, minlength=1 << _BITS), 1))
        units = tf_idf(BagRows(terms, counts.astype(np.float64), of_pages.indptr), idf).counts
        relevant = (self._relevance.data[:pages] > RELEVANT)[page]
        total = sums(terms[relevant], units[relevant], 1 << _BITS)
        length = float(np.linalg.norm(total))
        centroid = total / length if length else total
        cosines = sums(page, units * centroid[terms], pages)
        _, target, page_of_link = self.log.links(pages)
        best = Maximum()
        return TopicCentroid(idf, centroid, best), best.add(target, cosines[page_of_link])

    def use_model(self, model: TopicCentroid, pages: int) -> Scores:
        """Compare pages with a new centroid from now on, those read meanwhile first."""
        self._topic = model
        of_pages = self._terms.rows(self.log.n_pages)
        scores: dict[int, float] = {}
        for i, (_, targets) in enumerate(self.log.pages_since(pages), pages):
            terms = slice(*of_pages.indptr[i : i + 2].tolist())
            cosine = model.cosine(of_pages.indices[terms], self._count.data[terms])
            urls, new = self._score_targets(targets, cosine)
            scores.update(zip(urls.tolist(), new.tolist(), strict=True))
        return np.array(list(scores), np.int64), np.array(list(scores.values()), np.float64)

    def _add_page(
        self,
        page: JudgedPage | StoredPage,
        terms: NDArray[np.int32],
        counts: NDArray[np.uint8],
    ) -> tuple[float, Scores]:
        targets = np.unique(page.targets)
        self._terms.append(terms)
        self._count.extend(counts)
        self._relevance.extend([page.relevance])
        self.log.add_links(page.url, targets)
        cosine = self._topic.cosine(terms, counts)
        return cosine, self._score_targets(targets, cosine)

    def _score_targets(self, targets: Ints, cosine: float) -> Scores:
        return self._topic.best.add(targets, np.full(len(targets), cosine))

    def _read(self, view: PageView) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the terms of a page and how often it has them."""
        terms, counts = np.unique(hash_features(view.words.hashes, 0, _BITS), return_counts=True)
        return terms, np.minimum(counts, 255).astype(np.uint8)


_DEPTH, _OPTIMAL_DEPTH = 0.7, 3  # weight, and the number of folders that is best
_KIND = 0.8
_KINDS = [
    (re.compile(r"\.html?$"), 1.0),
    (re.compile(r"\.pdf$"), 0.8),
    (re.compile(r"\.xml$"), 0.6),
]
_FRESHNESS, _THIS_YEAR, _UNDATED = 0.9, 2024, 0.5
_DATES = [
    re.compile(r"/(\d{4})/(\d{2})/(\d{2})/"),
    re.compile(r"(\d{4})[-_](\d{2})[-_](\d{2})"),
    re.compile(r"/(\d{4})/"),
]
_STEP = 1e-6  # what a click costs: less than any difference between scores
_REMEMBERED = 200_000  # URLs


class UrlKeywords(LinkStrategy):
    """Priority of v = the share of the topic's keywords that v's URL contains.

    The order of ``BestFirstCrawlingStrategy`` with a ``KeywordRelevanceScorer`` in crawl4ai
    (<https://github.com/unclecode/crawl4ai>): a keyword counts if the decoded URL contains it,
    inside a word, too, in upper or lower case. Of URLs with equal scores those fewer clicks from
    a start page come first. Nothing is read of a page but its links' URLs: neither anchors nor
    relevance. What there is decided by alphabet after that is decided by being found here, and
    there is no batch of ten.

    Parameters
    ----------
    balanced : score with the four scorers of crawl4ai's ``create_balanced_scorer``, with the
        topic's keywords: the mean of keywords, 0.7 / (1 + |folders - 3|), 0.8 times a number for
        the file's ending, and 0.9 times the freshness of a date in the URL, against 2024
    """

    def __init__(self, context: StrategyContext, *, balanced: bool = False) -> None:
        if not isinstance(balanced, bool):
            raise UserError(
                f"strategy url-keywords: balanced must be true or false, not {balanced!r}"
            )
        self.evidence = First()  # a URL says the same wherever it is found
        self._keywords = query_terms(context)
        self._score = lru_cache(_REMEMBERED)(self._balanced if balanced else self._relevance)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links by their URLs alone."""
        urls = page.view.links.urls
        scores = np.array([self._score(urls[i]) for i in page.links.tolist()], np.float64)
        return scores - _STEP * (page.depth + 1)

    def _relevance(self, url: str) -> float:
        decoded = unquote(url).lower()
        return sum(word in decoded for word in self._keywords) / max(len(self._keywords), 1)

    def _balanced(self, url: str) -> float:
        depth = _DEPTH * path_depth(url)
        return (
            self._relevance(url)
            + depth
            + _KIND * file_type_score(url)
            + _FRESHNESS * freshness(url)
        ) / 4


def path_depth(url: str) -> float:
    """Return 1 for a path of three folders or files, less the more it has more or fewer."""
    depth = sum(bool(part) for part in urlsplit(url).path.split("/"))
    return 1.0 / (1.0 + abs(depth - _OPTIMAL_DEPTH))


def file_type_score(url: str) -> float:
    """Return what the ending of a URL promises; 0 for most."""
    return next((worth for pattern, worth in _KINDS if pattern.search(url)), 0.0)


def freshness(url: str) -> float:
    """Return 1 for a date of `_THIS_YEAR` in a URL, a tenth less for every year before."""
    found = next((match for pattern in _DATES if (match := pattern.search(url))), None)
    return _UNDATED if found is None else 1.0 - 0.1 * (_THIS_YEAR - int(found[1]))
