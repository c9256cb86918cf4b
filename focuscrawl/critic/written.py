"""Languages as they are written (`wordfreq`): what is said of words by pages nobody has seen."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.pieces import normal, pieces

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag

    #: code and share of each language that pages are in; the shares add up to 1
    Shares = tuple[tuple[str, float], ...]

#: pages in English alone, whose words are counted as they are; all others by their pieces
ENGLISH: Shares = (("en", 1.0),)
#: a word that is more frequent in its language says nothing of a topic
COMMON = 1e-3

_LENGTH = 500  # words of a page
_EVERYDAY = 1e-6
_EVERYDAY_PIECE = 1e-5  # every word has several


def share_of_pages(words: Sequence[str], shares: Shares) -> NDArray[np.float64]:
    """Return how likely each word, or piece, is on a page of 500 words, float64 (n_words,)."""
    frequency = _counted(shares)
    each = np.array([frequency.get(word, 0.0) for word in words])
    share: NDArray[np.float64] = -np.expm1(-_LENGTH * each)
    return share


def everyday_words(shares: Shares) -> tuple[str, ...]:
    """Return what comes often: of English words once in a million or more, some 30,000."""
    least = _EVERYDAY if shares == ENGLISH else _EVERYDAY_PIECE
    return tuple(word for word, each in _counted(shares).items() if each >= least)


def written_pages(n: int, random_state: int, shares: Shares) -> list[Bag]:
    """Draw the words of `n` pages of 500 words, each on its own: grammar and everyday words."""
    frequency = _words(shares)
    words = list(frequency)
    weights = np.fromiter(frequency.values(), np.float64, len(words))
    generator = np.random.default_rng(random_state)
    drawn = generator.choice(len(words), (n, _LENGTH), p=weights / weights.sum())
    return [Counter(words[i] for i in page) for page in drawn.tolist()]


def words_as_written(n: float, shares: Shares) -> Bag:
    """Return how often `n` words of running text have each everyday word."""
    counts = {word: round(n * each) for word, each in _words(shares).items()}
    return {word: count for word, count in counts.items() if count}


def frequency(word: str, shares: Shares) -> float:
    """Return the share of all words that are `word`."""
    if shares == ENGLISH:
        from wordfreq import word_frequency  # noqa: PLC0415 - slow to import, rarely needed

        return float(word_frequency(word, "en"))
    return _words(shares).get(normal(word), 0.0)


def frequency_of_part(part: str, shares: Shares) -> float:
    """Return how often a word has `part` in it."""
    return sum(each for word, each in _words(shares).items() if part in word)


def known_languages() -> frozenset[str]:
    """Return the codes of the languages that there are lists of."""
    from wordfreq import available_languages  # noqa: PLC0415 - as below

    return frozenset(available_languages("small"))


@lru_cache(maxsize=64)
def most_frequent(code: str, n: int) -> frozenset[str]:
    """Return the `n` most frequent words of a language."""
    return frozenset(islice(_listed(code), n))


def frequencies(code: str, words: Collection[str]) -> dict[str, float]:
    """Return how frequent those of `words` are that the list of a language has."""
    wanted = set(words)
    return {word: each for each, same in _by_frequency(code) for word in wanted.intersection(same)}


def frequencies_of_pieces(code: str, n: int, wanted: Collection[str]) -> dict[str, float]:
    """Return how often the `n` most frequent words of a language have the pieces wanted."""
    found = _in_pieces(dict(islice(_listed(code).items(), n)))
    return {piece: each for piece, each in found.items() if piece in wanted}


def _listed(code: str) -> dict[str, float]:
    """Return the words of a language that come once in a million or more, frequent ones first."""
    return {word: each for each, same in _by_frequency(code) for word in same}


def _by_frequency(code: str) -> Iterator[tuple[float, list[str]]]:
    from wordfreq import get_frequency_list  # noqa: PLC0415 - slow to import, rarely needed

    by_frequency = get_frequency_list(code, "small")  # those of 10 ** (-i / 100) at index i
    get_frequency_list.cache_clear()  # all of them are a hundred megabytes
    return ((10 ** (-i / 100), same) for i, same in enumerate(by_frequency))


@lru_cache(maxsize=4)
def _counted(shares: Shares) -> dict[str, float]:
    return _words(shares) if shares == ENGLISH else _in_pieces(_words(shares))


@lru_cache(maxsize=4)
def _words(shares: Shares) -> dict[str, float]:
    """Return frequencies of words; of languages other than English of normal ones."""
    if shares == ENGLISH:
        from wordfreq import get_frequency_dict  # noqa: PLC0415

        return dict(get_frequency_dict("en"))
    found: dict[str, float] = {}
    for code, share in shares:
        for word, each in _listed(code).items():
            same = normal(word)
            found[same] = found.get(same, 0.0) + share * each
    return found


def _in_pieces(frequency: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word, each in frequency.items():
        for piece in pieces(word):
            found[piece] = found.get(piece, 0.0) + each
    return found
