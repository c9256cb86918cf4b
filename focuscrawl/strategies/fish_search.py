"""Fish-Search (De Bra, Post 1994): schools of fish that breed where there is food."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy
from focuscrawl.strategies.option_checks import check_count, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.exchange import (
        Expansion,
        JudgedPage,
        RecalledPage,
        Scores,
        StrategyContext,
    )

RELEVANT = 0.5  # the critic's R(u) above which a page is food


class FishSearch(LinkStrategy):
    """The first children of relevant pages, then those of other pages, then all the rest.

    De Bra and Post, Searching for arbitrary information in the WWW: the fish-search for Mosaic,
    WWW2 (1994), with the scores that Hersovici et al., The shark-search algorithm, WWW7 (1998),
    figure 1, give the three parts of its list: 1 for the first a * width children of a relevant
    page, 1/2 for the first width children of another, 0 for the rest; a URL found more than
    once has the best of its scores. A way ends after `depth` pages without a relevant one: the
    links of the last are not followed, and the frontier can run empty.

    Parameters
    ----------
    width : children of an irrelevant page that come before the rest, in document order
    depth : how many steps a way may go on without a relevant page
    breeding : a; how many times as many children a relevant page has, 1.5 in figure 1
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        width: int = 5,
        depth: int = 3,
        breeding: float = 1.5,
    ) -> None:
        check_count("fish-search: width", width, 0)
        check_count("fish-search: depth", depth, 0)
        check_number("fish-search: breeding", breeding, 0)
        self.width = width
        self.breeding = breeding
        self.evidence = Maximum()
        self._strength = Strength(depth)

    def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
        """Score links by their page's relevance and the order of their targets on it."""
        if self._strength.of_children(page) < 0:
            return np.full(len(page.links), -np.inf)
        relevant = page.relevance > RELEVANT
        width = int(self.breeding * self.width) if relevant else self.width
        _, first, child = np.unique(page.targets, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return np.where(rank[child] < width, 1.0 if relevant else 0.5, 0.0)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links, and hand on the page's strength."""
        strength = self._strength.of_children(page)
        expansion = super().expand(page)
        self._strength.hand_on(page.targets, strength)
        return replace(expansion, memo=Strength.pack(strength))

    def recall(self, page: RecalledPage) -> Scores:
        """Weigh the links of an earlier run again, and hand on the page's strength."""
        self._strength.hand_on(page.targets, Strength.unpack(page.memo))
        return super().recall(page)


class Strength:
    """How many more steps the way to each URL may go on without a relevant page.

    The *depth* of the paper. Children of a relevant page have all of it, others one less than
    their parent; a URL found more than once keeps the most.

    Parameters
    ----------
    depth : of a start page
    """

    def __init__(self, depth: int) -> None:
        self._full = depth
        self._left = GrowingArray(np.int64, fill=-1)

    def of_children(self, page: JudgedPage) -> int:
        """Return what the children of `page` have; -1: they are not followed."""
        if page.relevance > RELEVANT or page.depth == 0:
            return self._full if page.relevance > RELEVANT else self._full - 1
        left = int(self._left.data[page.url]) if page.url < len(self._left) else -1
        return (left if left >= 0 else self._full) - 1  # no link leads to where a redirect ends

    def hand_on(self, targets: NDArray[np.int64], strength: int) -> None:
        """Give the children of a page what `of_children` has returned."""
        if len(targets):
            self._left.grow(int(targets.max()) + 1)
            np.maximum.at(self._left.data, targets, strength)

    @staticmethod
    def pack(strength: int) -> bytes:
        """Return `strength` as a memo for the store."""
        return strength.to_bytes(4, "little", signed=True)

    @staticmethod
    def unpack(memo: bytes | None) -> int:
        """Return the strength that `pack` has packed."""
        assert memo is not None
        return int.from_bytes(memo, "little", signed=True)
