"""Evidence for each URL: the sums over all links into it, and its dense inputs (METHODS 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.apprentice.dense_inputs import INPUTS
from focuscrawl.apprentice.relevance_rates import PRIOR, RelevanceRates
from focuscrawl.apprentice.serialization import part_of
from focuscrawl.apprentice.url_features import PATTERNS, PREFIXES
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable

_SHRINK = 0.2  # weight of the prior in means over links (METHODS 5)
_SUMS = ("weight", "relevance", "reading", "margin", "around")


class FetchOutcomes:
    """Outcomes of fetches by path prefix and URL pattern, and the pages seen under any URL."""

    def __init__(self) -> None:
        self.prefixes = RelevanceRates()
        self.patterns = RelevanceRates()
        self._aliases = np.zeros((2, 1 << 19), bool)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return all that was observed."""
        rates = {"p": self.prefixes.get_state(), "s": self.patterns.get_state()}
        return {
            "aliases": np.packbits(self._aliases),
            **{f"{key}_{name}": x for key, state in rates.items() for name, x in state.items()},
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `get_state` returned, in place of all that was observed."""
        for key, rates in (("p_", self.prefixes), ("s_", self.patterns)):
            rates.set_state(part_of(state, key))
        self._aliases[:] = np.unpackbits(state["aliases"]).reshape(self._aliases.shape)

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Take in a fetch of the URL with these `keys`."""
        self.prefixes.observe(keys[:PREFIXES], relevance)
        self.patterns.observe(keys[PREFIXES : PREFIXES + PATTERNS], relevance)
        self._aliases[[0, 1], keys[-2:] & np.uint32(self._aliases.shape[1] - 1)] = True

    def aliases_of(self, keys: NDArray[np.uint32]) -> tuple[Bools, Bools]:
        """Tell of which URLs an alias was fetched, and of which only but for the query."""
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
        """Add n links of a table, all columns (n,).

        Parameters
        ----------
        n_urls : all targets are below
        margin : what the hashed features of link and page say
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
        mean = (relevance + _SHRINK * PRIOR) / (n + _SHRINK)
        reading /= n
        around /= n
        prefix = fetched.prefixes.rates(keys[:, :PREFIXES])
        pattern = fetched.patterns.rates(keys[:, PREFIXES : PREFIXES + PATTERNS])
        of_mean, of_prefix, of_pattern = np.split(
            _log_odds(np.concatenate([mean, prefix, pattern])), 3
        )
        same, same_but_query = fetched.aliases_of(keys)
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
                self._means(urls, n).ravel(),
            ]
        )
        return columns.reshape(len(INPUTS) + self._width, len(urls)).T.copy()

    def _table(self) -> Floats:
        """Return the sums, (n_urls, len(_SUMS))."""
        return self._sums.data.reshape(-1, len(_SUMS))

    def _means(self, urls: Ints, n: Floats) -> Floats:
        """Return the mean counts, (width, n)."""
        if not self._width:
            return np.zeros((0, len(urls)))
        return self._counts.data.reshape(-1, self._width)[urls].T / n


def _log_odds(probability: Floats) -> Floats:
    """Return the log-odds over their greatest value, in [-1, 1]; 0.01 is as good as 0."""
    p = np.minimum(np.maximum(probability, 0.01), 0.99)
    odds: Floats = np.log(p / (1.0 - p)) / np.log(99.0)
    return odds
