"""The start URLs of a crawl."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl.link_filter import fits
from focuscrawl.critic.loading import model_file
from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import lines_of, numbered, read_text, table_of
from focuscrawl.foundation.url_lists import split_urls
from focuscrawl.foundation.urls import MAX_URL, no_url, normalize
from focuscrawl.taxonomy import lies_under, normalise
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    import csv

_SHOWN = 200  # characters of a text in a message
_HTTP = re.compile(r"\s*https?:", re.IGNORECASE)


def read_seeds(source: str, topics: tuple[str, ...]) -> list[str]:
    """Read seeds as a user names them.

    Parameters
    ----------
    source : URLs with commas or blanks between; or a file with one URL a line (blank lines and
        lines that begin with ``#`` are skipped); or a CSV file with the columns ``topic`` and
        ``url``; or a definition of a topic (``.toml``), for the seeds in it. A file
        ``models/...`` may be one that comes with the package
    topics : of a CSV file, the rows of these topics and of topics below them are taken

    Returns
    -------
    Normalised URLs in the order given, each once

    Raises
    ------
    UserError
        No such file, nothing in it for the topics, or something that is no URL.
    """
    if _HTTP.match(source):
        return _checked([(part, "seeds") for part in split_urls(source)])
    if source.endswith(".toml"):
        defined = read_definition(source).seeds
        if not defined:
            raise UserError(f"seeds: {source} names no seeds: add seeds = [...] to it")
        return _checked([(seed, f"{source}, seeds") for seed in defined])
    path = Path(source) if Path(source).exists() else model_file(source)
    if path is None:
        raise UserError(f"seeds: {_shown(source)} is neither a file nor an http(s) URL")
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"seeds: {error}") from None
    rows = table_of(text.splitlines())
    if "url" in (rows.fieldnames or ()):
        found = _from_csv(rows, source, topics)
    else:
        found = [(line, f"{source}, line {number}") for number, line in lines_of(text).items()]
    if not found:
        raise UserError(f"seeds: {source} holds no URL")
    return _checked(found)


def _from_csv(
    rows: csv.DictReader[str], source: str, topics: tuple[str, ...]
) -> list[tuple[str, str]]:
    of_topics = "topic" in (rows.fieldnames or ())
    found = [
        (row["url"] or "", f"{source}, row {number}")
        for number, row in numbered(rows, source)
        if not of_topics or lies_under(normalise(row["topic"] or ""), topics)
    ]
    if not found and of_topics:
        raise UserError(f"seeds: {source} has no row for topic {', '.join(topics)}")
    return found


def _shown(text: str) -> str:
    """Return what a user wrote for a URL, short and without what may be a password."""
    _, at, rest = text.rpartition("@")
    text = f"...{at}{rest}" if at else text
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _checked(found: list[tuple[str, str]]) -> list[str]:
    seeds: dict[str, None] = {}
    for text, where in found:
        url = normalize(text.strip())
        if url is None:
            raise UserError(f"{where}: {_shown(text.strip())} {no_url(text)}")
        if not fits(url):
            raise UserError(
                f"{where}: {_shown(url)} has {len(url):,} characters, and a crawl keeps URLs of "
                f"at most {MAX_URL:,}: leave it out"
            )
        seeds[url] = None
    return list(seeds)
