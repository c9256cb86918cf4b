"""Runs a crawl in rounds, each of which selects and fetches URLs and trains the model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from focuscrawl.crawl.assembly import check_config
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import hashed_id
from focuscrawl.foundation.user_input import (
    ValueParser,
    json_object,
    number,
    parse_toml,
    read_regular_text,
    suggest_name,
    validate,
    whole_number,
)
from focuscrawl.frontier import halve_scores
from focuscrawl.rounds.buckets import bucket_of, learn
from focuscrawl.rounds.context import CpuTimer, load_context
from focuscrawl.rounds.fetching import IMPORT_ROUND, open_crawl_folder
from focuscrawl.rounds.tables import CHOSEN, NAME, Tables
from focuscrawl.rounds.tasks import Task, raise_refusals, run_task

if TYPE_CHECKING:
    from focuscrawl.rounds.tasks import Master


def parse_round_size(written: object) -> float:
    """Parse the size of a round of fetches, as a share of the budget or a number of fetches.

    Raises
    ------
    ValueError
        The text is neither.
    """
    text = str(written).strip()
    in_percent = text.endswith("%")
    share = float(text.removesuffix("%")) / 100.0 if in_percent else float(text)
    if not (0.0 < share < 1.0 or (not in_percent and share >= 1.0 and share % 1 == 0)):
        raise ValueError
    return share


#: fields of `CrawlConfig` that a plan may have
_CRAWL_KEYS = (
    *("topic", "critic", "strategy", "options", "seeds", "targets", "web"),
    *("budget", "random_state"),
)
#: fields that may not change when the crawl is resumed
_IDENTITY_KEYS = (*(name for name in _CRAWL_KEYS if name != "budget"), "own_names")
#: settings that allow host names which public name servers do not know
_LOCAL_NAME_SETTINGS = frozenset({"FOCUSCRAWL_PRIVATE_ADDRESSES", "TWISTED_DNS_RESOLVER"})


class RoundsPlan(BaseModel):
    """The configuration of a crawl in rounds, as read from a plan file (TOML).

    Attributes
    ----------
    crawl : CrawlConfig
    round : float
        Fetches of a round; a value below 1 is a share of the budget.
    buckets : int
        Number of groups of hosts, and most tasks of a round that run at once.
    settings : mapping of str to Any
        Settings of Scrapy and focuscrawl for a live crawl.
    seconds : float or None
        Time limit of a live round, see `focuscrawl.rounds.context.RoundTime`; None: by its size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    crawl: CrawlConfig
    round: Annotated[
        float,
        ValueParser("a share of the budget, as '1%', or a number of fetches", parse_round_size),
    ] = 0.01
    buckets: Annotated[int, whole_number(1, 1000)] = 8
    settings: Annotated[Mapping[str, Any], json_object('{"DOWNLOAD_DELAY": 2}')] = {}
    seconds: Annotated[float, number(1)] | None = None

    @property
    def fetches(self) -> int:
        """Number of fetches in each round, at least one."""
        share = self.round * self.crawl.budget if self.round < 1.0 else self.round
        return max(1, int(share))


def read_plan(path: Path) -> RoundsPlan:
    """Read the plan of a crawl in rounds from a TOML file.

    Raises
    ------
    UserError
        The file cannot be read, or has missing, unknown or invalid entries.
    """
    where = f"plan {path}"
    try:
        given = parse_toml(read_regular_text(path))
    except OSError as error:
        raise UserError(f"{where} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{where} is not a valid TOML file: {error}") from None
    known = [*_CRAWL_KEYS, *(name for name in RoundsPlan.model_fields if name != "crawl")]
    for key in given:
        if key not in known:
            raise UserError(f"{where} has the unknown entry {key!r}: {suggest_name(key, known)}")
    for key in ("topic", "budget"):
        if key not in given:
            raise UserError(f"{where} lacks the entry {key!r}: add it")
    if given["budget"] == 0:
        raise UserError(f"{where}: budget must be a whole number, 1 or more, not 0")
    for key in ("settings", "options"):
        try:
            json.dumps(given.get(key))
        except TypeError:  # TOML has dates, JSON has none
            raise UserError(
                f"{where}: {key} has a date or time: write the value as a text in quotes"
            ) from None
    crawl_values = {key: given.pop(key) for key in _CRAWL_KEYS if key in given}
    crawl_values["own_names"] = not _LOCAL_NAME_SETTINGS.isdisjoint(given.get("settings", {}))
    crawl = validate(CrawlConfig, crawl_values, where)
    return validate(RoundsPlan, {"crawl": crawl, **given}, where)


ProgressFactory = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]

_FORMAT = 3  # format number of the tables


def no_progress(what: str, tasks: int) -> AbstractContextManager[Callable[[int], object]]:
    """Show no progress."""
    return nullcontext(lambda done: done)


def crawl_in_rounds(
    plan: RoundsPlan,
    root: str,
    master: Master,
    report: Callable[[Mapping[str, Any]], None],
    *,
    watch: ProgressFactory = no_progress,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Run a crawl in rounds to its end; resume the crawl if there are tables at `root`.

    Parameters
    ----------
    report : callable
        Called with each committed round.
    watch : callable
        Called with the name of a stage and its number of tasks; returns a context manager with a
        function that takes the number of finished tasks.
    folder : Path, optional
        Earlier crawl that a new crawl continues, see `import_crawl`.

    Returns
    -------
    dict
        The last round, with ``stop``, the reason to stop. A round has: ``round``, its number;
        ``fetched`` and ``relevance``, sums over all rounds; ``model``, the version of the model;
        ``known``, the number of URLs; ``seconds``, processor time by stage; ``laps``, processor
        time of the tasks by activity (see `fetch` and `update_bucket`); ``megabytes``, memory of
        the largest process.

    Raises
    ------
    UserError
        An error that the user can correct.
    """
    tables, every = Tables(root), range(plan.buckets)

    def run_tasks(stage: str, number: int, buckets: Iterable[int]) -> list[dict[str, Any]]:
        tasks = [Task(stage, root, bucket, number) for bucket in buckets]
        with watch(f"round {number}: {stage}", len(tasks)) as advance:
            return master.run_tasks(tasks, advance)

    with _open_crawl(plan, tables, folder) as before:
        last = before or {"round": 0, "fetched": 0, "relevance": 0.0, "model": 0}
        if before is None:
            run_tasks("update", 0, every)
            _commit(tables, last, plan.buckets, 0)
        stop = "budget"
        while last["fetched"] < plan.crawl.budget:
            number, left = last["round"] + 1, plan.crawl.budget - last["fetched"]
            timer = CpuTimer()
            context = load_context(root)
            if number == IMPORT_ROUND and context.folder is not None:  # a local folder
                done = raise_refusals([run_task(Task("import", root, 0, number))])
            else:
                buckets = choose_urls(tables, plan.buckets, number, min(plan.fetches, left))
                timer.lap("choose")
                if not buckets:
                    stop = "frontier_empty"
                    break
                done = run_tasks("fetch", number, buckets)
            of_buckets = {str(each["bucket"]): each["fetched"] for each in done}
            tables.write_json(f"fetched/{number:05}.json", {"buckets": of_buckets})
            timer.lap("fetch")
            model = learn(context, number)
            timer.lap("learn")
            updated = run_tasks("update", number, every)
            laps: Counter[str] = Counter()
            for each in [*done, *updated]:
                laps.update(each.get("laps", {}))
            last = {
                "round": number,
                "fetched": last["fetched"] + sum(of_buckets.values()),
                "relevance": last["relevance"] + sum(each["relevance"] for each in done),
                "model": model["version"],
                "known": sum(each["known"] for each in updated),
                "seconds": {
                    "choose": timer.seconds.get("choose", 0.0),
                    "fetch": sum(each["seconds"] for each in done),
                    "learn": timer.seconds["learn"],
                    "take in": sum(each["seconds"] for each in updated),
                },
                "laps": dict(laps),
                "megabytes": max(each["megabytes"] for each in [*done, *updated]),
            }
            timer.lap("take in")
            _commit(tables, last, plan.buckets, model.get("oldest", 0))
            timer.lap("commit")
            last["seconds"]["commit"] = timer.seconds["commit"]
            report(last)
            if not any(each["fetched"] or each["excluded"] for each in done):
                stop = "hosts_unavailable"
                break
        last = last | {"stop": stop}
        tables.write_json("rounds/last.json", last)
        return last


@contextmanager
def _open_crawl(
    plan: RoundsPlan, tables: Tables, folder: Path | None
) -> Iterator[dict[str, Any] | None]:
    """Yield the last round of a crawl; None for a new crawl, after writing the seeds for round 0.

    Nothing is written before the plan is checked. The ``with`` block holds the lock of the crawl.
    """
    root = tables.root
    known = tables.read_json("plan.json")
    kept = {
        "format": _FORMAT,
        "crawl": {key: getattr(plan.crawl, key) for key in _IDENTITY_KEYS},
        "buckets": plan.buckets,
        "fetches": plan.fetches,
        "settings": dict(plan.settings),
        "seconds": plan.seconds,
        # the command need not repeat the option
        "folder": (known or {}).get("folder") if folder is None else str(folder.resolve()),
    }
    if known is not None:
        if known.get("format") != _FORMAT:
            raise UserError(
                f"{root} has tables of format {known.get('format')}, this focuscrawl reads "
                f"{_FORMAT}: crawl again into another folder"
            )
        _check_same(known, kept, tables.root)
    checked = check_config(plan.crawl, None, exists=False)
    if not checked.strategy.in_rounds:
        raise UserError(
            f"the strategy {plan.crawl.strategy} needs the whole crawl and cannot run in rounds: "
            "choose apprentice, best-first or another strategy that scores links page by page"
        )
    if known is None and folder is not None:
        with open_crawl_folder(checked, folder):
            pass  # the crawl can be imported
    with tables.locked():
        if tables.read_json("plan.json") != known:
            raise UserError(
                f"another process has just started a crawl in {root}: run the command again"
            )
        if known != kept:  # settings and sizes of rounds may change between runs
            tables.write_json("plan.json", kept)
        done = tables.read_json("rounds/last.json", "round", "fetched", "relevance", "model")
        if done is None:
            _write_seeds(tables, checked.seeds, plan.buckets)
        yield done


def _write_seeds(tables: Tables, seeds: Iterable[str], buckets: int) -> None:
    names: dict[int, list[dict[str, Any]]] = {}
    for at, url in enumerate(seeds):
        row = {"id": hashed_id(url), "url": url, "depth": 0, "referrer": None}
        of_bucket = names.setdefault(bucket_of(url, buckets), [])
        of_bucket.append(row | {"found": at, "first": True})
    for to, rows in names.items():
        tables.write(f"names/00000/seeds-{to:03}", NAME, rows)


def _check_same(known: Mapping[str, Any], given: Mapping[str, Any], root: str) -> None:
    folders = known.get("folder"), given["folder"]
    first, now = (f"--from {each}" if each else "its seeds" for each in folders)
    if first != now:
        raise UserError(
            f"{root} contains a crawl that started with {first}, not {now}: name another folder"
        )
    for key, value in (given["crawl"] | {"buckets": given["buckets"]}).items():
        before = known["crawl"].get(key) if key in known["crawl"] else known.get(key)
        if before != value:
            raise UserError(
                f"{root} contains another crawl: its {key} is {before}, not {value}; name another "
                "folder"
            )


def choose_urls(tables: Tables, n_buckets: int, number: int, most: int) -> list[int]:
    """Select the best `most` candidates for a round; return the buckets of the selected URLs."""
    name = f"chosen/{number:05}"
    if not tables.has(name):
        buckets = [f"candidates/{bucket:03}/{number - 1:05}" for bucket in range(n_buckets)]
        found = pa.concat_tables([CHOSEN.empty_table(), *map(tables.read, buckets)])
        scores = halve_scores(found["score"].to_numpy(), found["halvings"].to_numpy())
        best = np.lexsort([found["found"].to_numpy(), -scores])[:most]
        tables.write_table(name, found.take(pa.array(best)))
    return sorted(set(tables.read(name, ["bucket"])["bucket"].to_pylist()))


def _commit(tables: Tables, last: Mapping[str, Any], buckets: int, learned_from: int) -> None:
    """Record the end of a round, and remove files that only the round needed."""
    tables.write_json(f"rounds/{last['round']:05}.json", last)
    tables.write_json("rounds/last.json", last)
    for kind in ("names", "links", "digests"):
        tables.remove(f"{kind}/{last['round']:05}")
    tables.remove("under-way")
    tables.remove_obsolete(buckets, last["round"], learned_from)
