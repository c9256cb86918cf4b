"""Learnable crawling: later crawls score links by what earlier ones have learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.knowledge import Keywords
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy
from focuscrawl.strategies.option_checks import check_number
from focuscrawl.strategies.topic_words import topic_keywords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext

_CRITIC, _KEYWORDS = "critic", "keywords"  # what scores a page


class Learnable(LinkStrategy):
    """Priority of v by the anchor's words, by what is known of v, and by its page (METHODS 8).

    Without knowledge, in a first crawl of a topic,

        score(u, v) = alpha sim(keywords, anchor) + (1 - alpha) R(u),

    later, with keywords and predictions of the earlier crawls,

        score(u, v) = alpha sim(keywords, anchor) + beta predicted(v) + gamma R(u).

    Angkawattanawit and Rungsawang, Learnable crawling: an efficient approach to topic-specific
    web resource discovery (2002). The paper holds a page against the keywords; R(u) is the
    critic's here as in all strategies, unless `page` says otherwise. The keywords of a first crawl
    are those the user names, or else the words of the topic's name. Of several links to a URL the
    best decides.

    Parameters
    ----------
    alpha : weight of the anchor's similarity to the keywords
    beta : weight of what is predicted of the URL
    gamma : weight of the page; the three add up to 1
    keywords : of a first crawl: phrases of the topic, its definition's `words`, say; none: the
        topic's name
    page : how a page is scored: ``critic``, R(u), or ``keywords``, the paper's sim(keywords, page)
    """

    expects_relevance = True

    def __init__(
        self,
        context: StrategyContext,
        *,
        alpha: float = 0.25,
        beta: float = 0.5,
        gamma: float = 0.25,
        keywords: Sequence[str] = (),
        page: str = _CRITIC,
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
            check_number(f"learnable: {name}", value, 0, 1)
        if abs(alpha + beta + gamma - 1.0) > 1e-9:
            raise UserError(
                "strategy learnable: alpha, beta and gamma must add up to 1, not "
                f"{alpha + beta + gamma:g}"
            )
        if isinstance(keywords, str) or not all(isinstance(each, str) for each in keywords):
            raise UserError(f"learnable: keywords must be a list of texts, not {keywords!r:.80}")
        if page not in (_CRITIC, _KEYWORDS):
            raise UserError(f"learnable: page must be {_CRITIC} or {_KEYWORDS}, not {page!r:.80}")
        self._by_keywords = page == _KEYWORDS
        self.evidence = Maximum()
        self._knowledge = context.knowledge
        self._keywords = topic_keywords(context)
        if self._knowledge is None:
            self._weights = (alpha, 0.0, 1.0 - alpha)
            if keywords:
                self._keywords = Keywords.of_phrases(keywords)
        else:
            self._weights = (alpha, beta, gamma)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links by their anchors, their URLs and their page."""
        links = page.view.links
        anchors = [links.anchors[i] for i in page.links.tolist()]
        alpha, beta, gamma = self._weights
        worth = page.relevance
        if self._by_keywords:
            worth = float(self._keywords.similarity([" ".join(page.view.tokens)])[0])
        scores = alpha * self._keywords.similarity(anchors) + gamma * worth
        if self._knowledge is not None:
            urls = [links.urls[i] for i in page.links.tolist()]
            scores += beta * self._knowledge.predict(urls, anchors)
        return np.asarray(scores, np.float64)
