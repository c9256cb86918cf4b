"""Tables of a crawl in rounds: files that appear whole, on any file system PyArrow reads.

======================= ========================================================================
``plan.json``           which crawl this is
``names/R/FROM-TO``     URLs that pages of one bucket link to, for another
``links/R/FROM-TO``     the links, as evidence: a row a page
``digests/R/FROM-TO``   contents of pages, for the bucket that keeps them, see `CONTENT`
``urls/B/R``            URLs that are new or changed; the last row of one counts
``evidence/B/R``        links into the bucket, a row a page
``known/B/R``           the URLs that pages of the bucket are known by
``contents/B/R``        contents of pages of all buckets, spread by content
``pages/B/R``           the fetches of a round
``quotas/B/R``          what hosts and patterns of URLs have had and earned by then
``ended/B/R.json``      URLs that may not be fetched; what limits are multiplied by
``candidates/B/R``      the best links after a round
``counts/B/R.json``     how many URLs are known by then
``chosen/R``            what a round fetches
``fetched/R.json``      how many URLs each bucket has fetched
``judged/B/R``          what is learned from
``outcomes/B/R``        rates of the strategy
``models/R``            what was learned
``under-way/B-R``       what live fetches have so far, see `focuscrawl.rounds.live_rounds`
``recorded/B/R-FILE``   WARC files of live fetches
``rounds/R.json``       a round is over; without it, its files do not count
``rounds.lock``         held by the process that crawls, on this machine
======================= ========================================================================

R is a round, B a bucket. Files of ``urls``, ``evidence``, ``known`` and ``contents`` are merged:
``LAST-FIRST`` is of all rounds from one to the other. There are about as many as the logarithm of
the number of rounds.
"""

from __future__ import annotations

import json
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    LOCK_RETRY_DELAY,
    LOCK_TRIES,
    first_line,
    open_file_system,
    refuse_links,
)
from focuscrawl.foundation.model_folder import DECODING_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from focuscrawl.foundation.arrays import Ints


_MERGED = ("urls", "evidence", "known", "contents")
_LAST = {"candidates": ".parquet", "quotas": ".parquet", "outcomes": ""}  #: only the last counts
_LARGEST = 1 << 26  # bytes in memory of a merged table, unless of its rows only some count
_PIECE = 1 << 20  # bytes that are copied at once
_ID = pa.int64()  #: of a URL, see `focuscrawl.foundation.urls.identity`

URL = pa.schema(
    [
        ("id", _ID),
        ("url", pa.string()),
        ("depth", pa.int32()),
        ("referrer", pa.string()),  # the page it was first found on; null for a seed
        ("found", pa.int64()),  # in the order found
        ("score", pa.float64()),  # inf: comes before every link
        ("state", pa.int8()),  # one of `focuscrawl.store.schema.STATES`
        ("relevance", pa.float64()),  # of its page; null before it is fetched
    ]
)
NAME = pa.schema(
    [
        *(URL.field(name) for name in ("id", "url", "depth", "referrer", "found")),
        ("first", pa.bool_()),  # where a redirect leads, and seeds
    ]
)
EVIDENCE = pa.schema(
    [
        ("source", pa.string()),
        ("relevance", pa.float64()),
        ("targets", pa.list_(_ID)),
        ("scores", pa.list_(pa.float64())),  # of each link; -inf: not followed
        ("memo", pa.binary()),
    ]
)
CONTENT = pa.schema(
    [
        ("content", pa.int64()),  # by the first 63 bits of its digest
        ("url", pa.string()),  # of its page
    ]
)
KNOWN = pa.schema(
    [
        ("url", pa.string()),
        ("names", pa.list_(_ID)),  # URLs on its host that the page is known by
    ]
)
PAGE = pa.schema(
    [
        ("id", _ID),
        ("url", pa.string()),
        ("status", pa.int32()),
        ("relevance", pa.float64()),
        ("topic", pa.string()),
        ("score", pa.float64()),
        ("depth", pa.int32()),
        ("referrer", pa.string()),
        ("fetched_at", pa.string()),
        ("content_type", pa.string()),
        ("size", pa.int64()),
        ("title", pa.string()),
        ("canonical", pa.string()),
        ("digest", pa.binary()),
        CONTENT.field("content"),  # null for duplicates, and for what is no page
        KNOWN.field("names"),
        ("duplicate_of", pa.string()),
        ("error", pa.string()),
        ("links", pa.int32()),
        ("dropped", pa.int32()),
    ]
)
QUOTA = pa.schema(  # see `focuscrawl.crawl.traps.Quota`
    [
        ("name", pa.string()),
        ("fetched", pa.int64()),
        ("earned", pa.int64()),
        ("repeats", pa.int64()),
        ("closed", pa.bool_()),
    ]
)
CHOSEN = pa.schema(
    [
        *(field for field in URL if field.name != "relevance"),
        ("bucket", pa.int32()),
        ("barred", pa.bool_()),  # its bucket has nothing but what limits keep back
    ]
)


class Tables:
    """The files of one crawl in rounds.

    Every method raises `UserError` for a file that cannot be read or written or is damaged, and
    where a link is on the way there: the tables may be a stranger's.

    Parameters
    ----------
    root : a folder, or its URI: ``s3://...``, ``hdfs://...``
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._files, self._base = open_file_system(root)

    # -- files of any kind -----------------------------------------------------------------

    def write_bytes(self, name: str, content: Any) -> None:
        """Write a file, whole or not at all."""
        with self._draft(name) as file:
            file.write(content)

    def read_bytes(self, name: str) -> bytes:
        """Read a file."""
        with (
            self._reached(name),
            self._files.open_input_stream(f"{self._base}/{name}") as file,
        ):
            content: bytes = file.read()
        return content

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a file of JSON."""
        self.write_bytes(name, json.dumps(dict(content), indent=1).encode())

    def read_json(self, name: str, *keys: str) -> dict[str, Any] | None:
        """Read a file of JSON that has some keys; None if there is none."""
        if not self.exists(name):
            return None
        try:
            content = json.loads(self.read_bytes(name))
        except (ValueError, RecursionError):
            raise UserError(f"{self._base}/{name} is damaged: it is no JSON") from None
        if not isinstance(content, dict) or not content.keys() >= {*keys}:
            expected = f"no {' and '.join(keys)}" if keys else "no names"
            raise UserError(f"{self._base}/{name} is damaged: it holds {expected}")
        return content

    def write_copy(self, name: str, path: Path, first: int = 0) -> int:
        """Copy a file of this machine, from a byte on; return how many bytes there were."""
        with path.open("rb") as source, self._draft(name) as file:
            source.seek(first)
            shutil.copyfileobj(source, file, _PIECE)
            return source.tell() - first

    def read_copy(self, name: str, path: Path, first: int = 0) -> None:
        """Copy a file onto one of this machine, which it overwrites from a byte on."""
        with (
            self._reached(name),
            path.open("r+b" if path.exists() else "wb") as target,
            self._files.open_input_stream(f"{self._base}/{name}") as file,
        ):
            target.seek(first)
            shutil.copyfileobj(file, target, _PIECE)
            target.truncate()

    def exists(self, name: str) -> bool:
        """Tell whether there is a file or folder."""
        with self._reached(name):
            info = self._files.get_file_info(f"{self._base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none if there is no folder."""
        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
        with self._reached(folder):
            return [each.base_name for each in self._files.get_file_info(selector)]

    def remove(self, folder: str) -> None:
        """Remove a folder of tables, if it is there."""
        if self.exists(folder):
            with self._reached(folder):
                self._files.delete_dir(f"{self._base}/{folder}")

    def local_path(self, name: str) -> Path | None:
        """Return where a file is on this machine; None if the tables are elsewhere.

        Raises
        ------
        UserError
            A link is on the way there, or it is neither a file nor a folder.
        """
        if not isinstance(self._files, fs.LocalFileSystem):
            return None
        path = Path(self._base, name)
        refuse_links(path, self._base)
        if path.exists() and not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is not a regular file: remove it")
        return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of this machine out within the ``with`` block.

        Storage elsewhere has no locks.

        Raises
        ------
        UserError
            Another process has claimed them, or the folder cannot be written.
        """
        path = self.local_path("rounds.lock")
        if path is None:
            yield
            return
        lock = FileLock(
            path,
            LOCK_TRIES * LOCK_RETRY_DELAY,
            poll_interval=LOCK_RETRY_DELAY,
            fallback_to_soft=False,
        )
        with self._reached(path.name):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise UserError(
                    f"{self.root} is being crawled by another process: wait for it, or name "
                    "another folder"
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def reporting_damage(self, name: str) -> Iterator[None]:
        """Report in one line, within the ``with`` block, that the bytes of a file are unsound."""
        try:
            yield
        except DECODING_ERRORS as error:
            raise UserError(
                f"{self._base}/{name} is damaged ({first_line(error)}): crawl again, into another "
                "folder"
            ) from None

    @contextmanager
    def _draft(self, name: str) -> Iterator[Any]:
        """Give a file to write to, which gets its name at the end of the ``with`` block."""
        path = f"{self._base}/{name}"
        draft = f"{self._base}/drafts/{secrets.token_hex(8)}"
        with self._reached(name), self._reached("drafts"):
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            self._files.create_dir(draft.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(draft) as file:
                yield file
            self._files.move(draft, path)

    @contextmanager
    def _reached(self, name: str) -> Iterator[None]:
        """Report in one line, within the ``with`` block, that a file cannot be read or written."""
        self.local_path(name)
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._base}/{name} cannot be reached: {first_line(error)}"
            ) from None

    # -- tables ----------------------------------------------------------------------------

    def write(self, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a table, whole or not at all."""
        self.write_table(name, pa.Table.from_pylist(list(rows), schema))

    def write_table(self, name: str, table: pa.Table, group: int | None = None) -> None:
        """Write a table, whole or not at all.

        Parameters
        ----------
        group : so many rows can be read apart, see `read_rows`; by default all are one
        """
        sink = pa.BufferOutputStream()
        # every round reads most of them: so no harder compression, and no search for what is alike
        # among bytes of which no two are
        pq.write_table(
            table,
            sink,
            row_group_size=group or max(1, len(table)),
            compression="lz4",
            use_dictionary=[each.name for each in table.schema if each.type != pa.binary()],
        )
        self.write_bytes(f"{name}.parquet", sink.getvalue())

    def has(self, name: str) -> bool:
        """Tell whether a table was written."""
        return self.exists(f"{name}.parquet")

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        dictionaries: Sequence[str] | None = None,
    ) -> pa.Table:
        """Read a table that was written.

        Parameters
        ----------
        dictionaries : columns of texts, each of which is read once
        """
        with self._readable(name) as path:
            return pq.read_table(
                path,
                filesystem=self._files,
                columns=columns,
                read_dictionary=dictionaries,
                use_threads=False,  # one file, few columns: they would only wait for each other
            )

    def read_rows(self, name: str, rows: Ints) -> Iterator[pa.Table]:
        """Yield some rows of a table, group by group: no more than a group is held.

        Parameters
        ----------
        rows : int64 (n,), which ones, ascending
        """
        with self._open(name) as file:
            first = 0
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                here = rows[slice(*np.searchsorted(rows, [first, end]))] - first
                if len(here):
                    yield file.read_row_group(group, use_threads=False).take(pa.array(here))
                first = end

    def read_batches(
        self, name: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows of a table, a thousand at a time."""
        with self._open(name) as file:
            yield from file.iter_batches(1000, columns=columns, use_threads=False)

    def bucket_tables(self, kind: str, bucket: int, until: int) -> list[str]:
        """Return the tables of a bucket that together say all up to a round, in their order."""
        found: list[str] = []
        for table in reversed(self._in_order(f"{kind}/{bucket:03}")):
            if table.last <= until:
                found.insert(0, table.name)
                until = table.first - 1
        return found

    def incoming(self, kind: str, bucket: int, round_: int) -> list[str]:
        """Return what other buckets have for this one after a round."""
        folder = f"{kind}/{round_:05}"
        names = sorted(name.removesuffix(".parquet") for name in self.files(folder))
        return [f"{folder}/{name}" for name in names if name.endswith(f"-{bucket:03}")]

    def add(
        self,
        kind: str,
        bucket: int,
        round_: int,
        table: pa.Table,
        *,
        by_id: bool = False,
        group: int | None = None,
    ) -> None:
        """Add what a round has for a table of a bucket, merged with files that are no larger.

        So each row is written about log2 of the number of rounds times [1]_, and no
        task needs more memory than a table of 64 MiB does. What was merged stays until the round
        is over, see `remove_obsolete`.

        Parameters
        ----------
        by_id : of the rows with one ``id`` the last one counts; they are written in its order,
            as what is in order is soon sorted again by the reader
        group : see `write_table`

        References
        ----------
        .. [1] J. L. Bentley, J. B. Saxe: Decomposable searching problems I. J. Algorithms 1, 1980:
           the logarithmic method.
        """
        parts, first, folder = [table], round_, f"{kind}/{bucket:03}"
        of_before = self.bucket_tables(kind, bucket, round_ - 1)
        for before in reversed(of_before):
            with self._readable(before) as path:
                found = pq.read_metadata(path, filesystem=self._files)
            groups = map(found.row_group, range(found.num_row_groups))
            size = sum(each.total_byte_size for each in groups)
            grown = size + sum(part.nbytes for part in parts)
            if found.num_rows > sum(map(len, parts)) or (grown > _LARGEST and not by_id):
                break
            parts.insert(0, self.read(before))
            first = self._rounds_of(before).first
        merged = pa.concat_tables(parts)
        if by_id and len(parts) > 1:
            merged = merged.take(pa.array(last_rows(merged["id"].to_numpy())[1]))
        ending = "" if first == round_ else f"-{first:05}"
        self.write_table(f"{folder}/{round_:05}{ending}", merged, group)

    def remove_obsolete(self, buckets: int, round_: int, learned_from: int) -> None:
        """Remove, after a round, what is in a merged table, too, and what nothing reads any more.

        Parameters
        ----------
        learned_from : the first round whose judged URLs are learned from
        """
        for bucket in range(buckets):
            old: list[str] = []
            for kind in _MERGED:
                kept = self.bucket_tables(kind, bucket, round_)
                tables = self._in_order(f"{kind}/{bucket:03}")
                old += [
                    f"{each.name}.parquet"
                    for each in tables
                    if each.name not in kept and each.last < round_
                ]
            for kind, ending in _LAST.items():
                tables = self._in_order(f"{kind}/{bucket:03}")
                names = [each.name for each in tables if each.last <= round_]
                old += [f"{name}{ending}" for name in names[:-1]]
            judged = self._in_order(f"judged/{bucket:03}")
            old += [each.name for each in judged if each.last < learned_from]
            for name in old:
                with self._reached(name):
                    self._files.delete_file(f"{self._base}/{name}")

    def _in_order(self, folder: str) -> list[_OfRounds]:
        """Return the tables in a folder by their rounds."""
        names = sorted(name.removesuffix(".parquet") for name in self.files(folder))
        return [self._rounds_of(f"{folder}/{name}") for name in names]

    def _rounds_of(self, name: str) -> _OfRounds:
        last, _, first = name.rpartition("/")[2].partition("-")
        try:
            return _OfRounds(name, int(last), int(first or last))
        except ValueError:
            raise UserError(
                f"{self._base}/{name} is no table of a round: move it elsewhere"
            ) from None

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        with (
            self._readable(name) as path,
            pq.ParquetFile(path, filesystem=self._files) as file,
        ):
            yield file

    @contextmanager
    def _readable(self, name: str) -> Iterator[str]:
        """Give the path of a table; report in one line that it cannot be read."""
        path = f"{self._base}/{name}.parquet"
        self.local_path(f"{name}.parquet")
        try:
            yield path
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path} cannot be read: {first_line(error)}") from None


class _OfRounds(NamedTuple):
    """A table of a bucket, and the last and the first round that it has something of."""

    name: str
    last: int
    first: int


def last_rows(ids: Ints) -> tuple[Ints, Ints]:
    """Return each id once, ascending, int64 (m,), and the place of its last row, int64 (m,)."""
    unique, last = np.unique(ids[::-1], return_index=True)
    return unique, len(ids) - 1 - last
