"""A new topic from what a person has of it, as ``focuscrawl topic new`` makes one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.studio.posted import text_of, texts_of
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import TopicDefinition, check_marked, write_definition
from focuscrawl.topics.bookmarks import bookmarks_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from focuscrawl.studio.folder import StudioFolder

_PHRASES_END = re.compile(r"[,\n]")


def begin_topic(folder: StudioFolder, values: Mapping[str, Any]) -> Path:
    """Write ``NAME/topic.toml``.

    Parameters
    ----------
    values : ``name``; ``words``, phrases with commas between; ``description``; ``urls``, pages on
        the topic, where crawls also begin; ``bad``, pages that are not; ``critic`` and ``classes``
        of it; ``web``, a recording to read pages from. What is empty is left out

    Returns
    -------
    Path of the definition

    Raises
    ------
    UserError
        Something makes no sense, or says too little.
    """
    place = folder.new_folder(text_of(values, "name"))
    critic, web = text_of(values, "critic"), text_of(values, "web")
    urls = urls_among(texts_of(values, "urls"))
    if critic:
        folder.critic(critic)
    topics = read_topics(text_of(values, "classes"))
    if topics and not critic:
        raise UserError("classes are those of a critic: name it, too")
    name = f"/{place.name}"
    made = TopicDefinition(
        critic=critic or None,
        web=folder.recording(web) if web else None,
        topics=topics,
        name=None if critic or name == OFF_TOPIC else name,
        words=tuple(filter(None, map(str.strip, _PHRASES_END.split(text_of(values, "words"))))),
        description=text_of(values, "description") or None,
        seeds=tuple(urls),
    ).judging(urls, urls_among(texts_of(values, "bad")))
    if not (made.words or made.description or made.good or made.critic):
        raise UserError("say what the topic is: a phrase, or pages on it, or a class of a critic")
    check_marked(made)
    path = place / "topic.toml"
    try:
        place.mkdir()
    except OSError as error:
        raise UserError(f"{place} cannot be made: {error.strerror}") from None
    try:
        write_definition(made, path)
    except UserError:
        place.rmdir()
        raise
    return path


def urls_among(lines: list[str]) -> list[str]:
    """Return the URLs of lines, normalised, each once; UserError if one is none."""
    found = {line: normalize(line) for line in lines if not line.startswith("#")}
    for line, url in found.items():
        if url is None:
            raise UserError(f"{line!r:.120} {no_url(line)}")
    return list(dict.fromkeys(url for url in found.values() if url is not None))


def bookmarked(text: str) -> list[dict[str, str]]:
    """Return the bookmarks in what a browser has exported: ``url``, ``title``, ``folder``."""
    return [each._asdict() for each in bookmarks_in(text, "the file")]
