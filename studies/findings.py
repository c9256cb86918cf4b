"""Findings of the papers, and checks of whether they hold in the results of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from studies import loss_figures, page_figures
from studies.figure_data import (
    APPRENTICE,
    HARD,
    OF_PAPER,
    OF_PAPER_OFFLINE,
    OF_PAPER_RECALL,
    OFFLINE,
    RECALL,
    SOFT,
    SWITCHED,
    UNFOCUSED,
    Data,
    fetches,
    table,
)
from studies.figures import FIGURES

if TYPE_CHECKING:
    from focuscrawl.lab.results import Results


Look = TypeVar("Look", bound=Callable[..., pd.DataFrame | None])

_TOPIC = ["web", "topic"]
_ACCURACY, _AUTHORITIES = table("pages", "accuracy"), table("pages", "authorities")
_PRIORITIES = table("takeover", "priorities")
_OF_PAPER_PRIORITIES = table("takeover", "paper_priorities")
_SWITCHED = loss_figures.switched_fetches
_OF_PAPER_SWITCHED = partial(loss_figures.switched_fetches, name="paper_fetches")
#: figure, claim, source of the data, and function that checks the claim
_CLAIMS: list[tuple[str, str, Data, Callable[[pd.DataFrame], pd.DataFrame | None]]] = []


@dataclass(frozen=True)
class Finding:
    """A finding of a paper and its check.

    Attributes
    ----------
    figure : str
        Name of the figure in `studies.figures.FIGURES`.
    claim : str
        Finding of the paper.
    table : pd.DataFrame
        One row for each web and topic: numbers, and whether the finding ``holds``.
    """

    figure: str
    claim: str
    table: pd.DataFrame


def findings(results: Results) -> list[Finding]:
    """Check every finding in `results`; findings without data are left out."""
    found = []
    order = list(FIGURES)
    for figure, claim, data, look in sorted(_CLAIMS, key=lambda each: order.index(each[0])):
        given = data(results)
        table = None if given is None else look(given)
        if table is not None and len(table):
            found.append(Finding(figure, claim, table.reset_index(drop=True)))
    return found


def format_markdown(found: list[Finding], *, topics: bool = False) -> str:
    """Return a Markdown table of findings: number of topics where each holds, and medians."""
    lines = [
        "| figure | finding of the paper | web | holds | medians over topics |",
        "|---|---|---|--:|---|",
    ]
    for each in found:
        for web, rows in each.table.groupby("web", sort=False):
            numbers = rows.drop(columns=[*_TOPIC, "holds"]).median(numeric_only=True)
            medians = ", ".join(f"{name} {value:.3g}" for name, value in numbers.items())
            holds = f"{int(rows['holds'].sum())}/{len(rows)}"
            lines.append(f"| {each.figure} | {each.claim} | {web} | {holds} | {medians} |")
    if topics:
        for each in found:
            lines += ["", f"**{each.figure}**: {each.claim}", ""]
            names = list(each.table.columns)
            lines += [f"| {' | '.join(names)} |", "|---|---|" + "--:|" * (len(names) - 2)]
            lines += [
                f"| {' | '.join(_cell(value) for value in row)} |"
                for row in each.table.itertuples(index=False)
            ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _claim(figure: str, claim: str, data: Data, **given: str) -> Callable[[Look], Look]:
    """Return a decorator that registers the check of a claim, with `given` as its arguments."""

    def register(look: Look) -> Look:
        _CLAIMS.append((figure, claim, data, partial(look, **given)))
        return look

    return register


def _losses(results: Results) -> pd.DataFrame:
    """Return the mean loss of each strategy, one row for each web and topic."""
    runs = results.runs.astype({"strategy": object, "web": object, "topic": object})
    return runs.pivot_table(index=_TOPIC, columns="strategy", values="loss", sort=False)


@_claim("a02-05-relevance", "relevance is bimodal: > 80 % of it in the end tenths", fetches(SOFT))
def _bimodal(fetches: pd.DataFrame) -> pd.DataFrame:
    table = loss_figures.relevance_table(fetches)
    ends = table["relevance"].isin([0.0, 1.0 - 1.0 / loss_figures.BINS])
    extreme = table[ends].groupby(_TOPIC, sort=False)["share"].sum().rename("extreme")
    return extreme.reset_index().assign(holds=lambda t: t["extreme"] > 0.8)


@_claim("a02-06-window-unseen", "the same, for pages never linked to", _ACCURACY, folds="pages")
@_claim("a02-06-window", "words up to d = 5 tell more than the anchor's", _ACCURACY, folds="links")
def _window(accuracy: pd.DataFrame, folds: str) -> pd.DataFrame:
    wide = _by_d_max(accuracy, "offsets", folds, "average")
    best = wide.idxmax(axis=1)
    table = pd.DataFrame({"at_0": wide[0], "at_5": wide[5], "at_8": wide[8], "best": best})
    return table.reset_index().assign(holds=lambda t: t["at_5"] > t["at_0"])


@_claim("a02-06-window-unseen", "it is the negatives that gain", _ACCURACY)
def _negatives(accuracy: pd.DataFrame) -> pd.DataFrame:
    sides = ("positive", "negative")
    wide = {name: _by_d_max(accuracy, "offsets", "pages", name) for name in sides}
    table = pd.DataFrame({name: wide[name][5] - wide[name][0] for name in sides}).reset_index()
    return table.assign(holds=table["negative"] > table["positive"])


@_claim("a02-07-offsets", "the same, for pages never linked to", _ACCURACY, folds="pages")
@_claim("a02-07-offsets", "offsets add to the words (d_max = 5)", _ACCURACY, folds="links")
def _offsets(accuracy: pd.DataFrame, folds: str) -> pd.DataFrame:
    kinds = ("offsets", "text")
    found = {kind: _by_d_max(accuracy, kind, folds, "average")[5] for kind in kinds}
    table = pd.DataFrame(found).reset_index()
    return table.assign(holds=table["offsets"] > table["text"])


def _by_d_max(accuracy: pd.DataFrame, features: str, folds: str, measure: str) -> pd.DataFrame:
    """Return accuracies by d_max, one row for each web and topic."""
    chosen = accuracy[(accuracy["features"] == features) & (accuracy["folds"] == folds)]
    return chosen.pivot_table(index=_TOPIC, columns="d_max", values=measure, sort=False)


@_claim("a02-08-gain", "gain falls with distance: d = 0, up to 5, beyond", table("pages", "gain"))
def _gain(gain: pd.DataFrame) -> pd.DataFrame:
    wide = gain.pivot_table(index=_TOPIC, columns="offset", values="gain", sort=False)
    d = np.abs(wide.columns.to_numpy(np.int64))
    far = wide.loc[:, d > 5].mean(axis=1)
    near = wide.loc[:, (d > 0) & (d <= 5)].mean(axis=1)
    found = pd.DataFrame({"at_0": wide[0], "near": near, "far": far}).reset_index()
    return found.assign(holds=(found["at_0"] > found["near"]) & (found["near"] > found["far"]))


@_claim("a02-09a-rates", "rates are greater at even d", table("pages", "rates"), column="rate")
@_claim("a02-09a-rates", "there is more text at even d", table("pages", "rates"), column="share")
@_claim("a02-08-gain", "gain is greater at even d", table("pages", "gain"), column="gain")
def _sawtooth(table: pd.DataFrame, column: str) -> pd.DataFrame:
    wide = table.pivot_table(index=_TOPIC, columns="offset", values=column, sort=False)
    d = np.abs(wide.columns.to_numpy(np.int64))
    even = wide.loc[:, (d > 0) & (d % 2 == 0)].mean(axis=1)
    odd = wide.loc[:, d % 2 == 1].mean(axis=1)
    found = pd.DataFrame({"even": even, "odd": odd}).reset_index()
    return found.assign(holds=found["even"] > found["odd"])


@_claim("f99-rates", "hard focus does, too", _losses, better=HARD, worse=UNFOCUSED)
@_claim("f99-rates", "soft focus loses less than none", _losses, better=SOFT, worse=UNFOCUSED)
@_claim(
    "a02-10-loss-paper", "the same, learning from scratch", _losses, better=OF_PAPER, worse=SOFT
)
@_claim(
    "a02-10-loss-paper",
    "the paper's apprentice, trained, loses less",
    _losses,
    better=OF_PAPER_OFFLINE,
    worse=SOFT,
)
@_claim("a02-10-loss", "the same, learning from scratch", _losses, better=APPRENTICE, worse=SOFT)
@_claim("a02-10-loss", "the trained apprentice loses less", _losses, better=OFFLINE, worse=SOFT)
def _loss(losses: pd.DataFrame, better: str, worse: str) -> pd.DataFrame | None:
    if better not in losses or worse not in losses:
        return None
    wide = losses[[better, worse]].dropna()
    reduction = 1.0 - wide[better] / wide[worse].where(wide[worse] > 0)
    holds = wide[better] < wide[worse]
    found = wide.rename(columns=lambda label: label.replace(" ", "_")).rename_axis(columns=None)
    return found.assign(reduction=reduction, holds=holds).reset_index()


@_claim(
    "a02-11-overlap-paper",
    "the two fetch different URLs: under half in common",
    partial(loss_figures.of_two, apprentices=(OF_PAPER_OFFLINE,)),
)
@_claim(
    "a02-11-overlap",
    "the two fetch different URLs: under half in common",
    partial(loss_figures.of_two, apprentices=(OFFLINE, APPRENTICE)),
)
def _overlap(fetches: pd.DataFrame) -> pd.DataFrame:
    table = loss_figures.strategies_table(fetches)
    return table[[*_TOPIC, "shared"]].assign(holds=table["shared"] < 0.5)


@_claim(
    "a02-12-recall-paper",
    "the recall crawl loses between the two",
    fetches(SOFT, OF_PAPER_RECALL, OF_PAPER_OFFLINE),
    recall=OF_PAPER_RECALL,
    apprentice=OF_PAPER_OFFLINE,
)
@_claim(
    "a02-12-recall",
    "the recall crawl loses between the two",
    fetches(SOFT, RECALL, OFFLINE),
    recall=RECALL,
    apprentice=OFFLINE,
)
def _recall(fetches: pd.DataFrame, recall: str, apprentice: str) -> pd.DataFrame:
    curves = loss_figures.loss_table(fetches)
    mean = curves.pivot_table(index=_TOPIC, columns="strategy", values="loss", sort=False)
    names = {SOFT: "baseline", recall: "recall", apprentice: "apprentice"}
    found = mean[list(names)].rename(columns=names).rename_axis(columns=None).reset_index()
    between = (found["apprentice"] <= found["recall"]) & (found["recall"] <= found["baseline"])
    return found.assign(holds=between)


@_claim(
    "a02-13-priorities-paper", "the apprentice expects less of the frontier", _OF_PAPER_PRIORITIES
)
@_claim("a02-13-priorities", "the apprentice expects less of the frontier", _PRIORITIES)
def _optimism(priorities: pd.DataFrame) -> pd.DataFrame:
    middle = priorities["score"] + 0.05
    sums = priorities.assign(b=middle * priorities["before"], a=middle * priorities["after"])
    total = sums.groupby(_TOPIC, sort=False)[["before", "after", "b", "a"]].sum()
    found = pd.DataFrame(
        {"before": total["b"] / total["before"], "after": total["a"] / total["after"]}
    ).reset_index()
    return found.assign(holds=found["after"] < found["before"])


@_claim(
    "a02-14-switch-paper",
    "after the switch less is lost than by the baseline going on",
    _OF_PAPER_SWITCHED,
    against="baseline",
)
@_claim(
    "a02-14-switch-paper",
    "after the switch less is lost than before",
    _OF_PAPER_SWITCHED,
    against="before",
)
@_claim(
    "a02-14-switch",
    "after the switch less is lost than by the baseline going on",
    _SWITCHED,
    against="baseline",
)
@_claim("a02-14-switch", "after the switch less is lost than before", _SWITCHED, against="before")
def _switch(table: pd.DataFrame, against: str) -> pd.DataFrame | None:
    if SOFT not in set(table["strategy"]):
        return None
    of_switched = table["strategy"] == SWITCHED
    half = table[of_switched].groupby(_TOPIC, sort=False)["seq"].max() // 2
    late = table["seq"] > half.loc[pd.MultiIndex.from_frame(table[_TOPIC])].to_numpy()
    parts = {
        "before": of_switched & ~late,
        "after": of_switched & late,
        "baseline": ~of_switched & late,
    }
    found = pd.DataFrame(
        {
            name: 1.0 - table[chosen].groupby(_TOPIC, sort=False)["relevance"].mean()
            for name, chosen in parts.items()
        }
    ).reset_index()
    return found.assign(holds=found["after"] < found[against])


@_claim("a02-38-features", "further features add little: 3 points at most", _ACCURACY)
def _features(accuracy: pd.DataFrame) -> pd.DataFrame:
    found = page_figures.features_table(accuracy)
    found = found[found["folds"] == "pages"].drop(columns="folds")
    found.columns = [str(name).removeprefix("+ ").replace(" ", "_") for name in found.columns]
    rest = found[["class_names", "class_prefixes", "co-citation"]].abs()
    return found.assign(holds=(rest <= 0.03).all(axis=1))


@_claim("f99-seeds", "crawls from different seeds grow alike", loss_figures.of_draws)
def _seeds(fetches: pd.DataFrame) -> pd.DataFrame:
    table = loss_figures.seeds_table(fetches)
    urls = table[table["of"] == "URLs"].groupby(_TOPIC, sort=False)["overlap"]
    found = pd.DataFrame({"early": urls.nth(5).to_numpy(), "end": urls.last()}).reset_index()
    return found.assign(holds=found["end"] > found["early"])


@_claim("f99-distance", "some of the best servers are over 2 links away", _AUTHORITIES, of="host")
@_claim("f99-distance", "some of the best pages are over 2 links away", _AUTHORITIES, of="url")
def _distance(authorities: pd.DataFrame, of: str) -> pd.DataFrame:
    nearest = authorities.groupby([*_TOPIC, of], sort=False)["distance"].min()
    distance = nearest.groupby(_TOPIC, sort=False)
    found = pd.DataFrame(
        {
            of: distance.size(),
            "median": distance.median(),
            "largest": distance.max().astype(float),
        }
    )
    return found.reset_index().assign(holds=lambda t: t["largest"] > 2)
