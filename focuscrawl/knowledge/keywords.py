"""Keywords of a topic: words that distinguish its pages from other pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.languages import ENGLISH, detect_title_language, frequency
from focuscrawl.page.words import tokenize
from focuscrawl.taxonomy.topic_tree import OTHER

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats


MAX_KEYWORDS = 200  # keywords of a topic
_MIN_LENGTH = 2  # characters of a keyword
_PSEUDO_PAGES = 10.0  # off-topic pages in general language, added to the counts
_WORDS_PER_PAGE = 20  # words in titles, headings and anchors of such a page
_MIN_FREQUENCY = 1e-4  # lower word frequencies are raised, as a few pages cannot confirm them
_MIN_PAGES = 2  # relevant pages with a keyword
_UNINFORMATIVE = (OTHER, "good")  # names in topic paths that do not describe a topic


class WordCount(NamedTuple):
    """How many relevant and other pages contain a word in their title, headings or link texts."""

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

        The weight of a word is p log(p/q), its part of the Kullback-Leibler divergence. Here, p is
        the share of relevant pages with the word, and q is the share of other pages with the word.
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
