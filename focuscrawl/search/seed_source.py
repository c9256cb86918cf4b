"""Interface of the sources of start pages, which other packages can add by an entry point."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import platformdirs

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import parse_toml, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from focuscrawl.search.candidates import Candidate

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
