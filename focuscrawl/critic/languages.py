"""Detection of languages, their word frequencies, and character n-grams.

In many languages, whole words are poor features. Chinese and Japanese have no spaces between
words, so a token can be half a sentence. German has compounds, Arabic has prefixed articles,
conjunctions and prepositions, and nearly every language except English inflects its words. Words
of languages other than English are represented by character n-grams. Words in Chinese, Japanese
and Korean are split into bigrams, as in Lucene's ``CJKAnalyzer``. A word of any other language is
represented by the word and its 4-grams (McNamee and Mayfield, Character n-gram tokenization for
European language text retrieval, Information Retrieval 7, 2004). Features from dictionaries and
stemmers are no better than n-grams (docs/research/critics-studies.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.page.words import count_words

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Floats

    #: language codes and their shares of the pages; the shares add up to 1
    LanguageShares = tuple[tuple[str, float], ...]

#: only English: words are counted as they are. With other languages, n-grams are counted
ENGLISH: LanguageShares = (("en", 1.0),)
#: relative frequency above which a word of a language is too common to describe a topic
COMMON = 1e-3

_PAGE_WORDS = 500  # of a generated page
_EVERYDAY_FREQUENCY = 1e-6
_EVERYDAY_NGRAM_FREQUENCY = 1e-5  # higher, because every word has several n-grams

_NGRAM_LENGTH = 4
_CHARACTERS_PER_WORD = 1.6  # in scripts without spaces
_EDGE, _NGRAM_MARK = "_", "-"  # characters that no word contains
_SPACELESS = re.compile(
    "([\u1100-\u11ff\u2e80-\u2fdf\u3005-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U000323af]+)"
)
#: Arabic letters that writers interchange, and tatweel, which is dropped
_ARABIC_VARIANTS = str.maketrans({"\u0629": "\u0647", "\u0649": "\u064a", "\u0640": None})
_COMBINING_ACCENTS = 0x0900  # in scripts from this code point on, combining marks are vowels

_SPACELESS_SCRIPTS = ("zh", "ja", "ko")
_N_EVERYDAY_WORDS = 200  # of each language
#: share of everyday English words, above which other languages are not considered
_SURE_ENGLISH_SHARE = 0.3
_MIN_EVERYDAY_SHARE = 0.2  # of everyday words; a page with fewer may be a list of names
_MARGIN_OVER_ENGLISH = 1.5  # factor, because names and numbers occur in all languages
_MIN_WORDS = 10
_MAX_SAMPLED_PAGES = 300
_MIN_LANGUAGE_SHARE = 0.1  # of pages; rarer languages are left out
#: likelihood ratio above which words without pages are in another language than English
_ENGLISH_LIKELIHOOD_RATIO = 300.0
_NGRAM_VOCABULARY_WORDS = 10_000  # most frequent words of a language whose n-grams are counted
_UNKNOWN_FREQUENCY = 1e-7  # of a word or n-gram that is not in the list of a language


def to_terms(bags: Sequence[Bag], languages: LanguageShares) -> Sequence[Bag]:
    """Convert bags of words to bags of n-grams, unless the pages are in English."""
    if languages == ENGLISH:
        return bags
    read: list[Bag] = []
    for bag in bags:
        counts: Counter[str] = Counter()
        for word, count in bag.items():
            for ngram in word_ngrams(word):
                counts[ngram] += count
        read.append(counts)
    return read


def detect_languages(
    unlabelled: Sequence[Bag],
    examples: Sequence[Bag] = (),
    phrases: Iterable[Sequence[str]] = (),
) -> LanguageShares:
    """Detect the languages of training pages and phrases.

    All unlabelled pages together have the same weight as all examples together. The language of
    the phrases is used if no page has a detectable language, or if a phrase has non-ASCII letters.
    """
    found = [shares for bags in (unlabelled, examples) if (shares := _page_languages(bags))]
    words = list(chain.from_iterable(phrases))
    if words and not (found and all(word.isascii() for word in words)):
        found.append(_word_languages(tuple(words)))
    total: Counter[str] = Counter()
    for shares in found:
        total.update({code: share / len(found) for code, share in shares.items()})
    rounded = tuple((code, round(share, 3)) for code, share in total.most_common())
    return rounded or ENGLISH


def detect_title_language(words: Bag) -> str:
    """Detect the language of many titles, headings and links by their words; default: English.

    The detection thresholds are lower than for pages, because titles have fewer everyday words
    than running text.
    """
    return (
        detect_page_language(
            words, sure_english=_SURE_ENGLISH_SHARE / 2, min_share=_MIN_EVERYDAY_SHARE / 10
        )
        or "en"
    )


def detect_page_language(
    bag: Bag, *, sure_english: float = _SURE_ENGLISH_SHARE, min_share: float = _MIN_EVERYDAY_SHARE
) -> str | None:
    """Detect the language of a page from its everyday words; return None if it is unclear.

    Parameters
    ----------
    sure_english : share of everyday English words above which the page is English
    min_share : share of everyday words below which the language is unclear
    """
    words = {word: n for word, n in bag.items() if word.isalpha()}
    total = sum(words.values())
    spaceless = _count_by_script(words)
    if 2 * spaceless.total() > sum(len(word) * n for word, n in words.items()):
        return _language_of_script(spaceless)
    if total < _MIN_WORDS:
        return None
    english = _count_everyday(words, "en") / total
    if english >= sure_english:
        return "en"
    others = {code: _count_everyday(words, code) / total for code in _other_languages()}
    best = max(others, key=others.__getitem__)
    if max(english, others[best]) < min_share:
        return None
    return best if others[best] > _MARGIN_OVER_ENGLISH * english else "en"


def normalise_word(word: str) -> str:
    """Return a word in lower case without accents and vowel marks, with normal-width letters."""
    if word.isascii():
        return word
    if _SPACELESS.search(word):
        return unicodedata.normalize("NFKC", word).casefold()
    bare = "".join(
        c
        for c in unicodedata.normalize("NFKD", word.casefold())
        if not (unicodedata.combining(c) and ord(c) < _COMBINING_ACCENTS)
    )
    return bare.translate(_ARABIC_VARIANTS)


def split_scripts(word: str) -> list[str]:
    """Split a normalised word where a script without spaces (such as Chinese) starts or ends."""
    return [part for part in _SPACELESS.split(word) if part]


def is_spaceless(word: str) -> bool:
    """Return whether a word is in a script without spaces, such as Chinese."""
    return _SPACELESS.match(word) is not None


def estimate_word_count(run: str) -> float:
    """Return the approximate number of words in a part of a word that `split_scripts` returned."""
    if run.isascii():
        return 1.0
    number = len(run) / _CHARACTERS_PER_WORD if is_spaceless(run) else count_words(run)
    return max(number, 1.0)


@lru_cache(maxsize=20_000)
def word_ngrams(word: str) -> tuple[str, ...]:
    """Return the character n-grams that represent a word."""
    found: list[str] = []
    for run in split_scripts(normalise_word(word)):
        if is_spaceless(run):
            found += [a + b for a, b in pairwise(run)] or [run]
        else:
            found.append(run)
            if len(run) >= _NGRAM_LENGTH:
                edged = f"{_EDGE}{run}{_EDGE}"
                starts = range(len(edged) - _NGRAM_LENGTH + 1)
                found += [f"{_NGRAM_MARK}{edged[i : i + _NGRAM_LENGTH]}" for i in starts]
    return tuple(found)


def is_ngram(term: str) -> bool:
    """Return whether a term is an n-gram of a word; users would not understand n-grams."""
    return term.startswith(_NGRAM_MARK)


def page_frequency(words: Sequence[str], languages: LanguageShares) -> Floats:
    """Return the probability that a page of 500 words contains each word, float64 (n_words,)."""
    frequency = _term_frequencies(languages)
    each = np.array([frequency.get(word, 0.0) for word in words])
    share: Floats = -np.expm1(-_PAGE_WORDS * each)
    return share


@lru_cache(maxsize=4)
def everyday_words(languages: LanguageShares) -> tuple[str, ...]:
    """Return about 30,000 frequent words of English, or frequent n-grams of another language."""
    least = _EVERYDAY_FREQUENCY if languages == ENGLISH else _EVERYDAY_NGRAM_FREQUENCY
    return tuple(word for word, each in _term_frequencies(languages).items() if each >= least)


def generate_pages(n: int, random_state: int, languages: LanguageShares) -> list[Bag]:
    """Generate `n` pages of 500 words each, drawn independently by the word frequencies."""
    frequency = _word_frequencies(languages)
    words = list(frequency)
    weights = np.fromiter(frequency.values(), np.float64, len(words))
    generator = np.random.default_rng(random_state)
    drawn = generator.choice(len(words), (n, _PAGE_WORDS), p=weights / weights.sum())
    return [Counter(words[i] for i in page) for page in drawn.tolist()]


def expected_word_counts(n: float, languages: LanguageShares) -> Bag:
    """Return the expected number of occurrences of each word in a text of `n` words."""
    counts = {word: round(n * each) for word, each in _word_frequencies(languages).items()}
    return {word: count for word, count in counts.items() if count}


def frequency(word: str, languages: LanguageShares) -> float:
    """Return the relative frequency of a word in a language."""
    if languages == ENGLISH:
        from wordfreq import word_frequency  # noqa: PLC0415 - slow to import, rarely needed

        return float(word_frequency(word, "en"))
    return _word_frequencies(languages).get(normalise_word(word), 0.0)


def substring_frequency(part: str, languages: LanguageShares) -> float:
    """Return the total relative frequency of the words that contain `part`."""
    return sum(each for word, each in _word_frequencies(languages).items() if part in word)


def _word_list(code: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a language and their frequencies of 1e-6 or more, in falling order."""
    return ((word, each) for each, same in _words_by_frequency(code) for word in same)


def _words_by_frequency(code: str) -> Iterator[tuple[float, list[str]]]:
    from wordfreq import get_frequency_list  # noqa: PLC0415 - slow to import, rarely needed

    by_frequency = get_frequency_list(code, "small")  # index i: frequency 10 ** (-i / 100)
    get_frequency_list.cache_clear()  # the lists of all languages take 100 MB
    return ((10 ** (-i / 100), same) for i, same in enumerate(by_frequency))


@lru_cache(maxsize=4)
def _term_frequencies(languages: LanguageShares) -> dict[str, float]:
    return (
        _word_frequencies(languages)
        if languages == ENGLISH
        else _ngram_frequencies(_word_frequencies(languages))
    )


@lru_cache(maxsize=4)
def _word_frequencies(languages: LanguageShares) -> dict[str, float]:
    """Return word frequencies; words of languages other than English are normalised."""
    if languages == ENGLISH:
        from wordfreq import get_frequency_dict  # noqa: PLC0415

        return dict(get_frequency_dict("en", "best"))  # as `word_frequency` does: read only once
    found: dict[str, float] = {}
    for code, share in languages:
        for word, each in _word_list(code):
            same = normalise_word(word)
            found[same] = found.get(same, 0.0) + share * each
    return found


def _ngram_frequencies(frequency: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word, each in frequency.items():
        for ngram in word_ngrams(word):
            found[ngram] = found.get(ngram, 0.0) + each
    return found


def _count_everyday(words: Mapping[str, int], code: str) -> int:
    everyday = _top_words(code)
    return sum(n for word, n in words.items() if word in everyday)


@lru_cache(maxsize=64)
def _top_words(code: str) -> frozenset[str]:
    return frozenset(word for word, _ in islice(_word_list(code), _N_EVERYDAY_WORDS))


def _other_languages() -> list[str]:
    from wordfreq import available_languages  # noqa: PLC0415 - slow to import, rarely needed

    return sorted(available_languages("small").keys() - {*_SPACELESS_SCRIPTS, "en"})


def _count_by_script(words: Mapping[str, int]) -> Counter[str]:
    """Count characters of scripts without spaces by their language."""
    found: Counter[str] = Counter()
    for word, n in words.items():
        if not word.isascii():
            for run in split_scripts(normalise_word(word)):
                if is_spaceless(run):
                    found.update(Counter(map(_language_of_character, run * n)))
    return found


def _language_of_character(character: str) -> str:
    if "\u3040" <= character < "\u3100":
        return "ja"
    hangul = "\u1100" <= character < "\u1200" or "\uac00" <= character < "\ud7b0"
    return "ko" if hangul else "zh"


def _language_of_script(spaceless: Counter[str]) -> str:
    """Return the language of characters; Japanese and Korean texts have Chinese ones, too."""
    if 2 * spaceless["ko"] > spaceless.total():
        return "ko"
    return "ja" if 10 * spaceless["ja"] > spaceless.total() else "zh"


def _page_languages(bags: Sequence[Bag]) -> dict[str, float]:
    """Return the share of each language among the pages with a detectable language."""
    step = max(1, len(bags) // _MAX_SAMPLED_PAGES)
    found = Counter(filter(None, map(detect_page_language, bags[::step])))
    kept = {code: n for code, n in found.items() if n >= _MIN_LANGUAGE_SHARE * found.total()}
    return {code: n / sum(kept.values()) for code, n in kept.items()}


@lru_cache(maxsize=64)  # reading the word lists of all languages takes a third of a second
def _word_languages(words: tuple[str, ...]) -> dict[str, float]:
    """Return the probability of each language given some words; unlikely ones are left out."""
    spaceless = _count_by_script(dict.fromkeys(words, 1))
    if spaceless["ko"] or spaceless["ja"]:
        return {_language_of_script(spaceless): 1.0}
    codes = ["zh", "ja"] if spaceless else [*_other_languages(), "en"]
    wanted = set(words)
    listed = {
        code: {
            word: each
            for each, same in _words_by_frequency(code)
            for word in wanted.intersection(same)
        }
        for code in codes
    }
    whole = {
        code: _likelihood(words, known) for code, known in listed.items() if known.keys() >= wanted
    }
    ascii_only = all(word.isascii() for word in words)
    if ascii_only and all(frequency(word, ENGLISH) > 0.0 for word in words):
        english = sum(log(frequency(word, ENGLISH)) for word in words)
        if max(whole.values(), default=english) < english + log(_ENGLISH_LIKELIHOOD_RATIO):
            return {"en": 1.0}
    if not whole:
        parts = sorted(set(chain.from_iterable(map(word_ngrams, words))))
        whole = {
            code: _likelihood(
                parts,
                _ngram_frequencies(dict(islice(_word_list(code), _NGRAM_VOCABULARY_WORDS))),
            )
            for code in codes
        }
    best = max(whole.values())
    weight = {
        code: exp(each - best)
        for code, each in whole.items()
        if each > best + log(_MIN_LANGUAGE_SHARE)
    }
    return {code: each / sum(weight.values()) for code, each in weight.items()}


def _likelihood(words: Sequence[str], frequency: Mapping[str, float]) -> float:
    return sum(log(max(frequency.get(word, 0.0), _UNKNOWN_FREQUENCY)) for word in words)
