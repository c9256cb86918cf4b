"""Keywords in URLs: the order of crawl4ai's best-first deep crawl."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.strategies.evidence import First
from focuscrawl.strategies.link_strategy import LinkStrategy
from focuscrawl.strategies.topic_words import query

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext

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
        self._keywords = query(context)
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
        return (self._relevance(url) + depth + _KIND * kind(url) + _FRESHNESS * freshness(url)) / 4


def path_depth(url: str) -> float:
    """Return 1 for a path of three folders or files, less the more it has more or fewer."""
    depth = sum(bool(part) for part in urlsplit(url).path.split("/"))
    return 1.0 / (1.0 + abs(depth - _OPTIMAL_DEPTH))


def kind(url: str) -> float:
    """Return what the ending of a URL promises; 0 for most."""
    return next((worth for pattern, worth in _KINDS if pattern.search(url)), 0.0)


def freshness(url: str) -> float:
    """Return 1 for a date of `_THIS_YEAR` in a URL, a tenth less for every year before."""
    found = next((match for pattern in _DATES if (match := pattern.search(url))), None)
    return _UNDATED if found is None else 1.0 - 0.1 * (_THIS_YEAR - int(found[1]))
