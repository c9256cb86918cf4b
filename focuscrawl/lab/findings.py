"""What the papers found, and whether it holds in the results of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.figures import overlap, page_studies, rates, relevance, study_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.lab.results import Results

_TOPIC = ["web", "topic"]


@dataclass(frozen=True)
class Finding:
    """One finding of a paper and what became of it.

    Attributes
    ----------
    figure : name of the figure, as in `focuscrawl.lab.figures.FIGURES`
    claim : what the paper found
    table : one row a web and topic: numbers, and ``holds``
    """

    figure: str
    claim: str
    table: pd.DataFrame


def findings(results: Results) -> list[Finding]:
    """Look for every finding in `results`; those they say nothing of are left out."""
    found = []
    for figure, (claim, look) in _CLAIMS.items():
        table = look(results)
        if table is not None and len(table):
            found.append(Finding(figure.partition(" ")[0], claim, table.reset_index(drop=True)))
    return found


def markdown_of(found: list[Finding], *, topics: bool = False) -> str:
    """Return a table of all findings as Markdown: on how many topics each holds, and medians."""
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


def _bimodal(results: Results) -> pd.DataFrame | None:
    fetches = study_data.fetches_of(results, [study_data.SOFT])
    if fetches is None:
        return None
    table = relevance.relevance_table(fetches)
    ends = table["relevance"].isin([0.0, 1.0 - 1.0 / relevance.BINS])
    extreme = table[ends].groupby(_TOPIC, sort=False)["share"].sum().rename("extreme")
    return extreme.reset_index().assign(holds=lambda t: t["extreme"] > 0.8)


def _window(folds: str) -> Callable[[Results], pd.DataFrame | None]:
    def look(results: Results) -> pd.DataFrame | None:
        wide = _accuracy(results, "offsets", folds, "average")
        if wide is None:
            return None
        best = wide.idxmax(axis=1)
        table = pd.DataFrame({"at_0": wide[0], "at_5": wide[5], "at_8": wide[8], "best": best})
        return table.reset_index().assign(holds=lambda t: t["at_5"] > t["at_0"])

    return look


def _negatives(results: Results) -> pd.DataFrame | None:
    positive, negative = (
        _accuracy(results, "offsets", "pages", name) for name in ("positive", "negative")
    )
    if positive is None or negative is None:
        return None
    gains = {"positive": positive[5] - positive[0], "negative": negative[5] - negative[0]}
    table = pd.DataFrame(gains).reset_index()
    return table.assign(holds=table["negative"] > table["positive"])


def _offsets(folds: str) -> Callable[[Results], pd.DataFrame | None]:
    def look(results: Results) -> pd.DataFrame | None:
        with_them = _accuracy(results, "offsets", folds, "average")
        without = _accuracy(results, "text", folds, "average")
        if with_them is None or without is None:
            return None
        table = pd.DataFrame({"offsets": with_them[5], "text": without[5]}).reset_index()
        return table.assign(holds=table["offsets"] > table["text"])

    return look


def _accuracy(results: Results, features: str, folds: str, measure: str) -> pd.DataFrame | None:
    """Return accuracies by d_max, one row a web and topic."""
    table = study_data.table_of(results, "pages", "accuracy")
    if table is None:
        return None
    chosen = table[(table["features"] == features) & (table["folds"] == folds)]
    return chosen.pivot_table(index=_TOPIC, columns="d_max", values=measure, sort=False)


def _gain(results: Results) -> pd.DataFrame | None:
    table = study_data.table_of(results, "pages", "gain")
    if table is None:
        return None
    wide = table.pivot_table(index=_TOPIC, columns="offset", values="gain", sort=False)
    d = np.abs(wide.columns.to_numpy(np.int64))
    far = wide.loc[:, d > 5].mean(axis=1)
    near = wide.loc[:, (d > 0) & (d <= 5)].mean(axis=1)
    found = pd.DataFrame({"at_0": wide[0], "near": near, "far": far}).reset_index()
    return found.assign(holds=(found["at_0"] > found["near"]) & (found["near"] > found["far"]))


def _sawtooth(name: str, column: str) -> Callable[[Results], pd.DataFrame | None]:
    def look(results: Results) -> pd.DataFrame | None:
        table = study_data.table_of(results, "pages", name)
        if table is None:
            return None
        wide = table.pivot_table(index=_TOPIC, columns="offset", values=column, sort=False)
        d = np.abs(wide.columns.to_numpy(np.int64))
        even = wide.loc[:, (d > 0) & (d % 2 == 0)].mean(axis=1)
        odd = wide.loc[:, d % 2 == 1].mean(axis=1)
        found = pd.DataFrame({"even": even, "odd": odd}).reset_index()
        return found.assign(holds=found["even"] > found["odd"])

    return look


def _loss(better: str, worse: str) -> Callable[[Results], pd.DataFrame | None]:
    def look(results: Results) -> pd.DataFrame | None:
        runs = results.runs.astype({"strategy": object, "web": object, "topic": object})
        wide = runs.pivot_table(index=_TOPIC, columns="strategy", values="loss", sort=False)
        if better not in wide or worse not in wide:
            return None
        wide = wide.dropna(subset=[better, worse])
        found = pd.DataFrame(
            {
                better.replace(" ", "_"): wide[better],
                worse.replace(" ", "_"): wide[worse],
                "reduction": 1.0 - wide[better] / wide[worse].where(wide[worse] > 0),
            }
        ).reset_index()
        return found.assign(holds=(wide[better] < wide[worse]).to_numpy())

    return look


def _overlap(results: Results) -> pd.DataFrame | None:
    for second in (study_data.OFFLINE, study_data.APPRENTICE):
        fetches = study_data.fetches_of(results, [study_data.SOFT, second], "url")
        if fetches is not None:
            table = overlap.strategies_table(fetches, study_data.SOFT, second)
            return table[[*_TOPIC, "shared"]].assign(holds=table["shared"] < 0.5)
    return None


def _recall(results: Results) -> pd.DataFrame | None:
    fetches = study_data.fetches_of(
        results, [study_data.SOFT, study_data.RECALL, study_data.OFFLINE]
    )
    if fetches is None:
        return None
    curves = rates.loss_table(fetches)
    mean = curves.pivot_table(index=_TOPIC, columns="strategy", values="loss", sort=False)
    found = pd.DataFrame(
        {
            "baseline": mean[study_data.SOFT],
            "recall": mean[study_data.RECALL],
            "apprentice": mean[study_data.OFFLINE],
        }
    ).reset_index()
    between = (found["apprentice"] <= found["recall"]) & (found["recall"] <= found["baseline"])
    return found.assign(holds=between)


def _optimism(results: Results) -> pd.DataFrame | None:
    table = study_data.table_of(results, "takeover", "priorities")
    if table is None:
        return None
    middle = table["score"] + 0.05
    sums = table.assign(b=middle * table["before"], a=middle * table["after"])
    total = sums.groupby(_TOPIC, sort=False)[["before", "after", "b", "a"]].sum()
    found = pd.DataFrame(
        {"before": total["b"] / total["before"], "after": total["a"] / total["after"]}
    ).reset_index()
    return found.assign(holds=found["after"] < found["before"])


def _switch(against: str) -> Callable[[Results], pd.DataFrame | None]:
    def look(results: Results) -> pd.DataFrame | None:
        table = rates.switched_fetches(results)
        if table is None or study_data.SOFT not in set(table["strategy"]):
            return None
        switched = table[table["strategy"] == study_data.SWITCHED]
        half = switched.groupby(_TOPIC, sort=False)["seq"].max() // 2
        table = table.merge(half.rename("half").reset_index(), on=_TOPIC)
        late = table["seq"] > table["half"]
        of_switched = table["strategy"] == study_data.SWITCHED
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

    return look


def _features(results: Results) -> pd.DataFrame | None:
    table = study_data.table_of(results, "pages", "accuracy")
    if table is None:
        return None
    found = page_studies.features_table(table)
    found = found[found["folds"] == "pages"].drop(columns="folds")
    found.columns = [str(name).removeprefix("+ ").replace(" ", "_") for name in found.columns]
    rest = found[["class_names", "class_prefixes", "co-citation"]].abs()
    return found.assign(holds=(rest <= 0.03).all(axis=1))


def _seeds(results: Results) -> pd.DataFrame | None:
    fetches = study_data.fetches_of(results, [study_data.SOFT], "url", "host")
    if fetches is None or fetches["draw"].nunique() < 2:
        return None
    table = overlap.seeds_table(fetches)
    urls = table[table["of"] == "URLs"].groupby(_TOPIC, sort=False)["overlap"]
    found = pd.DataFrame({"early": urls.nth(5).to_numpy(), "end": urls.last()}).reset_index()
    return found.assign(holds=found["end"] > found["early"])


def _distance(results: Results) -> pd.DataFrame | None:
    table = study_data.table_of(results, "pages", "authorities")
    if table is None:
        return None
    distance = table.groupby(_TOPIC, sort=False)["distance"]
    found = pd.DataFrame({"median": distance.median(), "largest": distance.max().astype(float)})
    return found.reset_index().assign(holds=lambda t: t["largest"] > 2)


_CLAIMS: dict[str, tuple[str, Callable[[Results], pd.DataFrame | None]]] = {
    "a02-05-relevance": ("relevance is bimodal: > 80 % of it in the end tenths", _bimodal),
    "a02-06-window": ("words up to d = 5 tell more than the anchor's", _window("links")),
    "a02-06-window-unseen": ("the same, for pages never linked to", _window("pages")),
    "a02-06-window-unseen negatives": ("it is the negatives that gain", _negatives),
    "a02-07-offsets": ("offsets add to the words (d_max = 5)", _offsets("links")),
    "a02-07-offsets unseen": ("the same, for pages never linked to", _offsets("pages")),
    "a02-08-gain": ("gain falls with distance: d = 0, up to 5, beyond", _gain),
    "a02-08-gain saw": ("gain is greater at even d", _sawtooth("gain", "gain")),
    "a02-09a-rates": ("there is more text at even d", _sawtooth("rates", "rate")),
    "a02-10-loss": (
        "the trained apprentice loses less",
        _loss(study_data.OFFLINE, study_data.SOFT),
    ),
    "a02-10-loss online": (
        "the same, learning from scratch",
        _loss(study_data.APPRENTICE, study_data.SOFT),
    ),
    "a02-11-overlap": ("the two fetch different URLs: under half in common", _overlap),
    "a02-12-recall": ("the recall crawl loses between the two", _recall),
    "a02-13-priorities": ("the apprentice expects less of the frontier", _optimism),
    "a02-14-switch": ("after the switch less is lost than before", _switch("before")),
    "a02-14-switch baseline": (
        "after the switch less is lost than by the baseline going on",
        _switch("baseline"),
    ),
    "a02-38-features": ("further features add little: 3 points at most", _features),
    "f99-rates": ("soft focus loses less than none", _loss(study_data.SOFT, study_data.UNFOCUSED)),
    "f99-rates hard": ("hard focus does, too", _loss(study_data.HARD, study_data.UNFOCUSED)),
    "f99-seeds": ("crawls from different seeds grow alike", _seeds),
    "f99-distance": ("some of the best pages are over 2 links away", _distance),
}
