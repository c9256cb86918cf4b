"""What may be wrong with a topic's words and examples, in plain sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from focuscrawl.critic.languages import languages_of, read_as
from focuscrawl.critic.phrase_model import forms
from focuscrawl.critic.written import ENGLISH
from focuscrawl.foundation.urls import host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.example_groups import Cohesion
    from focuscrawl.critic.few_examples_estimates import Share

_FEW = 3  # good examples
_LITTLE = 0.4  # recall
_COMMON = 0.2  # share of other pages that have a phrase
_OTHERS = 20  # other pages, to tell what is common among them


def warnings_of(
    phrases: Sequence[Sequence[str]],
    good: Sequence[str],
    others: Sequence[tuple[str, Bag]],
    cohesion: Cohesion | None,
    recall: Share | None,
) -> Iterator[str]:
    """Yield warnings, each a sentence.

    Parameters
    ----------
    phrases : words of each phrase of the topic
    good : URLs of the good examples
    others : URLs and words of other pages; where one was is not always known, and empty then
    cohesion : of the good examples, if there are two
    recall : as estimated from them
    """
    if good and len(good) < _FEW:
        yield f"{len(good)} good examples are very few: give ten, as different as the topic allows"
    if len(others) >= _OTHERS:
        yield from _common_phrases(phrases, [bag for _, bag in others])
        yield from _one_host(good, [url for url, _ in others])
    if cohesion is not None and cohesion.groups:
        one, two = (", ".join(group) for group in cohesion.groups)
        yield f"the good examples fall apart into two groups: make a topic of each ({one}; {two})"
    elif cohesion is not None and cohesion.broad and len(good) >= _FEW:
        yield (
            "the good examples have hardly more in common with each other than with any page: "
            "the topic is too broad; make several of it"
        )
    elif recall is not None and recall.value < _LITTLE:
        yield (
            "many good examples are not found by what the others teach: the topic is too broad "
            "for so few; give more, or make several topics of it"
        )


def _common_phrases(phrases: Sequence[Sequence[str]], others: Sequence[Bag]) -> Iterator[str]:
    languages = languages_of(others, (), phrases)
    pages = read_as(others, languages)
    for phrase in phrases:
        if languages == ENGLISH:
            having = sum(
                all(any(form in bag for form in forms(word)) for word in phrase) for bag in pages
            )
        else:
            (wanted,) = read_as([dict.fromkeys(phrase, 1)], languages)
            having = sum(bag.keys() >= wanted.keys() for bag in pages)
        if having > _COMMON * len(others):
            it = "all its words" if len(phrase) > 1 else "it"
            yield (
                f"{' '.join(phrase)!r} is too common: {having} of {len(others)} other pages have "
                f"{it}; take words that only pages on the topic have"
            )


def _one_host(good: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    hosts = Counter(map(host, good))
    if len(good) < _FEW or len(hosts) > 1:
        return
    (only,) = hosts
    if sum(host(url) == only for url in others if url) < len(others) / 2:
        yield f"all good examples are of {only}: the critic may learn the site, not the topic"
