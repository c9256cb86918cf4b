"""Evidence for each URL: sums over the links into it, rates of its directory and pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from focuscrawl.apprentice.learners import select_prefix
from focuscrawl.apprentice.link_features import PATTERNS, PREFIXES
from focuscrawl.apprentice.options import INPUTS
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable


_BITS = 19  # of the tables; a clash of two keys blurs both, no more
_SLOTS = (1 << _BITS) - 1
_MASK = np.uint32(_SLOTS)
_NO_SLOT = np.uint32(1 << _BITS)  # nothing is ever added up there
PRIOR = 0.05  # mean relevance expected before the first fetch (methods 5: p0)
_PRIOR_LINKS = 0.2  # weight of the prior in means over links (methods 5)
_SUMS = ("weight", "relevance", "reading", "margin", "around")
_KEPT_SHARE = 0.75  # of the links allowed are kept, so that pages are seldom forgotten


class RelevanceRates:
    """Mean relevance along chains of ever smaller sets, each shrunk to the one before.

    A URL lies on its host, in a directory, in a directory of that; the rate of each is that of
    the larger one, corrected by what was fetched there: m' = (sum R + w m) / (n + w).

    Parameters
    ----------
    weight : w, how many fetches the larger set's rate counts for
    """

    def __init__(self, weight: float = 2.0) -> None:
        self.weight = weight
        # total and count side by side: nearly every look at them is a cache miss
        self._sums = np.zeros(((1 << _BITS) + 1, 2), np.float32)
        self._all = PRIOR * 0.1
        self._n = 0.1

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return all that was observed."""
        used = np.flatnonzero(self._sums[:, 1])
        return {
            "used": used,
            "total": self._sums[used, 0],
            "count": self._sums[used, 1],
            "all": np.array([self._all, self._n]),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Take up what `get_state` returned, in place of all that was observed."""
        self._sums[:] = 0.0
        self._sums[state["used"], 0] = state["total"]
        self._sums[state["used"], 1] = state["count"]
        self._all, self._n = (float(x) for x in state["all"])
        return self

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Take in one fetch; `keys` of its chain, 0 for none."""
        for slot in {key & _SLOTS for key in keys.tolist() if key}:
            self._sums[slot, 0] += relevance
            self._sums[slot, 1] += 1.0
        self._all += relevance
        self._n += 1.0

    def rates(self, keys: NDArray[np.uint32]) -> Floats:
        """Return the rates at the ends of n chains, float64 (n,).

        Parameters
        ----------
        keys : uint32 (n, length), from large to small, 0 for none
        """
        inside = keys > 0
        length = np.add.reduce(inside, axis=1)
        deepest = int(length.max(initial=0))
        # where a chain has ended, no fetches in no set leave the rate as it is
        slots = np.where(inside, keys & _MASK, _NO_SLOT).T[:deepest]
        sums = self._sums.take(slots, axis=0)
        rate = np.full(len(keys), self._all / self._n)
        total, count = np.divide(sums.transpose(2, 0, 1), self.weight, dtype=float, order="C")
        count += 1.0
        for part, n in zip(total, count, strict=True):
            rate += part
            rate /= n
        return rate


class FetchOutcomes:
    """Outcomes of fetches by path prefix and URL pattern, and the pages seen under any URL."""

    def __init__(self) -> None:
        self.prefixes = RelevanceRates()
        self.patterns = RelevanceRates()
        self._aliases = np.zeros((2, 1 << 19), bool)

    def get_rates(self) -> dict[str, NDArray[Any]]:
        """Return the outcomes by prefix and pattern."""
        rates = {"p": self.prefixes.get_state(), "s": self.patterns.get_state()}
        return {f"{key}_{name}": x for key, state in rates.items() for name, x in state.items()}

    def set_rates(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `get_rates` returned, in place of all that was observed."""
        for key, rates in (("p_", self.prefixes), ("s_", self.patterns)):
            rates.set_state(select_prefix(state, key))

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return all that was observed."""
        return {"aliases": np.packbits(self._aliases), **self.get_rates()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `get_state` returned, in place of all that was observed."""
        self.set_rates(state)
        self._aliases[:] = np.unpackbits(state["aliases"]).reshape(self._aliases.shape)

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Take in a fetch of the URL with these `keys`."""
        self.prefixes.observe(keys[:PREFIXES], relevance)
        self.patterns.observe(keys[PREFIXES : PREFIXES + PATTERNS], relevance)
        self._aliases[[0, 1], keys[-2:] & np.uint32(self._aliases.shape[1] - 1)] = True

    def find_aliases(self, keys: NDArray[np.uint32]) -> tuple[Bools, Bools]:
        """Tell of which URLs an alias was fetched, and of which only with another query."""
        at = keys[:, -2:] & np.uint32(self._aliases.shape[1] - 1)
        same = self._aliases[0, at[:, 0]]
        return same, self._aliases[1, at[:, 1]] & ~same


class UrlEvidence:
    """Sums over the links into each URL.

    Parameters
    ----------
    width : columns of counts that links may bring besides, see `add`
    only_first : only the first link to each URL counts
    """

    def __init__(self, width: int, *, only_first: bool) -> None:
        self._width = width
        self._only_first = only_first
        self._counts = GrowingArray(np.float64)  # (n_urls, width), row after row
        self._sums = GrowingArray(np.float64)  # (n_urls, len(_SUMS)), row after row
        self._best = GrowingArray(np.float64)

    def add(
        self,
        n_urls: int,
        table: LinkTable,
        links: slice,
        *,
        margin: Floats,
        counts: Floats | None = None,
    ) -> None:
        """Add n links of a table.

        Parameters
        ----------
        n_urls : all targets are below
        margin : (n,), what the hashed features of each link and its page say
        counts : (n, width), further inputs of each link
        """
        kept = table.first.data[links] if self._only_first else slice(None)
        targets, weight = table.target.data[links][kept], table.weight.data[links][kept]
        relevance, reading = table.relevance.data[links][kept], table.reading.data[links][kept]
        around = table.around.data[links][kept]
        columns = (
            np.ones(len(targets)),
            relevance,
            np.minimum(np.maximum(reading, -10.0), 10.0),
            margin[kept],
            np.minimum(np.maximum(around, -10.0), 10.0),
        )
        fresh = not len(self._sums)
        self._sums.grow(n_urls * len(_SUMS))
        if fresh:  # many links: a histogram adds them up in the same order, and much faster
            added = self._table()
            for i, column in enumerate(columns):
                added[:, i] = np.bincount(targets, weight * column, n_urls)
        else:
            values = weight[:, None] * np.concatenate(columns).reshape(len(_SUMS), -1).T
            at = targets[:, None] * len(_SUMS) + np.arange(len(_SUMS))
            np.add.at(self._sums.data, at.ravel(), values.ravel())
        self._counts.grow(n_urls * self._width)
        if counts is not None:
            added = self._counts.data.reshape(-1, self._width)
            np.add.at(added, targets, weight[:, None] * counts[kept])
        self._best.grow(n_urls)
        np.maximum.at(self._best.data, targets, relevance)

    def has_links(self, url: int) -> bool:
        """Tell whether links into a URL were added."""
        at = url * len(_SUMS) + _SUMS.index("weight")
        return at < len(self._sums) and bool(self._sums.data[at] > 0.0)

    def urls(self) -> Ints:
        """Return the numbers of all URLs with links."""
        return np.flatnonzero(self._table()[:, _SUMS.index("weight")])

    def margins(self, urls: Ints) -> Floats:
        """Return the mean margin of the links into each URL."""
        table = self._table()
        mean: Floats = table[urls, _SUMS.index("margin")]
        mean /= table[urls, _SUMS.index("weight")]
        return mean

    def inputs(self, urls: Ints, keys: NDArray[np.uint32], fetched: FetchOutcomes) -> Floats:
        """Return the dense inputs (n, len(INPUTS) + width) of URLs that have links."""
        sums = self._table().take(urls, axis=0).T.copy()
        n, relevance, reading, _, around = sums
        mean = (relevance + _PRIOR_LINKS * PRIOR) / (n + _PRIOR_LINKS)
        reading /= n
        around /= n
        prefix = fetched.prefixes.rates(keys[:, :PREFIXES])
        pattern = fetched.patterns.rates(keys[:, PREFIXES : PREFIXES + PATTERNS])
        of_mean, of_prefix, of_pattern = np.split(
            _log_odds(np.concatenate([mean, prefix, pattern])), 3
        )
        same, same_but_query = fetched.find_aliases(keys)
        columns = np.concatenate(
            [
                of_mean,
                self._best.data[urls],
                np.log1p(n) / 3.0,
                reading / 10.0,
                of_prefix,
                same,
                same_but_query,
                of_pattern,
                around / 10.0,
                self._mean_counts(urls, n).ravel(),
            ]
        )
        return columns.reshape(len(INPUTS) + self._width, len(urls)).T.copy()

    def _table(self) -> Floats:
        return self._sums.data.reshape(-1, len(_SUMS))

    def _mean_counts(self, urls: Ints, n: Floats) -> Floats:
        if not self._width:
            return np.zeros((0, len(urls)))
        return self._counts.data.reshape(-1, self._width)[urls].T / n


def _log_odds(probability: Floats) -> Floats:
    """Return the log-odds over their greatest value, in [-1, 1]; 0.01 is as good as 0."""
    p = np.minimum(np.maximum(probability, 0.01), 0.99)
    odds: Floats = np.log(p / (1.0 - p)) / np.log(99.0)
    return odds


def select_pages_to_forget(
    table: LinkTable, n_links: int, n_pages: int, promise: Floats, most: int
) -> Bools:
    """Choose the pages to forget, so that well below `most` links are left.

    A page is worth the best URL that it links to. First to go are pages whose targets have all
    been fetched, the oldest first.

    Parameters
    ----------
    n_links, n_pages : only the first so many are looked at
    promise : float64 by URL, its score, -1 where it does not wait

    Returns
    -------
    bool (n_pages,), True to forget
    """
    page, target = table.page.data[:n_links], table.target.data[:n_links]
    best = np.full(n_pages, -1.0)
    np.maximum.at(best, page, promise[target])
    order = np.lexsort((-np.arange(n_pages), -best))
    links = np.bincount(page, minlength=n_pages)[order]
    forgotten = np.ones(n_pages, bool)
    forgotten[order[np.cumsum(links) <= _KEPT_SHARE * most]] = False
    return forgotten


def urls_without_links(table: LinkTable, evidence: UrlEvidence, y: Floats) -> Ints:
    """Return the URLs that were not fetched and have links on forgotten pages only.

    Parameters
    ----------
    y : float64 by URL, NaN where it was not fetched
    """
    if table.links_ever == len(table):
        return np.zeros(0, np.int64)
    met = np.flatnonzero((table.url_row.data[: len(y)] >= 0) & np.isnan(y))
    return np.setdiff1d(met, evidence.urls(), assume_unique=True)
