"""Topic keywords: words of titles, headings and anchors that tell relevant pages (METHODS 8)."""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.languages import language_of_titles
from focuscrawl.critic.written import ENGLISH, frequency
from focuscrawl.page.tokens import tokenize
from focuscrawl.taxonomy.topic_path import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from focuscrawl.foundation.arrays import Floats


MOST = 200  # keywords of a topic
_SHORTEST = 2  # characters of a word
_UNSEEN = 10.0  # other pages taken as seen, that are written in the ordinary way
_WORDS = 20  # in titles, headings and anchors of such a page
_RAREST = 1e-4  # share of a text: how much rarer a word is cannot be told from a few pages
_LEAST = 2  # relevant pages a keyword is on
_SAYS_NOTHING = (OTHER, "good")  # of a topic's path


class WordCount(NamedTuple):
    """In how many relevant and other pages' titles, headings and anchors a word is."""

    relevant: int
    other: int


def words_of(texts: Sequence[str]) -> set[str]:
    """Return the distinct words of some texts that can be keywords: no numbers, no letters."""
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
    def of_topics(cls, topics: Iterable[str]) -> Keywords:
        """Return what a topic's own name gives before anything was crawled, all of weight 1.

        The paper has the user name keywords; the last part of a topic's path is how a user
        names one here, the last that says something: ``/Sports/Other`` is about sports, and
        ``/good`` about nothing that is known.
        """
        names = []
        for topic in topics:
            told = [part for part in topic.split("/") if part and part not in _SAYS_NOTHING]
            names += told[-1:]
        return cls.of_phrases([name.replace("_", " ") for name in names])

    @classmethod
    def of_phrases(cls, phrases: Sequence[str]) -> Keywords:
        """Return the words of some phrases, all of weight 1."""
        return cls(dict.fromkeys(words_of(phrases), 1.0))

    @classmethod
    def of_all(cls, *sources: Mapping[str, float]) -> Keywords:
        """Return the words of several sources, each with the greatest weight it has."""
        weights: dict[str, float] = {}
        for source in sources:
            for word, weight in source.items():
                weights[word] = max(weight, weights.get(word, 0.0))
        return cls(weights)

    @classmethod
    def of_counts(
        cls, counts: Mapping[str, WordCount], relevant: int, other: int, most: int = MOST
    ) -> Keywords:
        """Choose the words that tell relevant pages from others.

        A word's weight is its share in the divergence of the two kinds of page, p log(p/q) with
        p and q the shares of relevant and of other pages that have it (Carpineto, de Mori, Romano
        and Bigi, An information-theoretic approach to automatic query expansion, ACM TOIS
        (2001), section 3): frequent words of the topic weigh much, words of all pages nothing. Ten
        of the other pages are as their language is written, that of most of the words.

        Parameters
        ----------
        counts : by word
        relevant, other : pages of either kind
        most : keywords kept, the heaviest
        """
        code = language_of_titles({word: n.relevant + n.other for word, n in counts.items()})
        language = ENGLISH if code == "en" else ((code, 1.0),)
        weights = {}
        for word, count in counts.items():
            p = count.relevant / max(relevant, 1)
            if count.relevant < _LEAST:
                continue
            usual = min(1.0, _WORDS * max(frequency(word, language), _RAREST))
            q = (count.other + _UNSEEN * usual) / (other + _UNSEEN)
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
