"""The languages that pages are in, told by everyday words, script, and pieces of words."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import chain
from math import exp, log
from typing import TYPE_CHECKING

from focuscrawl.critic.pieces import in_pieces, is_spaceless, normal, pieces, runs
from focuscrawl.critic.written import (
    ENGLISH,
    frequencies,
    frequencies_of_pieces,
    frequency,
    known_languages,
    most_frequent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.written import Shares

_SPACELESS = ("zh", "ja", "ko")
_EVERYDAY = 200  # words of a language
_SURE = 0.3  # share of everyday words on a page that is not held against other languages
_LEAST = 0.2  # below, it may be a list of names
_BETTER = 1.5  # than English another language has to be: names and numbers are in all
_FEW = 10  # words, which tell nothing
_SAMPLE = 300  # pages that are looked at
_RARE = 0.1  # share of pages; rarer languages are left out
#: words that nobody explains are English unless they are so much likelier in another language
_ENGLISH_FIRST = 300.0
_IN_PIECES = 10_000  # words of a language whose pieces are looked at
_UNKNOWN = 1e-7  # frequency of other words and pieces


def read_as(bags: Sequence[Bag], shares: Shares) -> Sequence[Bag]:
    """Return what the words of pages are counted as: themselves in English, else their pieces."""
    return bags if shares == ENGLISH else in_pieces(bags)


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
    """Return the language of the words of many titles, headings and links; English if none tells.

    These have fewer everyday words than running text.
    """
    return language_of_page(words, sure=_SURE / 2, least=_LEAST / 10) or "en"


def language_of_page(bag: Bag, *, sure: float = _SURE, least: float = _LEAST) -> str | None:
    """Return the language of a page; None where it has too few words that tell.

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


def _share(words: Mapping[str, int], code: str) -> int:
    everyday = most_frequent(code, _EVERYDAY)
    return sum(n for word, n in words.items() if word in everyday)


def _others() -> list[str]:
    return sorted(known_languages().difference(_SPACELESS, {"en"}))


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
    """Return the shares of languages among those pages that tell."""
    step = max(1, len(bags) // _SAMPLE)
    told = Counter(filter(None, map(language_of_page, bags[::step])))
    kept = {code: n for code, n in told.items() if n >= _RARE * told.total()}
    return {code: n / sum(kept.values()) for code, n in kept.items()}


@lru_cache(maxsize=64)  # reading the lists of all languages takes a third of a second
def _of_words(words: tuple[str, ...]) -> dict[str, float]:
    """Return how likely words are of each language, the unlikely ones left out."""
    spaceless = _by_script(dict.fromkeys(words, 1))
    if spaceless["ko"] or spaceless["ja"]:
        return {_of_characters(spaceless): 1.0}
    codes = ["zh", "ja"] if spaceless else [*_others(), "en"]
    listed = {code: frequencies(code, words) for code in codes}
    whole = {
        code: _likelihood(words, known)
        for code, known in listed.items()
        if known.keys() >= set(words)
    }
    ascii_only = all(word.isascii() for word in words)
    if ascii_only and all(frequency(word, ENGLISH) > 0.0 for word in words):
        english = sum(log(frequency(word, ENGLISH)) for word in words)
        if max(whole.values(), default=english) < english + log(_ENGLISH_FIRST):
            return {"en": 1.0}
    if not whole:
        parts = sorted(set(chain.from_iterable(map(pieces, words))))
        whole = {
            code: _likelihood(parts, frequencies_of_pieces(code, _IN_PIECES, parts))
            for code in codes
        }
    best = max(whole.values())
    weight = {code: exp(each - best) for code, each in whole.items() if each > best + log(_RARE)}
    return {code: each / sum(weight.values()) for code, each in weight.items()}


def _likelihood(words: Sequence[str], frequency: Mapping[str, float]) -> float:
    return sum(log(max(frequency.get(word, 0.0), _UNKNOWN)) for word in words)
