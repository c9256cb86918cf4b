"""Writes down what a learner is trained on, in a crawl that imports this module.

The learner appends a line for each training to the file ``TEST_TRAININGS``: a list of rows. `keep`
appends a line for each instance that the crawl emits to ``TEST_EMITTED``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.apprentice.learners import LogisticLearner, NaiveBayesLearner

if TYPE_CHECKING:
    from focuscrawl.apprentice.learners import Instances
    from focuscrawl.engine.instance_feed import Instance
    from focuscrawl.foundation.arrays import Floats


def _watch(learner: Any) -> None:
    fit = learner.partial_fit

    def partial_fit(self: Any, X: Instances, y: Floats, *rest: Any) -> Any:  # noqa: N803
        bounds = X.rows.indptr.tolist()
        rows = [
            {
                "features": X.rows.indices[start:end].tolist(),
                "values": X.values[start:end].tolist(),
                "inputs": X.dense[i].tolist(),
                "label": float(y[i]),
            }
            for i, (start, end) in enumerate(pairwise(bounds))
        ]
        _append("TEST_TRAININGS", rows)
        return fit(self, X, y, *rest)

    learner.partial_fit = partial_fit


def _append(variable: str, value: object) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(value)}\n")


def keep(instance: Instance) -> None:
    """Receive an instance, as a user's callable does."""
    _append("TEST_EMITTED", asdict(instance))


_watch(LogisticLearner)
_watch(NaiveBayesLearner)
