"""What consecutive crawls of a study have learned from each other (METHODS 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.report.learning_curves import Curve, learning_curves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.lab.results import Results

NOTE = (
    "Area: share of the relevant pages that any crawl of the topic in this table has found, mean "
    "over the fetches. Learning: by how much a crawl's area is above that of the crawl before, "
    "whose knowledge it began with; alone: above that of a crawl from the same start URLs "
    "without knowledge. Positive: on how many topics. New, new alone: share of the fetches, of "
    "either, that are relevant pages which no crawl before in the chain has fetched: pages of a "
    "recording do not change, and one fetched again is nothing gained. Mean over topics."
)

_WHOSE = ["web", "topic", "draw"]
_TEXTS = ["web", "topic", "strategy"]


def chains(results: Results) -> list[list[str]]:
    """Return the labels of crawls that know each other, each chain from its first crawl on.

    Several crawls may know the same one: each ends a chain of its own.
    """
    found = []
    for last in results.strategies:
        if last in results.knows and last not in results.knows.values():
            chain = [last]
            while chain[0] in results.knows:
                chain.insert(0, results.knows[chain[0]])
            found.append(chain)
    return found


def curves_of(
    results: Results, chain: list[str]
) -> Iterator[tuple[str, str, int, dict[str, Curve]]]:
    """Yield the learning curves of a chain and of its crawls alone: web, topic, draw, by label."""
    labels = [*chain, *(results.alone[label] for label in chain if label in results.alone)]
    if not set(labels) <= results.strategies.keys():
        return
    columns = [*_WHOSE, "strategy", "seq", "url", "relevance"]
    parts = [results.fetches(columns, strategy=label) for label in dict.fromkeys(labels)]
    fetches = pd.concat(part.astype(dict.fromkeys(_TEXTS, object)) for part in parts)
    budgets = results.runs.groupby(_WHOSE, observed=True)["budget"].max().to_dict()
    for (web, topic, draw), run in fetches.groupby(_WHOSE, sort=False):
        crawls = {
            str(label): rows.sort_values("seq").reset_index(drop=True)
            for label, rows in run.groupby("strategy", sort=False)
        }
        curves = learning_curves(crawls, int(budgets[web, topic, draw]))
        yield str(web), str(topic), int(str(draw)), {curve.label: curve for curve in curves}


def learning_table(results: Results) -> pd.DataFrame:
    """Return one row a web, topic, draw and crawl of a chain.

    Returns
    -------
    ``web``, ``topic``, ``draw``, ``chain`` (label of its first crawl), ``crawl`` (from 1),
    ``strategy`` (label), ``area``; ``learning`` and ``alone``, the differences, and ``new`` and
    ``new_alone``, the shares that `NOTE` says, NaN where there is nothing to compare with
    """
    rows = []
    for chain in chains(results):
        new = _new(results, chain)
        for web, topic, draw, curves in curves_of(results, chain):
            for place, label in enumerate(chain):
                if label not in curves:
                    continue
                area = curves[label].area
                before = curves.get(chain[place - 1]) if place else None
                alone = curves.get(results.alone.get(label, ""))
                rows.append(
                    {
                        "web": web,
                        "topic": topic,
                        "draw": draw,
                        "chain": chain[0],
                        "crawl": place + 1,
                        "strategy": label,
                        "area": area,
                        "learning": area - before.area if before else float("nan"),
                        "alone": area - alone.area if alone else float("nan"),
                        "new": new.get((web, topic, draw, label), float("nan")),
                        "new_alone": new.get(
                            (web, topic, draw, results.alone.get(label, "")), float("nan")
                        ),
                    }
                )
    return pd.DataFrame(rows)


def _new(results: Results, chain: list[str]) -> dict[tuple[str, str, int, str], float]:
    """Return the share of fetches that are relevant and new to a chain: web, topic, draw, label.

    A crawl alone is held against what the chain knew when the crawl beside it began.
    """
    shares: dict[tuple[str, str, int, str], float] = {}
    known: dict[tuple[str, str, int], set[str]] = {}
    for label in chain:
        alone = results.alone.get(label)
        for each in [*([alone] if alone in results.strategies else []), label]:
            fetches = results.fetches([*_WHOSE, "url", "relevance"], strategy=each)
            for (web, topic, draw), run in fetches.groupby(_WHOSE, sort=False, observed=True):
                whose = (str(web), str(topic), int(str(draw)))
                before = known.setdefault(whose, set())
                fresh = (run["relevance"] > RELEVANT) & ~run["url"].isin(before)
                shares[(*whose, str(each))] = float(fresh.mean())
                if each == label:
                    before.update(run["url"])
    return shares


def summary_rows(table: pd.DataFrame) -> list[list[str]]:
    """Return the rows of a table for people, one a crawl of a chain, means over topics."""
    rows = []
    for label, crawl in table.groupby("strategy", sort=False):
        cells = [str(label), f"{crawl['area'].mean():.3f}"]
        for name in ("learning", "alone"):
            gains = crawl.groupby(["web", "topic"], sort=False)[name].mean().dropna()
            if gains.empty:
                cells += ["-", "-"]
            else:
                cells += [f"{gains.mean():+.3f}", f"{int((gains > 0).sum())}/{len(gains)}"]
        for name in ("new", "new_alone"):
            share = crawl[name].mean()
            cells.append("-" if pd.isna(share) else f"{share:.3f}")
        rows.append(cells)
    return rows
