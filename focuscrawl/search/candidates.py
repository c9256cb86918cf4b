"""Candidates for start pages: read from files, ranked, chosen by site, judged by the critic."""

from __future__ import annotations

import html
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import registered_domain
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.foundation.user_input import open_maybe_gzip, read_csv_rows
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.knowledge import Keywords
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web

# names of the fields in results of search engines; the first existing field counts
_URL = ("url", "link", "href", "firsturl")
_TITLE = ("title", "name", "text")
_DESCRIPTION = ("description", "snippet", "content", "body", "abstract", "summary")
_TAG = re.compile(r"<[^>]*>")
_MAX_BYTES = 50_000_000  # of a search result


class Candidate(NamedTuple):
    """A candidate for a start page, from the results of a search engine."""

    url: str
    title: str
    description: str


def rank_candidates(
    candidates: Sequence[Candidate], keywords: Keywords
) -> list[tuple[Candidate, float]]:
    """Return start page candidates with their similarity to the keywords, most similar first.

    Candidates without a keyword in title or description are left out. Candidates with equal
    similarity stay in their order.
    """
    texts = [f"{each.title} {each.description}" for each in candidates]
    scores = keywords.similarity(texts).tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [(candidates[i], scores[i]) for i in order if scores[i] > 0.0]


def read_candidates(source: str, query: str) -> list[Candidate]:
    """Read candidates for start pages from a file; each normalised URL is returned once.

    Parameters
    ----------
    source : JSON file with results of a search engine, in which every object with a URL is a
        candidate; CSV file with the columns ``url``, ``title`` and ``description``; or
        ``module:callable``, called with `query`, which returns the content of such a JSON file
    query : search terms

    Raises
    ------
    UserError
        The source cannot be read or has no candidates.
    """
    if ":" in source and not Path(source).exists():
        found = list(_find_candidates(_call_function(source, query)))
    elif source.endswith((".csv", ".csv.gz")):
        rows = read_csv_rows(source, ["url"], optional=["title", "description"])
        found = [Candidate(row["url"], row["title"], row["description"]) for _, row in rows]
    else:
        found = list(_find_candidates(_read(source)))
    known: dict[str, Candidate] = {}
    for each in found:
        url = normalize(each.url)
        if url is not None:
            texts = (html.unescape(_TAG.sub("", text)) for text in each[1:])
            known.setdefault(url, Candidate(url, *texts))
    if not known:
        raise UserError(
            f"{source} has no candidates: each object needs a url (or link), and a title or a "
            "description (or snippet)"
        )
    return list(known.values())


def _read(source: str) -> Any:
    with open_maybe_gzip(source) as file:
        text = file.read(_MAX_BYTES)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{source} is not valid JSON ({error}): use a file with the results of a search engine"
        ) from None


def _find_candidates(found: Any) -> Iterator[Candidate]:
    """Yield the objects with a URL, at any depth, in order."""
    stack = [found]
    while stack:
        each = stack.pop()
        if isinstance(each, list | tuple):
            stack += reversed(each)
        elif isinstance(each, dict):
            cells = {str(key).lower(): value for key, value in each.items()}
            url = _first(cells, _URL)
            title, description = _first(cells, _TITLE), _first(cells, _DESCRIPTION)
            if url and (title or description):
                yield Candidate(url, title, description)
            stack += reversed([value for value in each.values() if not isinstance(value, str)])


def _first(cells: dict[str, Any], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if isinstance(cells.get(name), str)), "")


def _call_function(spec: str, query: str) -> Any:
    """Call a function of the user; modules in the current directory have priority."""
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)(query)
    except Exception as error:  # any exception of the user's module
        reason = " ".join(str(error).split())
        raise UserError(
            f"candidates {spec}: {type(error).__name__}: {reason}; use a file, or a function in a "
            "module that can be imported from the current directory"
        ) from error
    finally:
        sys.path.remove(here)


def choose_candidates(
    answers: Sequence[Sequence[Candidate]], per_site: int
) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:
    """Choose a few candidates of each site from the answers to several queries.

    A site is a registered domain. The candidates that answer the most queries come first.
    Candidates that answer equally many queries are sorted by rank.

    Parameters
    ----------
    answers : the candidates of each query, the best first
    per_site : largest number of candidates of a site

    Returns
    -------
    The chosen candidates, and the refused candidates with the reason
    """
    found: dict[str, Candidate] = {}
    n_answers: Counter[str] = Counter()
    ranks: dict[str, int] = {}
    refused: dict[str, tuple[Candidate, str]] = {}
    for answer in answers:
        of_answer: dict[str, int] = {}
        for rank, each in enumerate(answer):
            url = normalize(each.url)
            if url is None:
                refused.setdefault(each.url, (each, "not an http(s) URL"))
                continue
            found.setdefault(url, each._replace(url=url))
            of_answer.setdefault(url, rank)
        n_answers.update(of_answer.keys())
        ranks |= {url: min(rank, ranks.get(url, rank)) for url, rank in of_answer.items()}
    chosen, of_site = list[Candidate](), Counter[str]()
    for url in sorted(found, key=lambda url: (-n_answers[url], ranks[url])):
        site = registered_domain(host(url))
        of_site[site] += 1
        if of_site[site] <= per_site:
            chosen.append(found[url])
        else:
            refused[url] = (found[url], f"more than {per_site} of {site}")
    return chosen, [*refused.values()]


OFF_TOPIC, SAME_PAGE, NOT_RECORDED = "off topic", "redirects to another", "not in the recording"


class JudgedCandidate(NamedTuple):
    """A candidate with the relevance of its page.

    Attributes
    ----------
    url : str
        URL of the page, after redirects.
    relevance : float or None
        None: the page was not read.
    reason : str
        Why the candidate is no start page; empty: the candidate is one.
    """

    url: str
    title: str
    relevance: float | None
    reason: str


def judge_candidates(
    candidates: Sequence[Candidate],
    webs: Sequence[Web],
    critic: Critic,
    errors: Mapping[str, str],
) -> list[JudgedCandidate]:
    """Judge the pages of candidates; a page with a relevance above ½ becomes a start page.

    Parameters
    ----------
    candidates : sequence of Candidate
        Candidates with normalised URLs.
    webs : sequence of Web
        Webs that have the pages.
    errors : mapping of str to str
        Why pages could not be fetched, by URL.

    Returns
    -------
    list of JudgedCandidate
        The start pages, the most relevant first, then the refused candidates.
    """
    found = find_pages(webs, [each.url for each in candidates])
    views: dict[str, PageView] = {}
    for page in found.values():
        for web in webs:
            view = read_page(web, page.url)
            if view is not None:
                views[page.url] = view
                break
    relevance = dict(zip(views, critic.judge([*views.values()]).relevance.tolist(), strict=True))
    judged, known = list[JudgedCandidate](), set[str]()
    for each in candidates:
        url = found[each.url].url if each.url in found else each.url
        value = relevance.get(url)
        if value is None:
            reason = errors.get(each.url, NOT_RECORDED)
        elif url in known:
            reason = SAME_PAGE
        else:
            reason = "" if value > RELEVANT else OFF_TOPIC
        known.add(url)
        title = each.title or (views[url].title if url in views else "")
        judged.append(JudgedCandidate(url, title, value, reason))
    return sorted(judged, key=lambda each: (bool(each.reason), -(each.relevance or 0.0)))
