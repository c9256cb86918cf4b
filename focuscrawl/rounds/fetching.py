"""Fetches the URLs of one round (batch) and one bucket (group of hosts), from archives or live."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import restore
from focuscrawl.crawl.stopping import StopRules
from focuscrawl.crawl.traps import NearDuplicates, Traps
from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.processes import start_python
from focuscrawl.foundation.urls import hashed_id
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.buckets import (
    BucketUrls,
    Inlinks,
    RoundTraps,
    RoundUrls,
    bucket_of,
    load_evidence,
)
from focuscrawl.rounds.context import (
    BucketDuplicates,
    BucketNearDuplicates,
    CpuTimer,
    RoundTimeout,
    content_bucket,
    content_id,
)
from focuscrawl.rounds.tables import CONTENT, DISCOUNT, EVIDENCE, NAME, PAGE
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED
from focuscrawl.webs import WarcRecorder

if TYPE_CHECKING:
    from focuscrawl.crawl import CrawlConfig
    from focuscrawl.crawl.assembly import CheckedConfig
    from focuscrawl.crawl.traps import Discounts
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.rounds.tables import Tables
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy

IMPORT_ROUND = 1  #: the round that `import_crawl` writes
# the order of discovery has bits for the round, the bucket and the URL
_ROUND_SHIFT, _BUCKET_SHIFT = 40, 28
_CHUNK = 100  # pages whose memos are split at once
_FAILURES = ("error", "store_error")  # stop reasons after which a round can be resumed


class RoundOutput(Part):
    """Writes the tables of one round (batch) and bucket (group of hosts) when its crawl stops.

    Nothing is written if the crawl was interrupted or failed, because the crawl can be resumed.
    """

    def __init__(
        self,
        crawl: Crawl,
        context: RoundsContext,
        where: tuple[int, int],
        urls: RoundUrls,
        traps: RoundTraps,
    ) -> None:
        self._crawl = crawl
        self._context = context
        self._where = where
        self._urls = urls
        self._traps = traps

    def release(self) -> None:
        """Write all tables unless the crawl was interrupted or failed."""
        stop = self._crawl.stop_reason
        if stop is None or stop in _FAILURES:
            return
        crawl, urls = self._crawl, self._urls
        queued = crawl.frontier.queued().tolist()
        urls.first |= {number for number in queued if crawl.frontier.score(number) == math.inf}
        keep_recordings(self._context.tables, crawl.folder.path, *self._where)
        write_tables(
            crawl,
            self._context,
            self._where,
            fetches=History(crawl.store).fetches(),
            first=urls.first,
            others=urls.decided(),
            pages=[*page_rows(crawl)],
            excluded=excluded_urls(urls),
            discounts=[*self._traps.discounts.rows()],
            judged=_judged(crawl),
        )


def write_tables(
    crawl: Crawl,
    context: RoundsContext,
    where: tuple[int, int],
    *,
    fetches: Iterable[StoredFetch],
    first: Collection[int],
    others: Iterable[int],
    pages: Sequence[Mapping[str, Any]],
    excluded: Iterable[str],
    discounts: Sequence[Mapping[str, Any]],
    judged: bytes,
) -> None:
    """Write the tables of one round (batch) and one bucket (group of hosts); write pages last.

    Parameters
    ----------
    where : (int, int)
        Bucket and round.
    fetches : iterable of StoredFetch
        Fetches whose links are written.
    first, others : collection of int
        Ids of further URLs to write; the frontier returns URLs in `first` before all links.
    pages, excluded, discounts
        Rows of `PAGE`; URLs that may not be fetched; rows of `DISCOUNT`.
    """
    (bucket, round_), tables = where, context.tables
    name = f"{bucket:03}/{round_:05}"
    _write_links(crawl, context, where, fetches, first=first, others=others)
    contents: dict[int, list[Mapping[str, Any]]] = {}
    for page in pages:
        if page.get("content") is not None:
            to = content_bucket(page["content"], context.buckets)
            contents.setdefault(to, []).append(page)
    for to, rows in contents.items():
        tables.write(f"digests/{round_:05}/{bucket:03}-{to:03}", CONTENT, rows)
    tables.write(f"discounts/{name}", DISCOUNT, discounts)
    tables.write_json(f"ended/{name}.json", {"excluded": sorted(map(hashed_id, excluded))})
    tables.write_bytes(f"judged/{name}", judged)
    tables.write_bytes(f"outcomes/{name}", crawl.strategy.export_outcomes() or b"")
    tables.write(f"pages/{name}", PAGE, pages)


def _judged(crawl: Crawl) -> bytes:
    return (crawl.strategy.export_judged() if crawl.strategy.learns else None) or b""


def _write_links(
    crawl: Crawl,
    context: RoundsContext,
    where: tuple[int, int],
    fetches: Iterable[StoredFetch],
    *,
    first: Collection[int],
    others: Iterable[int],
) -> None:
    (bucket, round_), urls, buckets = where, crawl.urls, context.buckets
    links: dict[int, list[dict[str, Any]]] = {}

    @cache
    def place(number: int) -> tuple[int, int]:
        """Return the bucket and the id of a URL in the tables."""
        url = urls[number]
        return bucket_of(url, buckets), hashed_id(url)

    numbers = {*first, *others}
    with_links = (page for page in fetches if page.links)
    while pages := [*islice(with_links, _CHUNK)]:
        numbers.update(link.target for page in pages for link in page.links)
        for to, row in _evidence(crawl.strategy, pages, place):
            links.setdefault(to, []).append(row)
    names: dict[int, list[dict[str, Any]]] = {}
    for number in sorted(numbers):
        to, id_ = place(number)
        row = {
            "id": id_,
            "url": urls[number],
            "depth": urls.depth(number),
            "referrer": urls.referrer(number),
            "found": (round_ << _ROUND_SHIFT) + (bucket << _BUCKET_SHIFT) + number,
            "first": number in first,
        }
        names.setdefault(to, []).append(row)
    for to, rows in names.items():
        context.tables.write(f"names/{round_:05}/{bucket:03}-{to:03}", NAME, rows)
    for to, rows in links.items():
        context.tables.write(f"links/{round_:05}/{bucket:03}-{to:03}", EVIDENCE, rows)


def _evidence(
    strategy: Strategy, pages: Sequence[StoredFetch], place: Callable[[int], tuple[int, int]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the evidence of links: the bucket of their targets, and a row for each page."""
    places = [np.array([place(link.target) for link in page.links]) for page in pages]
    all_memos = strategy.split_memos(
        [page.memo for page in pages], [each[:, 0] for each in places]
    )
    for page, (to, ids), memos in zip(pages, (each.T for each in places), all_memos, strict=True):
        scores = np.array([-math.inf if link.score is None else link.score for link in page.links])
        for bucket, memo in zip(np.unique(to).tolist(), memos, strict=True):
            yield (
                bucket,
                {
                    "source": page.url_text,
                    "relevance": page.relevance,
                    "targets": ids[to == bucket],
                    "scores": scores[to == bucket],
                    "memo": memo,
                },
            )


def excluded_urls(urls: UrlTable) -> list[str]:
    """Return the URLs that were excluded, for example by robots.txt."""
    return [urls[number] for number in range(len(urls)) if urls.state(number) == EXCLUDED]


def page_rows(crawl: Crawl) -> Iterator[dict[str, Any]]:
    """Yield a table row (see `PAGE`) for each fetched page of a crawl."""
    urls = crawl.urls
    for row in map(dict, crawl.store.rows("SELECT * FROM page ORDER BY seq")):
        url, twin = urls[row["url"]], row["duplicate_of"]
        yield {name: row.get(name) for name in PAGE.names} | {
            "id": hashed_id(url),
            "url": url,
            "depth": urls.depth(row["url"]),
            "referrer": urls.referrer(row["url"]),
            "duplicate_of": None if twin is None else urls[twin],
            **_duplicate_keys(row, url),
        }


def _duplicate_keys(row: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return the content id and URL ids by which duplicates of a page are detected."""
    if row["digest"] is None or row["duplicate_of"] is not None:
        return {}
    names = Duplicates.known_urls(url, row["canonical"])
    return {"content": content_id(row["digest"]), "names": [hashed_id(name) for name in names]}


def fetch(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Fetch the URLs that a round has selected from a bucket (group of hosts).

    If the URLs are already fetched, the function only reads the result. The number of fetches is
    the number of selected URLs. But if a new URL on one of the bucket's hosts is found with a
    better score than a selected URL, the new URL is fetched instead. So a large round (batch of
    fetches) also follows links found in the same round. The model of the previous round scores
    these links.

    Returns
    -------
    dict
        Numbers of fetches and excluded URLs, sum of relevance, and, in a replay, ``laps``: the
        time to ``open`` (read tables, score the selected URLs) and to ``crawl``.
    """
    tables, name, timer = context.tables, f"pages/{bucket:03}/{round_:05}", CpuTimer()
    if not tables.has(name):
        if context.checked.web is None:
            fetch_live(context, bucket, round_)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                config = context.checked.config.with_values(crawl_dir=scratch)
                crawl = open_round(context, bucket, round_, config)
                timer.lap("open")
                replay(crawl)
            timer.lap("crawl")
    pages = tables.read(name, ["relevance"])["relevance"].to_numpy()
    ended = tables.read_json(f"ended/{bucket:03}/{round_:05}.json", "excluded")
    assert ended is not None
    done = {"bucket": bucket, "fetched": len(pages), "relevance": float(pages.sum())}
    return done | {"excluded": len(ended["excluded"]), "laps": timer.seconds}


def open_round(context: RoundsContext, bucket: int, round_: int, config: CrawlConfig) -> Crawl:
    """Open the crawl that fetches the URLs selected from one bucket (group of hosts).

    Parameters
    ----------
    config : CrawlConfig
        Settings of fetching; the round sets the URLs and the budget. An existing crawl in
        `crawl_dir` is resumed.
    """
    tables, checked, before = context.tables, context.checked, round_ - 1
    all_chosen = tables.read(f"chosen/{round_:05}").to_pylist()
    chosen = [row for row in all_chosen if row["bucket"] == bucket]
    known = BucketUrls(tables, bucket, before)
    urls = RoundUrls(known, bucket, context.buckets)
    assert config.crawl_dir is not None
    folder = CrawlFolder(Path(config.crawl_dir))
    crawl = Crawl(
        critic=checked.critic,
        strategy=context.strategy(),
        frontier=Frontier(config.per_host, config.delay),
        store=folder.open_store(checked.identity, checked.about),
        folder=folder,
        web=checked.web,
        config=config.with_values(budget=len(chosen)),
        within=checked.within,
        urls=urls,
        duplicates=BucketDuplicates(context, bucket, before, urls),
    )

    traps = RoundTraps(crawl, lambda: context.discounts(bucket, before))
    output = RoundOutput(crawl, context, (bucket, round_), urls, traps)
    near = [BucketNearDuplicates(crawl, tables, bucket, before)] if config.near_duplicates else []
    ends = [] if context.time is None else [RoundTimeout(context.time.seconds)]
    crawl.parts = [*ends, StopRules(crawl), *near, traps, output]
    restore(crawl)
    for row in chosen:
        referrer = None if row["referrer"] is None else urls.add(row["referrer"], 0, None)
        urls.chosen.add(urls.add(row["url"], row["depth"], referrer))
    ids = np.array([row["id"] for row in chosen], np.int64)
    load_evidence(
        context,
        bucket,
        before,
        crawl.strategy,
        rows=Inlinks(tables, bucket, before).evidence(ids),
        urls=known,
        number=lambda url: urls.add(url, 0, None),
    )
    for row in chosen:
        number = urls.get(row["url"])
        assert number is not None
        crawl.queue(number, row["score"])
    return crawl


def import_crawl(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Write the tables of a round of fetches from an ordinary crawl in a folder.

    Parameters
    ----------
    bucket : int
        Bucket for data that belongs to no bucket.

    Returns
    -------
    dict
        See `fetch`.

    Raises
    ------
    UserError
        The folder contains no crawl, another crawl, a running crawl or a damaged one.
    """
    assert context.folder is not None
    with _restored(context, Path(context.folder)) as (crawl, discounts):
        _write_buckets(context, (bucket, round_), crawl, discounts)
        done = {"bucket": bucket, "fetched": crawl.fetched, "relevance": crawl.relevance_sum}
        return done | {"excluded": len(excluded_urls(crawl.urls))}


@contextmanager
def open_crawl_folder(
    checked: CheckedConfig, path: Path
) -> Iterator[tuple[CrawlFolder, CrawlStore]]:
    """Open the crawl in a folder; raise `UserError` if the crawl has another configuration."""
    folder = CrawlFolder(path)
    if not folder.exists:
        raise UserError(f"{path} contains no crawl: name the folder of a crawl")
    store = folder.open_store(checked.identity, checked.about)
    try:
        yield folder, store
    finally:
        store.close()
        folder.release()


def _write_buckets(
    context: RoundsContext, where: tuple[int, int], crawl: Crawl, discounts: Discounts
) -> None:
    urls, buckets = crawl.urls, context.buckets
    pages: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    excluded: list[list[str]] = [[] for _ in range(buckets)]
    of_bucket: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    for page in page_rows(crawl):
        pages[bucket_of(page["url"], buckets)].append(page)
    for url in excluded_urls(urls):
        excluded[bucket_of(url, buckets)].append(url)
    for row in discounts.rows():
        of_bucket[bucket_of(f"//{row['name']}", buckets)].append(row)
    judged, queued = _judged(crawl), crawl.frontier.queued().tolist()
    first = [number for number in queued if crawl.frontier.score(number) == np.inf]
    for bucket in range(buckets):
        own = bucket == where[0]
        write_tables(
            crawl,
            context,
            (bucket, where[1]),
            fetches=_fetches(crawl, bucket, buckets),
            first=first if own else (),
            others=range(len(urls)) if own else (),
            pages=pages[bucket],
            excluded=excluded[bucket],
            discounts=of_bucket[bucket],
            judged=judged if own else b"",
        )


def _fetches(crawl: Crawl, bucket: int, buckets: int) -> list[StoredFetch]:
    """Return the fetches of a bucket, by page, with memos that can be read alone."""
    urls = crawl.urls
    found: dict[int, list[StoredFetch]] = {}
    for fetch in History(crawl.store).fetches():
        if fetch.links and bucket_of(fetch.url_text, buckets) == bucket:
            memo = crawl.strategy.make_self_contained(
                fetch.memo, [urls[link.target] for link in fetch.links]
            )
            found.setdefault(fetch.url, []).append(fetch._replace(memo=memo))
    return [fetch for fetches in found.values() for fetch in fetches]


@contextmanager
def _restored(context: RoundsContext, path: Path) -> Iterator[tuple[Crawl, Discounts]]:
    """Restore a crawl for reading."""
    checked = context.checked
    with open_crawl_folder(checked, path) as (folder, store):
        crawl = Crawl(
            critic=checked.critic,
            strategy=context.strategy(),
            frontier=Frontier(checked.config.per_host, checked.config.delay),
            store=store,
            folder=folder,
            web=checked.web,
            config=checked.config,
            within=checked.within,
        )
        traps = Traps(crawl)
        crawl.parts = [NearDuplicates(crawl), traps]
        try:
            restore(crawl)
            yield crawl, traps.discounts
        finally:
            crawl.writer.close()


_COPY_INTERVAL = 20.0  # seconds
_RECORDINGS = "*.warc.gz"
_SPIDER = "focuscrawl.round_spider"  # an internal spider, not listed by `scrapy list`
# not `scrapy crawl`, which would run code that the `scrapy.cfg` of the current folder names
_PROGRAM = (
    "import sys; from focuscrawl.commands.anywhere import run_round; run_round(sys.argv[1:])"
)
_POLL_INTERVAL = 0.5  # seconds between two checks of the process
_LOCK_TIMEOUT = 30.0  # seconds to wait for an earlier process of the task


class LiveFetchFolder:
    """The crawl folder for live fetches of one round (batch) and one bucket (group of hosts).

    If the tables are on this machine, the crawl folder is next to the tables, and a repeated task
    resumes the crawl in the folder. If the tables are on remote storage, the crawl folder is
    temporary, and its store and WARC files are regularly copied to the remote storage. A repeated
    task on any machine then restores the crawl folder from the remote storage.

    Attributes
    ----------
    folder : Path
        Path on this machine.
    """

    def __init__(self, tables: Tables, bucket: int, round_: int) -> None:
        self._tables = tables
        self._name = f"under-way/{bucket:03}-{round_:05}"
        local = tables.local_path(self._name)
        self.folder = Path(tempfile.mkdtemp()) if local is None else local
        self.folder.mkdir(parents=True, exist_ok=True)
        self._is_remote = local is None
        self._copied: dict[str, int] = {}  # copied bytes of each recording
        self._next_copy = time.monotonic() + _COPY_INTERVAL
        if self._is_remote:
            self._restore()

    def _restore(self) -> None:
        """Restore the folder from the copies of an earlier task."""
        parts = sorted(self._tables.files(f"{self._name}/recordings"))
        for part in parts:
            name, _, first = part.rpartition("@")
            # a later copy overwrites an incomplete record at the end of the copy before
            self._tables.read_copy(
                f"{self._name}/recordings/{part}", self.folder / name, int(first)
            )
        for name in {part.rpartition("@")[0] for part in parts}:
            WarcRecorder(self.folder / name).close()  # cuts off an incomplete record
            self._copied[name] = (self.folder / name).stat().st_size
        store = f"{self._name}/{CrawlFolder.STORE}"
        if self._tables.exists(store):
            self._tables.read_copy(store, self.folder / CrawlFolder.STORE)

    def copy_if_due(self) -> None:
        """Copy new data to remote storage if the last copy is old."""
        if time.monotonic() >= self._next_copy:
            self.copy()
            self._next_copy = time.monotonic() + _COPY_INTERVAL

    def copy(self) -> None:
        """Copy new data to remote storage: first the WARC files, and then the store."""
        path = self.folder / CrawlFolder.STORE
        if not self._is_remote or not path.exists():
            return
        snapshot = self.folder / "snapshot.db"
        with closing(open_database(path)) as store, closing(open_database(snapshot)) as now:
            store.backup(now)
        for each in self.folder.glob(_RECORDINGS):
            first = self._copied.get(each.name, 0)
            name = f"{self._name}/recordings/{each.name}@{first:012}"
            self._copied[each.name] = first + self._tables.write_copy(name, each, first)
        self._tables.write_copy(f"{self._name}/{CrawlFolder.STORE}", snapshot)
        snapshot.unlink()

    def close(self) -> None:
        """Remove the crawl folder after the round of fetches is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def keep_recordings(tables: Tables, folder: Path, bucket: int, round_: int) -> None:
    """Copy the WARC files of a crawl folder to the folder with the tables."""
    for path in folder.glob(_RECORDINGS):
        tables.write_copy(f"recorded/{bucket:03}/{round_:05}-{path.name}", path)


def fetch_live(context: RoundsContext, bucket: int, round_: int) -> None:
    """Fetch the URLs selected from a bucket (group of hosts) with the spider ``round``.

    A `LiveFetchFolder` keeps the fetches until the round (batch of fetches) is over, so a repeated
    task continues after the last fetch. The child process exits when its parent process exits, so
    two processes never send requests to one host.

    Raises
    ------
    UserError
        The child process stopped before the round was over.
    """
    tables = context.tables
    live_folder = LiveFetchFolder(tables, bucket, round_)
    log = live_folder.folder / "scrapy.log"
    given = {"tables": tables.root, "bucket": bucket, "number": round_}
    settings = {"LOG_LEVEL": "WARNING", "FOCUSCRAWL_PROGRESS": 0} | context.settings
    command = ["-c", _PROGRAM, "-s", f"SPIDER_MODULES={_SPIDER}"]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    command += ["-a", f"crawl_dir={live_folder.folder}"]
    command += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    _wait_until_free(live_folder.folder)
    with (
        log.open("ab") as output,
        start_python(command, stdin=subprocess.PIPE, stdout=output, stderr=output) as process,
    ):
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_INTERVAL)
            live_folder.copy_if_due()
    if not tables.has(f"pages/{bucket:03}/{round_:05}"):
        live_folder.copy()
        lines = log.read_text("utf-8", "replace").strip().splitlines() or ["no message"]
        raise UserError(
            f"the fetches of round {round_} in bucket {bucket} stopped early: {lines[-1]}; see "
            f"the log {log}"
        )
    live_folder.close()


def _wait_until_free(folder: Path) -> None:
    """Wait until no other process has the folder, for some time at most."""
    last = time.monotonic() + _LOCK_TIMEOUT
    while CrawlFolder(folder).in_use and time.monotonic() < last:
        time.sleep(_POLL_INTERVAL)
