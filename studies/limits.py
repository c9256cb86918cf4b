"""Cost of the limits against traps: losses of crawls with and without, by three judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from focuscrawl.lab.results import Results

#: ending of the label of a strategy whose crawls run with FOCUSCRAWL_LIMITS = 0
WITHOUT = ", without limits"
MAX_COST = 0.01  #: largest cost of a default setting
_LOSSES = {"labels": "labelled_loss", "judge": "judged_loss", "critic": "loss"}
_RUN = ["web", "topic", "draw"]


def compare_limits(results: Results) -> pd.DataFrame:
    """Compare each crawl with the crawl of the same strategy and draw without limits.

    Returns
    -------
    pandas.DataFrame
        One row for each web, topic, draw and strategy: the losses with limits, the differences
        from the losses without limits (``+``: limits cost), and ``parted``, the first fetch of
        another URL (0: all fetches are the same).
    """
    runs = results.runs.astype(dict.fromkeys(("web", "topic", "strategy"), str))
    rows = []
    for key, pair in runs.groupby([*_RUN, runs["strategy"].str.removesuffix(WITHOUT)]):
        if len(pair) < 2:
            continue
        without, limited = sorted(
            pair.to_dict("records"), key=lambda run: not run["strategy"].endswith(WITHOUT)
        )
        rows.append(
            dict(zip([*_RUN, "strategy"], key, strict=True))
            | {name: limited[column] for name, column in _LOSSES.items()}
            | {f"+{name}": limited[column] - without[column] for name, column in _LOSSES.items()}
            | {"parted": _parted(*(_urls(results, run) for run in (limited, without)))}
        )
    return pd.DataFrame(rows)


def _urls(results: Results, run: dict[Any, Any]) -> list[str]:
    where = {name: run[name] for name in (*_RUN, "strategy")}
    urls: list[str] = results.fetches(["url"], **where)["url"].tolist()
    return urls


def _parted(one: list[str], other: list[str]) -> int:
    if one == other:
        return 0
    pairs = enumerate(zip(one, other, strict=False), 1)
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)) + 1)
