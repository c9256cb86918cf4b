"""Topic keywords, and start URLs from the answers of a search engine."""

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
from focuscrawl.foundation.user_input import open_source, read_rows
from focuscrawl.page.words import tokenize
from focuscrawl.taxonomy.topic_tree import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from focuscrawl.foundation.arrays import Floats


MOST = 200  # keywords of a topic
_SHORTEST = 2  # characters of a word
_PSEUDO_PAGES = 10.0  # other pages taken as seen, that are written in the ordinary way
_WORDS = 20  # in titles, headings and anchors of such a page
_RAREST = 1e-4  # share of a text: a few pages do not show how much rarer a word is
_MIN_PAGES = 2  # relevant pages a keyword is on
_UNINFORMATIVE = (OTHER, "good")  # of a topic's path

# what search engines call the three; the first that is there counts
_URL = ("url", "link", "href", "firsturl")
_TITLE = ("title", "name", "text")
_DESCRIPTION = ("description", "snippet", "content", "body", "abstract", "summary")
_TAG = re.compile(r"<[^>]*>")
_LARGEST = 50_000_000  # bytes of an answer


class WordCount(NamedTuple):
    """In how many relevant and other pages' titles, headings and anchors a word is."""

    relevant: int
    other: int


def distinct_words(texts: Sequence[str]) -> set[str]:
    """Return the distinct words of some texts, without numbers and single letters."""
    tokens, _ = tokenize(list(texts))
    return {word for word in tokens if len(word) >= _SHORTEST and not word.isdecimal()}


class Keywords:
    """Keywords of a topic with their weights, the heaviest first.

    Parameters
    ----------
    weights : by word, above 0

    Attributes
    ----------
    weights : the same, by falling weight
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        self.weights = dict(ranked)
        self._length = sqrt(sum(weight * weight for weight in self.weights.values()))

    @classmethod
    def from_topics(cls, topics: Iterable[str]) -> Keywords:
        """Return the words of topics' names, all of weight 1, before anything was crawled.

        In the paper the user names keywords. Here the last part of a topic's path that says
        something is the name: ``/Sports/Other`` is about sports, ``/good`` about nothing known.
        """
        names = []
        for topic in topics:
            parts = [part for part in topic.split("/") if part and part not in _UNINFORMATIVE]
            names += parts[-1:]
        return cls.from_phrases([name.replace("_", " ") for name in names])

    @classmethod
    def from_phrases(cls, phrases: Sequence[str]) -> Keywords:
        """Return the words of some phrases, all of weight 1."""
        return cls(dict.fromkeys(distinct_words(phrases), 1.0))

    @classmethod
    def merge(cls, *sources: Mapping[str, float]) -> Keywords:
        """Return the words of several sources, each with the greatest weight it has."""
        weights: dict[str, float] = {}
        for source in sources:
            for word, weight in source.items():
                weights[word] = max(weight, weights.get(word, 0.0))
        return cls(weights)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, WordCount], relevant: int, other: int, most: int = MOST
    ) -> Keywords:
        """Choose the words that tell relevant pages from others.

        A word's weight is its share in the divergence of the two kinds of page, p log(p/q) with
        p and q the shares of relevant and of other pages that have it (Carpineto, de Mori, Romano
        and Bigi, An information-theoretic approach to automatic query expansion, ACM TOIS
        (2001), section 3): frequent words of the topic weigh much, words of all pages nothing. Ten
        more other pages are taken to have words as often as the language of most words has them.

        Parameters
        ----------
        counts : by word
        relevant, other : pages of either kind
        most : keywords kept, the heaviest
        """
        code = detect_title_language({word: n.relevant + n.other for word, n in counts.items()})
        language = ENGLISH if code == "en" else ((code, 1.0),)
        weights = {}
        for word, count in counts.items():
            p = count.relevant / max(relevant, 1)
            if count.relevant < _MIN_PAGES:
                continue
            usual = min(1.0, _WORDS * max(frequency(word, language), _RAREST))
            q = (count.other + _PSEUDO_PAGES * usual) / (other + _PSEUDO_PAGES)
            if p > q:
                weights[word] = p * log(p / q)
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:most]
        top = best[0][1] if best else 1.0
        return cls({word: weight / top for word, weight in best})

    def similarity(self, texts: Sequence[str]) -> Floats:
        """Return the cosine of each text, its words counted once, with the keywords.

        Returns
        -------
        float64 (n,), in [0, 1]; 0 for a text without words
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
    """A possible start page, from the answer of a search engine."""

    url: str
    title: str
    description: str


def rank_candidates(
    candidates: Sequence[Candidate], keywords: Keywords
) -> list[tuple[Candidate, float]]:
    """Return candidates by sim(keywords, title + description), equals in the engine's order.

    Those that share no word are left out.
    """
    texts = [f"{each.title} {each.description}" for each in candidates]
    scores = keywords.similarity(texts).tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [(candidates[i], scores[i]) for i in order if scores[i] > 0.0]


def read_candidates(source: str, query: str) -> list[Candidate]:
    """Read candidates.

    Parameters
    ----------
    source : a JSON file, the answer of any engine: every object in it that has a URL is one; a CSV
        file with the columns ``url``, ``title`` and ``description``; or ``module:callable``, which
        is called with `query` and returns what such a JSON file holds
    query : words to search for

    Returns
    -------
    Each URL once, normalised

    Raises
    ------
    UserError
        It cannot be read, or names no page.
    """
    if ":" in source and not Path(source).exists():
        found = list(_find_candidates(_call_function(source, query)))
    elif source.endswith((".csv", ".csv.gz")):
        rows = read_rows(source, ["url"], optional=["title", "description"])
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
            f"{source} names no page: objects in it must have a url (or link), a title and a "
            "description (or snippet)"
        )
    return list(known.values())


def _read(source: str) -> Any:
    with open_source(source) as file:
        text = file.read(_LARGEST)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source} is no JSON ({error}): name an engine's answer") from None


def _find_candidates(found: Any) -> Iterator[Candidate]:
    """Yield the objects that name a page, at any depth, in their order."""
    waiting = [found]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += reversed(each)
        elif isinstance(each, dict):
            cells = {str(key).lower(): value for key, value in each.items()}
            url = _first(cells, _URL)
            title, description = _first(cells, _TITLE), _first(cells, _DESCRIPTION)
            if url and (title or description):
                yield Candidate(url, title, description)
            waiting += reversed([value for value in each.values() if not isinstance(value, str)])


def _first(cells: dict[str, Any], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if isinstance(cells.get(name), str)), "")


def _call_function(spec: str, query: str) -> Any:
    """Call a user's function; modules in the current directory come first."""
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)(query)
    except Exception as error:  # whatever the user's module raises while it is run
        reason = " ".join(str(error).split())
        raise UserError(
            f"candidates {spec}: {type(error).__name__}: {reason}; name a file, or a function in "
            "a module that is importable from here"
        ) from error
    finally:
        sys.path.remove(here)
