"""What figures are made of: fetches of a study, and the tables of what was done beside it.

Figures ask for strategies by these labels; a study that lacks one lacks the figures of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.lab.topic_tasks import read_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.lab.results import Results

SOFT = "best-first"  # the baseline of [A02], soft focus in [F99]
HARD = "hard-focus"
UNFOCUSED = "breadth-first"
APPRENTICE = "apprentice"
OFFLINE = "apprentice, offline"  # trained on the baseline's crawl
RECALL = "recall"  # the same, confined to what the baseline fetched
OF_PAPER = "paper's own"  # the apprentice of [A02], learning from the first fetches on
OF_PAPER_OFFLINE = "paper's own, offline"  # trained on the baseline's crawl, as there
OF_PAPER_RECALL = "paper's own, recall"
SWITCHED = "switched"  # of `focuscrawl.lab.takeover_study`: no strategy of a study

#: what finds the data of a figure or a finding in results; None where they have none
Data = Callable[["Results"], pd.DataFrame | None]

RUN = ["web", "topic", "draw", "strategy"]
_COLUMNS = [*RUN, "seq", "relevance"]


def fetches_of(
    results: Results, strategies: Sequence[str], *more: str, needed: int | None = None
) -> pd.DataFrame | None:
    """Return the fetches that count, of some strategies; None if too few of them were run.

    Parameters
    ----------
    more : columns besides ``web``, ``topic``, ``draw``, ``strategy``, ``seq``, ``relevance``
    needed : how many of the strategies there have to be; None: all

    Returns
    -------
    One row a fetch, up to the number of fetches at which the study compares
    """
    there = [name for name in strategies if name in results.strategies]
    if not there or len(there) < (len(strategies) if needed is None else needed):
        return None
    columns = [*_COLUMNS, *more]
    parts = [results.fetches(columns, strategy=name) for name in there]
    texts = [*(name for name in RUN if name != "draw"), *(n for n in more if n == "host")]
    fetches = pd.concat([part.astype(dict.fromkeys(texts, object)) for part in parts])
    budgets = results.runs[[*RUN, "budget"]].astype(dict.fromkeys(texts[:3], object))
    fetches = fetches.merge(budgets, on=RUN)
    kept = fetches[fetches["seq"] <= fetches["budget"]]
    return None if kept.empty else kept.drop(columns="budget").reset_index(drop=True)


def table_of(results: Results, kind: str, name: str) -> pd.DataFrame | None:
    """Return a table of work on every topic, see `focuscrawl.lab.topic_tasks`; None without it.

    Webs and topics are those of the study, in its order.
    """
    table = read_tables(results.folder / kind, name)
    if table is None:
        return None
    whose = results.runs[["web", "topic"]].astype(object).drop_duplicates()
    found = whose.merge(table, on=["web", "topic"])
    return None if found.empty else found


def fetches(*strategies: str, needed: int | None = None) -> Data:
    """Return what finds the fetches of some strategies, see `fetches_of`."""
    return lambda results: fetches_of(results, strategies, needed=needed)


def table(kind: str, name: str) -> Data:
    """Return what finds a table of work on every topic, see `table_of`."""
    return lambda results: table_of(results, kind, name)
