"""Questions and answers as a CSV file, for whoever judges pages elsewhere than in a terminal."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import read_rows
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.report.plain_text import cell, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.feedback.suggestions import Suggestion

_GOOD = frozenset({"good", "yes", "y", "1", "+", "on", "true"})
_BAD = frozenset({"bad", "no", "n", "0", "-", "off", "false"})
_OPEN = frozenset({"", "?", "skip"})


def write_questions(suggestions: Sequence[Suggestion], path: str | Path) -> None:
    """Write pages to judge, one a row; their column ``verdict`` is empty, to be filled in.

    Raises
    ------
    UserError
        If the file cannot be written, or is there already.
    """
    try:
        with Path(path).open("x", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["url", "verdict", "kind", "relevance", "title"])
            for page in suggestions:
                title = cell(one_line(page.title))
                rows.writerow([page.url, "", page.kind, f"{page.relevance:.3f}", title])
    except FileExistsError:
        raise UserError(f"{path} is there already: name another file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def read_verdict(text: str) -> bool | None:
    """Return what a verdict says: True for good, False for bad, None for neither; ValueError."""
    word = text.strip().lower()
    if word in _OPEN:
        return None
    if word in _GOOD or word in _BAD:
        return word in _GOOD
    raise ValueError(text)


def read_judgements(path: str | Path) -> tuple[list[str], list[str]]:
    """Read the answers in a CSV file with the columns ``url`` and ``verdict``.

    Returns
    -------
    URLs judged good, and URLs judged bad; rows without a verdict are left out

    Raises
    ------
    UserError
        If it cannot be read, lacks a column, or has a verdict or URL that is none.
    """
    judged = {True: list[str](), False: list[str]()}
    for number, row in read_rows(path, ["url", "verdict"]):
        where = f"{path}, row {number}"
        verdict = _verdict(where, row["verdict"])
        url = normalize(row["url"])
        if url is None:
            raise UserError(f"{where}: {row['url']!r} {no_url(row['url'])}")
        if verdict is not None:
            judged[verdict].append(url)
    both = sorted(set(judged[True]) & set(judged[False]))
    if both:
        raise UserError(f"{path}: {both[0]} is both good and bad; take one row out")
    return judged[True], judged[False]


def _verdict(where: str, text: str) -> bool | None:
    try:
        return read_verdict(text)
    except ValueError:
        raise UserError(f"{where}: verdict {text!r} is neither good nor bad") from None
