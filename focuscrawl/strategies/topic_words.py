"""The words a user would look for, for strategies that compare texts with a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.knowledge import Keywords
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Bools, Ints
    from focuscrawl.strategies.messages import StrategyContext

MOST = 16  # words of a query


def topic_keywords(context: StrategyContext) -> Keywords:
    """Return the keywords of the topic that earlier crawls learned, else the words of its name."""
    return topic_names(context) if context.knowledge is None else context.knowledge.keywords


def topic_names(context: StrategyContext) -> Keywords:
    """Return the words of the topic's name."""
    critic = context.critic
    marked = [c for c, on in zip(critic.classes, critic.marked, strict=True) if on]
    return Keywords.of_topics(context.topics or marked)


def query(context: StrategyContext) -> list[str]:
    """Return at most `MOST` keywords, the heaviest first."""
    return list(topic_keywords(context).weights)[:MOST]


class TermHits:
    """Finds the terms of a query in texts.

    Parameters
    ----------
    terms : words in lower case, at most 62
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self._number = {term: i for i, term in enumerate(terms)}

    def in_texts(self, texts: list[str]) -> Ints:
        """Return int64 (n_texts,): bit k is set where term k is a word of the text."""
        words, owner = tokenize(texts)
        hits = np.zeros(len(texts), np.int64)
        np.bitwise_or.at(hits, owner, self.of_words(words))
        return hits

    def of_words(self, words: Sequence[str]) -> Ints:
        """Return int64 (n_words,): bit k is set where the word is term k."""
        numbers = [self._number.get(word, -1) for word in words]
        number = np.array(numbers, np.int64)
        return np.where(number < 0, 0, 1 << np.maximum(number, 0))

    def __len__(self) -> int:
        return len(self._number)


def has_term(hits: Ints, terms: int) -> Bools:
    """Return bool (n, terms) from n sets of terms as `TermHits` gives them."""
    found: Bools = (hits[:, None] >> np.arange(terms)) & 1 > 0
    return found
