"""Queries for search engines, made from keywords or from relevant pages that a crawl has found."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.languages import COMMON, ENGLISH, frequency
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.knowledge.keywords import Keywords, WordCount, distinct_words

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

TUPLES, TUPLE_SIZE, RESULTS = 10, 3, 10  #: defaults of BootCaT


def make_tuples(
    phrases: Sequence[Sequence[str]],
    n: int = TUPLES,
    size: int = TUPLE_SIZE,
    random_state: int = 0,
) -> list[str]:
    """Return queries that combine the keywords at random.

    The source is Baroni and Bernardini, BootCaT: Bootstrapping corpora and terms from the Web
    (LREC 2004). A query combines different phrases. If there are at most `size` phrases, a query
    combines single words of the phrases, without words of everyday English.

    Parameters
    ----------
    phrases : words of each phrase
    n : largest number of queries
    size : number of phrases or words in each query
    random_state : seed of the random choice
    """
    terms = [_quote(words) for words in phrases]
    if len(terms) <= size:
        words = (word for phrase in phrases for word in phrase)
        terms = [word for word in words if frequency(word, ENGLISH) <= COMMON]
    terms = list(dict.fromkeys(terms))
    if len(terms) < size:
        return []
    generator = random.Random(random_state)
    wanted = min(n, math.comb(len(terms), size))
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < wanted:
        chosen[tuple(sorted(generator.sample(range(len(terms)), size)))] = None
    return [" ".join(terms[i] for i in each) for each in chosen]


def _quote(words: Sequence[str]) -> str:
    text = " ".join(words)
    return f'"{text}"' if len(words) > 1 else text


_WORDS, _QUERIES = 12, 5
_MIN_OTHER = 20  # pages; fewer do not show which words are frequent off topic
_TIMES_AS_FREQUENT = 2  # on relevant pages, compared with other pages
_MIN_RELEVANT = 10  # pages; the words of fewer pages are those of single sites
_PAGES = """
SELECT p.title, a.headings, p.relevance FROM page p LEFT JOIN answer a ON a.seq = p.seq
WHERE p.status BETWEEN 200 AND 299 AND p.error IS NULL AND p.duplicate_of IS NULL
ORDER BY p.seq DESC LIMIT 2000
"""


class JudgedTitle(NamedTuple):
    """Title and headings (one a line) of a fetched page, and the relevance of the page."""

    title: str | None
    headings: str | None
    relevance: float


def read_titles(store: CrawlStore) -> list[JudgedTitle]:
    """Return the titles of the latest 2,000 pages of a crawl."""
    return [JudgedTitle(*row) for row in store.rows(_PAGES)]


def propose_queries(pages: Iterable[JudgedTitle]) -> list[str]:
    """Return queries that combine words of the titles and headings of relevant pages.

    The words are those with the largest weights of `Keywords.from_counts`, without words of
    everyday English. If there are at least twenty other pages, each word is at least twice as
    frequent on the relevant pages as on the other pages, so that words of advertisements are left
    out. The list is empty if fewer than ten of the pages are relevant.
    """
    relevant, other = Counter[str](), Counter[str]()
    n_relevant = n_other = 0
    for title, headings, relevance in pages:
        words = distinct_words([title or "", *(headings or "").splitlines()])
        if relevance > RELEVANT:
            relevant.update(words)
            n_relevant += 1
        else:
            other.update(words)
            n_other += 1
    if n_relevant < _MIN_RELEVANT:
        return []
    counts = {
        word: WordCount(n, other[word])
        for word, n in relevant.items()
        if n_other < _MIN_OTHER
        or n / n_relevant >= _TIMES_AS_FREQUENT * (other[word] + 1) / (n_other + 2)
    }
    best = Keywords.from_counts(counts, n_relevant, n_other).weights
    rare = [word for word in best if frequency(word, ENGLISH) <= COMMON][:_WORDS]
    return make_tuples([[word] for word in rare], _QUERIES, TUPLE_SIZE, n_relevant)
