"""The table of the study of critics: means over topics, the webs side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from focuscrawl.lab.critics import CRITICS
from focuscrawl.lab.rendering import Grid

_NAMES = {"ap": "AP", "f1": "F1", "precision": "P", "recall": "R", "ece": "error"}
_NOTE = (
    "Means over topics of means over draws. AP: average precision; F1, P, R: of relevance > 1/2, "
    "with precision and recall; error: expected calibration error."
)


def critics_grid(table: pd.DataFrame) -> Grid:
    """Return the table for people.

    Parameters
    ----------
    table : rows of `focuscrawl.lab.critics.study_critics`, with ``web`` and ``topic``
    """
    keys = ["critic", "from", "web"]
    by_topic = table.groupby([*keys, "topic"], sort=False)[list(_NAMES)].mean()
    webs = list(dict.fromkeys(table["web"]))
    columns = [(name, web) for web in webs for name in _NAMES]
    means = pd.DataFrame(by_topic.groupby(keys, sort=False).mean().unstack("web", sort=False))
    means = means[columns].sort_index(
        level="critic", key=lambda names: names.map(CRITICS.index), sort_remaining=False
    )
    head = ["critic", "learned from", *(f"{web} {_NAMES[name]}" for name, web in columns)]
    rows = [
        [critic, material, *map(_cell, values)]
        for (critic, material), values in zip(means.index, means.to_numpy(), strict=True)
    ]
    return Grid("critics", "Critics from little", _NOTE, head, rows, means)


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}".removeprefix("0")
