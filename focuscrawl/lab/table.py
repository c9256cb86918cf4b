"""The tables of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.lab.runs import Run


def collect(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row a run that is done: web, topic, draw, strategy, budget, fetches, loss."""
    rows = []
    for run in runs:
        if not run.done:
            continue
        relevance = pd.read_parquet(run.fetches, columns=["relevance"])["relevance"]
        rows.append(
            {
                "web": run.web,
                "topic": run.topic,
                "draw": run.draw,
                "strategy": run.contender.label,
                "budget": run.budget,
                "fetches": len(relevance),
                # what was not fetched for want of links counts as lost: a strategy that gives
                # up early must not look better than one that uses its budget
                "loss": 1.0 - relevance.sum() / run.budget,
            }
        )
    return pd.DataFrame(rows)


def losses(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean loss over draws, one row a topic and one column a strategy (METHODS 1)."""
    order = list(dict.fromkeys(results["strategy"]))
    mean = results.pivot_table(
        index=["web", "topic"], columns="strategy", values="loss", aggfunc="mean", sort=False
    )
    return mean[order]


def reductions(mean: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return 1 - loss/loss of the baseline (METHODS 1), in the shape of `mean`.

    Losses are averaged over draws before they are divided. Where the baseline loses nothing there
    is nothing to reduce, and the entry is missing.
    """
    return 1.0 - mean.div(mean[baseline].where(mean[baseline] > 0), axis=0)


def markdown(results: pd.DataFrame, baseline: str) -> str:
    """Return the study as Markdown: a table of losses a web, and what they come to."""
    parts = []
    for web, of_web in results.groupby("web", sort=False):
        mean = losses(of_web)
        if baseline not in mean:
            parts += [f"## {web}", "", f"No run of {baseline} succeeded.", ""]
            continue
        others = [name for name in mean.columns if name != baseline]
        reduced = reductions(mean, baseline)[others]
        budgets = of_web.groupby("topic", sort=False)["budget"].mean()
        parts += [f"## {web}", "", _row(["topic", "fetches", baseline, *others])]
        parts.append("|---|--:|--:|" + "--:|" * len(others))
        for at, topic in enumerate(mean.index.get_level_values("topic")):
            cells = [topic, f"{budgets[topic]:.0f}", f"{mean[baseline].iloc[at]:.3f}"]
            cells += [
                f"{mean[name].iloc[at]:.3f} ({reduced[name].iloc[at]:+.0%})" for name in others
            ]
            parts.append(_row(cells))
        medians = [f"**{reduced[name].median():+.0%}**" for name in others]
        extra = [f"{(mean[name] - mean[baseline]).max():+.3f}" for name in others]
        parts.append(_row(["**median reduction**", "", "", *medians]))
        parts += [_row(["largest extra loss", "", "", *extra]), ""]
    return "\n".join(parts)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
