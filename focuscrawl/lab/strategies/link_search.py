"""The strategies Fish-Search and Shark-Search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from focuscrawl.apprentice.feature_extraction import TextEvidence, WordEvidence
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.arrays import Floats, GrowingArray
from focuscrawl.page.words import tokenize
from focuscrawl.strategies.base import check_count, check_number
from focuscrawl.strategies.baselines import LinkStrategy, Maximum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.base import (
        Expansion,
        JudgedPage,
        Scores,
        StoredPage,
        StrategyContext,
    )


class DepthLimited(LinkStrategy):
    """Base class of strategies that stop following links after `depth` irrelevant pages in a row.

    The remaining depth of a page is the number of clicks that the crawl may still follow from the
    page without reaching a relevant page. The children (link targets) of a relevant page have the
    remaining depth `depth`. The children of an irrelevant page have the remaining depth of that
    page minus 1. A URL with several parents (linking pages) gets the largest remaining depth.
    Links of pages without remaining depth are not followed, so the frontier can become empty.

    Parameters
    ----------
    name : str
        Name of the strategy in messages.
    depth : int
        Maximum number of consecutive clicks without a relevant page.
    """

    def __init__(self, name: str, depth: int) -> None:
        check_count(f"{name}: depth", depth, 0)
        self.evidence = Maximum()
        self._depth = depth
        self._steps_left = GrowingArray(np.int64, fill=-1)  # remaining depth of each URL

    @abstractmethod
    def score_followed(self, page: JudgedPage) -> Floats:
        """Return the scores of a page's links; called only for pages with remaining depth."""

    def score_links(self, page: JudgedPage) -> Floats:
        """Return the scores of a page's links; -inf if the page has no remaining depth."""
        if self._steps_of_children(page) < 0:
            return np.full(len(page.links), -np.inf)
        return self.score_followed(page)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and store the remaining depth of the link targets."""
        left = self._steps_of_children(page)
        expansion = super().expand(page)
        self.pass_to_children(page, left)
        return replace(expansion, memo=left.to_bytes(4, "little", signed=True))

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page, and the remaining depth of the link targets."""
        assert page.memo is not None
        self.pass_to_children(page, int.from_bytes(page.memo, "little", signed=True))
        return super().restore_page(page)

    def pass_to_children(self, page: JudgedPage | StoredPage, left: int) -> None:
        """Store the remaining depth of a page's link targets; -1 if the links are not followed."""
        if len(page.targets):
            self._steps_left.grow(int(page.targets.max()) + 1)
            np.maximum.at(self._steps_left.data, page.targets, left)

    def _steps_of_children(self, page: JudgedPage) -> int:
        """Return the remaining depth of the children of `page`; -1 if they are not followed."""
        if page.relevance > RELEVANT or page.depth == 0:
            return self._depth if page.relevance > RELEVANT else self._depth - 1
        left = int(self._steps_left.data[page.url]) if page.url < len(self._steps_left) else -1
        return (left if left >= 0 else self._depth) - 1  # -1 for the target of a redirect


class FishSearch(DepthLimited):
    """Fetch the first links of relevant pages, then the first links of other pages, then the rest.

    The source is De Bra and Post, Searching for arbitrary information in the WWW: the fish-search
    for Mosaic, WWW2 (1994). The scores 1, 1/2 and 0 follow Hersovici et al., The shark-search
    algorithm, WWW7 (1998), figure 1. The first `breeding` * `width` children (link targets) of a
    relevant page score 1, the first `width` children of another page score 1/2, and all other URLs
    score 0. A URL with several parents (linking pages) gets the best score from any parent.

    Parameters
    ----------
    width : int
        Number of children of an irrelevant page with score 1/2, in document order.
    depth : int
        Maximum number of consecutive clicks without a relevant page.
    breeding : float
        Factor on the width for relevant pages; 1.5 in figure 1.
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
        check_number("fish-search: breeding", breeding, 0)
        super().__init__("fish-search", depth)
        self.width = width
        self.breeding = breeding

    def score_followed(self, page: JudgedPage) -> Floats:
        """Score links by the page's relevance and by the position of the link on the page."""
        relevant = page.relevance > RELEVANT
        width = int(self.breeding * self.width) if relevant else self.width
        _, first, child = np.unique(page.targets, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return np.where(rank[child] < width, 1.0 if relevant else 0.5, 0.0)


class SharkSearch(DepthLimited):
    """Score links by the relevance of their page and its ancestors, and by the words of the links.

    The formulas are those of Hersovici, Jacovi, Maarek, Pelleg, Shtalhim and Ur, The shark-search
    algorithm, an application: tailored Web site mapping, WWW7 (1998), figure 2:

        inherited(v)    = delta sim(u) if u is relevant, else delta inherited(u)
        neighborhood(v) = beta anchor(v) + (1 - beta) context(v)
        score(v)        = gamma inherited(v) + (1 - gamma) neighborhood(v),

    The value anchor(v) is the similarity of the query and the anchor text of a link to the URL v.
    The value context(v) is 1 if the anchor text is relevant, and otherwise the similarity of the
    query and the words near the link. If several pages link to a URL, the URL gets the best score
    and the largest inherited relevance.

    Hersovici et al. compare pages, anchors and contexts with the words of a query. `SharkSearch`
    uses the critic instead of a query. The similarity sim(u) is the relevance R(u) of a page u.
    The similarity of a short text is the probability of the topic given the words of the text;
    `WordEvidence` computes the probability. A short text counts as relevant if its similarity to
    the topic exceeds 1/2. A critic that cannot judge single words gives all texts the same
    similarity, so that only inherited relevance orders the links.

    Parameters
    ----------
    delta : float
        Decay of inherited relevance per click.
    beta : float
        Weight of the anchor against its context.
    gamma : float
        Weight of inherited relevance against the link's words.
    depth : int
        Maximum number of consecutive clicks without a relevant page.
    context_words : int
        Number of words on either side of the anchor.
    """

    expects_relevance = True

    def __init__(
        self,
        context: StrategyContext,
        *,
        delta: float = 0.5,
        beta: float = 0.8,
        gamma: float = 0.5,
        depth: int = 3,
        context_words: int = 10,
    ) -> None:
        for name, value in (("delta", delta), ("beta", beta), ("gamma", gamma)):
            check_number(f"shark-search: {name}", value, 0, 1)
        check_count("shark-search: context_words", context_words, 0)
        super().__init__("shark-search", depth)
        critic = context.critic
        self.delta, self.beta, self.gamma = delta, beta, gamma
        self.context_words = context_words
        self._words = WordEvidence(critic, use_critic=getattr(critic, "reads_words", False))
        self._anchors = TextEvidence(self._words, tokenize)
        self._inherited = GrowingArray(np.float64)

    def score_followed(self, page: JudgedPage) -> Floats:
        """Score links by inherited relevance and by the words in and around the links."""
        view, links = page.view, page.links
        texts = [view.links.anchors[i] for i in links.tolist()]
        anchor = self._similarity(self._anchors.read(texts))
        evidence = self._words.evidence_around(view, links, self.context_words)
        around = self._similarity(evidence)
        context = np.where(anchor > RELEVANT, 1.0, around)
        neighborhood = self.beta * anchor + (1.0 - self.beta) * context
        inherited = self._inherited_by_children(page.url, page.relevance)
        return self.gamma * inherited + (1.0 - self.gamma) * neighborhood

    def pass_to_children(self, page: JudgedPage | StoredPage, left: int) -> None:
        """Store the remaining depth and the inherited relevance of a page's link targets."""
        super().pass_to_children(page, left)
        if len(page.targets):
            handed_on = self._inherited_by_children(page.url, page.relevance)
            self._inherited.grow(int(page.targets.max()) + 1)
            np.maximum.at(self._inherited.data, page.targets, handed_on)

    def _inherited_by_children(self, url: int, relevance: float) -> float:
        if relevance > RELEVANT:
            return self.delta * relevance
        if url < len(self._inherited):
            return self.delta * float(self._inherited.data[url])
        return 0.0

    def _similarity(self, evidence: NDArray[np.float32]) -> Floats:
        return expit(self._words.log_odds(evidence))
