"""Start URLs of a first crawl: the best that a search engine or a list names [L section 3]."""

from __future__ import annotations

import html
import importlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import open_source, read_rows
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.knowledge.keywords import Keywords

# what engines call the three; the first that is there counts
_URL = ("url", "link", "href", "firsturl")
_TITLE = ("title", "name", "text")
_DESCRIPTION = ("description", "snippet", "content", "body", "abstract", "summary")
_TAG = re.compile(r"<[^>]*>")
_LARGEST = 50_000_000  # bytes of an answer


class Candidate(NamedTuple):
    """A page that may be worth beginning with, as an engine tells of it."""

    url: str
    title: str
    description: str


def ranked(candidates: Sequence[Candidate], keywords: Keywords) -> list[tuple[Candidate, float]]:
    """Return candidates by sim(keywords, title + description), those that share no word left out.

    Of equals the one named first comes first, so an engine's own order decides there.
    """
    texts = [f"{each.title} {each.description}" for each in candidates]
    scores = keywords.similarity(texts).tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [(candidates[i], scores[i]) for i in order if scores[i] > 0.0]


def read_candidates(source: str, query: str) -> list[Candidate]:
    """Read candidates.

    Parameters
    ----------
    source : a JSON file, the answer of any engine: every object in it that has a URL is one; a CSV
        file with the columns ``url``, ``title`` and ``description``; or ``module:callable``, which
        is asked with `query` and returns what such a JSON file holds
    query : the words that are looked for

    Returns
    -------
    Each URL once, normalised

    Raises
    ------
    UserError
        It cannot be read, or names no page.
    """
    if ":" in source and not Path(source).exists():
        found = list(_in_json(_ask(source, query)))
    elif source.endswith((".csv", ".csv.gz")):
        rows = read_rows(source, ["url"], optional=["title", "description"])
        found = [Candidate(row["url"], row["title"], row["description"]) for _, row in rows]
    else:
        found = list(_in_json(_read(source)))
    known: dict[str, Candidate] = {}
    for each in found:
        url = normalize(each.url)
        if url is not None:
            texts = (html.unescape(_TAG.sub("", text)) for text in each[1:])
            known.setdefault(url, Candidate(url, *texts))
    if not known:
        raise UserError(
            f"{source} names no page: objects in it must have a url (or link), a title and a "
            "description (or snippet)"
        )
    return list(known.values())


def _read(source: str) -> Any:
    with open_source(source) as file:
        text = file.read(_LARGEST)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source} is no JSON ({error}): name an engine's answer") from None


def _in_json(found: Any) -> Iterator[Candidate]:
    """Yield the objects that name a page, wherever they are, in their order."""
    waiting = [found]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += reversed(each)
        elif isinstance(each, dict):
            cells = {str(key).lower(): value for key, value in each.items()}
            url = _first(cells, _URL)
            title, description = _first(cells, _TITLE), _first(cells, _DESCRIPTION)
            if url and (title or description):
                yield Candidate(url, title, description)
            waiting += reversed([value for value in each.values() if not isinstance(value, str)])


def _first(cells: dict[str, Any], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if isinstance(cells.get(name), str)), "")


def _ask(spec: str, query: str) -> Any:
    """Ask a callable of the user's, the current directory searched first."""
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)(query)
    except Exception as error:  # whatever the user's module raises while it is run
        reason = " ".join(str(error).split())
        raise UserError(
            f"candidates {spec}: {type(error).__name__}: {reason}; name a file, or a function in "
            "a module that is importable from here"
        ) from error
    finally:
        sys.path.remove(here)
