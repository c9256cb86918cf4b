"""The strategy ``oracle``, which knows the relevance of all recorded pages in advance."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.strategies import Expansion, Strategy

if TYPE_CHECKING:
    from focuscrawl.strategies import JudgedPage, Scores, StoredPage, StrategyContext


_UNKNOWN, _ABSENT = -2, -1


class Oracle(Strategy):
    """Follow first the links to the most relevant pages, given the relevance of all pages.

    The oracle (methods.md 1) predicts relevance 0 for redirects, errors, and copies of fetched
    pages. In studies, the oracle shows how low the loss rate can be on a recording. The oracle is
    not optimal, because it fetches URLs of equal relevance in the order found and ignores their
    links. The first oracle crawl of a web with a critic judges every page and caches the
    judgements.

    Raises
    ------
    UserError
        The crawl is live, or the critic has no classes.
    """

    def __init__(self, context: StrategyContext) -> None:
        if context.web is None:
            raise UserError(
                "strategy oracle needs a recording: add -a web=..., or use another strategy"
            )
        if not len(context.critic.marked):
            raise UserError(
                "strategy oracle needs a critic with classes, which this critic lacks: "
                "use another strategy"
            )
        self._web = context.web
        whole = judge_web(context.web, context.critic)
        shares = whole.probabilities[:, context.critic.marked]
        self._relevance = np.minimum(shares.sum(axis=1, dtype=np.float64), 1.0)
        self._content = whole.content
        self._page_index = {url: i for i, url in enumerate(whole.urls)}
        self._page_of_url = GrowingArray(np.int64, fill=_UNKNOWN)  # page of the web, by URL id
        self._fetched = np.zeros(len(whole.urls), np.bool_)  # by content
        self._urls_of_content: defaultdict[int, list[int]] = defaultdict(list)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score every link with the relevance of its target."""
        self._page_of_url.grow(max(page.url, int(page.targets.max(initial=0))) + 1)
        new = self._page_of_url.data[page.targets] == _UNKNOWN
        urls = [page.view.links.urls[i] for i in page.links[new].tolist()]
        places = self._page_indices([page.view.url, *urls])
        memo = np.concatenate([page.targets[new], places])  # the page's own place is in the middle
        self._record_page(page.url, page.targets[new], places)
        return Expansion(
            self._expected_relevance(page.targets),
            *self._scores(page.url, page.targets),
            memo=memo.tobytes(),
        )

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page that an earlier run of the crawl has fetched."""
        assert page.memo is not None
        memo = np.frombuffer(page.memo, np.int64)
        found, places = memo[: len(memo) // 2], memo[len(memo) // 2 :]
        self._page_of_url.grow(max(page.url, int(page.targets.max(initial=0))) + 1)
        self._record_page(page.url, found, places)
        return self._scores(page.url, page.targets)

    def _page_indices(self, urls: list[str]) -> Ints:
        known = self._web.resolve(urls)
        places = [_ABSENT if url is None else self._page_index.get(url, _ABSENT) for url in known]
        return np.array(places, np.int64)

    def _record_page(self, url: int, found: Ints, places: Ints) -> None:
        """Record the index of a page, the first of `places`, and of the pages it links to."""
        own, *others = places.tolist()
        self._page_of_url.data[found] = others
        for each, place in set(zip(found.tolist(), others, strict=True)):
            if place != _ABSENT:
                self._urls_of_content[int(self._content[place])].append(each)
        self._page_of_url.data[url] = own
        if own != _ABSENT:
            self._fetched[self._content[own]] = True

    def _expected_relevance(self, urls: Ints) -> Floats:
        """Return the relevance that fetches of `urls` would have now."""
        places = self._page_of_url.data[urls]
        known = places != _ABSENT
        places = places[known]
        relevance = np.zeros(len(urls))
        fetched = self._fetched[self._content[places]]
        relevance[known] = np.where(fetched, 0.0, self._relevance[places])
        return relevance

    def _scores(self, url: int, targets: Ints) -> Scores:
        """Return the scores of a page's targets, and of URLs that are now known as duplicates."""
        own = int(self._page_of_url.data[url])
        alike = [] if own == _ABSENT else self._urls_of_content[int(self._content[own])]
        urls = np.unique(np.concatenate([targets, np.array(alike, np.int64)]))
        return urls, self._expected_relevance(urls)
