"""A critic of one word, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.protocol import Judgement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.page import PageView


class KeywordCritic:
    """A `Critic` of two classes: a page with the word is on the topic, others are not.

    Parameters
    ----------
    word : lower case
    high, low : R(u) of pages with and without it
    classes : names of the topic and of all else
    reads_words : see `focuscrawl.critic.protocol.Critic`
    """

    marked = np.array([True, False])
    examples: tuple[str, ...] = ()
    fingerprint = "c417"

    def __init__(
        self,
        word: str,
        *,
        high: float = 0.9,
        low: float = 0.2,
        classes: tuple[str, str] = ("/Topic", "/Other"),
        reads_words: bool = False,
    ) -> None:
        self.classes: tuple[str, ...] = classes
        self.reads_words = reads_words
        self._word, self._high, self._low = word, high, low

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        found = [self._high if self._word in page.tokens else self._low for page in pages]
        relevance = np.array(found, np.float64)
        return Judgement(relevance, np.stack([relevance, 1.0 - relevance], axis=1))
