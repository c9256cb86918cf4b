"""Computes the tables of a study, for pandas and for reports."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.lab.results import ORACLE
from focuscrawl.report import plain_text
from focuscrawl.report.figures import LearningCurve, learning_curves

if TYPE_CHECKING:
    from focuscrawl.lab.results import Results


WORSE = 0.01  # difference from the baseline's loss that counts as worse
NOTE = (
    "Area: mean over the fetches of the share of relevant pages found so far. The relevant pages "
    "are those that any crawl of the topic in this table has found. Learning: area minus the area "
    "of the previous crawl, whose knowledge the crawl started with. Against alone: area minus the "
    "area of a crawl from the same start URLs without knowledge. Positive: number of topics with "
    "a positive difference. New, new alone: share of fetches, with and without knowledge, that "
    "are relevant pages which no earlier crawl of the chain has fetched. Means over topics."
)

_RUN_KEYS = ["web", "topic", "draw"]
_TEXTS = ["web", "topic", "strategy"]
_NONE = "-"
_OVERALL = ("judges", "strategies", "learning")  # tables without a row for each topic


def mean_losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean loss over seed samples, with a row per topic and a column per strategy.

    Parameters
    ----------
    runs : pd.DataFrame
        Runs as in `focuscrawl.lab.results.Results`.
    """
    order = list(dict.fromkeys(runs["strategy"]))
    mean = runs.pivot_table(
        index=["web", "topic"], columns="strategy", values="loss", aggfunc="mean", sort=False
    )
    return mean[order]


def by_topic(runs: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return the loss and the loss reduction of each strategy on each topic.

    Parameters
    ----------
    runs : pd.DataFrame
        Runs as in `focuscrawl.lab.results.Results`.
    baseline : str
        Label of the baseline.

    Returns
    -------
    pd.DataFrame
        One row a web, topic and strategy: ``draws``; ``budget`` and ``oracle`` (means over draws);
        ``loss`` (mean); ``std`` (standard deviation of the loss over draws, n - 1; NaN for one
        draw); ``min``; ``max``; and ``reduction``, which is 1 - loss / loss of the baseline with
        losses averaged over draws (methods.md 1), NaN where the baseline loses nothing.
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
    """Return the loss, loss reduction and rank of each strategy on each web.

    Parameters
    ----------
    runs : pd.DataFrame
        Runs as in `focuscrawl.lab.results.Results`.
    baseline : str
        Label of the baseline.
    unranked : Collection[str]
        Strategies without a rank, such as oracles.

    Returns
    -------
    pd.DataFrame
        One row a web and strategy:

        - ``topics``, ``loss`` (mean over topics), ``rank`` (mean over topics, 1 is best, ties
          share; only strategies that have run on all topics)
        - ``reduction``, ``least``, ``most``: median and extremes over topics
        - ``worse``: number of topics with over `WORSE` more loss than the baseline; ``extra``: the
          largest difference
        - ``pairs``, ``better``, ``p``: number of pairs of runs with the same topic and draw,
          number of pairs with less loss than the baseline, and the two-sided p-value of Wilcoxon's
          signed-rank test of the differences
    """
    topics = by_topic(runs, baseline)
    rows = []
    for web, of_web in topics.groupby("web", sort=False, observed=True):
        ranked = runs[(runs["web"] == web) & ~runs["strategy"].isin(unranked)]
        ranks = mean_ranks(mean_losses(ranked))
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
    """Return the mean rank of each column over all rows; rank 1 has the lowest loss.

    Columns with a missing value are dropped, because ranks are not comparable between rows with
    different numbers of columns.
    """
    return mean.dropna(axis="columns").rank(axis="columns").mean()


def friedman(mean: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test that all columns have equal ranks, or NaN."""
    whole = mean.dropna(axis="columns")
    if min(len(whole), len(whole.columns)) < 3 or (whole.nunique(axis="columns") == 1).all():
        return float("nan")
    from scipy.stats import friedmanchisquare  # noqa: PLC0415 - slow to import

    return float(friedmanchisquare(*(whole[name] for name in whole)).pvalue)


def signed_rank(differences: Sequence[float] | pd.Series[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 if all differences are 0."""
    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0]
    if not len(values):
        return 1.0
    ties = len(set(np.abs(values))) < len(values)
    few = len(values) <= 25
    from scipy.stats import wilcoxon  # noqa: PLC0415 - slow to import

    return float(wilcoxon(values, method="exact" if few and not ties else "approx").pvalue)


def _differences(runs: pd.DataFrame, strategy: str, baseline: str) -> pd.Series[float]:
    """Return loss minus the baseline's loss for every topic and draw that both have."""
    pairs = runs.pivot_table(
        index=["topic", "draw"], columns="strategy", values="loss", aggfunc="mean", observed=True
    )
    if baseline not in pairs or strategy not in pairs:
        return pd.Series(dtype=float)
    return (pairs[strategy] - pairs[baseline]).dropna()


def knowledge_chains(results: Results) -> list[list[str]]:
    """Return lists of strategies; each strategy starts with the knowledge of the strategy before.

    If several strategies start with knowledge from the same crawl, the result has one list for
    each of these strategies.
    """
    found = []
    for last in results.strategies:
        if last in results.knowledge_from and last not in results.knowledge_from.values():
            chain = [last]
            while chain[0] in results.knowledge_from:
                chain.insert(0, results.knowledge_from[chain[0]])
            found.append(chain)
    return found


def chain_curves(
    results: Results, chain: list[str]
) -> Iterator[tuple[str, str, int, dict[str, LearningCurve]]]:
    """Yield the learning curves of a chain of crawls for each web, topic and seed sample."""
    labels = [
        *chain,
        *(
            results.without_knowledge[label]
            for label in chain
            if label in results.without_knowledge
        ),
    ]
    if not set(labels) <= results.strategies.keys():
        return
    columns = [*_RUN_KEYS, "strategy", "seq", "url", "relevance"]
    parts = [results.fetches(columns, strategy=label) for label in dict.fromkeys(labels)]
    fetches = pd.concat(part.astype(dict.fromkeys(_TEXTS, object)) for part in parts)
    budgets = results.runs.groupby(_RUN_KEYS, observed=True)["budget"].max().to_dict()
    for (web, topic, draw), run in fetches.groupby(_RUN_KEYS, sort=False):
        crawls = {
            str(label): rows.sort_values("seq").reset_index(drop=True)
            for label, rows in run.groupby("strategy", sort=False)
        }
        curves = learning_curves(crawls, int(budgets[web, topic, draw]))
        yield str(web), str(topic), int(str(draw)), {curve.label: curve for curve in curves}


def learning_table(results: Results) -> pd.DataFrame:
    """Return the area below the learning curve of each crawl in all chains of crawls.

    Returns
    -------
    pd.DataFrame
        One row a web, topic, draw and crawl of a chain: ``web``, ``topic``, ``draw``, ``chain``
        (label of its first crawl), ``crawl`` (from 1), ``strategy`` (label), ``area``, and
        ``learning``, ``alone``, ``new`` and ``new_alone``, which `NOTE` explains; NaN without a
        crawl to compare with.
    """
    rows = []
    for chain in knowledge_chains(results):
        new = _new(results, chain)
        for web, topic, draw, curves in chain_curves(results, chain):
            for place, label in enumerate(chain):
                if label not in curves:
                    continue
                area = curves[label].area
                before = curves.get(chain[place - 1]) if place else None
                alone = curves.get(results.without_knowledge.get(label, ""))
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
                            (web, topic, draw, results.without_knowledge.get(label, "")),
                            float("nan"),
                        ),
                    }
                )
    return pd.DataFrame(rows)


def _new(results: Results, chain: list[str]) -> dict[tuple[str, str, int, str], float]:
    """Return the share of relevant fetches that are new to a chain, by web, topic, draw and label.

    A crawl without knowledge is compared with the fetches before its counterpart in the chain.
    """
    shares: dict[tuple[str, str, int, str], float] = {}
    known: dict[tuple[str, str, int], set[str]] = {}
    for label in chain:
        alone = results.without_knowledge.get(label)
        for each in [*([alone] if alone in results.strategies else []), label]:
            fetches = results.fetches([*_RUN_KEYS, "url", "relevance"], strategy=each)
            for (web, topic, draw), run in fetches.groupby(_RUN_KEYS, sort=False, observed=True):
                run_key = (str(web), str(topic), int(str(draw)))
                before = known.setdefault(run_key, set())
                fresh = (run["relevance"] > RELEVANT) & ~run["url"].isin(before)
                shares[(*run_key, str(each))] = float(fresh.mean())
                if each == label:
                    before.update(run["url"])
    return shares


def summary_rows(table: pd.DataFrame) -> list[list[str]]:
    """Return for each strategy in `learning_table` a row of means over topics as text."""
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
class StudyTable:
    """A table of a study's results, as formatted text and as numbers.

    Attributes
    ----------
    name : str
        File name without ending.
    title, note : str
        Heading and explanation.
    head, rows : list[str], list[list[str]]
        Cells; the first column is text, the others are numbers.
    frame : pd.DataFrame
        The same numbers in long form.
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
        """Return the table as plain text, without title and note."""
        return "\n".join(plain_text.align_columns([self.head, *self.rows], left={0}))


def web_tables(results: Results, web: str) -> list[StudyTable]:
    """Return the tables of one web of a study, such as the losses by strategy and by topic."""
    runs = results.runs[results.runs["web"] == web]
    baseline = results.baseline
    oracles = [label for label, name in results.strategies.items() if name == ORACLE]
    order = [label for label in results.strategies if (runs["strategy"] == label).any()]
    topics = by_topic(runs, baseline)
    topics = topics.sort_values("strategy", key=lambda s: s.map(order.index), kind="stable")
    ranked = runs[~runs["strategy"].isin(results.unranked)]
    strategies = by_strategy(runs, baseline, unranked=results.unranked)
    strategies = strategies.set_index("strategy").loc[order].reset_index()
    show_oracle = not set(oracles) & set(order) and bool(topics["oracle"].notna().any())
    return [
        *_judges(web, runs, order, baseline),
        _strategies(
            web, strategies, topics, baseline, mean_losses(ranked), show_oracle=show_oracle
        ),
        _losses(web, topics, order, show_oracle=show_oracle),
        _reductions(web, topics, [label for label in order if label != baseline], baseline),
        *_learning(web, results),
    ]


def _learning(web: str, results: Results) -> list[StudyTable]:
    table = learning_table(results)
    if table.empty or not (table["web"] == web).any():
        return []
    table = table[table["web"] == web]
    head = ["crawl", "area", "learning", "positive", "against alone", "positive"]
    head += ["new", "new alone"]
    title = f"{web}: learning over consecutive crawls"
    return [StudyTable(f"{web}-learning", title, NOTE, head, summary_rows(table), table)]


def format_text(results: Results) -> str:
    """Return the tables that compare the strategies on each web as plain text."""
    parts = []
    for web in dict.fromkeys(results.runs["web"]):
        names = {f"{web}-{name}" for name in _OVERALL}
        shown = [grid for grid in web_tables(results, web) if grid.name in names]
        parts += [f"{grid.title}\n\n{grid.text()}\n\n{grid.note}" for grid in shown]
    return "\n\n".join(parts)


def format_markdown(results: Results) -> str:
    """Return all tables of a study as Markdown."""
    parts = [f"# {results.title}"]
    for web in dict.fromkeys(results.runs["web"]):
        for grid in web_tables(results, web):
            parts += [f"## {grid.title}", grid.markdown(), grid.note]
    return "\n\n".join(parts) + "\n"


def _strategies(
    web: str,
    strategies: pd.DataFrame,
    topics: pd.DataFrame,
    baseline: str,
    mean: pd.DataFrame,
    *,
    show_oracle: bool,
) -> StudyTable:
    head = ["strategy", "mean loss", "reduction", "least", "most", "rank", "worse", "extra"]
    rows = [_cells(row) for row in strategies.to_dict("records")]
    if show_oracle:
        loss = topics.drop_duplicates("topic")["oracle"].mean()
        rows.append([f"({ORACLE})", _format_number(loss, ".3f"), *[_NONE] * 8])
    alike = friedman(mean)
    note = (
        f"Mean loss: loss rate, averaged over draws, then over topics. Reduction against "
        f"{baseline}: median, least and most over topics. Rank: mean over topics, 1 is the least "
        "loss; oracles and crawls confined to another crawl's URLs have no rank. Worse: number "
        f"of topics with over {WORSE} more loss than {baseline}; extra: the largest difference. "
        "Pairs: number of pairs of runs with the same topic and draw in which this strategy "
        "loses less, and of all pairs. p: two-sided p-value of Wilcoxon's signed-rank test of "
        "the pairs, not adjusted for the number of strategies."
    )
    if not np.isnan(alike):
        note += f" Friedman's test that all strategies rank alike: p = {_format_p(alike)}."
    return StudyTable(f"{web}-strategies", web, note, [*head, "pairs", "p"], rows, strategies)


def _judges(web: str, runs: pd.DataFrame, order: list[str], baseline: str) -> list[StudyTable]:
    """Return the table of losses by labels, judge and critic, and by topic for labels and judge.

    Without an evaluator there are no such tables.
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
            cells[row["strategy"]] += [
                _format_number(row[name], form) for name, form in columns.items()
            ]
    head = [f"{column} by {name}" for name in frames for column in columns]
    note = (
        "Labels: share of off-topic pages among the fetched pages with a test label. Judge: loss "
        "rate by a classifier of another family than the critic's, which is trained on test rows "
        "only and guides no crawl. Judge, yes or no: share of fetches to which the judge gives "
        "relevance 1/2 or less. Labels and judge exclude start pages. Critic: loss rate by the "
        "critic that guides the crawl. If a strategy has the least loss by the critic only, the "
        f"crawl has found the critic's mistakes. Reduction against {baseline}: median over "
        f"topics. Worse: number of topics with over {WORSE} more loss than {baseline}."
    )
    frame = pd.concat(frames, names=["by"]).reset_index()
    first = StudyTable(
        f"{web}-judges",
        f"{web}: loss by judge",
        note,
        ["strategy", *head],
        [*cells.values()],
        frame,
    )
    return [
        first,
        *(_by_topic(web, runs, order, name, by[name]) for name in known if name != "critic"),
    ]


def _by_topic(
    web: str, runs: pd.DataFrame, order: list[str], name: str, column: str
) -> StudyTable:
    mean = mean_losses(runs.assign(loss=runs[column]))
    table = mean.reindex(columns=order).reset_index("web", drop=True)
    return StudyTable(
        f"{web}-losses-by-{name.replace(', ', '-').replace(' ', '-')}",
        f"{web}: loss by topic, by {name}",
        "Mean over draws.",
        ["topic", *order],
        _rows(table, ".3f"),
        table.reset_index(),
    )


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    paired = not np.isnan(row["pairs"])  # False for the baseline
    return [
        row["strategy"],
        _format_number(row["loss"], ".3f"),
        _format_number(row["reduction"], "+.0%"),
        _format_number(row["least"], "+.0%"),
        _format_number(row["most"], "+.0%"),
        _format_number(row["rank"], ".1f"),
        f"{row['worse']:.0f}/{row['topics']}" if paired else _NONE,
        _format_number(row["extra"], "+.3f"),
        f"{row['better']:.0f}/{row['pairs']:.0f}" if paired else _NONE,
        _format_p(row["p"]),
    ]


def _losses(web: str, topics: pd.DataFrame, order: list[str], *, show_oracle: bool) -> StudyTable:
    rows = []
    for topic, found in topics.groupby("topic", sort=False, observed=True):
        cells = found.set_index("strategy").reindex(order)
        row = [str(topic), f"{found['budget'].mean():.0f}"]
        for mean, std in zip(cells["loss"], cells["std"], strict=True):
            row.append(_format_number(mean, ".3f") + ("" if np.isnan(std) else f" ± {std:.3f}"))
        if show_oracle:
            row.append(_format_number(found["oracle"].mean(), ".3f"))
        rows.append(row)
    note = "Mean loss rate over draws ± standard deviation."
    if show_oracle:
        note += " The oracle in brackets is greedy best-first on the true relevance."
    head = ["topic", "fetches", *order, *([f"({ORACLE})"] if show_oracle else [])]
    return StudyTable(f"{web}-losses", f"{web}: loss by topic", note, head, rows, topics)


def _reductions(web: str, topics: pd.DataFrame, others: list[str], baseline: str) -> StudyTable:
    table = topics.pivot_table(
        index="topic", columns="strategy", values="reduction", sort=False, observed=True
    ).reindex(columns=others)
    rows = _rows(table, "+.0%")
    rows.append(["median", *(_format_number(value, "+.0%") for value in table.median())])
    return StudyTable(
        f"{web}-reductions",
        f"{web}: loss reduction by topic",
        f"1 - loss / loss of {baseline}, with losses averaged over draws.",
        ["topic", *others],
        rows,
        table.reset_index(),
    )


def _rows(table: pd.DataFrame, form: str) -> list[list[str]]:
    return [
        [str(topic), *(_format_number(value, form) for value in row)]
        for topic, row in zip(table.index, table.to_numpy(), strict=True)
    ]


def _format_number(value: float, form: str) -> str:
    return _NONE if np.isnan(value) else format(value, form)


def _format_p(value: float) -> str:
    if np.isnan(value):
        return _NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"
