"""Round after round: plan, choose, fetch, learn, take in, commit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from focuscrawl.crawl.assembly import check_config
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import identity
from focuscrawl.foundation.user_input import (
    Reader,
    json_object,
    nearest,
    number,
    read_toml,
    text_of,
    validated,
    whole_number,
)
from focuscrawl.rounds.buckets import bucket_of
from focuscrawl.rounds.context import Laps, context_of
from focuscrawl.rounds.fetching import TAKEN_OVER, opened
from focuscrawl.rounds.tables import CHOSEN, NAME, Tables
from focuscrawl.rounds.taking_in import learn
from focuscrawl.rounds.tasks import Task, do, unless_refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from focuscrawl.rounds.tasks import Master


def size_of_round(written: object) -> float:
    """Read the size of a round: a share of the budget, below 100 %, or a number of fetches.

    Raises
    ------
    ValueError
        It is neither.
    """
    text = str(written).strip()
    in_percent = text.endswith("%")
    share = float(text.removesuffix("%")) / 100.0 if in_percent else float(text)
    if not (0.0 < share < 1.0 or (not in_percent and share >= 1.0 and share % 1 == 0)):
        raise ValueError
    return share


#: fields of `CrawlConfig` that a plan may have
_OF_CRAWL = ("topic", "critic", "strategy", "options", "seeds", "web", "budget", "random_state")
#: those that make a crawl this crawl
_KEPT = (*(name for name in _OF_CRAWL if name != "budget"), "own_names")
#: settings with which names may be looked up elsewhere than on the Internet
_OWN_NAMES = frozenset({"FOCUSCRAWL_PRIVATE_ADDRESSES", "TWISTED_DNS_RESOLVER"})


class RoundsPlan(BaseModel):
    """A crawl in rounds.

    Attributes
    ----------
    crawl : what to crawl
    round : fetches of a round, below 1: as a share of the budget
    buckets : parts that the hosts are spread over; no more of a round can be done at a time
    settings : Scrapy's and ours, by name, for a crawl of the live Web
    seconds : of a live round, see `focuscrawl.rounds.context`; None: as many as fit its size
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    crawl: CrawlConfig
    round: Annotated[
        float, Reader("a share of the budget, as '1%', or a number of fetches", size_of_round)
    ] = 0.01
    buckets: Annotated[int, whole_number(1, 1000)] = 8
    settings: Annotated[Mapping[str, Any], json_object('{"DOWNLOAD_DELAY": 2}')] = {}
    seconds: Annotated[float, number(1)] | None = None

    @property
    def fetches(self) -> int:
        """Fetches of a round, at least one."""
        share = self.round * self.crawl.budget if self.round < 1.0 else self.round
        return max(1, int(share))


def read_plan(path: Path) -> RoundsPlan:
    """Read a plan.

    Raises
    ------
    UserError
        The file cannot be read, lacks something, or has what a plan has not.
    """
    where = f"plan {path}"
    try:
        given = read_toml(text_of(path))
    except OSError as error:
        raise UserError(f"{where} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{where} is no TOML file: {error}") from None
    known = [*_OF_CRAWL, *(name for name in RoundsPlan.model_fields if name != "crawl")]
    for key in given:
        if key not in known:
            raise UserError(f"{where} knows no {key!r}: {nearest(key, known)}")
    for key in ("topic", "budget"):
        if key not in given:
            raise UserError(f"{where} does not say {key!r}")
    if given["budget"] == 0:
        raise UserError(f"{where}: budget must be a whole number, 1 or more, not 0")
    for key in ("settings", "options"):
        try:
            json.dumps(given.get(key))
        except TypeError:  # TOML has dates, which the tables' JSON has not
            raise UserError(f"{where}: {key} has a date or time: write it as text") from None
    of_crawl = {key: given.pop(key) for key in _OF_CRAWL if key in given}
    of_crawl["own_names"] = not _OWN_NAMES.isdisjoint(given.get("settings", {}))
    crawl = validated(CrawlConfig, of_crawl, where)
    return validated(RoundsPlan, {"crawl": crawl, **given}, where)


Watch = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]

_FORMAT = 3  # of the tables


def unwatched(what: str, tasks: int) -> AbstractContextManager[Callable[[int], object]]:
    """Show no progress."""
    return nullcontext(lambda done: done)


def crawl_in_rounds(
    plan: RoundsPlan,
    root: str,
    master: Master,
    tell: Callable[[Mapping[str, Any]], None],
    *,
    watch: Watch = unwatched,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Start a crawl, or resume the one whose tables are at `root`, until it is over.

    Parameters
    ----------
    tell : called with every round that was committed
    watch : gives, for a stage of so many tasks, what is called with the number of those done
    folder : of a crawl that a new one takes over, see `take_over`

    Returns
    -------
    The last round, and ``stop``: why there is no other. Of a round: ``round`` (its number),
    ``fetched`` and ``relevance`` (of all rounds so far), ``model`` (its version), ``known`` URLs,
    ``seconds`` of processor by stage and ``laps``, those of the tasks by what they did (see
    `fetch` and `take_in`), ``megabytes`` of the largest process so far

    Raises
    ------
    UserError
        Anything the user has to put right.
    """
    tables, every = Tables(root), range(plan.buckets)

    def do_all(stage: str, number: int, buckets: Iterable[int]) -> list[dict[str, Any]]:
        tasks = [Task(stage, root, bucket, number) for bucket in buckets]
        with watch(f"round {number}: {stage}", len(tasks)) as advance:
            return master.do_all(tasks, advance)

    with _opened(plan, tables, folder) as before:
        last = before or {"round": 0, "fetched": 0, "relevance": 0.0, "model": 0}
        if before is None:
            do_all("take in", 0, every)
            _commit(tables, last, plan.buckets, 0)
        stop = "budget"
        while last["fetched"] < plan.crawl.budget:
            number, left = last["round"] + 1, plan.crawl.budget - last["fetched"]
            laps = Laps()
            context = context_of(root)
            if number == TAKEN_OVER and context.folder is not None:  # a folder of this machine
                done = unless_refused([do(Task("take over", root, 0, number))])
            else:
                buckets = choose(tables, plan.buckets, number, min(plan.fetches, left))
                laps.end("choose")
                if not buckets:
                    stop = "frontier_empty"
                    break
                done = do_all("fetch", number, buckets)
            of_buckets = {str(each["bucket"]): each["fetched"] for each in done}
            tables.write_json(f"fetched/{number:05}.json", {"buckets": of_buckets})
            laps.end("fetch")
            model = learn(context, number)
            laps.end("learn")
            taken_in = do_all("take in", number, every)
            of_tasks: Counter[str] = Counter()
            for each in [*done, *taken_in]:
                of_tasks.update(each.get("laps", {}))
            last = {
                "round": number,
                "fetched": last["fetched"] + sum(of_buckets.values()),
                "relevance": last["relevance"] + sum(each["relevance"] for each in done),
                "model": model["version"],
                "known": sum(each["known"] for each in taken_in),
                "seconds": {
                    "choose": laps.seconds.get("choose", 0.0),
                    "fetch": sum(each["seconds"] for each in done),
                    "learn": laps.seconds["learn"],
                    "take in": sum(each["seconds"] for each in taken_in),
                },
                "laps": dict(of_tasks),
                "megabytes": max(each["megabytes"] for each in [*done, *taken_in]),
            }
            laps.end("take in")
            _commit(tables, last, plan.buckets, model.get("oldest", 0))
            laps.end("commit")
            last["seconds"]["commit"] = laps.seconds["commit"]
            tell(last)
            if not any(each["fetched"] or each["excluded"] for each in done):
                stop = "hosts_unavailable"
                break
        last = last | {"stop": stop}
        tables.write_json("rounds/last.json", last)
        return last


@contextmanager
def _opened(
    plan: RoundsPlan, tables: Tables, folder: Path | None
) -> Iterator[dict[str, Any] | None]:
    """Give the last round of a crawl; of a new one None, when all is there for round 0.

    Nothing is written before the plan has been checked; within the ``with`` block no other process
    crawls there.
    """
    root = tables.root
    known = tables.read_json("plan.json")
    kept = {
        "format": _FORMAT,
        "crawl": {key: getattr(plan.crawl, key) for key in _KEPT},
        "buckets": plan.buckets,
        "fetches": plan.fetches,
        "settings": dict(plan.settings),
        "seconds": plan.seconds,
        # it need not be named again
        "folder": (known or {}).get("folder") if folder is None else str(folder.resolve()),
    }
    if known is not None:
        if known.get("format") != _FORMAT:
            raise UserError(
                f"{root} has tables of format {known.get('format')}, this focuscrawl reads "
                f"{_FORMAT}: crawl again, into another folder"
            )
        _check_same(known, kept, tables.root)
    checked = check_config(plan.crawl, None, exists=False)
    if not checked.strategy.in_rounds:
        raise UserError(
            f"strategy {plan.crawl.strategy} has to see the whole crawl, and a round sees it "
            "bucket by bucket: take apprentice, best-first or another that judges links by pages"
        )
    if known is None and folder is not None:
        with opened(checked, folder):
            pass  # it can be taken over
    with tables.claimed():
        if tables.read_json("plan.json") != known:
            raise UserError(
                f"{root} was begun by another process meanwhile: give the command again"
            )
        if known != kept:  # settings and sizes of rounds may change
            tables.write_json("plan.json", kept)
        done = tables.read_json("rounds/last.json", "round", "fetched", "relevance", "model")
        if done is None:
            _write_seeds(tables, checked.seeds, plan.buckets)
        yield done


def _write_seeds(tables: Tables, seeds: Iterable[str], buckets: int) -> None:
    names: dict[int, list[dict[str, Any]]] = {}
    for at, url in enumerate(seeds):
        row = {"id": identity(url), "url": url, "depth": 0, "referrer": None}
        of_bucket = names.setdefault(bucket_of(url, buckets), [])
        of_bucket.append(row | {"found": at, "first": True})
    for to, rows in names.items():
        tables.write(f"names/00000/seeds-{to:03}", NAME, rows)


def _check_same(known: Mapping[str, Any], given: Mapping[str, Any], root: str) -> None:
    folders = known.get("folder"), given["folder"]
    first, now = (f"--from {each}" if each else "its seeds" for each in folders)
    if first != now:
        raise UserError(
            f"{root} holds a crawl that began with {first}, not {now}; name another folder"
        )
    for key, value in (given["crawl"] | {"buckets": given["buckets"]}).items():
        before = known["crawl"].get(key) if key in known["crawl"] else known.get(key)
        if before != value:
            raise UserError(
                f"{root} holds another crawl: its {key} is {before}, not {value}; name another "
                "folder"
            )


def choose(tables: Tables, of_buckets: int, number: int, most: int) -> list[int]:
    """Choose the best candidates for a round, at most so many; return the buckets they are of.

    Best first; a candidate that limits bar is chosen only if all are barred.
    """
    name = f"chosen/{number:05}"
    if not tables.has(name):
        buckets = [f"candidates/{bucket:03}/{number - 1:05}" for bucket in range(of_buckets)]
        found = pa.concat_tables([CHOSEN.empty_table(), *map(tables.read, buckets)])
        free = found.filter(pc.invert(found["barred"]))
        found = free if len(free) else found
        columns = (found["found"], pc.negate(found["score"]))
        best = np.lexsort([each.to_numpy() for each in columns])[:most]
        tables.write_table(name, found.take(pa.array(best)))
    return sorted(set(tables.read(name, ["bucket"])["bucket"].to_pylist()))


def _commit(tables: Tables, last: Mapping[str, Any], buckets: int, learned_from: int) -> None:
    """Record that a round is over, and remove what its buckets had for each other."""
    tables.write_json(f"rounds/{last['round']:05}.json", last)
    tables.write_json("rounds/last.json", last)
    for kind in ("names", "links", "digests"):
        tables.remove(f"{kind}/{last['round']:05}")
    tables.remove("under-way")
    tables.drop_old(buckets, last["round"], learned_from)
