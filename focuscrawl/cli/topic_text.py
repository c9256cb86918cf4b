"""Definitions of topics as ``focuscrawl topic`` takes them from options, and shows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import lines_of, read_text
from focuscrawl.foundation.url_lists import split_urls
from focuscrawl.foundation.urls import normalize
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.topics import read_bookmarks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.topics import TopicDefinition


def say_left_out(judged: Iterable[str], trained: TrainedCritic) -> None:
    """Name the judged pages that a critic could not learn from."""
    wanted = {normalize(url) or url for url in judged}
    for url in sorted(wanted - {url for url, _ in trained.examples}):
        click.echo(f"left out, it cannot be read: {one_line(url)}", err=True)


def warn_of_missing_embeddings(trained: TrainedCritic) -> None:
    """Say so where a critic would have used word embeddings that are not installed."""
    from focuscrawl.critic.discriminative import LogisticModel  # noqa: PLC0415 - slow to import
    from focuscrawl.critic.word_vectors import word_vectors_installed  # noqa: PLC0415

    model = trained.model
    if not isinstance(model, LogisticModel) or word_vectors_installed():
        return
    if model.vectors.languages[0][0] == "en":  # they know no other language well
        click.echo(
            "Warning: this critic knows words, but not what they mean: "
            "pip install 'focuscrawl[embeddings]', and train again",
            err=True,
        )


def in_words(definition: TopicDefinition) -> str:
    """Return what a definition holds, in one line."""
    parts = [
        *([f"topics {', '.join(definition.topics)}"] if definition.topics else []),
        *([counted(len(definition.words), "phrase")] if definition.words else []),
        counted(len(definition.good), "good page"),
        counted(len(definition.bad), "bad page"),
    ]
    return ", ".join(parts)


def parts(text: str | None) -> tuple[str, ...]:
    """Split what was given with commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def bookmarked(path: Path | None, folder: str | None) -> list[str]:
    """Return the URLs of bookmarks; none without a file."""
    if path is None:
        if folder is not None:
            raise UserError("--folder goes with --bookmarks: name the file, too")
        return []
    return [bookmark.url for bookmark in read_bookmarks(path, folder)]


def urls_of(given: Iterable[str]) -> list[str]:
    """Return the URLs given, with commas between or in files."""
    found: list[str] = []
    for each in (part for text in given for part in split_urls(text)):
        if each.lower().startswith(("http:", "https:")):
            found.append(each)
            continue
        if not Path(each).exists():
            raise UserError(f"{each} is no URL, and no file of URLs")
        found += lines_of(read_text(each)).values()
    return [normalize(url) or url for url in found]  # what is none is refused with the definition
