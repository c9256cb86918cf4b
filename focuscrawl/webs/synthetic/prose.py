"""Titles and sentences in the words of a topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from focuscrawl.webs.synthetic.seeded_random import Digits, Draws
from focuscrawl.webs.synthetic.words import COMMON, KIN, TOPICS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

# Slots: n noun, a adjective, g gerund, p name of the topic; f noun of the family; s season;
# l place; c noun and d adjective that any page may use
_TITLES = (
    "{a} {n} in {s}",
    "{g} in {s}",
    "{g} and the {a} {n}",
    "A guide to {g}",
    "Choosing the right {n}",
    "{n} and {n}: notes from {l}",
    "{l} {n} report",
    "Ten questions about the {n}",
    "{p}: the {a} {n}",
    "Why the {n} matters",
    "{g} for beginners: the {n}",
    "The {a} {n} of {p}",
    "{a} {n}, {a} {n}",
    "{g} with {p} in {l}",
    "The {d} {c} of {g}",
    "What {p} taught me",
)

_SENTENCES = (
    "The {a} {n} is the part of {g} that most people remember.",
    "After a year of {g} we still learn something about the {n} every week.",
    "{p} wrote that a {d} {n} matters more than any {f}.",
    "In {s} the {n} and the {n} are rarely as {d} as they look.",
    "Most of what is said about the {a} {n} in {l} is not true.",
    "You need a {n}, a little patience and a {d} {c}.",
    "There is no {c} without some {g}.",
    "Our {f} began with one {n} and ended with a {d} {c}.",
    "Ask {p} about the {n}, and the answer is always the same: more {g}.",
    "It was a {d} {c}, and nobody in {l} had expected the {a} {n}.",
    "What makes the {n} so {d} is the {f} behind it.",
    "Before {g}, look at the {n} once more.",
    "People from {l} came with their own {n} and stayed for the {f}.",
    "A {d} {c} later the {a} {n} was there again.",
    "We compared one {n} with another and found no {c}.",
    "For those who know {g} only from the {c}, the {n} is a surprise.",
    "The {c} of the {f} was to make every {n} more {d}.",
    "When {s} comes, {g} is a matter of the right {n}.",
    "They have had the same {a} {n} for years, and it works.",
    "Some of us prefer {g}, others the {d} {c} of the {n}.",
    "That is why the {f} should never be left to a {c}.",
    "It takes time to see how the {n} changes a {f}.",
    "{p} and {p} do not agree about the {n}.",
    "If the {n} is {a}, try again with a {d} one.",
)

_CHATTER = (
    "This site is run by a {d} {c} of people in {l}.",
    "We keep no {c} about you that we do not need.",
    "Write to us if a {c} is missing or a {c} is wrong.",
    "All {d} {c}s on these pages may be used with our name.",
    "The {c} is updated every {c}, as far as time permits.",
    "Nothing here is advice that a {d} {c} could replace.",
    "By using this {c} you accept the {d} {c} of the house.",
    "Cookies help us to remember your {c} until the next visit.",
)

_SLOT = re.compile(r"\{(.)\}")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou])")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_PLAIN = str.maketrans("éöü", "eou")


def _word(slot: str, topic: Topic, draws: Draws | Digits) -> str:
    return draws.pick(topic.urns[slot] if slot in topic.urns else COMMON[slot])


def _fill(template: str, word: Callable[[str], str]) -> str:
    """Return a template with a word in each slot."""
    text = _SLOT.sub(lambda slot: word(slot[1]), template)
    return _ARTICLE.sub(r"\1n ", text[0].upper() + text[1:])


def title(topic: Topic, bits: int) -> str:
    """Make up a title about `topic` from one 64-bit hash."""
    digits = Digits(bits)
    return _fill(digits.pick(_TITLES), lambda slot: _word(slot, topic, digits))


def sentence(topic: int, focus: float, draws: Draws) -> str:
    """Make up a sentence.

    Parameters
    ----------
    topic : number into `words.TOPICS`
    focus : share of the topic's slots that hold the topic's own words; the others are filled
        by general words, or by those of a topic near it, or of any
    """
    own = TOPICS[topic]

    def word(slot: str) -> str:
        if slot not in "nagp" or draws.unit() < focus:
            return _word(slot, own, draws)
        where = draws.unit()
        if where < 0.3:
            return _word(slot, TOPICS[draws.pick(KIN[topic])], draws)
        if where < 0.5 or slot in "gp":
            return _word(slot, draws.pick(TOPICS), draws)
        return _word("c" if slot == "n" else "d", own, draws)

    return _fill(draws.pick(_SENTENCES), word)


def chatter(draws: Draws) -> str:
    """Make up a sentence about nothing, as on pages about privacy."""
    return _fill(draws.pick(_CHATTER), lambda slot: _word(slot, TOPICS[0], draws))


def slug(text: str) -> str:
    """Return `text` as it appears in a URL."""
    return _NOT_SLUG.sub("-", text.lower().translate(_PLAIN)).strip("-")
