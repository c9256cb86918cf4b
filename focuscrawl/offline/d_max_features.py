"""The features of links for every d_max at once: each window of words is a part of the widest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.critic_reading import WordReader
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.link_context import MAX_TOKENS, by_offset, window
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import LINK_GROUPS, PAGE_GROUPS, URL_GROUPS
from focuscrawl.apprentice.page_facts import BITS
from focuscrawl.apprentice.sparse_rows import SparseRows, beside, pointers

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from focuscrawl.crawl.page_source import ReadPage
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.page import PageView

#: the group that looks as far as d_max
AROUND = "context"


class WindowReader:
    """Takes hashed features from pages for d_max = 0 ... `farthest`, as `FeatureExtractor` would.

    Parameters
    ----------
    critic : for the names of its classes
    groups : kinds of features that are on
    farthest : greatest d_max
    counts, tokens : see `focuscrawl.apprentice.options.Options`

    Attributes
    ----------
    known : by d_max, links and URLs with the features they have at that d_max
    """

    def __init__(
        self,
        critic: Critic,
        groups: Collection[str],
        farthest: int,
        *,
        counts: bool = False,
        tokens: int = MAX_TOKENS,
    ) -> None:
        on = frozenset(groups)
        self.known = [LinkTable() for _ in range(farthest + 1)]
        self._farthest = farthest
        self._counts = counts
        self._tokens = tokens or None
        hashed = {*LINK_GROUPS, *PAGE_GROUPS, *URL_GROUPS}
        self._others = FeatureExtractor(
            WordReader(critic, ask=False),
            groups=(on & hashed) - {AROUND},
            classes=critic.classes,
        )

    def add(self, url: int, page: ReadPage, relevance: float) -> None:
        """Take in a page numbered `url` and the links that it was read with."""
        targets = page.targets
        largest = max(url, int(targets.max(initial=0)))
        for known in self.known:
            known.grow(largest + 1)
        facts = self._others.read(
            page.view,
            page.links,
            targets,
            new=self.known[0].address.data[targets] < 0,
            relevance=relevance,
            probabilities=page.probabilities,
        )
        around, offset = self._around(page.view, page.links)
        for d_max, known in enumerate(self.known):
            links, _ = beside(_within(around, offset, d_max), facts.links)
            known.add(url, replace(facts, links=links))

    def urls(self) -> Ints:
        """Return the numbers of all URLs with links, ascending."""
        return np.flatnonzero(self.known[0].address.data >= 0)

    def _around(self, view: PageView, links: Ints) -> tuple[SparseRows, NDArray[np.int32]]:
        """Return the features of the words around links, and how far away each word is."""
        near = window(
            view.words.hashes,
            view.token_leaf,
            view.links.left[links],
            view.links.right[links],
            d_max=self._farthest,
            max_tokens=self._tokens,
            repeats=self._counts,
        )
        return by_offset(near, BITS), np.abs(near.offset)


def _within(rows: SparseRows, offset: NDArray[np.int32], d_max: int) -> SparseRows:
    """Return the features of words at most `d_max` leaves away."""
    kept = offset <= d_max
    owner = np.repeat(np.arange(len(rows)), rows.lengths)
    lengths = np.bincount(owner[kept], minlength=len(rows))
    return SparseRows(rows.indices[kept], pointers(lengths))
