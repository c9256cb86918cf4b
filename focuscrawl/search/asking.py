"""Asks the queries of a topic; keeps the answers in a file, so that no query is asked twice."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow
from focuscrawl.search.candidates import Candidate
from focuscrawl.search.seed_source import open_source

if TYPE_CHECKING:
    from focuscrawl.foundation.user_input import Progress


class Asked(NamedTuple):
    """The answers to the queries of a topic.

    Attributes
    ----------
    answers : list of list of Candidate
        Candidates of each answered query.
    queries : list of str
        The answered queries.
    problems : list of str
        Why queries were not, or not completely, answered.
    """

    answers: list[list[Candidate]]
    queries: list[str]
    problems: list[str]


def ask_queries(
    spec: str,
    phrases: Sequence[str],
    tuples: Sequence[str],
    n: int,
    *,
    record: Path,
    agent: str,
    progress: Progress,
) -> Asked:
    """Ask a source for candidates, except for queries that were answered before.

    The search ends at the first query that the source does not answer.

    Parameters
    ----------
    spec : str
        The source, see `open_source`.
    phrases, tuples : sequence of str
        Phrases of the topic, and combinations of keywords; the source chooses its queries.
    n : int
        Number of candidates for each query.
    record : Path
        JSON Lines file of answers, to which new answers are appended.
    agent : str
        User-Agent header of requests.

    Raises
    ------
    UserError
        The source does not exist, or has answered no query.
    """
    known = _read_record(record, spec, n)
    asked = Asked([], [], [])
    with closing(open_source(spec, agent)) as source:
        queries = source.plan_queries(phrases, tuples)
        progress.start(len(queries))
        for query in queries:
            answer = known.get(query)
            if answer is None:
                try:
                    found = source.search(query, n)
                except UserError as error:
                    if not asked.queries:
                        raise
                    asked.problems.append(str(error))
                    break
                answer = found.candidates
                if found.problem:
                    asked.problems.append(f"{query}: {found.problem}")
                if answer or not found.problem:
                    _append(record, spec, query, n, answer)
            asked.answers.append(answer)
            asked.queries.append(query)
            progress.advance()
    return asked


def _append(record: Path, spec: str, query: str, n: int, answer: Sequence[Candidate]) -> None:
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": spec,
        "query": query,
        "n": n,
        "results": [each._asdict() for each in answer],
    }
    with open(record, "a+b", opener=open_nofollow) as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a killed process left an incomplete line
                file.write(b"\n")
        file.write(json.dumps(line).encode() + b"\n")


def _read_record(record: Path, spec: str, n: int) -> dict[str, list[Candidate]]:
    """Return the recorded answers of a source by query; an incomplete last line is skipped."""
    if not record.exists():
        return {}
    known: dict[str, list[Candidate]] = {}
    with open(record, encoding="utf-8", opener=open_nofollow) as file:
        for line in file:
            try:
                found: Any = json.loads(line)
                if (found["source"], found["n"]) == (spec, n):
                    known[str(found["query"])] = [Candidate(**each) for each in found["results"]]
            except (ValueError, TypeError, LookupError, RecursionError):
                continue
    return known
