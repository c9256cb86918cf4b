"""``focuscrawl critic train`` of one topic, from what somebody has of it."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import click

from focuscrawl.cli import options
from focuscrawl.cli.example_crawl import fetch_examples
from focuscrawl.cli.progress_bars import Bar
from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import read_text
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.taxonomy import Label
    from focuscrawl.webs.protocol import Web

# the critics load scikit-learn: a second that `--help` can do without
# ruff: noqa: PLC0415


def little_options(command: options.Decorated) -> options.Decorated:
    """Add the options that say what a topic is, for `Little.of`."""
    for option in (
        options.NAME,
        options.BOOKMARK_FOLDER,
        options.BOOKMARKS,
        click.option("--bad", help="File of URLs off the topic, one a line."),
        click.option("--good", help="File of URLs on the topic, one a line."),
        options.DESCRIPTION,
        options.WORDS,
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Little:
    """What there is of a topic.

    Attributes
    ----------
    words, description : as given
    phrases : words of each phrase; the description is one
    good, bad : URLs
    name : of the topic's class, as given
    """

    words: str | None
    description: str | None
    phrases: list[list[str]]
    good: list[str]
    bad: list[str]
    name: str | None

    @classmethod
    def of(
        cls,
        *,
        words: str | None,
        description: str | None,
        good: str | None,
        bad: str | None,
        bookmarks: Path | None,
        folder: str | None,
        name: str | None,
    ) -> Self:
        """Read what is given with options.

        Raises
        ------
        UserError
            A file cannot be read, or says nothing.
        """
        from focuscrawl.cli.topic_text import bookmarked
        from focuscrawl.critic.phrase_model import phrases_of, words_of
        from focuscrawl.critic.training import read_urls

        phrases = phrases_of(words) if words is not None else []
        if description is not None:
            phrases.append(words_of(read_description(description)))
        return cls(
            words,
            description,
            phrases,
            [*(read_urls(good) if good is not None else []), *bookmarked(bookmarks, folder)],
            read_urls(bad) if bad is not None else [],
            name,
        )

    @property
    def given(self) -> bool:
        """Whether there is any of it."""
        return bool(self.phrases or self.good or self.bad or self.name is not None)

    @property
    def labels(self) -> list[Label]:
        """The pages as a table of two classes."""
        from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC
        from focuscrawl.taxonomy import Label

        sides = ((ON_TOPIC, self.good), (OFF_TOPIC, self.bad))
        return [Label(url, topic, "train") for topic, urls in sides for url in urls]


def read_description(given: str) -> str:
    """Return a description: the text given, or that in a file of this name.

    Raises
    ------
    UserError
        It is one word that names no file, or the file cannot be read, or is empty.
    """
    if os.path.isfile(given):  # noqa: PTH113 - a paragraph may be too long for a path
        text = read_text(given)
        if not text.strip():
            raise UserError(f"--description {given}: nothing in it; write what the topic is about")
        return text
    if len(given.split()) < 2:
        raise UserError(f"--description {given}: no such file; give a paragraph, or a file of it")
    return given


def train_little(
    little: Little,
    live: Mapping[str, Any],
    *,
    web: str | None,
    kind: str | None,
    random_state: int,
    **learning: Any,
) -> TrainedCritic:
    """Train the critic of one topic.

    Parameters
    ----------
    live : parameters of `fetch_examples`, where pages are given and no web
    """
    from focuscrawl.critic.little_training import topic_name, train_from_little
    from focuscrawl.critic.naive_bayes import KINDS
    from focuscrawl.critic.phrase_model import WordsModel, read_phrases
    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.critic.training import train_critic

    _check_kind(kind, little, web)
    if kind == WordsModel.kind:
        return TrainedCritic(model=read_phrases(little.words or ""))
    topic = topic_name(little.name)
    found = _web(web, [*little.good, *little.bad], live, random_state)
    with closing(Bar("Reading")) as shown:
        if kind in KINDS:
            assert found is not None
            return train_critic(
                little.labels,
                found,
                kind=kind,
                random_state=random_state,
                progress=shown,
                **learning,
            )
        return train_from_little(
            little.phrases,
            little.good,
            little.bad,
            [] if found is None else [found],
            topic=topic,
            random_state=random_state,
            progress=shown,
        )


def _check_kind(kind: str | None, little: Little, web: str | None) -> None:
    """Raise `UserError` where a kind of critic cannot learn from what is given."""
    from focuscrawl.critic.discriminative import LogisticModel
    from focuscrawl.critic.naive_bayes import KINDS
    from focuscrawl.critic.phrase_model import WordsModel

    pages, said = little.good or little.bad, little.words or little.description
    if kind == WordsModel.kind and (pages or little.description or little.name or web):
        raise UserError("--kind words learns from --words alone")
    if kind in KINDS and (said or little.name or not (little.good and little.bad)):
        raise UserError(f"--kind {kind} learns from good and bad pages, both and alone")
    if kind not in {None, LogisticModel.kind, WordsModel.kind, *KINDS}:
        known = ", ".join([LogisticModel.kind, *KINDS, WordsModel.kind])
        raise UserError(f"unknown kind of critic {kind!r}: choose one of {known}")
    good, bad = ({normalize(url) or url for url in urls} for urls in (little.good, little.bad))
    both = sorted(good & bad)
    if both:
        raise UserError(f"{both[0]} is both good and bad; take it out of one")


def _web(
    name: str | None, pages: list[str], live: Mapping[str, Any], random_state: int
) -> Web | None:
    """Open the web of a name, or fetch pages; None: there are none to read."""
    from focuscrawl.webs import open_web

    if name is not None:
        return open_web(name)
    return fetch_examples(pages, random_state=random_state, **live) if pages else None
