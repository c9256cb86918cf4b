"""When a site has given what it has: goals to be expected of its next fetches [C 3.2].

The paper stops when no link scores above a threshold. Scores are sums of rewards of a model that
knows other sites, so that no threshold means the same on two of them. Here what the model says is
first made evidence by its calibration, and how many goals there are is learned from the site:
the share of goals among the last fetches is the one under which their evidence is most probable,
and the prior of what waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.paths.calibration import Calibration

#: fetches that are looked back at, and ahead
SPAN = 50
#: of the goals of the poorest site learned from, the share that is to be found before a site is
#: given up
FEWEST = 0.25
#: looks in a row that are to say so: a list of goals may be behind a page that looks like nothing
PATIENCE = 10
_EVERY = 10  # fetches from one look to the next
_STEPS = 20  # of expectation maximisation, at most
_EXACT = 1e-4


class Prospect:
    """What fetches of a site brought, and what its next ones will.

    Parameters
    ----------
    calibration : of the model
    least : goals a fetch below which the next fetches are not worth it
    """

    def __init__(self, calibration: Calibration, least: float) -> None:
        self._calibration = calibration
        self._least = least
        self._evidence: list[float] = []
        self._at: dict[int, int] = {}
        self._seen = 0  # fetches at the last look
        self._found = 0.0
        self._poor = 0  # looks in a row that expected too little

    def fetched(self, url: int) -> None:
        """Take note of a fetch: no goal until it is judged."""
        self._at[url] = len(self._evidence)
        self._evidence.append(0.0)

    def judged(self, url: int, goal: float) -> None:
        """Take note of the model's Pr(goal) of a page that was fetched."""
        at = self._at.pop(url, None)
        if at is not None:
            self._evidence[at] = float(self._calibration.page(np.array([goal]))[0])

    @property
    def due(self) -> bool:
        """Whether there were enough fetches for another look."""
        return len(self._evidence) >= self._seen + _EVERY

    def exhausted(self, goals: NDArray[np.float64]) -> bool:
        """Tell whether to give the site up; to be asked when it is `due`.

        Parameters
        ----------
        goals : the model's Pr(goal) of the `SPAN` best links that wait
        """
        evidence = np.array(self._evidence[-SPAN:])
        share = self._share(evidence)
        new = len(self._evidence) - self._seen
        self._seen = len(self._evidence)
        self._found += float(_posterior(evidence[-new:], share).sum())
        ahead = self._calibration.link(goals)
        if _posterior(ahead, self._calibration.prior).max(initial=0.0) < self._least:
            return True  # not even were goals as frequent as on the paths learned from
        expected = float(_posterior(ahead, share).sum()) / SPAN
        enough = self._seen >= SPAN and self._found >= FEWEST * self._calibration.goals
        self._poor = self._poor + 1 if enough and expected < self._least else 0
        return self._poor >= PATIENCE

    def _share(self, evidence: NDArray[np.float64]) -> float:
        """Return the share of goals by which the evidence is most probable.

        By expectation maximisation, with one goal added to those seen, as rare as in the paths
        learned from: a share of 0 would never see another goal.
        """
        share = prior = self._calibration.prior
        for _ in range(_STEPS):
            goals = _posterior(evidence, share).sum() + 1.0
            before, share = share, float(goals / (len(evidence) + 1.0 / prior))
            if abs(share - before) < _EXACT:
                break
        return share


def _posterior(evidence: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return Pr(goal) by Bayes' rule."""
    weighed = evidence * share
    probabilities: NDArray[np.float64] = weighed / (weighed + 1.0 - share)
    return probabilities
