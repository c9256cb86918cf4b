"""A critic from a few words alone, for a topic without examples.

A page is read as drawn from one of two word distributions. The *background* b(t) is its language
as it is written (`wordfreq`). The *topic* puts a share `TOPIC_WORD_SHARE` of its words on the
user's words and the rest on the background:

    theta(t) = (1 - TOPIC_WORD_SHARE) b(t) + TOPIC_WORD_SHARE q(t),

with q spread evenly over the phrases and, in a phrase, over its words. The log-odds of a page
are then a sum over its words: each of the user's words counts for the topic, the more the rarer
it is in its language, and every other word counts a little against it.
"""

from __future__ import annotations

import re
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
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.languages import LanguageShares

#: share of the words of a page on the topic that are the user's. With `PRIOR`, a long page is
#: undecided (R = 1/2) when one word in about 180 is the user's, if those are as rare in English
#: as "bicycle"; common ones must come more often
TOPIC_WORD_SHARE = 0.02
#: a longer page weighs as much as a sample of it of this many words: more of the same is no
#: fresh evidence
EFFECTIVE_WORDS = 200
#: any page of this many words may mention a word once in passing: that is no evidence
PASSING_MENTION_WORDS = 100
#: Pr(topic) of a page that says nothing
PRIOR = 0.05
#: no word is rarer in English than this: below, `wordfreq` has only noise
MIN_FREQUENCY = 1e-7
#: a word of a phrase counts at most this many times as often as the phrase's rarest word: a
#: page on roads is not one on road cycling
MAX_COUNT_RATIO = 2.0

_COMMAS = re.compile("[,，、،]")  # noqa: RUF001 - those of other scripts
_MIN_STEMMED = (
    5  # letters; of words of other languages that have as many, the last may be an ending
)
_MIN_INNER_MATCH = 4  # letters of what is looked for inside words

ON_TOPIC = "/good"
OFF_TOPIC = "/bad"


class PhraseModel:
    """Posteriors of ``/good`` and ``/bad`` by the two-component model of the module's docstring.

    Parameters
    ----------
    phrases : the words of each phrase, lower-case; one phrase is as good as another, a phrase
        counts as far as all of its words are there
    background : b(t) of every word of the phrases and of its plural or singular, which counts
        as the word itself; in other languages than English of the part of words that counts
    languages : that pages are in

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
            raise ValueError("a phrase without words")
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
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, 2), each row a distribution."""
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

    def _count_matches(self, bag: Bag) -> tuple[float, NDArray[np.float64]]:
        """Return how many words a page has, and how often each of the phrases'."""
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
    """Return the forms that count as a word, or the part of words that does.

    Where words are put together and inflected in ways that are not known here, a long word is
    found wherever all of it but its last letter is.
    """
    if languages == ENGLISH:
        return word_forms(word)
    bare = normalise_word(word)
    return (bare if len(bare) < _MIN_STEMMED or is_spaceless(bare) else bare[:-1],)


def word_forms(word: str, languages: LanguageShares = ENGLISH) -> tuple[str, ...]:
    """Return the spellings that count as `word`: itself and its regular plural or singular.

    One letter's difference that English makes of every noun; a stemmer would take ``news`` for
    ``new`` too. In other languages words are counted by their pieces, which forms share.
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
    """Return the words of comma-separated phrases: ``"road cycling, bicycle racing"``.

    Raises
    ------
    UserError
        If there is no word in `text`, or a phrase has only words that are on every page.
    """
    phrases = [words for phrase in _COMMAS.split(text) if (words := tokenize([phrase])[0])]
    if not phrases:
        raise UserError(f'--words {text!r}: no words in it; name some, like "road cycling"')
    reject_everyday_phrases(phrases, ENGLISH)
    return phrases


def reject_everyday_phrases(phrases: Sequence[Sequence[str]], languages: LanguageShares) -> None:
    """Refuse phrases that nearly every page in these languages has.

    Raises
    ------
    UserError
        One has only everyday words.
    """
    for words in phrases:
        if min(frequency(word, languages) for word in words) > COMMON:
            raise UserError(
                f"--words: {' '.join(words)!r} is on nearly every page; name words that few have, "
                'like "road cycling"'
            )


def parse_description(description: str) -> list[str]:
    """Return the words of a paragraph that count as one phrase: those that few pages have.

    Raises
    ------
    UserError
        There is none.
    """
    words = dict.fromkeys(tokenize([description])[0], 1)
    languages = ((detect_page_language(words) or "en", 1.0),)
    rare = [word for word in words if frequency(word, languages) <= COMMON]
    if not rare:
        raise UserError(
            f"description {description[:80]!r}: every word of it is on nearly every page; say "
            "what the topic is about"
        )
    return rare


def build_phrase_model(text: str) -> PhraseModel:
    """Make a model of comma-separated phrases, as `parse_phrases` reads them."""
    phrases = parse_phrases(text)
    languages = detect_languages((), (), phrases)
    reject_everyday_phrases(phrases, languages)
    how_often = frequency if languages == ENGLISH else substring_frequency
    known = {
        form for phrase in phrases for word in phrase for form in _match_forms(word, languages)
    }
    background = {form: max(how_often(form, languages), MIN_FREQUENCY) for form in sorted(known)}
    return PhraseModel(phrases, background, languages)
