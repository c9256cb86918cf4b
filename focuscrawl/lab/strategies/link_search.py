"""Fish-Search and Shark-Search."""

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
    """A base of strategies whose ways end after `depth` pages without a relevant one.

    The links of the last page of a way are not followed, and the frontier can run empty. Children
    of a relevant page may go on for `depth` steps, the *depth* of the paper, others for one less
    than their parent; a URL found more than once keeps the most.

    Parameters
    ----------
    name : of the strategy, for messages
    depth : how many steps a way may go on without a relevant page
    """

    def __init__(self, name: str, depth: int) -> None:
        check_count(f"{name}: depth", depth, 0)
        self.evidence = Maximum()
        self._depth = depth
        self._steps_left = GrowingArray(np.int64, fill=-1)  # steps the way to each URL may go on

    @abstractmethod
    def score_followed(self, page: JudgedPage) -> Floats:
        """Return the scores of the links of a page whose links are followed."""

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links, unless the way ends here."""
        if self._steps_of_children(page) < 0:
            return np.full(len(page.links), -np.inf)
        return self.score_followed(page)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links, and hand on what is left of the way."""
        left = self._steps_of_children(page)
        expansion = super().expand(page)
        self.pass_to_children(page, left)
        return replace(expansion, memo=left.to_bytes(4, "little", signed=True))

    def restore_page(self, page: StoredPage) -> Scores:
        """Weigh the links of an earlier run again, and hand on what was left of the way."""
        assert page.memo is not None
        self.pass_to_children(page, int.from_bytes(page.memo, "little", signed=True))
        return super().restore_page(page)

    def pass_to_children(self, page: JudgedPage | StoredPage, left: int) -> None:
        """Give the children of a page the steps that are left to them; -1: none."""
        if len(page.targets):
            self._steps_left.grow(int(page.targets.max()) + 1)
            np.maximum.at(self._steps_left.data, page.targets, left)

    def _steps_of_children(self, page: JudgedPage) -> int:
        """Return what the children of `page` have; -1: they are not followed."""
        if page.relevance > RELEVANT or page.depth == 0:
            return self._depth if page.relevance > RELEVANT else self._depth - 1
        left = int(self._steps_left.data[page.url]) if page.url < len(self._steps_left) else -1
        return (left if left >= 0 else self._depth) - 1  # no link leads to where a redirect ends


class FishSearch(DepthLimited):
    """The first children of relevant pages, then those of other pages, then all the rest.

    De Bra and Post, Searching for arbitrary information in the WWW: the fish-search for Mosaic,
    WWW2 (1994), with the scores that Hersovici et al., The shark-search algorithm, WWW7 (1998),
    figure 1, give the three parts of its list: 1 for the first a * width children of a relevant
    page, 1/2 for the first width children of another, 0 for the rest; a URL found more than
    once has the best of its scores. A way ends after `depth` pages without a relevant one.

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
        check_number("fish-search: breeding", breeding, 0)
        super().__init__("fish-search", depth)
        self.width = width
        self.breeding = breeding

    def score_followed(self, page: JudgedPage) -> Floats:
        """Score links by their page's relevance and the order of their targets on it."""
        relevant = page.relevance > RELEVANT
        width = int(self.breeding * self.width) if relevant else self.width
        _, first, child = np.unique(page.targets, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return np.where(rank[child] < width, 1.0 if relevant else 0.5, 0.0)


class SharkSearch(DepthLimited):
    """Priority of v = what v inherits from u and its ancestors, and what the link's words say.

    Hersovici, Jacovi, Maarek, Pelleg, Shtalhim and Ur, The shark-search algorithm, an
    application: tailored Web site mapping, WWW7 (1998), figure 2:

        inherited(v)    = delta sim(u) if u is relevant, else delta inherited(u)
        neighborhood(v) = beta anchor(v) + (1 - beta) context(v)
        score(v)        = gamma inherited(v) + (1 - gamma) neighborhood(v),

    where anchor(v) is the similarity of the anchor text to the query and context(v) that of the
    words around it, or 1 if the anchor speaks for the topic already. A URL found more than once
    has the best of its scores, and the most it can inherit. Ways without a relevant page end as
    in `FishSearch`.

    The paper asks a similarity engine about pages, anchors and contexts, all against the words
    of a query. There is no query here; the critic is asked in all three places. sim(u) is
    R(u), and of a few words it is Pr(c*|words) as `WordEvidence` puts it together from what the
    critic says of each word. A text is relevant, or speaks for the topic, above 1/2. A critic
    that cannot read single words says the same of all texts: then only inheritance counts.

    Parameters
    ----------
    delta : decay of what is inherited
    beta : weight of the anchor against its context
    gamma : weight of what is inherited against the link's own words
    depth : how many steps a way may go on without a relevant page
    context_words : words looked at on either side of the anchor
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
        """Score links by what their page hands on and by the words in and around them."""
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
        """Give the children of a page the steps left to them, and what they inherit."""
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
