"""Evidence on a URL's relevance: sums over links to the URL, relevance rates of similar URLs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from focuscrawl.apprentice.learners import select_prefix
from focuscrawl.apprentice.link_features import PATTERNS, PREFIXES
from focuscrawl.apprentice.options import INPUTS
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable


_BITS = 19  # size of the tables; two keys that collide share one rate
_SLOTS = (1 << _BITS) - 1
_MASK = np.uint32(_SLOTS)  # of a key; slot 0 is for the key 0 (no set), and its sums stay 0
PRIOR = 0.05  # mean relevance expected before the first fetch (methods.md 5: p0)
_PRIOR_LINKS = 0.2  # weight of the prior in means over links (methods.md 5)
_SUMS = ("weight", "relevance", "reading", "margin", "around")
_KEPT_SHARE = 0.75  # of the allowed links are kept, so that pages are seldom forgotten


class RelevanceRates:
    """Mean relevance of nested sets of URLs; a mean is shrunk towards that of the next larger set.

    Nested sets are, for example, the URLs of a host, of a directory and of a subdirectory. If n
    fetches of a set have the total relevance r, and the next larger set has the rate m, the rate
    of the set is (r + w m) / (n + w), where w is the parameter `weight`.

    Parameters
    ----------
    weight : w, the number of fetches that the rate of the larger set counts for
    """

    def __init__(self, weight: float = 2.0) -> None:
        self.weight = weight
        # total and count are adjacent, since nearly every access is a cache miss
        self._sums = np.zeros((1 << _BITS, 2), np.float32)
        self._all = PRIOR * 0.1
        self._n = 0.1

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the sums over all recorded fetches."""
        used = np.flatnonzero(self._sums[:, 1])
        return {
            "used": used,
            "total": self._sums[used, 0],
            "count": self._sums[used, 1],
            "all": np.array([self._all, self._n]),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Replace the sums over fetches by the result of `get_state`."""
        self._sums[:] = 0.0
        self._sums[state["used"], 0] = state["total"]
        self._sums[state["used"], 1] = state["count"]
        self._all, self._n = (float(x) for x in state["all"])
        return self

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Record a fetch; `keys` identify the sets that contain the URL, and 0 means no set."""
        for slot in {key & _SLOTS for key in keys.tolist()} - {0}:
            self._sums[slot, 0] += relevance
            self._sums[slot, 1] += 1.0
        self._all += relevance
        self._n += 1.0

    def rates(self, keys: NDArray[np.uint32]) -> Floats:
        """Return the rate of the smallest set in each of n chains of nested sets, float64 (n,).

        Parameters
        ----------
        keys : uint32 (n, length), sets of each chain from large to small, 0 for no set
        """
        deepest = np.count_nonzero(keys.any(axis=0))
        # after the end of a chain, the empty slot leaves the rate unchanged
        sums = self._sums.take(keys.T[:deepest] & _MASK, axis=0)
        total, count = np.divide(sums.transpose(2, 0, 1), self.weight, dtype=float, order="C")
        count += 1.0
        rate = np.full(len(keys), self._all / self._n)
        for part, n in zip(total, count, strict=True):
            rate += part
            rate /= n
        return rate


class FetchOutcomes:
    """Relevance rates by path prefix and URL pattern; short forms (aliases) of fetched URLs."""

    def __init__(self) -> None:
        self.prefixes = RelevanceRates()
        self.patterns = RelevanceRates()
        self._aliases = np.zeros((2, 1 << 19), bool)

    def get_rates(self) -> dict[str, NDArray[Any]]:
        """Return the relevance rates by URL prefix and URL pattern."""
        rates = {"p": self.prefixes.get_state(), "s": self.patterns.get_state()}
        return {f"{key}_{name}": x for key, state in rates.items() for name, x in state.items()}

    def set_rates(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the relevance rates by the result of `get_rates`."""
        for key, rates in (("p_", self.prefixes), ("s_", self.patterns)):
            rates.set_state(select_prefix(state, key))

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the relevance rates and the aliases of fetched URLs."""
        return {"aliases": np.packbits(self._aliases), **self.get_rates()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the relevance rates and the aliases by the result of `get_state`."""
        self.set_rates(state)
        self._aliases[:] = np.unpackbits(state["aliases"]).reshape(self._aliases.shape)

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Record the fetch of a URL; its `keys` are the result of `link_features.url_set_keys`."""
        self.prefixes.observe(keys[:PREFIXES], relevance)
        self.patterns.observe(keys[PREFIXES : PREFIXES + PATTERNS], relevance)
        self._aliases[[0, 1], keys[-2:] & np.uint32(self._aliases.shape[1] - 1)] = True

    def find_aliases(self, keys: NDArray[np.uint32]) -> tuple[Bools, Bools]:
        """Return two masks of URLs with fetched aliases.

        The first mask is for URLs whose alias with the query was fetched. The second mask is for
        URLs of which only the alias without the query was fetched.
        """
        at = keys[:, -2:] & np.uint32(self._aliases.shape[1] - 1)
        same = self._aliases[0, at[:, 0]]
        return same, self._aliases[1, at[:, 1]] & ~same


class UrlEvidence:
    """Sums of relevance and other values over the links to each URL.

    Parameters
    ----------
    width : number of further inputs of each link, see `add`
    only_first : whether only the first link into a URL counts
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
        """Add the values of n links of a `LinkTable` to the sums.

        Parameters
        ----------
        n_urls : all targets are below this id
        links : positions of the links in `table`
        margin : float64 (n,), sum of the weights of the hashed features of each link and of its
            page
        counts : float64 (n, width), optional, further inputs of each link
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
        is_empty = not len(self._sums)
        self._sums.grow(n_urls * len(_SUMS))
        if is_empty:  # for many links, bincount adds in the same order and much faster
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
        """Return whether any link to a URL was added."""
        at = url * len(_SUMS) + _SUMS.index("weight")
        return at < len(self._sums) and bool(self._sums.data[at] > 0.0)

    def urls(self) -> Ints:
        """Return the ids of all URLs to which links were added."""
        return np.flatnonzero(self._table()[:, _SUMS.index("weight")])

    def margins(self, urls: Ints) -> Floats:
        """Return the mean margin (weighted sum of features) of the links to each URL."""
        table = self._table()
        mean: Floats = table[urls, _SUMS.index("margin")]
        mean /= table[urls, _SUMS.index("weight")]
        return mean

    def inputs(self, urls: Ints, keys: NDArray[np.uint32], fetched: FetchOutcomes) -> Floats:
        """Return the numeric inputs of URLs, float64 (n, n_inputs).

        The last columns are the mean co-citation inputs (see `cocitation`).
        """
        sums = self._table().take(urls, axis=0).T.copy()
        n, relevance, reading, _, around = sums
        mean = (relevance + _PRIOR_LINKS * PRIOR) / (n + _PRIOR_LINKS)
        reading /= n
        around /= n
        prefix = fetched.prefixes.rates(keys[:, :PREFIXES])
        pattern = fetched.patterns.rates(keys[:, PREFIXES : PREFIXES + PATTERNS])
        odds = _log_odds(np.concatenate([mean, prefix, pattern]))
        of_mean, of_prefix, of_pattern = odds.reshape(3, -1)
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
    """Return the log-odds of probabilities clipped to [0.01, 0.99], scaled to [-1, 1]."""
    p = np.minimum(np.maximum(probability, 0.01), 0.99)
    odds: Floats = np.log(p / (1.0 - p)) / np.log(99.0)
    return odds


def select_pages_to_forget(
    table: LinkTable, n_links: int, n_pages: int, queued_score: Floats, max_links: int
) -> Bools:
    """Return a mask of the pages to forget so that clearly fewer than `max_links` links remain.

    The value of a page is the highest score of the queued URLs to which the page links. Pages
    without links to queued URLs are forgotten first, the oldest first.

    Parameters
    ----------
    n_links, n_pages : only the first `n_links` links and `n_pages` pages are considered
    queued_score : float64 (n_urls,), score of each queued URL; -1 for other URLs
    max_links : largest allowed number of links
    """
    page, target = table.page.data[:n_links], table.target.data[:n_links]
    best = np.full(n_pages, -1.0)
    np.maximum.at(best, page, queued_score[target])
    order = np.lexsort((-np.arange(n_pages), -best))
    links = np.bincount(page, minlength=n_pages)[order]
    forgotten = np.ones(n_pages, bool)
    forgotten[order[np.cumsum(links) <= _KEPT_SHARE * max_links]] = False
    return forgotten


def urls_without_links(table: LinkTable, evidence: UrlEvidence, y: Floats) -> Ints:
    """Return the unfetched URLs to which only forgotten pages link.

    Parameters
    ----------
    y : float64 (n_urls,), relevance by URL id; NaN for unfetched URLs
    """
    if table.links_ever == len(table):
        return np.zeros(0, np.int64)
    met = np.flatnonzero((table.url_row.data[: len(y)] >= 0) & np.isnan(y))
    return np.setdiff1d(met, evidence.urls(), assume_unique=True)
