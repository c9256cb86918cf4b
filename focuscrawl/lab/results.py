"""Reads and writes the results of a study: a table of fetches and a table of crawls (runs).

If a study is repeated, the tables are the same, except for the columns in `COST` (time and
memory).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import is_numeric_dtype

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import check_regular_file
from focuscrawl.foundation.model_folder import DECODING_ERRORS
from focuscrawl.lab.evaluator import Evaluation

if TYPE_CHECKING:
    from focuscrawl.lab.evaluator import Evaluator
    from focuscrawl.lab.study import Run, Study


FETCHES = "fetches.parquet"
RUNS = "runs.parquet"
ABOUT = "study.json"
ORACLE = "oracle"  # name of the strategy
COST = ("seconds", "cpu_seconds", "megabytes")
_EVALUATED_LOSSES = ("judged_loss", "judged_off_topic", "labelled_loss")

_NAME = pa.dictionary(pa.int32(), pa.string())
#: attributes of `Results` by their keys in ``study.json``, where they differ
_RENAMED = {
    "beside": "unranked",
    "knows": "knowledge_from",
    "alone": "without_knowledge",
}
#: columns of `focuscrawl.report.measures.load_pages`, without ``fetched_at`` (the lab counts time
#: in fetches) and with ``topic``, the critic's best class, named ``class``
_PAGE = pa.schema(
    [
        ("seq", pa.int32()),
        ("url", pa.string()),
        ("host", _NAME),
        ("relevance", pa.float64()),
        ("class", _NAME),
        ("depth", pa.int32()),
        ("score", pa.float64()),
        ("status", pa.int16()),
        ("outcome", _NAME),
        ("referrer", pa.string()),
        ("content_type", _NAME),
        ("title", pa.string()),
        ("duplicate_of", pa.string()),
        ("error", _NAME),
        ("bytes", pa.int64()),
        ("links", pa.int32()),
        ("dropped", pa.int32()),
    ]
)
_EVALUATION = pa.schema([("judged", pa.float64()), ("labelled", pa.float64())])
_RUN = pa.schema([("web", _NAME), ("topic", _NAME), ("draw", pa.int16()), ("strategy", _NAME)])
_TEXTS = ("web", "topic", "strategy")  # columns of the runs
_NUMBERS = ("draw", "budget", "fetches", "loss", "harvest", "oracle", *COST)


@contextmanager
def report_damage(path: Path, remedy: str = "") -> Iterator[None]:
    """Convert errors while reading a study's file into a one-line `UserError`.

    Parameters
    ----------
    path : Path
        The file.
    remedy : str
        How the user can create the file again; by default with ``lab run``.
    """
    again = remedy or (f"`focuscrawl lab run STUDY.toml --out {path.parent}` writes it again")
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} not found: {again}") from None
    except PermissionError:
        raise UserError(f"{path}: no permission to read the file: {again}") from None
    except (OSError, *DECODING_ERRORS):  # PyArrow raises OSError for damaged files, too
        raise UserError(f"{path} is damaged: {again}") from None


@dataclass(frozen=True)
class Results:
    """The results of a study, as read from the folder of the study.

    Attributes
    ----------
    folder : Path
        Folder of the results.
    title : str
        Title of the study.
    baseline : str
        Label of the contender that the others are compared with.
    strategies : dict[str, str]
        Name of the strategy of each label, in the order of the study.
    failed : dict[str, str]
        Error message of each failed run.
    runs : pd.DataFrame
        One row a finished run: ``web``, ``topic``, ``draw``, ``strategy`` (its label), ``budget``
        (fetches at which the study compares), ``fetches`` (fetches made), ``harvest`` (harvest
        rate of the fetches made), ``oracle`` (loss of the greedy oracle), ``folder``, and `COST`:
        wall-clock time, processor time, and peak memory of the run's process. ``loss`` is the loss
        rate after ``budget`` fetches; missing fetches count as lost, so that a strategy that runs
        out of links does not look better. ``judged_loss`` is the loss rate by the evaluator's
        classifier, ``judged_off_topic`` the share of fetches with relevance <= 1/2 there, and
        ``labelled_loss`` the share of off-topic pages among the fetched pages with a ``test``
        label. The last three exclude start pages and are NaN without an evaluation.
    unranked : tuple[str, ...]
        Labels that are not ranked: oracles, and crawls confined to another crawl's URLs.
    knowledge_from : dict[str, str]
        Label of the contender whose knowledge a contender starts with.
    without_knowledge : dict[str, str]
        Label of the contender that differs only in starting without knowledge.
    """

    folder: Path
    title: str
    baseline: str
    strategies: dict[str, str]
    failed: dict[str, str]
    runs: pd.DataFrame
    unranked: tuple[str, ...] = ()
    knowledge_from: dict[str, str] = field(default_factory=dict)
    without_knowledge: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Results:
        """Open the results that ``focuscrawl lab run`` has written to `folder`.

        Raises
        ------
        UserError
            The folder has no results, or a file is damaged.
        """
        if not (folder / ABOUT).exists():
            raise UserError(
                f"{folder} has no results of a study: create them with "
                f"`focuscrawl lab run STUDY.toml --out {folder}`"
            )
        for name in (ABOUT, RUNS, FETCHES):
            check_regular_file(folder / name)
        with report_damage(folder / ABOUT):
            about = _checked(json.loads((folder / ABOUT).read_text(encoding="utf-8")))
        with report_damage(folder / RUNS):
            runs = pd.read_parquet(folder / RUNS)
            numbers = all(is_numeric_dtype(runs[name]) for name in _NUMBERS)
            texts = all(isinstance(text, str) for name in _TEXTS for text in runs[name])
            if not (numbers and texts and set(runs["strategy"]) <= about["strategies"].keys()):
                raise ValueError
            if not set(_EVALUATED_LOSSES) <= set(runs.columns):
                raise ValueError
        with report_damage(folder / FETCHES), pq.ParquetFile(folder / FETCHES) as file:
            columns = [file.schema_arrow.field(each.name) for each in (*_RUN, *_PAGE)]
            if columns != [*_RUN, *_PAGE] or file.num_row_groups != len(runs):
                raise ValueError
        return cls(folder, runs=runs, **about)

    def fetches(self, columns: Sequence[str] | None = None, **where: object) -> pd.DataFrame:
        """Return the fetches of the study as a table with one row per fetch.

        Parameters
        ----------
        columns : Sequence[str] or None
            Columns to read; None reads all columns.
        where : object
            Required values of columns, as in ``web="uci", draw=0``.

        Raises
        ------
        KeyError
            A column does not exist.
        """
        filters = [(name, "==", value) for name, value in where.items()]
        path = self.folder / FETCHES
        wanted = None if columns is None else list(columns)
        with report_damage(path):
            known = pq.read_schema(path).names
        for name in (*(wanted or ()), *where):
            if name not in known:
                raise KeyError(name)
        with report_damage(path):
            return pd.read_parquet(path, columns=wanted, filters=filters or None)

    def iter_runs(self, columns: Sequence[str], web: str) -> Iterator[tuple[Any, pd.DataFrame]]:
        """Yield each crawl of a web (a row of `runs`) with the table of the crawl's fetches."""
        with pq.ParquetFile(self.folder / FETCHES) as file:
            for i, run in enumerate(self.runs.itertuples(index=False)):
                if run.web == web:
                    with report_damage(self.folder / FETCHES):
                        fetches = file.read_row_group(i, columns=list(columns)).to_pandas()
                    yield run, fetches


def _checked(about: dict[str, Any]) -> dict[str, Any]:
    tables = [about["strategies"], about["failed"]]
    tables += [about[name] for name in ("alone", "knows") if name in about]
    texts = [about["title"], about["baseline"], *about["beside"]]
    texts += [text for table in tables for pair in table.items() for text in pair]
    unknown = about.keys() - {"title", "baseline", "strategies", "failed", *_RENAMED}
    sound = isinstance(about["beside"], list) and all(isinstance(text, str) for text in texts)
    if not sound or unknown:
        raise ValueError
    about["beside"] = tuple(about["beside"])
    return {_RENAMED.get(name, name): value for name, value in about.items()}


def write_fetches(pages: pd.DataFrame, path: Path) -> None:
    """Write the table `pages` of one crawl's fetches to a Parquet file."""
    frame = pages.reset_index().rename(columns={"topic": "class"})
    table = pa.Table.from_pandas(frame[_PAGE.names], _PAGE, preserve_index=False)
    pq.write_table(table.replace_schema_metadata(), path, compression="zstd")


def collect_results(
    study: Study,
    runs: Sequence[Run],
    folder: Path,
    failed: Mapping[str, str],
    evaluators: Mapping[str, Evaluator],
) -> Results:
    """Write a table of all fetches and a table of all finished crawls of a study to `folder`.

    Parameters
    ----------
    study, runs : Study, Sequence[Run]
        The study and its runs.
    folder : Path
        Folder of the results.
    failed : Mapping[str, str]
        Error message of each failed run by name.
    evaluators : Mapping[str, Evaluator]
        Evaluators by name of the web.

    Raises
    ------
    UserError
        No run has finished.
    """
    done = [run for run in runs if run.is_done]
    if not done:
        raise UserError(f"no run of the study {study.title} succeeded: see crawl.log of each run")
    rows = []
    unfinished = folder / f"{FETCHES}.part"
    schema = pa.schema([*_RUN, *_PAGE, *_EVALUATION])
    with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for run in done:
            fetches = pq.read_table(run.fetches_path, schema=_PAGE)
            relevance = fetches["relevance"].to_numpy()
            found = float(relevance[: run.comparison_budget].sum())
            row = {
                "web": run.web,
                "topic": run.topic,
                "draw": run.draw,
                "strategy": run.contender.label,
            }
            keys = [
                pa.array([value] * len(fetches), kind)
                for value, kind in zip(row.values(), _RUN.types, strict=True)
            ]
            evaluation = _evaluation(run, fetches, evaluators.get(run.web))
            columns = [*keys, *fetches.columns, *map(pa.array, evaluation)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), len(fetches) or 1)
            rows.append(
                {
                    **row,
                    "budget": run.comparison_budget,
                    "fetches": len(fetches),
                    "loss": 1.0 - found / run.comparison_budget,
                    **_losses(run, fetches, evaluation),
                    "harvest": found / max(min(len(fetches), run.comparison_budget), 1),
                    "oracle": run.oracle_loss,
                    "folder": run.folder.relative_to(folder).as_posix(),
                    **run.cost,
                }
            )
    unfinished.replace(folder / FETCHES)
    pd.DataFrame(rows).to_parquet(folder / RUNS, index=False)
    about = {
        "title": study.title,
        "baseline": study.baseline,
        "strategies": {each.label: each.strategy for each in study.contenders},
        "failed": dict(failed),
        "beside": [
            each.label
            for each in study.contenders
            if each.within is not None or each.strategy == ORACLE
        ],
        "alone": _without_knowledge(study),
        "knows": {each.label: each.knows for each in study.contenders if each.knows is not None},
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return Results.open(folder)


def _evaluation(run: Run, fetches: pa.Table, evaluator: Evaluator | None) -> Evaluation:
    """Evaluate fetches; a duplicate does not count as a page."""
    if evaluator is None:
        missing = np.full(len(fetches), np.nan)
        return Evaluation(missing, missing)
    judged, labelled = evaluator.evaluate(run.topic, fetches["url"].to_pylist())
    duplicate = fetches["duplicate_of"].is_valid().to_numpy()
    return Evaluation(np.where(duplicate, 0.0, judged), np.where(duplicate, np.nan, labelled))


def _losses(run: Run, fetches: pa.Table, evaluation: Evaluation) -> dict[str, float]:
    """Return the losses by judge and label without start pages, which may be training examples."""
    found = ~np.isin(fetches["url"].to_pylist(), run.seeds)[: run.comparison_budget]
    labelled = evaluation.labelled[: run.comparison_budget][found]
    labelled = labelled[~np.isnan(labelled)]
    judged = evaluation.judged[: run.comparison_budget][found]
    unjudged = np.isnan(evaluation.judged).all()
    wanted = 0 if unjudged else run.comparison_budget - int((~found).sum())
    sure = np.where(np.isnan(judged), np.nan, judged > RELEVANT)
    return {
        "judged_loss": 1.0 - float(judged.sum()) / wanted if wanted else np.nan,
        "judged_off_topic": 1.0 - float(sure.sum()) / wanted if wanted else np.nan,
        "labelled_loss": 1.0 - float(labelled.mean()) if len(labelled) else np.nan,
    }


def _without_knowledge(study: Study) -> dict[str, str]:
    """Return for each contender the label of its counterpart that starts without knowledge."""
    return {
        each.label: other.label
        for each in study.contenders
        for other in study.contenders
        if each.knows is not None and other == replace(each, label=other.label, knows=None)
    }
