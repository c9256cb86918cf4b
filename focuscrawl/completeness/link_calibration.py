"""What a link's score is worth by now: relevant pages found, over those that scores promised."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats

_EDGES = (0.01, 0.1, 0.3, 0.6, 0.9)  # of the bins of scores
_HALF = 50  # fetches of a bin after which one counts half
_FADES = 0.5 ** (1.0 / _HALF)
_PRIOR = 2.0  # relevant pages as promised, before any fetch
_LEAST = 0.001  # probability: a score of 0 is no promise that a page is off the topic
_UNKNOWN = 0.5  # of every link, where scores are no probabilities


class LinkCalibration:
    """Probabilities that links lead to relevant pages, learned from the fetches of a crawl.

    Scores are put into six bins. In each, what links of late promised is held against what they
    brought, and the scores of all that wait there are multiplied by that. The best links of a
    bin are fetched first, and the strategy learns meanwhile: so late fetches count more.

    Parameters
    ----------
    promises : whether scores are the relevance to be expected; if not, only the harvest counts
    """

    def __init__(self, *, promises: bool) -> None:
        self._promises = promises
        self._promised = [_PRIOR] * (len(_EDGES) + 1)
        self._found = [_PRIOR] * (len(_EDGES) + 1)

    def learn(self, score: float, *, relevant: bool) -> None:
        """Take in what came of a link that had `score` when it was fetched."""
        expected = min(max(score, _LEAST), 1.0) if self._promises else _UNKNOWN
        at = bisect_left(_EDGES, expected)
        self._promised[at] = _PRIOR + _FADES * (self._promised[at] - _PRIOR) + expected
        self._found[at] = _PRIOR + _FADES * (self._found[at] - _PRIOR) + relevant

    def probabilities(self, scores: Floats) -> Floats:
        """Return how probable it is that links lead to relevant pages.

        Parameters
        ----------
        scores : float64 (n,); inf, of seeds and where redirects lead, counts as 1
        """
        expected = np.full(len(scores), _UNKNOWN)
        if self._promises:
            expected = np.clip(scores, _LEAST, 1.0)
        ratios = np.array(self._found) / np.array(self._promised)
        probable: Floats = np.minimum(1.0, ratios[np.searchsorted(_EDGES, expected)] * expected)
        return probable
