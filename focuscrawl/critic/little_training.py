"""Reading the pages that a critic is learned from, where there are few: `from_little`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.corpus import read_bags, resolve
from focuscrawl.critic.english import english_pages
from focuscrawl.critic.from_little import learn_from_little, learn_from_query
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.errors import UserError
from focuscrawl.foundation.progress_listener import SILENT
from focuscrawl.taxonomy import ROOT, normalise

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.progress_listener import Progress
    from focuscrawl.webs.protocol import Web

_UNLABELLED = 300  # pages drawn from the web


def topic_name(name: str | None) -> str:
    """Return the class that a name stands for; ``/good`` for None.

    Raises
    ------
    UserError
        It is the name of the pages off the topic.
    """
    path = ON_TOPIC if name is None else normalise(name)
    if path in {OFF_TOPIC, ROOT}:
        raise UserError(f"--name {name}: that is what is off the topic; take another, like /Birds")
    return path


def train_from_little(
    phrases: Sequence[Sequence[str]],
    good: Sequence[str],
    bad: Sequence[str],
    web: Web | None,
    *,
    topic: str = ON_TOPIC,
    random_state: int = 0,
    progress: Progress = SILENT,
) -> TrainedCritic:
    """Train a critic from phrases, URLs of pages on the topic, and of pages that are not.

    Parameters
    ----------
    phrases : words of each phrase
    good, bad : URLs; those that `web` does not have, or not as HTML, are counted
    web : where they are, and the pages that stand for all others; None: phrases alone
    topic : name of the class of the topic
    random_state : seed of the sample of other pages
    progress : told how many pages will be read, and of every few that were

    Raises
    ------
    UserError
        Neither a phrase nor a good page that can be read.
    """
    if web is None:
        model = learn_from_query(phrases, topic=topic, embeddings=word_vectors_installed())
        return TrainedCritic(model=model, phrases=tuple(map(tuple, phrases)))
    skipped: Counter[str] = Counter()
    labelled = [(url, True) for url in good] + [(url, False) for url in bad]
    found = resolve(web, [url for url, _ in labelled])
    skipped["not in the web"] = found.count(None)
    known = {url: yes for url, (_, yes) in zip(found, labelled, strict=True) if url is not None}
    others = draw_others(web, known, random_state)
    progress.start(len(known) + len(others))
    bags = read_bags(web, [*known, *others], progress=progress)
    examples = list(zip(known.items(), bags, strict=False))
    skipped["not HTML"] = sum(bag is None for _, bag in examples)
    usable = [(url, yes, bag) for (url, yes), bag in examples if bag]
    if not phrases and not any(yes for _, yes, _ in usable):
        raise UserError("none of the good pages can be read from the web; name others, or --words")
    unlabelled = [bag for _, bag in usable_others(others, bags[len(known) :])]
    unlabelled += missing_others(len(unlabelled), random_state)
    model = learn_from_little(
        phrases,
        [bag for _, yes, bag in usable if yes],
        [bag for _, yes, bag in usable if not yes],
        unlabelled,
        topic=topic,
        embeddings=word_vectors_installed(),
    )
    return TrainedCritic(
        model=model,
        examples=tuple((url, topic if yes else OFF_TOPIC) for url, yes, _ in usable),
        skipped=+skipped,
        phrases=tuple(map(tuple, phrases)),
        random_state=random_state,
    )


def draw_others(web: Web, known: Container[str], random_state: int) -> list[str]:
    """Draw URLs of a web that are not `known`: twice as many as are needed, not all are pages."""
    others = [url for url in web.urls() if url not in known]
    order = np.random.default_rng(random_state).permutation(len(others))
    return [others[i] for i in order[: 2 * _UNLABELLED].tolist()]


def usable_others(urls: Sequence[str], bags: Sequence[Bag | None]) -> list[tuple[str, Bag]]:
    """Return those of the pages drawn that have words, as many as are needed."""
    pages = [(url, bag) for url, bag in zip(urls, bags, strict=True) if bag]
    return pages[:_UNLABELLED]


def missing_others(found: int, random_state: int) -> list[Bag]:
    """Return English pages for those that a small web does not have."""
    return english_pages(_UNLABELLED - found, random_state) if found < _UNLABELLED else []
