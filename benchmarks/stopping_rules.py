"""Rules by which a crawl could end itself, compared on crawls whose truth is known.

A rule is asked whenever an estimate was made, and sees what the crawl saw by then: the relevant
pages after each fetch, and the estimates. Each has one constant, and is tried with several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate

    Rule = Callable[["Ending", float], int | None]

ASKED, ENOUGH, MORE = 0.9, 0.85, 1.25
LEAST = 50  # fetches before a rule that sees relevant pages only
LULL = 0.2  # of the fetches


@dataclass(frozen=True)
class Ending:
    """A crawl, and where it should have ended.

    Attributes
    ----------
    found : int64 (n_fetches,), how many relevant pages were here after each fetch
    relevant : those in reach
    needed : fetches to the recall that is asked for
    """

    found: np.ndarray
    relevant: int
    needed: int
    estimates: list[RecallEstimate]


class Worth(NamedTuple):
    """What a rule is worth: shares of the crawls, and quantiles of fetches over those needed."""

    enough: float
    median: float
    most: float
    within: float
    both: float


def estimate(ending: Ending, least: float) -> int | None:
    """The recall is `least`, by estimate."""
    return next((e.fetched for e in ending.estimates if e.recall >= least), None)


def estimate_held(ending: Ending, share: float) -> int | None:
    """The estimate has been what is asked for, for such a share of the fetches."""
    since = None
    for each in ending.estimates:
        if each.recall < ASKED:
            since = None
            continue
        since = each.fetched if since is None else since
        if each.fetched - since >= share * each.fetched:
            return each.fetched
    return None


def knee(ending: Ending, ratio: float) -> int | None:
    """The harvest before the knee is so many times that after it (Cormack and Grossman, 2016)."""
    for fetched in (e.fetched for e in ending.estimates if e.fetched >= LEAST):
        found = ending.found[:fetched]
        ahead = found - np.arange(1, fetched + 1) * found[-1] / fetched
        at = int(ahead.argmax()) + 1
        before, after = found[at - 1] / at, (1 + found[-1] - found[at - 1]) / max(fetched - at, 1)
        if at < fetched and before >= ratio * after:
            return fetched
    return None


def lull(ending: Ending, most: float) -> int | None:
    """Such a share of the relevant pages here, or less, came in the last fifth of the fetches."""
    for fetched in (e.fetched for e in ending.estimates if e.fetched >= LEAST):
        here, before = ending.found[fetched - 1], ending.found[int(fetched * (1 - LULL)) - 1]
        if here - before <= most * here:
            return fetched
    return None


RULES: dict[str, tuple[Rule, tuple[float, ...]]] = {
    "estimate": (estimate, (0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97)),
    "estimate, held": (estimate_held, (0.02, 0.05, 0.1, 0.2, 0.3)),
    "knee": (knee, (2, 3, 4, 6, 8, 10, 15, 20)),
    "lull": (lull, (0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.0)),
}


def worth(endings: Sequence[Ending], rule: Rule, constant: float) -> Worth:
    """Return what a rule is worth; a crawl that it does not end goes on to its last fetch."""
    ends = [rule(each, constant) for each in endings]
    at = np.array([n or len(e.found) for n, e in zip(ends, endings, strict=True)])
    recall = [e.found[fetched - 1] / e.relevant for e, fetched in zip(endings, at, strict=True)]
    more = at / np.array([each.needed for each in endings])
    enough, within = np.array(recall) >= ENOUGH - 1e-9, more <= MORE
    by_itself = np.array([n is not None for n in ends])
    return Worth(
        *(float(enough.mean()), float(np.median(more)), float(np.quantile(more, 0.8))),
        *(float(within.mean()), float((by_itself & enough & within).mean())),
    )


def curves(endings: Sequence[Ending]) -> list[str]:
    """Return a table: every rule with every constant."""
    lines = ["| rule | constant | ≥ 0.85 | median | 80 % | ≤ 1.25 | both |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    for name, (rule, constants) in RULES.items():
        for constant in constants:
            got = worth(endings, rule, constant)
            lines.append(
                f"| {name} | {constant:g} | {got.enough:.0%} | {got.median:.2f} | {got.most:.2f} "
                f"| {got.within:.0%} | {got.both:.0%} |"
            )
    return lines


def picture_of_rules(endings: Sequence[Ending]) -> Figure:
    """Draw how many crawls had enough against fetches over those needed; a line is a rule."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    plots = figure.subplots(1, 2, sharey=True)
    for name, (rule, constants) in RULES.items():
        got = [worth(endings, rule, constant) for constant in constants]
        enough = [each.enough for each in got]
        plots[0].plot([each.median for each in got], enough, "o-", ms=3, label=name)
        plots[1].plot([each.most for each in got], enough, "o-", ms=3, label=name)
    for plot, title in zip(plots, ("median", "80 % quantile"), strict=True):
        plot.axvline(MORE, color="0.8", lw=0.8)
        plot.axhline(0.8, color="0.8", lw=0.8)
        plot.set(xlabel=f"fetches / needed, {title}", xlim=(0.4, 3.0), ylim=(0, 1.02))
    plots[0].set_ylabel(f"share of topics with {ENOUGH} or more")
    plots[0].legend(fontsize=8)
    return figure
