"""The history of a crawl for strategies that learn of paths: fetches, links, their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.apprentice.serialization import pack_columns, unpack_columns
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a learner of paths keeps of a page with n links.

    Attributes
    ----------
    targets : int64 (n,), numbers of the URLs the links lead to
    page : int32, hashed words of the page
    links : `SparseRows` of n, hashed words of the links
    """

    targets: NDArray[np.int64]
    page: NDArray[np.int32]
    links: SparseRows

    def to_bytes(self) -> bytes:
        """Pack the facts, for the store."""
        lengths = self.links.lengths
        return pack_columns((self.targets, self.page, self.links.indices, lengths), _COLUMNS)

    @classmethod
    def from_bytes(cls, data: bytes) -> PathFacts:
        """Unpack what `to_bytes` has packed."""
        targets, page, indices, lengths = unpack_columns(data, _COLUMNS)
        return cls(targets, page, SparseRows(indices, pointers(lengths)))


_COLUMNS = ("<i8", "<i4", "<i4", "<i4")


class Past(NamedTuple):
    """A crawl up to some moment; views, but for what can change.

    Attributes
    ----------
    relevance : float64 by URL, what a fetch has shown, NaN before
    source, target : int64 (n_links,), URLs at the ends of each link, in the order found
    page : int64 (n_links,), which of `pages` each link is on
    first : bool (n_links,), no earlier link of its page leads there
    pages : int64 (n_pages,), URLs of the pages with links, in the order fetched
    page_words, link_words : hashed words of each page and link
    """

    relevance: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    page: NDArray[np.int64]
    first: NDArray[np.bool_]
    pages: NDArray[np.int64]
    page_words: SparseRows
    link_words: SparseRows

    @property
    def waiting(self) -> NDArray[np.int64]:
        """The URLs that have links and were not fetched, int64 (m,), ascending."""
        linked = np.zeros(len(self.relevance), bool)
        linked[self.target] = True
        return np.flatnonzero(linked & np.isnan(self.relevance))


class LinkHistory:
    """Takes in fetches and pages; what was taken in never moves."""

    def __init__(self) -> None:
        self._relevance = GrowingArray(np.float64, fill=np.nan)  # by URL
        self._fetched = GrowingArray(np.int64)  # URL of each fetch
        self._outcome = GrowingArray(np.float64)  # and its relevance
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._page = GrowingArray(np.int64)
        self._first = GrowingArray(np.bool_)
        self._pages = GrowingArray(np.int64)
        self._ends = GrowingArray(np.int64)  # where the links of each page end
        self._page_words = RowStore()
        self._link_words = RowStore()
        self.relevant = 0

    @property
    def pages(self) -> int:
        """Pages taken in."""
        return len(self._pages)

    def observe(self, url: int, relevance: float) -> None:
        """Take in what came of a fetch."""
        self._relevance.grow(url + 1)
        self._relevance.data[url] = relevance
        self._outcome.extend([relevance])
        self._fetched.extend([url])
        self.relevant += relevance > 0.5

    def add(self, url: int, facts: PathFacts) -> int:
        """Take in a page numbered `url`; return the number of its first link."""
        n, start = len(facts.targets), len(self._target)
        self._relevance.grow(int(facts.targets.max(initial=url)) + 1)
        first = np.zeros(n, bool)
        first[np.unique(facts.targets, return_index=True)[1]] = True
        self._source.extend(np.full(n, url))
        self._page.extend(np.full(n, len(self._pages)))
        self._first.extend(first)
        self._link_words.extend(facts.links)
        self._page_words.extend(SparseRows(facts.page, np.array([0, len(facts.page)], np.int64)))
        self._target.extend(facts.targets)
        self._ends.extend([len(self._target)])
        self._pages.extend([url])
        return start

    def links_of(self, pages: int) -> int:
        """Return how many links the first `pages` pages have."""
        return int(self._ends.data[pages - 1]) if pages else 0

    def past(self, observed: int, pages: int) -> Past:
        """Return what was known after so many fetches and pages; more may come meanwhile."""
        n_links = self.links_of(pages)
        fetched, target = self._fetched.data[:observed], self._target.data[:n_links]
        own = self._pages.data[:pages]
        n_urls = max(int(urls.max(initial=-1)) for urls in (fetched, target, own)) + 1
        relevance = np.full(n_urls, np.nan)
        relevance[fetched] = self._outcome.data[:observed]
        return self._until(n_links, pages, relevance)

    def now(self) -> Past:
        """Return all of it, for as long as nothing more is taken in."""
        return self._until(len(self._target), len(self._pages), self._relevance.data)

    def _until(self, n_links: int, pages: int, relevance: NDArray[np.float64]) -> Past:
        return Past(
            relevance=relevance,
            source=self._source.data[:n_links],
            target=self._target.data[:n_links],
            page=self._page.data[:n_links],
            first=self._first.data[:n_links],
            pages=self._pages.data[:pages],
            page_words=self._page_words.rows(pages),
            link_words=self._link_words.rows(n_links),
        )
