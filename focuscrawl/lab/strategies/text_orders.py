"""Strategies that order URLs by a TF-IDF centroid, and by keywords in URLs."""

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
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sum_by_group
from focuscrawl.strategies.base import Expansion
from focuscrawl.strategies.baselines import First, LinkStrategy, Maximum
from focuscrawl.strategies.knowledge_strategy import query_terms
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_BITS = 18  # size of the hashed feature space, as a power of 2


class TopicCentroid(NamedTuple):
    """The centroid (mean TF-IDF vector) of the relevant pages or of the start pages."""

    idf: Floats  # inverse document frequency of each term
    centroid: Floats  # unit vector; 0 before the first page of the centroid
    best: Maximum  # largest cosine of the pages that link to each URL

    def cosine(self, terms: NDArray[np.int32], counts: NDArray[np.uint8]) -> float:
        """Return the cosine similarity of a page's TF-IDF vector and the centroid."""
        page = BagRows(terms, counts.astype(np.float64), np.array([0, len(terms)]))
        return float(tf_idf(page, self.idf).counts @ self.centroid[terms])


class TfidfCentroid(RescoringStrategy[TopicCentroid]):
    """The priority of a URL v is the largest cosine of the centroid with a page that links to v.

    The order of URLs is that of the naive best-first crawler of Menczer, Pant and Srinivasan,
    Topical Web crawlers, ACM TOIT (2004), section 3. The vector-space model (TF-IDF vectors) is
    that of Salton and Buckley, Term-weighting approaches in automatic text retrieval (1988). A
    term that occurs tf times in a page, and in df of the N pages fetched so far, has the TF-IDF
    weight (1 + log tf) log(N/df). The *centroid* is the mean of the unit vectors of all fetched
    pages with relevance above 1/2. The centroid and all cosines are recomputed at intervals.
    Before the first relevant page is found, all cosines are 0.

    Parameters
    ----------
    every, growth : int, float
        Fetches between two centroids: at least `every`, and at least this share of all fetches.
    of_seeds : bool
        Compute the centroid from the start pages only, and not from relevance [A02 section 2.1].
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        every: int = 10,
        growth: float = 0.05,
        of_seeds: bool = False,
    ) -> None:
        if not isinstance(of_seeds, bool):
            raise UserError(
                f"strategy tfidf-centroid: of_seeds must be true or false, not {of_seeds!r}"
            )
        super().__init__("tfidf-centroid", every, growth, LinkLog())
        nothing = np.zeros(1 << _BITS)
        self._topic = TopicCentroid(nothing, nothing, Maximum())
        self._of_seeds = of_seeds
        self._chosen = GrowingArray(np.bool_)  # pages of the centroid
        self._terms = RowStore()  # terms of each page
        self._count = GrowingArray(np.uint8)  # counts of these terms

    def expand(self, page: JudgedPage) -> Expansion:
        """Score every link with the cosine of the linking page and the centroid."""
        terms, counts = self._read(page.view)
        chosen = page.depth == 0 if self._of_seeds else page.relevance > RELEVANT
        cosine, changed = self._add_page(page, terms, counts, chosen)
        memo = terms.tobytes() + counts.tobytes() + bytes([chosen])
        return Expansion(np.full(len(page.targets), cosine), *changed, memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the words and links of a page that an earlier run of the crawl fetched."""
        assert page.memo is not None
        n = len(page.memo) // 5
        terms = np.frombuffer(page.memo, np.int32, n)
        counts = np.frombuffer(page.memo, np.uint8, n, 4 * n)
        return self._add_page(page, terms, counts, bool(page.memo[-1]))[1]

    def fit_model(self, observed: int, pages: int) -> tuple[TopicCentroid, Scores]:
        """Return the centroid of the first `pages` pages, and the scores of all URLs."""
        of_pages = self._terms.rows(pages)
        terms, counts = of_pages.indices, self._count.data[: len(of_pages.indices)]
        page = np.repeat(np.arange(pages), of_pages.lengths)
        idf = np.log(max(pages, 1) / np.maximum(np.bincount(terms, minlength=1 << _BITS), 1))
        units = tf_idf(BagRows(terms, counts.astype(np.float64), of_pages.indptr), idf).counts
        chosen = self._chosen.data[:pages][page]
        total = sum_by_group(terms[chosen], units[chosen], 1 << _BITS)
        length = float(np.linalg.norm(total))
        centroid = total / length if length else total
        cosines = sum_by_group(page, units * centroid[terms], pages)
        _, target, page_of_link = self.log.links(pages)
        best = Maximum()
        return TopicCentroid(idf, centroid, best), best.add(target, cosines[page_of_link])

    def use_model(self, model: TopicCentroid, pages: int) -> Scores:
        """Use the centroid `model`; return new scores of links found after its computation."""
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
        chosen: bool,
    ) -> tuple[float, Scores]:
        targets = np.unique(page.targets)
        self._terms.append(terms)
        self._count.extend(counts)
        self._chosen.extend([chosen])
        self.log.add_links(page.url, targets)
        cosine = self._topic.cosine(terms, counts)
        return cosine, self._score_targets(targets, cosine)

    def _score_targets(self, targets: Ints, cosine: float) -> Scores:
        return self._topic.best.add(targets, np.full(len(targets), cosine))

    def _read(self, view: PageView) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return the terms of a page and their counts."""
        terms, counts = np.unique(hash_features(view.words.hashes, 0, _BITS), return_counts=True)
        return terms, np.minimum(counts, 255).astype(np.uint8)


_DEPTH, _OPTIMAL_DEPTH = 0.7, 3  # weight, and the best number of folders
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
_STEP = 1e-6  # cost of a click: less than any difference between scores
_REMEMBERED = 200_000  # URLs in the cache


class UrlKeywords(LinkStrategy):
    """The priority of a URL is the share of the topic's keywords that the URL contains.

    The order of URLs is that of ``BestFirstCrawlingStrategy`` with a ``KeywordRelevanceScorer`` in
    crawl4ai (<https://github.com/unclecode/crawl4ai>). A keyword counts if it occurs anywhere in
    the decoded URL, even within a word, in upper or lower case. Of URLs with equal scores, the URL
    with fewer clicks from a start page is fetched first. Anchor texts and the relevance of pages
    do not affect the order of URLs. URLs with equal scores and clicks are fetched in the order
    found, not alphabetically as in crawl4ai. URLs are fetched one by one, not in batches of ten as
    in crawl4ai.

    Parameters
    ----------
    balanced : bool
        Score with the four scorers of crawl4ai's ``create_balanced_scorer`` and the topic's
        keywords: the mean of the keywords' share, 0.7 / (1 + |folders - 3|), 0.8 times the value
        of the file type, and 0.9 times the freshness of a date in the URL relative to 2024.
    """

    def __init__(self, context: StrategyContext, *, balanced: bool = False) -> None:
        if not isinstance(balanced, bool):
            raise UserError(
                f"strategy url-keywords: balanced must be true or false, not {balanced!r}"
            )
        self.evidence = First()  # a URL has the same score wherever it is found
        self._keywords = query_terms(context)
        self._score = lru_cache(_REMEMBERED)(self._balanced if balanced else self._relevance)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score each link by the share of keywords that the link's URL contains."""
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
    """Return a score of 1 for a URL path of three components, and less for other paths."""
    depth = sum(bool(part) for part in urlsplit(url).path.split("/"))
    return 1.0 / (1.0 + abs(depth - _OPTIMAL_DEPTH))


def file_type_score(url: str) -> float:
    """Return the score of a URL's file type; 0 for most file types."""
    return next((value for pattern, value in _KINDS if pattern.search(url)), 0.0)


def freshness(url: str) -> float:
    """Return 1 for a URL with a date in `_THIS_YEAR`, and 0.1 less for each earlier year."""
    found = next((match for pattern in _DATES if (match := pattern.search(url))), None)
    return _UNDATED if found is None else 1.0 - 0.1 * (_THIS_YEAR - int(found[1]))
