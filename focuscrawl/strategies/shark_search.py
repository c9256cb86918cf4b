"""Shark-Search (Hersovici et al. 1998): Fish-Search with scores in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from focuscrawl.apprentice.critic_reading import TextReader, WordReader
from focuscrawl.foundation.arrays import Floats, GrowingArray
from focuscrawl.page.tokens import tokenize
from focuscrawl.strategies.fish_search import RELEVANT, DepthLimited
from focuscrawl.strategies.option_checks import check_count, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.messages import (
        JudgedPage,
        RecalledPage,
        StrategyContext,
    )


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
    R(u), and of a few words it is Pr(c*|words) as `WordReader` puts it together from what the
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
        self._words = WordReader(critic, ask=getattr(critic, "reads_words", False))
        self._anchors = TextReader(self._words, tokenize)
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
        inherited = self._handed_on(page.url, page.relevance)
        return self.gamma * inherited + (1.0 - self.gamma) * neighborhood

    def hand_on(self, page: JudgedPage | RecalledPage, left: int) -> None:
        """Give the children of a page the steps left to them, and what they inherit."""
        super().hand_on(page, left)
        if len(page.targets):
            handed_on = self._handed_on(page.url, page.relevance)
            self._inherited.grow(int(page.targets.max()) + 1)
            np.maximum.at(self._inherited.data, page.targets, handed_on)

    def _handed_on(self, url: int, relevance: float) -> float:
        if relevance > RELEVANT:
            return self.delta * relevance
        if url < len(self._inherited):
            return self.delta * float(self._inherited.data[url])
        return 0.0

    def _similarity(self, evidence: NDArray[np.float32]) -> Floats:
        return expit(self._words.log_odds(evidence))
