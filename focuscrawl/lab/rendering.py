"""The tables of a study for people: the same cells for a terminal, Markdown and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.lab.consecutive_crawls import NOTE, learning_table, summary_rows
from focuscrawl.lab.measures import WORSE, by_strategy, by_topic, friedman, losses
from focuscrawl.lab.results import ORACLE
from focuscrawl.report import plain_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from focuscrawl.lab.results import Results

_NONE = "-"
_OVERALL = ("judges", "strategies", "learning")  # tables that are not by topic


@dataclass(frozen=True)
class Grid:
    """A table of a study: cells for people, and the same in numbers.

    Attributes
    ----------
    name : for a file
    title, note : for people
    head, rows : cells; the first column is text, the others are numbers
    frame : the same in numbers, in the long form that pandas likes
    """

    name: str
    title: str
    note: str
    head: list[str]
    rows: list[list[str]]
    frame: pd.DataFrame

    def markdown(self) -> str:
        """Return the table as Markdown, without title and note."""
        cells = [[cell.replace("|", "\\|") for cell in row] for row in [self.head, *self.rows]]
        lines = [f"| {' | '.join(row)} |" for row in cells]
        lines.insert(1, "|---|" + "--:|" * (len(self.head) - 1))
        return "\n".join(lines)

    def text(self) -> str:
        """Return the table for a terminal, without title and note."""
        return "\n".join(plain_text.table([self.head, *self.rows], left={0}))


def grids(results: Results, web: str) -> list[Grid]:
    """Return the tables of one web of a study.

    By whose word, if there is an evaluator; by strategy; losses and reductions by topic.
    """
    runs = results.runs[results.runs["web"] == web]
    baseline = results.baseline
    oracles = [label for label, name in results.strategies.items() if name == ORACLE]
    order = [label for label in results.strategies if (runs["strategy"] == label).any()]
    topics = by_topic(runs, baseline)
    topics = topics.sort_values("strategy", key=lambda s: s.map(order.index), kind="stable")
    raced = runs[~runs["strategy"].isin(results.beside)]
    strategies = by_strategy(runs, baseline, unranked=results.beside)
    strategies = strategies.set_index("strategy").loc[order].reset_index()
    beside = not set(oracles) & set(order) and bool(topics["oracle"].notna().any())
    return [
        *_judges(web, runs, order, baseline),
        _strategies(web, strategies, topics, baseline, losses(raced), beside=beside),
        _losses(web, topics, order, beside=beside),
        _reductions(web, topics, [label for label in order if label != baseline], baseline),
        *_learning(web, results),
    ]


def _learning(web: str, results: Results) -> list[Grid]:
    """Return the table of what consecutive crawls have learned, if there are any."""
    table = learning_table(results)
    if table.empty or not (table["web"] == web).any():
        return []
    table = table[table["web"] == web]
    head = ["crawl", "area", "learning", "positive", "against alone", "positive"]
    head += ["new", "new alone"]
    title = f"{web}: learning from crawl to crawl"
    return [Grid(f"{web}-learning", title, NOTE, head, summary_rows(table), table)]


def text_of(results: Results) -> str:
    """Return the tables by strategy of all webs, for a terminal."""
    parts = []
    for web in dict.fromkeys(results.runs["web"]):
        names = {f"{web}-{name}" for name in _OVERALL}
        shown = [grid for grid in grids(results, web) if grid.name in names]
        parts += [f"{grid.title}\n\n{grid.text()}\n\n{grid.note}" for grid in shown]
    return "\n\n".join(parts)


def markdown_of(results: Results) -> str:
    """Return all tables of a study as Markdown."""
    parts = [f"# {results.title}"]
    for web in dict.fromkeys(results.runs["web"]):
        for grid in grids(results, web):
            parts += [f"## {grid.title}", grid.markdown(), grid.note]
    return "\n\n".join(parts) + "\n"


def _strategies(
    web: str,
    strategies: pd.DataFrame,
    topics: pd.DataFrame,
    baseline: str,
    mean: pd.DataFrame,
    *,
    beside: bool,
) -> Grid:
    head = ["strategy", "mean loss", "reduction", "least", "most", "rank", "worse", "extra"]
    rows = [_cells(row) for row in strategies.to_dict("records")]
    if beside:
        loss = topics.drop_duplicates("topic")["oracle"].mean()
        rows.append([f"({ORACLE})", _number(loss, ".3f"), *[_NONE] * 8])
    alike = friedman(mean)
    note = (
        f"Loss rate: mean over draws, then over topics. Reduction against {baseline}: median, "
        "least and most over topics. Rank: mean over topics, 1 loses least; "
        "oracles and crawls within the URLs of another have none. Worse: topics "
        f"with more loss than {baseline} by over {WORSE}; extra: the largest difference. "
        "Pairs: runs with the same topic and draw, and in how many this strategy loses less; "
        "p: Wilcoxon's signed-rank test of these pairs, two-sided, not adjusted for the number "
        "of strategies."
    )
    if not np.isnan(alike):
        note += f" Friedman's test that all strategies rank alike: p = {_p(alike)}."
    return Grid(f"{web}-strategies", web, note, [*head, "pairs", "p"], rows, strategies)


def _judges(web: str, runs: pd.DataFrame, order: list[str], baseline: str) -> list[Grid]:
    """Return the table of losses by labels, by a judge apart and by the critic, if there is one.

    A table of one topic a row follows for each but the critic.
    """
    by = {
        "labels": "labelled_loss",
        "judge": "judged_loss",
        "judge, yes or no": "judged_off_topic",
        "critic": "loss",
    }
    told = {name: column for name, column in by.items() if runs[column].notna().any()}
    if list(told) == ["critic"]:
        return []
    frames = {
        name: by_strategy(runs.assign(loss=runs[column]), baseline)
        for name, column in told.items()
    }
    columns = {"loss": ".3f", "reduction": "+.0%", "worse": ".0f"}
    cells = {label: [label] for label in order}
    for found in frames.values():
        for row in found.to_dict("records"):
            cells[row["strategy"]] += [_number(row[name], form) for name, form in columns.items()]
    head = [f"{column} by {name}" for name in frames for column in columns]
    note = (
        "Labels: share of the fetched pages with a test label that are off the topic. Judge: loss "
        "rate by a classifier of another family than the critic's, which learned from test rows "
        "only and guides no crawl; yes or no: the share of fetches to which it gives R of at most "
        "1/2, as labels are counted. All without start pages. Critic: loss rate by the judge that "
        "the crawl goes by; where it loses least and the others do not, the crawl has found the "
        f"critic's mistakes. Reduction against {baseline}: median over topics. Worse: topics with "
        f"more loss than {baseline} by over {WORSE}."
    )
    frame = pd.concat(frames, names=["by"]).reset_index()
    first = Grid(
        f"{web}-judges",
        f"{web}: by whose word",
        note,
        ["strategy", *head],
        [*cells.values()],
        frame,
    )
    return [
        first,
        *(_by_topic(web, runs, order, name, by[name]) for name in told if name != "critic"),
    ]


def _by_topic(web: str, runs: pd.DataFrame, order: list[str], name: str, column: str) -> Grid:
    table = (
        losses(runs.assign(loss=runs[column])).reindex(columns=order).reset_index("web", drop=True)
    )
    rows = [
        [str(topic), *(_number(value, ".3f") for value in row)]
        for topic, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return Grid(
        f"{web}-losses-by-{name.replace(', ', '-').replace(' ', '-')}",
        f"{web}: loss by topic, by {name}",
        "Mean over draws.",
        ["topic", *order],
        rows,
        table.reset_index(),
    )


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    paired = not np.isnan(row["pairs"])  # the baseline is not compared with itself
    return [
        row["strategy"],
        _number(row["loss"], ".3f"),
        _number(row["reduction"], "+.0%"),
        _number(row["least"], "+.0%"),
        _number(row["most"], "+.0%"),
        _number(row["rank"], ".1f"),
        f"{row['worse']:.0f}/{row['topics']}" if paired else _NONE,
        _number(row["extra"], "+.3f"),
        f"{row['better']:.0f}/{row['pairs']:.0f}" if paired else _NONE,
        _p(row["p"]),
    ]


def _losses(web: str, topics: pd.DataFrame, order: list[str], *, beside: bool) -> Grid:
    rows = []
    for topic, found in topics.groupby("topic", sort=False, observed=True):
        cells = found.set_index("strategy").reindex(order)
        row = [str(topic), f"{found['budget'].mean():.0f}"]
        row += [_spread(loss, std) for loss, std in zip(cells["loss"], cells["std"], strict=True)]
        if beside:
            row.append(_number(found["oracle"].mean(), ".3f"))
        rows.append(row)
    note = "Mean loss rate over draws ± standard deviation."
    if beside:
        note += " The oracle in brackets is greedy best-first on the true relevance."
    head = ["topic", "fetches", *order, *([f"({ORACLE})"] if beside else [])]
    return Grid(f"{web}-losses", f"{web}: loss by topic", note, head, rows, topics)


def _reductions(web: str, topics: pd.DataFrame, others: list[str], baseline: str) -> Grid:
    table = topics.pivot_table(
        index="topic", columns="strategy", values="reduction", sort=False, observed=True
    ).reindex(columns=others)
    rows = [
        [str(topic), *(_number(value, "+.0%") for value in row)]
        for topic, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    rows.append(["median", *(_number(value, "+.0%") for value in table.median())])
    return Grid(
        f"{web}-reductions",
        f"{web}: reduction of loss by topic",
        f"1 - loss / loss of {baseline}; losses are averaged over draws first.",
        ["topic", *others],
        rows,
        table.reset_index(),
    )


def _number(value: float, form: str) -> str:
    return _NONE if np.isnan(value) else format(value, form)


def _spread(mean: float, std: float) -> str:
    return _number(mean, ".3f") if np.isnan(std) else f"{mean:.3f} ± {std:.3f}"


def _p(value: float) -> str:
    if np.isnan(value):
        return _NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"
