"""Learnable crawling: later crawls score links by what earlier ones have learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy
from focuscrawl.strategies.option_checks import check_number
from focuscrawl.strategies.topic_words import topic_keywords

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class Learnable(LinkStrategy):
    """Priority of v by the anchor's words, by what is known of v, and by its page (METHODS 8).

    Without knowledge, in a first crawl of a topic,

        score(u, v) = alpha sim(keywords, anchor) + (1 - alpha) R(u),

    later, with keywords and predictions of the earlier crawls,

        score(u, v) = alpha sim(keywords, anchor) + beta predicted(v) + gamma R(u).

    Angkawattanawit and Rungsawang, Learnable crawling: an efficient approach to topic-specific
    web resource discovery (2002). The paper holds a page against the keywords; R(u) is the
    critic's here as in all strategies. The keywords of a first crawl are the words of the topic's
    name. Of several links to a URL the best decides.

    Parameters
    ----------
    alpha : weight of the anchor's similarity to the keywords
    beta : weight of what is predicted of the URL
    gamma : weight of the page; the three add up to 1
    """

    expects_relevance = True

    def __init__(
        self,
        context: StrategyContext,
        *,
        alpha: float = 0.25,
        beta: float = 0.5,
        gamma: float = 0.25,
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
            check_number(f"learnable: {name}", value, 0, 1)
        if abs(alpha + beta + gamma - 1.0) > 1e-9:
            raise UserError(
                "strategy learnable: alpha, beta and gamma must add up to 1, not "
                f"{alpha + beta + gamma:g}"
            )
        self.evidence = Maximum()
        self._knowledge = context.knowledge
        self._keywords = topic_keywords(context)
        if self._knowledge is None:
            self._weights = (alpha, 0.0, 1.0 - alpha)
        else:
            self._weights = (alpha, beta, gamma)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links by their anchors, their URLs and their page."""
        links = page.view.links
        anchors = [links.anchors[i] for i in page.links.tolist()]
        alpha, beta, gamma = self._weights
        scores = alpha * self._keywords.similarity(anchors) + gamma * page.relevance
        if self._knowledge is not None:
            urls = [links.urls[i] for i in page.links.tolist()]
            scores += beta * self._knowledge.predict(urls, anchors)
        return np.asarray(scores, np.float64)
