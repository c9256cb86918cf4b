"""A study in numbers: long tables for pandas, one row a topic or a strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

WORSE = 0.01  # more loss than the baseline's by this much counts as worse


def losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean loss over draws, one row a topic and one column a strategy (METHODS 1).

    Parameters
    ----------
    runs : as in `focuscrawl.lab.results.Results`
    """
    order = list(dict.fromkeys(runs["strategy"]))
    mean = runs.pivot_table(
        index=["web", "topic"], columns="strategy", values="loss", aggfunc="mean", sort=False
    )
    return mean[order]


def by_topic(runs: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return what each strategy came to on each topic.

    Returns
    -------
    One row a web, topic and strategy: ``draws``, ``budget`` and ``oracle`` (means over draws),
    ``loss`` (mean), ``std`` (of the loss over draws, n - 1; NaN for one draw), ``min``,
    ``max``, ``reduction``: 1 - loss/loss of the baseline (METHODS 1), of means over draws; NaN
    where the baseline loses nothing
    """
    keys = ["web", "topic", "strategy"]
    groups = runs.groupby(keys, sort=False, observed=True)
    table = groups.agg(
        draws=("loss", "size"),
        budget=("budget", "mean"),
        oracle=("oracle", "mean"),
        loss=("loss", "mean"),
        std=("loss", "std"),
        min=("loss", "min"),
        max=("loss", "max"),
    ).reset_index()
    base = table[table["strategy"] == baseline].set_index(["web", "topic"])["loss"]
    of_base = pd.MultiIndex.from_frame(table[["web", "topic"]])
    under = base.where(base > 0).reindex(of_base).to_numpy()
    return table.assign(reduction=1.0 - table["loss"] / under)


def by_strategy(
    runs: pd.DataFrame, baseline: str, *, unranked: Collection[str] = ()
) -> pd.DataFrame:
    """Return what each strategy came to on each web.

    Parameters
    ----------
    runs : as in `focuscrawl.lab.results.Results`
    unranked : strategies that are not in the race: oracles

    Returns
    -------
    One row a web and strategy:

    - ``topics``, ``loss`` (mean over topics), ``rank`` (mean over topics, 1 is best, ties share;
      of the strategies that are in the race and have run on all topics)
    - ``reduction``, ``least``, ``most``: median and extremes over topics
    - ``worse``: topics with more loss than the baseline's by over `WORSE`; ``extra``: the
      largest difference
    - ``pairs``, ``better``, ``p``: pairs of runs with the same topic and draw, how many of them
      lose less than the baseline, and Wilcoxon's signed-rank test, two-sided, of the differences
    """
    topics = by_topic(runs, baseline)
    rows = []
    for web, of_web in topics.groupby("web", sort=False, observed=True):
        raced = runs[(runs["web"] == web) & ~runs["strategy"].isin(unranked)]
        ranks = mean_ranks(losses(raced))
        base = of_web[of_web["strategy"] == baseline].set_index("topic")["loss"]
        for strategy, found in of_web.groupby("strategy", sort=False, observed=True):
            extra = found.set_index("topic")["loss"] - base
            others = strategy != baseline and not base.empty
            paired = _differences(runs[runs["web"] == web], str(strategy), baseline)
            rows.append(
                {
                    "web": web,
                    "strategy": strategy,
                    "topics": len(found),
                    "loss": found["loss"].mean(),
                    "rank": ranks.get(strategy, np.nan),
                    "reduction": found["reduction"].median() if others else np.nan,
                    "least": found["reduction"].min() if others else np.nan,
                    "most": found["reduction"].max() if others else np.nan,
                    "worse": int((extra > WORSE).sum()) if others else np.nan,
                    "extra": extra.max() if others else np.nan,
                    "pairs": len(paired) if others else np.nan,
                    "better": int((paired < 0).sum()) if others else np.nan,
                    "p": signed_rank(paired) if others else np.nan,
                }
            )
    return pd.DataFrame(rows)


def mean_ranks(mean: pd.DataFrame) -> pd.Series[float]:
    """Return the mean rank of each column over the rows: 1 is the least loss, ties share.

    Columns with a missing entry are left out: ranks among fewer are not comparable.
    """
    return mean.dropna(axis="columns").rank(axis="columns").mean()


def friedman(mean: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test that all columns rank alike; NaN for too few."""
    whole = mean.dropna(axis="columns")
    if min(len(whole), len(whole.columns)) < 3 or (whole.nunique(axis="columns") == 1).all():
        return float("nan")
    from scipy.stats import friedmanchisquare  # noqa: PLC0415 - slow to import

    return float(friedmanchisquare(*(whole[name] for name in whole)).pvalue)


def signed_rank(differences: Sequence[float] | pd.Series[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 if nothing differs."""
    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0]
    if not len(values):
        return 1.0
    ties = len(set(np.abs(values))) < len(values)
    few = len(values) <= 25
    from scipy.stats import wilcoxon  # noqa: PLC0415 - slow to import

    return float(wilcoxon(values, method="exact" if few and not ties else "approx").pvalue)


def _differences(runs: pd.DataFrame, strategy: str, baseline: str) -> pd.Series[float]:
    """Return loss minus loss of the baseline for every topic and draw that both have."""
    pairs = runs.pivot_table(
        index=["topic", "draw"], columns="strategy", values="loss", aggfunc="mean", observed=True
    )
    if baseline not in pairs or strategy not in pairs:
        return pd.Series(dtype=float)
    return (pairs[strategy] - pairs[baseline]).dropna()
