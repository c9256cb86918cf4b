"""Keywords of a topic, and candidates for start pages from the results of a search engine."""

from __future__ import annotations

import html
import importlib
import json
import re
import sys
from math import log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focuscrawl.critic.languages import ENGLISH, detect_title_language, frequency
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import open_maybe_gzip, read_csv_rows
from focuscrawl.page.words import tokenize
from focuscrawl.taxonomy.topic_tree import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from focuscrawl.foundation.arrays import Floats


MAX_KEYWORDS = 200  # keywords of a topic
_MIN_LENGTH = 2  # characters of a keyword
_PSEUDO_PAGES = 10.0  # off-topic pages in general language, added to the counts
_WORDS_PER_PAGE = 20  # words in titles, headings and anchors of such a page
_MIN_FREQUENCY = 1e-4  # lower word frequencies are raised, as a few pages cannot confirm them
_MIN_PAGES = 2  # relevant pages with a keyword
_UNINFORMATIVE = (OTHER, "good")  # names in topic paths that do not describe a topic

# names of the fields in results of search engines; the first existing field counts
_URL = ("url", "link", "href", "firsturl")
_TITLE = ("title", "name", "text")
_DESCRIPTION = ("description", "snippet", "content", "body", "abstract", "summary")
_TAG = re.compile(r"<[^>]*>")
_MAX_BYTES = 50_000_000  # of a search result


class WordCount(NamedTuple):
    """Numbers of relevant and other pages with a word in their titles, headings or link texts."""

    relevant: int
    other: int


def distinct_words(texts: Sequence[str]) -> set[str]:
    """Return the distinct words in texts, without numbers and single letters."""
    tokens, _ = tokenize(list(texts))
    return {word for word in tokens if len(word) >= _MIN_LENGTH and not word.isdecimal()}


class Keywords:
    """Keywords of a topic with their weights, which are above 0.

    Attributes
    ----------
    weights : weight of each word, the largest weight first
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        self.weights = dict(ranked)
        self._length = sqrt(sum(weight * weight for weight in self.weights.values()))

    @classmethod
    def from_topics(cls, topics: Iterable[str]) -> Keywords:
        """Return the words of topic names, each with the weight 1, for the first crawl of a topic.

        The name of a topic is the last descriptive part of its path: ``Sports`` for
        ``/Sports/Other``, no name for ``/good``.
        """
        names = []
        for topic in topics:
            parts = [part for part in topic.split("/") if part and part not in _UNINFORMATIVE]
            names += parts[-1:]
        return cls.from_phrases([name.replace("_", " ") for name in names])

    @classmethod
    def from_phrases(cls, phrases: Sequence[str]) -> Keywords:
        """Return the words of phrases, each with the weight 1."""
        return cls(dict.fromkeys(distinct_words(phrases), 1.0))

    @classmethod
    def merge(cls, *sources: Mapping[str, float]) -> Keywords:
        """Return the keywords of several sources, each word with its largest weight."""
        weights: dict[str, float] = {}
        for source in sources:
            for word, weight in source.items():
                weights[word] = max(weight, weights.get(word, 0.0))
        return cls(weights)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, WordCount], relevant: int, other: int, most: int = MAX_KEYWORDS
    ) -> Keywords:
        """Choose as keywords the words that best distinguish relevant pages from other pages.

        The weight of a word is p log(p/q), its part of the Kullback-Leibler divergence, where p is
        the share of relevant pages with the word and q is the share of other pages with the word.
        The source is Carpineto, de Mori, Romano and Bigi, An information-theoretic approach to
        automatic query expansion, ACM TOIS (2001), section 3. For smoothing, ten imaginary pages
        with the word frequencies of the language are added to the other pages.

        Parameters
        ----------
        counts : count of each word
        relevant, other : number of relevant and of other pages
        most : number of keywords with the largest weights to keep
        """
        code = detect_title_language({word: n.relevant + n.other for word, n in counts.items()})
        language = ENGLISH if code == "en" else ((code, 1.0),)
        weights = {}
        for word, count in counts.items():
            p = count.relevant / max(relevant, 1)
            if count.relevant < _MIN_PAGES:
                continue
            expected = min(1.0, _WORDS_PER_PAGE * max(frequency(word, language), _MIN_FREQUENCY))
            q = (count.other + _PSEUDO_PAGES * expected) / (other + _PSEUDO_PAGES)
            if p > q:
                weights[word] = p * log(p / q)
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:most]
        top = best[0][1] if best else 1.0
        return cls({word: weight / top for word, weight in best})

    def similarity(self, texts: Sequence[str]) -> Floats:
        """Return the cosine similarity between the keywords and the distinct words of each text.

        Returns
        -------
        float64 (n_texts,), in [0, 1]; 0 for a text without words
        """
        tokens, owner = tokenize(list(texts))
        weight, words = np.zeros(len(texts)), np.zeros(len(texts))
        for i, word in dict.fromkeys(zip(owner.tolist(), tokens, strict=True)):
            weight[i] += self.weights.get(word, 0.0)
            words[i] += 1.0
        if not self._length:
            return np.zeros(len(texts))
        cosine: Floats = weight / (np.sqrt(np.maximum(words, 1.0)) * self._length)
        return np.minimum(cosine, 1.0)


class Candidate(NamedTuple):
    """A candidate for a start page, from the results of a search engine."""

    url: str
    title: str
    description: str


def rank_candidates(
    candidates: Sequence[Candidate], keywords: Keywords
) -> list[tuple[Candidate, float]]:
    """Return start page candidates with their similarity to the keywords, most similar first.

    Candidates without a keyword in title or description are left out. Candidates with equal
    similarity stay in their order.
    """
    texts = [f"{each.title} {each.description}" for each in candidates]
    scores = keywords.similarity(texts).tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [(candidates[i], scores[i]) for i in order if scores[i] > 0.0]


def read_candidates(source: str, query: str) -> list[Candidate]:
    """Read candidates for start pages from a file; each normalised URL is returned once.

    Parameters
    ----------
    source : JSON file with results of a search engine, in which every object with a URL is a
        candidate; CSV file with the columns ``url``, ``title`` and ``description``; or
        ``module:callable``, called with `query`, which returns the content of such a JSON file
    query : search terms

    Raises
    ------
    UserError
        The source cannot be read or has no candidates.
    """
    if ":" in source and not Path(source).exists():
        found = list(_find_candidates(_call_function(source, query)))
    elif source.endswith((".csv", ".csv.gz")):
        rows = read_csv_rows(source, ["url"], optional=["title", "description"])
        found = [Candidate(row["url"], row["title"], row["description"]) for _, row in rows]
    else:
        found = list(_find_candidates(_read(source)))
    known: dict[str, Candidate] = {}
    for each in found:
        url = normalize(each.url)
        if url is not None:
            texts = (html.unescape(_TAG.sub("", text)) for text in each[1:])
            known.setdefault(url, Candidate(url, *texts))
    if not known:
        raise UserError(
            f"{source} has no candidates: each object needs a url (or link), and a title or a "
            "description (or snippet)"
        )
    return list(known.values())


def _read(source: str) -> Any:
    with open_maybe_gzip(source) as file:
        text = file.read(_MAX_BYTES)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{source} is not valid JSON ({error}): use a file with the results of a search engine"
        ) from None


def _find_candidates(found: Any) -> Iterator[Candidate]:
    """Yield the objects with a URL, at any depth, in order."""
    stack = [found]
    while stack:
        each = stack.pop()
        if isinstance(each, list | tuple):
            stack += reversed(each)
        elif isinstance(each, dict):
            cells = {str(key).lower(): value for key, value in each.items()}
            url = _first(cells, _URL)
            title, description = _first(cells, _TITLE), _first(cells, _DESCRIPTION)
            if url and (title or description):
                yield Candidate(url, title, description)
            stack += reversed([value for value in each.values() if not isinstance(value, str)])


def _first(cells: dict[str, Any], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if isinstance(cells.get(name), str)), "")


def _call_function(spec: str, query: str) -> Any:
    """Call a function of the user; modules in the current directory have priority."""
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)(query)
    except Exception as error:  # any exception of the user's module
        reason = " ".join(str(error).split())
        raise UserError(
            f"candidates {spec}: {type(error).__name__}: {reason}; use a file, or a function in a "
            "module that can be imported from the current directory"
        ) from error
    finally:
        sys.path.remove(here)
