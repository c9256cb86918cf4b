"""Judges candidates for start pages with the critic of the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.search.candidates import Candidate
    from focuscrawl.webs.web_protocol import Web

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
