"""The results of a study: one table of all fetches, one of all runs, which may be damaged.

Both are the same whenever the same study is run, but for the cost of the runs: `COST`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
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
from focuscrawl.lab.evaluator import Opinion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from focuscrawl.lab.evaluator import Evaluator
    from focuscrawl.lab.study import Run, Study


FETCHES = "fetches.parquet"
RUNS = "runs.parquet"
ABOUT = "study.json"
ORACLE = "oracle"  # name of the strategy that knows all pages
COST = ("seconds", "cpu_seconds", "megabytes")
_OPINIONS = ("judged_loss", "judged_off_topic", "labelled_loss")

_NAME = pa.dictionary(pa.int32(), pa.string())
#: a fetch, as `focuscrawl.report.measures.load_pages` has it; without ``fetched_at``, since time
#: is counted in fetches; the critic's own class of the page, ``topic`` there, is ``class`` here
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
_OPINION = pa.schema([("judged", pa.float64()), ("labelled", pa.float64())])
_RUN = pa.schema([("web", _NAME), ("topic", _NAME), ("draw", pa.int16()), ("strategy", _NAME)])
_TEXTS = ("web", "topic", "strategy")  # of a run, as its numbers
_NUMBERS = ("draw", "budget", "fetches", "loss", "harvest", "oracle", *COST)


@contextmanager
def damage_reported(path: Path, way_out: str = "") -> Iterator[None]:
    """Raise `UserError` for what goes wrong while a file of a study is read.

    Parameters
    ----------
    way_out : what writes the file again; by default ``lab run``
    """
    again = way_out or (
        f"focuscrawl lab run STUDY.toml --out {path.parent} writes it anew, from its crawls"
    )
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} is not there: {again}") from None
    except PermissionError:
        raise UserError(f"{path} may not be read: {again}") from None
    except (OSError, *DECODING_ERRORS):  # PyArrow has the first for damage, too
        raise UserError(f"{path} is damaged: {again}") from None


@dataclass(frozen=True)
class Results:
    """The results of a study.

    Attributes
    ----------
    folder : where they are
    title : of the study
    baseline : label of the contender that others are measured against
    strategies : name of the strategy behind each label, in the order of the study
    failed : runs that failed, and why
    beside : labels of those that are not in the race: oracles, and what is confined to the URLs
        of another
    knows : label of the contender whose knowledge each one started with, of those that had any
    alone : of these, label of the contender that is the same but knows nothing, if there is one
    runs : one row a run that is done: ``web``, ``topic``, ``draw``, ``strategy`` (its label),
        ``budget`` (fetches at which the study compares), ``fetches`` (made), ``loss`` after
        ``budget`` fetches, those it did not make counted as lost: a strategy that runs out of
        links must not look better than one that does not; ``judged_loss``, the same by the
        evaluator's judge, ``judged_off_topic``, the share of them with R <= 1/2 there, and
        ``labelled_loss``, the share of fetched pages with a ``test`` label that are off the
        topic, all without start pages, NaN where nothing was judged; ``harvest`` (rate,
        of the fetches made), ``oracle`` (loss of the greedy oracle), ``folder``, and `COST`: time
        on the clock and on the processor, and the largest resident memory, of its own process
    """

    folder: Path
    title: str
    baseline: str
    strategies: dict[str, str]
    failed: dict[str, str]
    runs: pd.DataFrame
    beside: tuple[str, ...] = ()
    knows: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Results:
        """Open what ``focuscrawl lab run`` has left in `folder`.

        Raises
        ------
        UserError
            There are no results, or they are damaged.
        """
        if not (folder / ABOUT).exists():
            raise UserError(
                f"{folder} holds no results of a study: make some with focuscrawl lab run "
                f"STUDY.toml --out {folder}"
            )
        for name in (ABOUT, RUNS, FETCHES):
            check_regular_file(folder / name)
        with damage_reported(folder / ABOUT):
            about = _checked(json.loads((folder / ABOUT).read_text(encoding="utf-8")))
        with damage_reported(folder / RUNS):
            runs = pd.read_parquet(folder / RUNS)
            numbers = all(is_numeric_dtype(runs[name]) for name in _NUMBERS)
            texts = all(isinstance(text, str) for name in _TEXTS for text in runs[name])
            if not (numbers and texts and set(runs["strategy"]) <= about["strategies"].keys()):
                raise ValueError
            if not set(_OPINIONS) <= set(runs.columns):
                raise ValueError
        with damage_reported(folder / FETCHES), pq.ParquetFile(folder / FETCHES) as file:
            columns = [file.schema_arrow.field(each.name) for each in (*_RUN, *_PAGE)]
            if columns != [*_RUN, *_PAGE] or file.num_row_groups != len(runs):
                raise ValueError
        return cls(folder, runs=runs, **about)

    def fetches(self, columns: Sequence[str] | None = None, **where: object) -> pd.DataFrame:
        """Return fetches, one row each.

        Parameters
        ----------
        columns : those wanted; None: all
        where : what columns have to be, as in ``web="uci", draw=0``

        Raises
        ------
        KeyError
            There is no such column.
        """
        filters = [(name, "==", value) for name, value in where.items()]
        path = self.folder / FETCHES
        wanted = None if columns is None else list(columns)
        with damage_reported(path):
            known = pq.read_schema(path).names
        for name in (*(wanted or ()), *where):
            if name not in known:
                raise KeyError(name)
        with damage_reported(path):
            return pd.read_parquet(path, columns=wanted, filters=filters or None)

    def each_run(self, columns: Sequence[str], web: str) -> Iterator[tuple[Any, pd.DataFrame]]:
        """Yield each row of `runs` of a web with its fetches: one run at a time is in memory."""
        with pq.ParquetFile(self.folder / FETCHES) as file:
            for i, run in enumerate(self.runs.itertuples(index=False)):
                if run.web == web:
                    with damage_reported(self.folder / FETCHES):
                        fetches = file.read_row_group(i, columns=list(columns)).to_pandas()
                    yield run, fetches


def _checked(about: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a study; ValueError, TypeError if they are not as we write them."""
    tables = [about["strategies"], about["failed"]]
    tables += [about[name] for name in ("alone", "knows") if name in about]
    texts = [about["title"], about["baseline"], *about["beside"]]
    texts += [text for table in tables for pair in table.items() for text in pair]
    known = {each.name for each in fields(Results)} - {"folder", "runs"}
    sound = isinstance(about["beside"], list) and all(isinstance(text, str) for text in texts)
    if not sound or not about.keys() <= known:
        raise ValueError
    return about | {"beside": tuple(about["beside"])}


def keep_fetches(pages: pd.DataFrame, path: Path) -> None:
    """Write the fetches of one run, as `focuscrawl.report.measures.load_pages` returns them."""
    frame = pages.reset_index().rename(columns={"topic": "class"})
    table = pa.Table.from_pandas(frame[_PAGE.names], _PAGE, preserve_index=False)
    pq.write_table(table.replace_schema_metadata(), path, compression="zstd")


def collect(
    study: Study,
    runs: Sequence[Run],
    folder: Path,
    failed: Mapping[str, str],
    evaluators: Mapping[str, Evaluator],
) -> Results:
    """Put the runs that are done together in `folder`; a row group of the fetches is a run.

    Parameters
    ----------
    evaluators : by name of the web, where there is one

    Raises
    ------
    UserError
        No run is done.
    """
    done = [run for run in runs if run.done]
    if not done:
        raise UserError(f"no run of {study.title} succeeded")
    rows = []
    unfinished = folder / f"{FETCHES}.part"
    schema = pa.schema([*_RUN, *_PAGE, *_OPINION])
    with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for run in done:
            fetches = pq.read_table(run.fetches, schema=_PAGE)
            relevance = fetches["relevance"].to_numpy()
            found = float(relevance[: run.compared].sum())
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
            opinion = _opinion(run, fetches, evaluators.get(run.web))
            columns = [*keys, *fetches.columns, *map(pa.array, opinion)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), len(fetches) or 1)
            rows.append(
                {
                    **row,
                    "budget": run.compared,
                    "fetches": len(fetches),
                    "loss": 1.0 - found / run.compared,
                    **_losses(run, fetches, opinion),
                    "harvest": found / max(min(len(fetches), run.compared), 1),
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
        "alone": _alone(study),
        "knows": {each.label: each.knows for each in study.contenders if each.knows is not None},
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return Results.open(folder)


def _opinion(run: Run, fetches: pa.Table, evaluator: Evaluator | None) -> Opinion:
    """Return an evaluator's opinion of fetches; a duplicate does not count as a page."""
    if evaluator is None:
        nothing = np.full(len(fetches), np.nan)
        return Opinion(nothing, nothing)
    judged, labelled = evaluator.evaluate(run.topic, fetches["url"].to_pylist())
    again = fetches["duplicate_of"].is_valid().to_numpy()
    return Opinion(np.where(again, 0.0, judged), np.where(again, np.nan, labelled))


def _losses(run: Run, fetches: pa.Table, opinion: Opinion) -> dict[str, float]:
    """Return the loss by judge and by label: the critic may have learned from start pages."""
    found = ~np.isin(fetches["url"].to_pylist(), run.seeds)[: run.compared]
    labelled = opinion.labelled[: run.compared][found]
    labelled = labelled[~np.isnan(labelled)]
    judged = opinion.judged[: run.compared][found]
    unjudged = np.isnan(opinion.judged).all()
    wanted = 0 if unjudged else run.compared - int((~found).sum())
    sure = np.where(np.isnan(judged), np.nan, judged > RELEVANT)
    return {
        "judged_loss": 1.0 - float(judged.sum()) / wanted if wanted else np.nan,
        "judged_off_topic": 1.0 - float(sure.sum()) / wanted if wanted else np.nan,
        "labelled_loss": 1.0 - float(labelled.mean()) if len(labelled) else np.nan,
    }


def _alone(study: Study) -> dict[str, str]:
    """Return the contenders that differ from others only in knowing nothing, by these others."""
    return {
        each.label: other.label
        for each in study.contenders
        for other in study.contenders
        if each.knows is not None and other == replace(each, label=other.label, knows=None)
    }
