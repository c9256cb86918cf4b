"""What the words of a request promise, where there is no page that links to its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.apprentice.critic_reading import WordReader
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from scrapy import Request

    from focuscrawl.critic.protocol import Critic

_UNREAD = 0.5  # of a critic that words mean nothing to


class RequestWords:
    """Scores start requests, those of a sitemap, and others that no link was seen for.

    The score is the relevance of a page of these words alone: those of the URL, and the
    ``link_text`` that Scrapy's rules leave in the meta.
    """

    def __init__(self, critic: Critic) -> None:
        self.critic = critic
        self._reads = bool(getattr(critic, "reads_words", False))
        self._words = WordReader(critic, ask=self._reads)

    def score(self, request: Request) -> float:
        """Return a score from 0 to 1."""
        if not self._reads:
            return _UNREAD
        from scipy.special import expit  # noqa: PLC0415 - slow to import, for a few requests

        address = request.url.partition("://")[2]
        words, owner = tokenize([f"{address} {request.meta.get('link_text', '')}"])
        evidence = self._words.evidence(words, owner, 1)
        return float(expit(self._words.log_odds(evidence)[0]))
