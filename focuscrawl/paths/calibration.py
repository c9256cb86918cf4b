"""What a model's probability of a goal is worth on a site that it did not learn from.

The model is fitted to paths with a few fails for each goal, and shrunk by its penalty: it gives a
page of a new site that is nothing .1, and a goal .5, where a forage meets one goal in a hundred
pages. `focuscrawl.paths.left_out_sites` fits what such a probability is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SURE = 1e-4  # nothing is surer, goal or not
_MOST = 50.0  # evidence that a float can hold


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much more often goals than others are given a probability p: exp(slope x + offset).

    x are the log-odds of p.
    """

    slope: float
    offset: float

    def __call__(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(p | goal) / Pr(p | no goal), float64, for each of `probabilities`."""
        evidence = self.slope * log_odds(probabilities) + self.offset
        odds: NDArray[np.float64] = np.exp(np.minimum(evidence, _MOST))
        return odds


@dataclass(frozen=True, slots=True)
class Calibration:
    """What Pr(goal) is worth: of links whose page is not fetched, and of pages.

    Attributes
    ----------
    link, page : evidence by the model's Pr(goal)
    prior : share of goals among what it was fitted to
    goals : on paths of the site learned from that has the fewest
    """

    link: Evidence
    page: Evidence
    prior: float
    goals: int


def log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log p / (1 - p), float64, of probabilities; none is taken to be sure."""
    kept = np.clip(probabilities, _SURE, 1.0 - _SURE)
    odds: NDArray[np.float64] = np.log(kept / (1.0 - kept))
    return odds
