"""Candidates from a file, from standard input, or from a Python function of the user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import numbered_lines, read_text
from focuscrawl.search.candidates import Candidate, read_candidates
from focuscrawl.search.seed_source import SearchAnswer, SeedSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
