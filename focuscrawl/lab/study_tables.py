"""A study in numbers: long tables for pandas, and the tables that people see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.lab.results import ORACLE
from focuscrawl.report import plain_text
from focuscrawl.report.figures import LearningCurve, learning_curves

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from focuscrawl.lab.results import Results


WORSE = 0.01  # more loss than the baseline's by this much counts as worse
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
_NONE = "-"
_OVERALL = ("judges", "strategies", "learning")  # tables that are not by topic


def losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean loss over draws, one row a topic and one column a strategy (methods 1).

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
    ``max``, ``reduction``: 1 - loss/loss of the baseline (methods 1), of means over draws; NaN
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
) -> Iterator[tuple[str, str, int, dict[str, LearningCurve]]]:
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
    ``new_alone``, the shares that `NOTE` explains, NaN where there is nothing to compare with
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

    A crawl alone is compared with what the chain knew when the crawl beside it started.
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
        return "\n".join(plain_text.align_columns([self.head, *self.rows], left={0}))


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
    """Return the table of consecutive crawls, if there are any."""
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
    known = {name: column for name, column in by.items() if runs[column].notna().any()}
    if list(known) == ["critic"]:
        return []
    frames = {
        name: by_strategy(runs.assign(loss=runs[column]), baseline)
        for name, column in known.items()
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
        *(_by_topic(web, runs, order, name, by[name]) for name in known if name != "critic"),
    ]


def _by_topic(web: str, runs: pd.DataFrame, order: list[str], name: str, column: str) -> Grid:
    mean = losses(runs.assign(loss=runs[column]))
    table = mean.reindex(columns=order).reset_index("web", drop=True)
    return Grid(
        f"{web}-losses-by-{name.replace(', ', '-').replace(' ', '-')}",
        f"{web}: loss by topic, by {name}",
        "Mean over draws.",
        ["topic", *order],
        _rows(table, ".3f"),
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
        for mean, std in zip(cells["loss"], cells["std"], strict=True):
            row.append(_number(mean, ".3f") + ("" if np.isnan(std) else f" ± {std:.3f}"))
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
    rows = _rows(table, "+.0%")
    rows.append(["median", *(_number(value, "+.0%") for value in table.median())])
    return Grid(
        f"{web}-reductions",
        f"{web}: reduction of loss by topic",
        f"1 - loss / loss of {baseline}; losses are averaged over draws first.",
        ["topic", *others],
        rows,
        table.reset_index(),
    )


def _rows(table: pd.DataFrame, form: str) -> list[list[str]]:
    return [
        [str(topic), *(_number(value, form) for value in row)]
        for topic, row in zip(table.index, table.to_numpy(), strict=True)
    ]


def _number(value: float, form: str) -> str:
    return _NONE if np.isnan(value) else format(value, form)


def _p(value: float) -> str:
    if np.isnan(value):
        return _NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"
