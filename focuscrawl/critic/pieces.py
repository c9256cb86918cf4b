"""Parts of words, for languages where a word alone says too little.

Chinese and Japanese leave no space between words: what comes from a page as one word is half a
sentence. German puts words together to longer ones, Arabic puts articles, conjunctions and
prepositions before them, and nearly every language but English inflects them. So a word is read
as its pieces: pairs of neighbouring characters in Chinese, Japanese and Korean, else the word
itself and each four letters of it that follow each other. This needs no dictionary and no grammar,
and does as well as those (docs/critics.md).

Notes
-----
P. McNamee and J. Mayfield, Character n-gram tokenization for European language text retrieval,
Information Retrieval 7, 2004; pairs are what Lucene's ``CJKAnalyzer`` makes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.bag_of_words import Bag

_LETTERS = 4
_CHARACTERS = 1.6  # of a word in a script that leaves no spaces
_EDGE, _PART = "_", "-"  # no word has them
_SPACELESS = re.compile(
    "([\u1100-\u11ff\u2e80-\u2fdf\u3005-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U000323af]+)"
)
#: Arabic teh marbuta and heh, alef maksura and yeh; tatweel
_ALIKE = str.maketrans({"\u0629": "\u0647", "\u0649": "\u064a", "\u0640": None})
_COMBINING_ACCENTS = 0x0900  # beyond are scripts whose vowels are combining marks


def normal(word: str) -> str:
    """Return a word without what writers leave out or write otherwise.

    Full-width letters, accents, vowel marks.
    """
    if word.isascii():
        return word
    if _SPACELESS.search(word):
        return unicodedata.normalize("NFKC", word).casefold()
    bare = "".join(
        c
        for c in unicodedata.normalize("NFKD", word.casefold())
        if not (unicodedata.combining(c) and ord(c) < _COMBINING_ACCENTS)
    )
    return bare.translate(_ALIKE)


def runs(word: str) -> list[str]:
    """Divide a normal word where it changes to or from a script without spaces."""
    return [part for part in _SPACELESS.split(word) if part]


def is_spaceless(word: str) -> bool:
    """Tell whether a word is in a script that leaves no spaces."""
    return _SPACELESS.match(word) is not None


def n_words(run: str) -> float:
    """Return about how many words a run has."""
    return max(len(run) / _CHARACTERS, 1.0) if is_spaceless(run) else 1.0


@lru_cache(maxsize=20_000)
def pieces(word: str) -> tuple[str, ...]:
    """Return what a word is counted as."""
    found: list[str] = []
    for run in runs(normal(word)):
        if is_spaceless(run):
            found += [a + b for a, b in pairwise(run)] or [run]
        else:
            found.append(run)
            if len(run) >= _LETTERS:
                edged = f"{_EDGE}{run}{_EDGE}"
                starts = range(len(edged) - _LETTERS + 1)
                found += [f"{_PART}{edged[i : i + _LETTERS]}" for i in starts]
    return tuple(found)


def is_part(piece: str) -> bool:
    """Tell whether a piece is letters of a word, which say nothing to people."""
    return piece.startswith(_PART)


def in_pieces(bags: Sequence[Bag]) -> list[Bag]:
    """Return the pieces of the words of pages, each as often as those that have it."""
    read: list[Bag] = []
    for bag in bags:
        counts: Counter[str] = Counter()
        for word, count in bag.items():
            for piece in pieces(word):
                counts[piece] += count
        read.append(counts)
    return read
