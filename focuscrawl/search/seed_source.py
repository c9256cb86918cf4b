"""Sources of start pages: their interface, settings and names; a source for lists of URLs.

Other packages can add a source by an entry point.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import platformdirs

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import numbered_lines, parse_toml, read_text, suggest_name
from focuscrawl.search.candidates import Candidate, read_candidates

_SETTINGS_FILE = "search.toml"
_PREFIX = "FOCUSCRAWL_"


class SearchAnswer(NamedTuple):
    """The answer of a source to a query."""

    candidates: list[Candidate]  # the best first
    problem: str = ""  # why there may be more candidates, such as search engines that failed


class SeedSource(ABC):
    """A source of candidates for start pages, such as a search engine.

    Parameters
    ----------
    argument : str
        The text after the colon in ``NAME:ARGUMENT``; empty: none.
    settings : mapping of str to str
        The user's settings of the source, such as ``url`` and ``key``.
    agent : str
        User-Agent header of requests.
    """

    @abstractmethod
    def __init__(self, argument: str, settings: Mapping[str, str], agent: str) -> None: ...

    def plan_queries(self, phrases: Sequence[str], tuples: Sequence[str]) -> list[str]:
        """Return the queries to ask: the user's phrases, and random combinations of keywords."""
        return list(dict.fromkeys([*phrases, *tuples]))

    @abstractmethod
    def search(self, query: str, n: int) -> SearchAnswer:
        """Return about `n` candidates for a query.

        Raises
        ------
        UserError
            The source does not answer as expected.
        """

    def close(self) -> None:  # noqa: B027 - most sources have nothing to close
        """Close connections."""


def source_settings(name: str) -> dict[str, str]:
    """Return the user's settings of a source, such as its ``url`` and ``key``.

    Settings are read from environment variables (see `variable_name`), and from the table
    ``[NAME]`` of the file ``search.toml`` in the user's folder of settings.
    """
    path = settings_file()
    content = {}
    if path.exists():
        try:
            content = parse_toml(read_text(path))
        except ValueError as error:
            raise UserError(f"{path} is no TOML file: {error}") from None
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise UserError(f"{path}: {name} must be a table: write [{name}]")
    settings = {key: str(value) for key, value in table.items()}
    prefix = variable_name(name, "")
    for variable, value in os.environ.items():
        if variable.startswith(prefix) and value.strip():
            settings[variable.removeprefix(prefix).lower()] = value.strip()
    return settings


def settings_file() -> Path:
    """Return the path of the user's settings of all sources."""
    return platformdirs.user_config_path("focuscrawl") / _SETTINGS_FILE


def variable_name(source: str, key: str) -> str:
    """Return the environment variable of a setting of a source."""
    return f"{_PREFIX}{source.upper().replace('-', '_')}_{key.upper()}"


STANDARD_INPUT = "-"
_RESULTS = (".json", ".json.gz", ".csv", ".csv.gz")


class UrlList(SeedSource):
    """The URLs in a file or on standard input, one a line; or the results of a search.

    Files of results are JSON and CSV files, see `read_candidates`. A function ``module:callable``
    is called with each query.
    """

    def __init__(self, argument: str, settings: Mapping[str, str], agent: str) -> None:
        del settings, agent
        self._name = argument
        self._is_function = argument != STANDARD_INPUT and not Path(argument).exists()

    def plan_queries(self, phrases: Sequence[str], tuples: Sequence[str]) -> list[str]:
        """Return the queries for a function, or a single empty query for a list of URLs."""
        return super().plan_queries(phrases, tuples) if self._is_function else [""]

    def search(self, query: str, n: int) -> SearchAnswer:
        """Return all URLs of the list, or the first `n` results of the function."""
        if self._is_function:
            return SearchAnswer(read_candidates(self._name, query)[:n])
        if self._name.endswith(_RESULTS):
            return SearchAnswer(read_candidates(self._name, query))
        is_file = self._name != STANDARD_INPUT
        text = read_text(self._name) if is_file else sys.stdin.read()
        urls = numbered_lines(text).values()
        if not urls:
            where = self._name if is_file else "standard input"
            raise UserError(f"{where} has no URLs: write one URL a line")
        return SearchAnswer([Candidate(url, "", "") for url in urls])


GROUP = "focuscrawl.seed_sources"


def open_source(spec: str, agent: str) -> SeedSource:
    """Open the source that a user names.

    Parameters
    ----------
    spec : str
        ``NAME`` or ``NAME:ARGUMENT`` of an installed source; a file of URLs or search results;
        ``-`` for a list of URLs from standard input; or a search function ``module:callable``.
    agent : str
        User-Agent header of requests.

    Raises
    ------
    UserError
        There is no such source, or its settings are missing.
    """
    name, _, argument = spec.partition(":")
    found = entry_points(group=GROUP, name=name)
    if not found or Path(spec).exists():
        if spec == STANDARD_INPUT or argument or Path(spec).exists():
            return UrlList(spec, {}, agent)
        raise UserError(
            f"there is no file and no source {spec!r}: {suggest_name(spec, installed_sources())}"
        )
    point = next(iter(found))
    try:
        source = point.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"source {name} cannot be loaded from {point.value}: {error}") from None
    opened: SeedSource = source(argument, source_settings(name), agent)
    return opened


def installed_sources() -> list[str]:
    """Return the names of the installed sources."""
    return sorted(entry_points(group=GROUP).names)


def default_source() -> str | None:
    """Return the installed source whose address the user has set, or None."""
    for name in installed_sources():
        if "url" in source_settings(name):
            return name
    return None
