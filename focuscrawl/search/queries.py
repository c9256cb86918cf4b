"""Queries for search engines, made from the keywords of a topic."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from focuscrawl.critic.languages import COMMON, ENGLISH, frequency

if TYPE_CHECKING:
    from collections.abc import Sequence

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
