"""A critic from keywords alone, for topics without examples.

The keyword model assumes that the words of a page are drawn from one of two distributions,
background or topic. The *background* b(t) is the general frequency of words in the language
(`wordfreq`). The *topic* distribution theta(t) is a mixture: the distribution q(t) of the user's
words has the share `TOPIC_WORD_SHARE`, and the background has the remaining share:

    theta(t) = (1 - TOPIC_WORD_SHARE) b(t) + TOPIC_WORD_SHARE q(t)

The distribution q(t) gives all phrases of the user the same probability, which is divided equally
among the words of the phrase. The log-odds of a page are a sum over the words of the page. A word
of the user's phrases counts for the topic; the rarer the word is in the language, the more it
counts. Every word that is not in the user's phrases counts a little against the topic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.critic.languages import (
    COMMON,
    ENGLISH,
    detect_languages,
    detect_page_language,
    estimate_word_count,
    frequency,
    is_spaceless,
    normalise_word,
    split_scripts,
    substring_frequency,
)
from focuscrawl.errors import UserError
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.foundation.arrays import Floats

#: share of the user's words among the words of a relevant page. With `PRIOR`, a long page has
#: relevance 1/2 if one word in about 180 is the user's, for words as rare in English as "bicycle"
TOPIC_WORD_SHARE = 0.02
#: number of words at which the evidence of a page is capped, because repetition is no new evidence
EFFECTIVE_WORDS = 200
#: one occurrence in this many words does not count, because any page may mention a word once
PASSING_MENTION_WORDS = 100
#: probability of the topic for a page without evidence
PRIOR = 0.05
#: lower bound of word frequencies; smaller frequencies of `wordfreq` are noise
MIN_FREQUENCY = 1e-7
#: a word of a phrase counts at most this many times as often as the phrase's rarest word on the
#: page. So a page about roads is not relevant for "road cycling"
MAX_COUNT_RATIO = 2.0

_COMMAS = re.compile("[,，、،]")  # noqa: RUF001 - commas of other scripts
_MIN_STEMMED = 5  # letters of a word whose last letter is ignored; not in English
_MIN_INNER_MATCH = 4  # letters of a form that is also matched inside longer words

ON_TOPIC = "/good"
OFF_TOPIC = "/bad"


class PhraseModel:
    """Probabilities of the classes ``/good`` and ``/bad`` from two word distributions.

    Parameters
    ----------
    phrases : lower-case words of each phrase. All phrases have the same weight; a phrase counts
        only if a page has all of its words
    background : b(t) of each form of the words of the phrases: the word and its plural or singular
        in English, else the normalised word without its last letter
    languages : languages of the pages

    Attributes
    ----------
    classes : ``/bad`` and ``/good``
    """

    kind: ClassVar[str] = "words"

    def __init__(
        self,
        phrases: Sequence[Sequence[str]],
        background: Mapping[str, float],
        languages: LanguageShares = ENGLISH,
    ) -> None:
        if not phrases or not all(phrases):
            raise ValueError("a phrase has no words")
        self.classes: tuple[str, ...] = (OFF_TOPIC, ON_TOPIC)
        self.phrases = tuple(tuple(dict.fromkeys(phrase)) for phrase in phrases)
        self.background = dict(background)
        self.languages = languages
        words = sorted({word for phrase in self.phrases for word in phrase})
        number = {word: i for i, word in enumerate(words)}
        self._phrases = [np.array([number[word] for word in phrase]) for phrase in self.phrases]
        self._forms = [
            (form, i) for word, i in number.items() for form in _match_forms(word, languages)
        ]
        mass = np.zeros(len(words))
        for members in self._phrases:
            mass[members] += 1.0 / (len(self._phrases) * len(members))
        usual = np.zeros(len(words))
        for form, i in self._forms:
            usual[i] += max(self.background[form], MIN_FREQUENCY)
        self._log_ratios = np.log((1.0 - TOPIC_WORD_SHARE) + TOPIC_WORD_SHARE * mass / usual)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> Floats:
        """Return log Pr(class|page) for each page and class, float64 (n_bags, 2)."""
        odds = np.array([self._log_odds(bag) for bag in bags])
        posteriors = np.column_stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)])
        if calibration is None:
            return posteriors
        return calibration(posteriors, np.array([float(sum(bag.values())) for bag in bags]))

    def _log_odds(self, bag: Bag) -> float:
        length, found = self._count_matches(bag)
        found = np.maximum(found - min(1.0, length / PASSING_MENTION_WORDS), 0.0)
        capped = np.zeros(len(self._log_ratios))
        for members in self._phrases:
            counts = found[members]
            capped[members] = np.maximum(
                capped[members], np.minimum(counts, MAX_COUNT_RATIO * counts.min())
            )
        evidence = float(capped @ self._log_ratios) + (length - float(capped.sum())) * np.log1p(
            -TOPIC_WORD_SHARE
        )
        return float(
            np.log(PRIOR / (1.0 - PRIOR)) + evidence * min(1.0, EFFECTIVE_WORDS / max(length, 1))
        )

    def _count_matches(self, bag: Bag) -> tuple[float, Floats]:
        """Return the number of words of a page, and the count of each word of the phrases."""
        found = np.zeros(len(self._log_ratios))
        if self.languages == ENGLISH:
            for form, i in self._forms:
                found[i] += bag.get(form, 0)
            return sum(bag.values()), found
        length = 0.0
        for word, n in bag.items():
            for run in split_scripts(normalise_word(word)):
                length += n * estimate_word_count(run)
                inside = is_spaceless(run)
                for part, i in self._forms:
                    if run == part or (part in run and (inside or len(part) >= _MIN_INNER_MATCH)):
                        found[i] += n * run.count(part)
        return length, found


def _match_forms(word: str, languages: LanguageShares) -> tuple[str, ...]:
    """Return the forms that count as a word, or the part of a word that has to match.

    In languages other than English, the last letter of a long word may be an inflection.
    """
    if languages == ENGLISH:
        return word_forms(word)
    bare = normalise_word(word)
    return (bare if len(bare) < _MIN_STEMMED or is_spaceless(bare) else bare[:-1],)


def word_forms(word: str, languages: LanguageShares = ENGLISH) -> tuple[str, ...]:
    """Return the forms that count as `word`: in English, the regular plural and singular.

    A stemmer would also merge ``news`` with ``new``. In other languages, the forms of a word share
    n-grams, so the function returns only the word itself.
    """
    if (
        languages != ENGLISH
        or len(word) < 4
        or not word.isascii()
        or word.endswith(("ss", "us", "is"))
    ):
        return (word,)
    return (word, word[:-1]) if word.endswith("s") else (word, f"{word}s")


def parse_phrases(text: str) -> list[list[str]]:
    """Return the words of comma-separated phrases, such as ``road cycling, bicycle racing``.

    Raises
    ------
    UserError
        If `text` has no words, or a phrase has everyday words only.
    """
    phrases = [words for phrase in _COMMAS.split(text) if (words := tokenize([phrase])[0])]
    if not phrases:
        raise UserError(f'no words in {text!r}; give phrases like "road cycling"')
    reject_everyday_phrases(phrases, ENGLISH)
    return phrases


def reject_everyday_phrases(phrases: Sequence[Sequence[str]], languages: LanguageShares) -> None:
    """Raise `UserError` if a phrase consists only of words that nearly every page contains."""
    for words in phrases:
        if min(frequency(word, languages) for word in words) > COMMON:
            raise UserError(
                f"{' '.join(words)!r} is on nearly every page; choose words that few "
                'pages have, like "road cycling"'
            )


def parse_description(description: str) -> list[str]:
    """Return the rare words of a description of the topic, which count as one phrase.

    Raises
    ------
    UserError
        If the paragraph has everyday words only.
    """
    words = dict.fromkeys(tokenize([description])[0], 1)
    languages = ((detect_page_language(words) or "en", 1.0),)
    rare = [word for word in words if frequency(word, languages) <= COMMON]
    if not rare:
        raise UserError(
            f"description {description[:80]!r} has only words that are on nearly every page; "
            "add words that are specific to the topic"
        )
    return rare


def build_phrase_model(text: str) -> PhraseModel:
    """Build a model from comma-separated phrases; raises the errors of `parse_phrases`."""
    phrases = parse_phrases(text)
    languages = detect_languages((), (), phrases)
    reject_everyday_phrases(phrases, languages)
    how_often = frequency if languages == ENGLISH else substring_frequency
    known = {
        form for phrase in phrases for word in phrase for form in _match_forms(word, languages)
    }
    background = {form: max(how_often(form, languages), MIN_FREQUENCY) for form in sorted(known)}
    return PhraseModel(phrases, background, languages)
