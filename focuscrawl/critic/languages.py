"""Languages: how they are written, pieces of words, and which one a page is in.

In many languages a word alone says too little. Chinese and Japanese leave no space between words:
what comes from a page as one word is half a sentence. German puts words together to longer ones,
Arabic puts articles, conjunctions and prepositions before them, and nearly every language but
English inflects them. So a word is read as its pieces: pairs of neighbouring characters in
Chinese, Japanese and Korean (as Lucene's ``CJKAnalyzer`` makes them), else the word itself and
each four letters of it that follow each other (P. McNamee and J. Mayfield, Character n-gram
tokenization for European language text retrieval, Information Retrieval 7, 2004). This needs no
dictionary and no grammar, and does as well as those (docs/research/critics-studies.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import chain, islice, pairwise
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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

_LETTERS = 4
_CHARACTERS = 1.6  # of a word in a script that leaves no spaces
_EDGE, _PART = "_", "-"  # no word has them
_SPACELESS = re.compile(
    "([\u1100-\u11ff\u2e80-\u2fdf\u3005-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U000323af]+)"
)
#: Arabic teh marbuta and heh, alef maksura and yeh; tatweel  # codespell:ignore teh
_ALIKE = str.maketrans({"\u0629": "\u0647", "\u0649": "\u064a", "\u0640": None})
_COMBINING_ACCENTS = 0x0900  # beyond are scripts whose vowels are combining marks

_SPACELESS_SCRIPTS = ("zh", "ja", "ko")
_EVERYDAY_WORDS = 200  # words of a language
_SURE = 0.3  # share of everyday words on a page that is not held against other languages
_LEAST = 0.2  # below, it may be a list of names
_BETTER = 1.5  # than English another language has to be: names and numbers are in all
_FEW = 10  # words; fewer show no language
_SAMPLE = 300  # pages that are looked at
_RARE = 0.1  # share of pages; rarer languages are left out
#: words without pages around them are English unless they are so much likelier in another language
_ENGLISH_FIRST = 300.0
_IN_PIECES = 10_000  # words of a language whose pieces are looked at
_UNKNOWN = 1e-7  # frequency of other words and pieces


def read_as(bags: Sequence[Bag], shares: Shares) -> Sequence[Bag]:
    """Return what the words of pages are counted as: themselves in English, else their pieces."""
    if shares == ENGLISH:
        return bags
    read: list[Bag] = []
    for bag in bags:
        counts: Counter[str] = Counter()
        for word, count in bag.items():
            for piece in pieces(word):
                counts[piece] += count
        read.append(counts)
    return read


def languages_of(
    unlabelled: Sequence[Bag],
    examples: Sequence[Bag] = (),
    phrases: Iterable[Sequence[str]] = (),
) -> Shares:
    """Find out in which languages there is something to learn from.

    Pages that stand for all others count as much as the examples. Phrases count where no page
    tells, or where they are in letters that English does not have.
    """
    found = [shares for bags in (unlabelled, examples) if (shares := _of_pages(bags))]
    words = list(chain.from_iterable(phrases))
    if words and not (found and all(word.isascii() for word in words)):
        found.append(_of_words(tuple(words)))
    total: Counter[str] = Counter()
    for shares in found:
        total.update({code: share / len(found) for code, share in shares.items()})
    rounded = tuple((code, round(share, 3)) for code, share in total.most_common())
    return rounded or ENGLISH


def language_of_titles(words: Bag) -> str:
    """Return the language of the words of many titles, headings and links; English if unclear.

    These have fewer everyday words than running text.
    """
    return language_of_page(words, sure=_SURE / 2, least=_LEAST / 10) or "en"


def language_of_page(bag: Bag, *, sure: float = _SURE, least: float = _LEAST) -> str | None:
    """Return the language of a page; None where too few of its words show one.

    Parameters
    ----------
    sure : share of everyday English words on a page that is English, whatever else it may be
    least : share of everyday words of a language that a page in it has
    """
    words = {word: n for word, n in bag.items() if word.isalpha()}
    total = sum(words.values())
    spaceless = _by_script(words)
    if 2 * spaceless.total() > sum(len(word) * n for word, n in words.items()):
        return _of_characters(spaceless)
    if total < _FEW:
        return None
    english = _share(words, "en") / total
    if english >= sure:
        return "en"
    others = {code: _share(words, code) / total for code in _others()}
    best = max(others, key=others.__getitem__)
    if max(english, others[best]) < least:
        return None
    return best if others[best] > _BETTER * english else "en"


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
    """Return whether a word is in a script that leaves no spaces."""
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
    """Return whether a piece is letters of a word, which say nothing to people."""
    return piece.startswith(_PART)


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


def _share(words: Mapping[str, int], code: str) -> int:
    everyday = _everyday(code)
    return sum(n for word, n in words.items() if word in everyday)


@lru_cache(maxsize=64)
def _everyday(code: str) -> frozenset[str]:
    return frozenset(islice(_listed(code), _EVERYDAY_WORDS))


def _others() -> list[str]:
    from wordfreq import available_languages  # noqa: PLC0415 - slow to import, rarely needed

    return sorted(available_languages("small").keys() - {*_SPACELESS_SCRIPTS, "en"})


def _by_script(words: Mapping[str, int]) -> Counter[str]:
    """Count characters of scripts without spaces, by the language that only has them."""
    found: Counter[str] = Counter()
    for word, n in words.items():
        if not word.isascii():
            for run in runs(normal(word)):
                if is_spaceless(run):
                    found.update(Counter(map(_language_of, run * n)))
    return found


def _language_of(character: str) -> str:
    if "\u3040" <= character < "\u3100":
        return "ja"
    hangul = "\u1100" <= character < "\u1200" or "\uac00" <= character < "\ud7b0"
    return "ko" if hangul else "zh"


def _of_characters(spaceless: Counter[str]) -> str:
    """Return the language of characters: Japanese and Korean have Chinese ones, too."""
    if 2 * spaceless["ko"] > spaceless.total():
        return "ko"
    return "ja" if 10 * spaceless["ja"] > spaceless.total() else "zh"


def _of_pages(bags: Sequence[Bag]) -> dict[str, float]:
    """Return the shares of languages among those pages that show one."""
    step = max(1, len(bags) // _SAMPLE)
    found = Counter(filter(None, map(language_of_page, bags[::step])))
    kept = {code: n for code, n in found.items() if n >= _RARE * found.total()}
    return {code: n / sum(kept.values()) for code, n in kept.items()}


@lru_cache(maxsize=64)  # reading the lists of all languages takes a third of a second
def _of_words(words: tuple[str, ...]) -> dict[str, float]:
    """Return how likely words are of each language, the unlikely ones left out."""
    spaceless = _by_script(dict.fromkeys(words, 1))
    if spaceless["ko"] or spaceless["ja"]:
        return {_of_characters(spaceless): 1.0}
    codes = ["zh", "ja"] if spaceless else [*_others(), "en"]
    wanted = set(words)
    listed = {
        code: {
            word: each for each, same in _by_frequency(code) for word in wanted.intersection(same)
        }
        for code in codes
    }
    whole = {
        code: _likelihood(words, known) for code, known in listed.items() if known.keys() >= wanted
    }
    ascii_only = all(word.isascii() for word in words)
    if ascii_only and all(frequency(word, ENGLISH) > 0.0 for word in words):
        english = sum(log(frequency(word, ENGLISH)) for word in words)
        if max(whole.values(), default=english) < english + log(_ENGLISH_FIRST):
            return {"en": 1.0}
    if not whole:
        parts = sorted(set(chain.from_iterable(map(pieces, words))))
        whole = {
            code: _likelihood(parts, _in_pieces(dict(islice(_listed(code).items(), _IN_PIECES))))
            for code in codes
        }
    best = max(whole.values())
    weight = {code: exp(each - best) for code, each in whole.items() if each > best + log(_RARE)}
    return {code: each / sum(weight.values()) for code, each in weight.items()}


def _likelihood(words: Sequence[str], frequency: Mapping[str, float]) -> float:
    return sum(log(max(frequency.get(word, 0.0), _UNKNOWN)) for word in words)
