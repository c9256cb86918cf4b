"""A model of paths as a critic: how a page looks, whatever the path to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.protocol import Judgement
from focuscrawl.paths.features import PathReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.page import PageView
    from focuscrawl.paths.model import PathModel

TOPIC = "/goal"


class PathCritic:
    """A `Critic`: R(u) = Pr(u is a goal | the page alone).

    Whose page it is, the page does not say; the path does (`focuscrawl.strategies.paths`).

    Parameters
    ----------
    model : what was learned
    fingerprint : tells it from others

    Attributes
    ----------
    classes : labels of pages, as topic paths
    marked, examples, fingerprint : as `Critic` has them; no examples
    """

    def __init__(self, model: PathModel, fingerprint: str) -> None:
        self.model = model
        self.classes: tuple[str, ...] = tuple(
            f"/{label.strip('/')}" for label in model.states.labels
        )
        self.marked = np.array([path == TOPIC for path in self.classes], np.bool_)
        self.examples: tuple[str, ...] = ()
        self.fingerprint = fingerprint
        self._reader = PathReader(model.reading)

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        if not pages:
            return Judgement(np.zeros(0), np.zeros((0, len(self.classes))))
        found = np.array([self.model.alone(self._reader, page) for page in pages])
        return Judgement(found[:, 0], found)
