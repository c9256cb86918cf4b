"""Reads and writes the table files of a crawl in rounds, on any file system of PyArrow.

    ======================= ====================================================================
    ``plan.json``           the configuration of the crawl
    ``names/R/FROM-TO``     URLs that pages of bucket FROM link to, for bucket TO
    ``links/R/FROM-TO``     the links as evidence, one row for each page
    ``digests/R/FROM-TO``   content ids of pages, for the bucket that stores them, see `CONTENT`
    ``urls/B/R``            new and changed URLs; the last row of a URL counts
    ``evidence/B/R``        links into the bucket, one row for each page
    ``known/B/R``           the URLs of each page of the bucket, for duplicate detection
    ``contents/B/R``        content ids of pages of all buckets
    ``pages/B/R``           the fetches of a round
    ``discounts/B/R``       the last fetches of hosts and URL patterns, see `DISCOUNT`
    ``ended/B/R.json``      URLs that may not be fetched
    ``candidates/B/R``      the best queued URLs after a round
    ``counts/B/R.json``     number of known URLs
    ``chosen/R``            URLs selected for a round
    ``fetched/R.json``      number of fetches of each bucket
    ``judged/B/R``          training examples
    ``outcomes/B/R``        outcome rates of the strategy
    ``models/R``            the trained model
    ``under-way/B-R``       unfinished live fetches, see `focuscrawl.rounds.fetching`
    ``recorded/B/R-FILE``   WARC files of live fetches
    ``rounds/R.json``       the committed round; files of other rounds do not count
    ``rounds.lock``         lock of the process that crawls on this machine
    ======================= ====================================================================

In the following file names, R is the number of a round (batch of fetches), and B is the number of
a bucket (group of hosts). Files of the tables ``urls``, ``evidence``, ``known`` and ``contents``
are merged. A merged file with the name ``LAST-FIRST`` contains all rounds from FIRST to LAST. The
number of merged files grows with the logarithm of the number of rounds (batches of fetches).
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
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
    from focuscrawl.foundation.arrays import Ints


_MERGED = ("urls", "evidence", "known", "contents")
_LAST = {
    "candidates": ".parquet",
    "discounts": ".parquet",
    "outcomes": "",
}  #: only the last file counts
_LARGEST = 1 << 26  # bytes in memory of a merged table without outdated rows
_COPY_BYTES = 1 << 20  # bytes copied at once
_ID = pa.int64()  #: id of a URL, see `focuscrawl.foundation.urls.hashed_id`

URL = pa.schema(
    [
        ("id", _ID),
        ("url", pa.string()),
        ("depth", pa.int32()),
        ("referrer", pa.string()),  # first page that links to the URL; null for a seed
        ("found", pa.int64()),  # rank in the order of discovery
        ("score", pa.float64()),  # inf: fetched before all links
        ("state", pa.int8()),  # one of `focuscrawl.store.schema.STATES`
        ("relevance", pa.float64()),  # of its page; null before it is fetched
    ]
)
NAME = pa.schema(
    [
        *(URL.field(name) for name in ("id", "url", "depth", "referrer", "found")),
        ("first", pa.bool_()),  # true for redirect targets and seeds
    ]
)
EVIDENCE = pa.schema(
    [
        ("source", pa.string()),
        ("relevance", pa.float64()),
        ("targets", pa.list_(_ID)),
        ("scores", pa.list_(pa.float64())),  # score of each link; -inf: not followed
        ("memo", pa.binary()),
    ]
)
CONTENT = pa.schema(
    [
        ("content", pa.int64()),  # first 63 bits of the digest
        ("url", pa.string()),  # of the page
    ]
)
KNOWN = pa.schema(
    [
        ("url", pa.string()),
        ("names", pa.list_(_ID)),  # ids of the page's URL, and of its canonical URL on its host
        ("digest", pa.binary()),  # of the body, then the signature of the text
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
        KNOWN.field("digest"),
        CONTENT.field("content"),  # null for duplicates and responses that are not pages
        KNOWN.field("names"),
        ("duplicate_of", pa.string()),
        ("error", pa.string()),
        ("links", pa.int32()),
        ("dropped", pa.int32()),
    ]
)
DISCOUNT = pa.schema(  # see `focuscrawl.crawl.traps.Group`
    [
        ("name", pa.string()),
        ("fetched", pa.float64()),
        ("repeated", pa.float64()),
        ("predicted", pa.float64()),
        ("gained", pa.float64()),
        ("in_a_row", pa.int64()),
        ("halvings", pa.int64()),
    ]
)
CHOSEN = pa.schema(
    [
        *(field for field in URL if field.name != "relevance"),
        ("bucket", pa.int32()),
        ("halvings", pa.int64()),  # how often the score is halved
    ]
)
#: columns of each table
_SCHEMAS = {
    "names": NAME,
    "links": EVIDENCE,
    "digests": CONTENT,
    "urls": URL,
    "evidence": EVIDENCE,
    "known": KNOWN,
    "contents": CONTENT,
    "pages": PAGE,
    "discounts": DISCOUNT,
    "candidates": CHOSEN,
    "chosen": CHOSEN,
}


class Tables:
    """Reads and writes the files of one crawl in rounds.

    Every method raises `UserError` if a file cannot be read or written, or is damaged. The methods
    also refuse symbolic links, because the tables may come from an untrusted person.

    Parameters
    ----------
    root : str
        A folder, or its URI: ``s3://...``, ``hdfs://...``
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._files, self._base = open_file_system(root)

    # -- files of any kind -----------------------------------------------------------------

    def write_bytes(self, name: str, content: Any) -> None:
        """Write a file completely or not at all."""
        with self._draft(name) as file:
            file.write(content)

    def read_bytes(self, name: str) -> bytes:
        """Read a file."""
        with (
            self._reporting_access_errors(name),
            self._files.open_input_stream(f"{self._base}/{name}") as file,
        ):
            content: bytes = file.read()
        return content

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file."""
        self.write_bytes(name, json.dumps(dict(content), indent=1).encode())

    def read_json(self, name: str, *keys: str) -> dict[str, Any] | None:
        """Read a JSON file with the given keys; return None if the file does not exist."""
        if not self.exists(name):
            return None
        try:
            content = json.loads(self.read_bytes(name))
        except (ValueError, RecursionError):
            raise UserError(
                f"{self._base}/{name} is damaged (not JSON): crawl again into another folder"
            ) from None
        if not isinstance(content, dict) or not content.keys() >= {*keys}:
            missing = f"no {' and '.join(keys)}" if keys else "not a JSON object"
            raise UserError(
                f"{self._base}/{name} is damaged ({missing}): crawl again into another folder"
            )
        return content

    def write_copy(self, name: str, path: Path, first: int = 0) -> int:
        """Copy a local file, without its first `first` bytes, to the tables.

        The result is the number of copied bytes.
        """
        with path.open("rb") as source, self._draft(name) as file:
            source.seek(first)
            shutil.copyfileobj(source, file, _COPY_BYTES)
            return source.tell() - first

    def read_copy(self, name: str, path: Path, first: int = 0) -> None:
        """Copy a file of the tables to a local file, from the local file's byte `first` on."""
        with (
            self._reporting_access_errors(name),
            path.open("r+b" if path.exists() else "wb") as target,
            self._files.open_input_stream(f"{self._base}/{name}") as file,
        ):
            target.seek(first)
            shutil.copyfileobj(file, target, _COPY_BYTES)
            target.truncate()

    def exists(self, name: str) -> bool:
        """Return whether a file or folder exists."""
        with self._reporting_access_errors(name):
            info = self._files.get_file_info(f"{self._base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, or [] if the folder does not exist."""
        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
        with self._reporting_access_errors(folder):
            return [each.base_name for each in self._files.get_file_info(selector)]

    def remove(self, folder: str) -> None:
        """Remove a folder, if the folder exists."""
        if self.exists(folder):
            with self._reporting_access_errors(folder):
                self._files.delete_dir(f"{self._base}/{folder}")

    def local_path(self, name: str) -> Path | None:
        """Return the local path of a file; None for tables on remote storage.

        Raises
        ------
        UserError
            A folder on the path is a link, or the path is a special file.
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
        """Prevent other processes of this machine from using the tables during a ``with`` block.

        Tables on remote storage cannot be locked.

        Raises
        ------
        UserError
            Another process has the lock, or the folder cannot be written.
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
        with self._reporting_access_errors(path.name):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise UserError(
                    f"another process is crawling in {self.root}: wait for it, or name another "
                    "folder"
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def reporting_damage(self, name: str) -> Iterator[None]:
        """Convert decoding errors within the ``with`` block to a one-line `UserError`."""
        try:
            yield
        except DECODING_ERRORS as error:
            raise UserError(
                f"{self._base}/{name} is damaged ({first_line(error)}): crawl again into another "
                "folder"
            ) from None

    @contextmanager
    def _draft(self, name: str) -> Iterator[Any]:
        """Yield a temporary file, which gets its final name at the end of the ``with`` block."""
        path = f"{self._base}/{name}"
        draft = f"{self._base}/drafts/{secrets.token_hex(8)}"
        with self._reporting_access_errors(name), self._reporting_access_errors("drafts"):
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            self._files.create_dir(draft.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(draft) as file:
                yield file
            self._files.move(draft, path)

    @contextmanager
    def _reporting_access_errors(self, name: str) -> Iterator[None]:
        """Report errors of reading or writing a file within the ``with`` block, in one line."""
        self.local_path(name)
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._base}/{name} cannot be accessed ({first_line(error)}): check the folder"
            ) from None

    # -- tables ----------------------------------------------------------------------------

    def write(self, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows as a table, completely or not at all."""
        self.write_table(name, pa.Table.from_pylist(list(rows), schema))

    def write_table(self, name: str, table: pa.Table, group: int | None = None) -> None:
        """Write a table completely or not at all.

        Parameters
        ----------
        group : int, optional
            Rows of a row group, see `read_rows`; by default one group for all rows.
        """
        sink = pa.BufferOutputStream()
        # every round reads most tables, so fast compression matters; binary columns rarely repeat
        # values, so they get no dictionary
        pq.write_table(
            table,
            sink,
            row_group_size=group or max(1, len(table)),
            compression="lz4",
            use_dictionary=[each.name for each in table.schema if each.type != pa.binary()],
        )
        self.write_bytes(f"{name}.parquet", sink.getvalue())

    def has(self, name: str) -> bool:
        """Return whether a table exists."""
        return self.exists(f"{name}.parquet")

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        dictionaries: Sequence[str] | None = None,
    ) -> pa.Table:
        """Read a table.

        Parameters
        ----------
        dictionaries : sequence of str, optional
            Text columns to return dictionary-encoded.
        """
        with self._open(name, dictionaries) as file:
            # for one file with few columns, threads are slower
            return file.read(columns, use_threads=False)

    def read_rows(self, name: str, rows: Ints) -> Iterator[pa.Table]:
        """Yield the rows of a table at given positions, one row group at a time.

        Parameters
        ----------
        rows : int64 (n,), ascending
            Positions of the rows.
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
        """Yield the rows of a table in batches of a thousand."""
        with self._open(name) as file:
            yield from file.iter_batches(1000, columns=columns, use_threads=False)

    def bucket_tables(self, kind: str, bucket: int, until: int) -> list[str]:
        """Return the names of a bucket's tables for all rounds of fetches up to `until`."""
        found: list[str] = []
        for table in reversed(self._in_order(f"{kind}/{bucket:03}")):
            if table.last <= until:
                found.insert(0, table.name)
                until = table.first - 1
        return found

    def incoming(self, kind: str, bucket: int, round_: int) -> list[str]:
        """Return the names of the tables written for one bucket of hosts in a round of fetches."""
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
        """Add the rows of a round of fetches to a bucket's table, and merge small files.

        Because files are merged, each row is written about log2(n) times in n rounds [1]_. Without
        `by_id`, files are merged only up to 64 MiB, which limits the memory that a task needs.
        Files that were merged are kept until the round of fetches is over (see `remove_obsolete`).

        Parameters
        ----------
        by_id : bool
            Keep only the last row of each ``id``, sorted by ``id``, which makes later sorting
            fast.
        group : int, optional
            See `write_table`.

        References
        ----------
        .. [1] J. L. Bentley, J. B. Saxe: Decomposable searching problems I. J. Algorithms 1,
        1980:
           the logarithmic method.
        """
        parts, first, folder = [table], round_, f"{kind}/{bucket:03}"
        earlier = self.bucket_tables(kind, bucket, round_ - 1)
        for before in reversed(earlier):
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
        """Remove files that were merged, and files that no later round of fetches needs.

        Parameters
        ----------
        learned_from : int
            First round whose training examples are still needed.
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
                with self._reporting_access_errors(name):
                    self._files.delete_file(f"{self._base}/{name}")

    def _in_order(self, folder: str) -> list[_RoundsTable]:
        """Return the tables in a folder in the order of their rounds."""
        names = sorted(name.removesuffix(".parquet") for name in self.files(folder))
        return [self._rounds_of(f"{folder}/{name}") for name in names]

    def _rounds_of(self, name: str) -> _RoundsTable:
        last, _, first = name.rpartition("/")[2].partition("-")
        try:
            return _RoundsTable(name, int(last), int(first or last))
        except ValueError:
            raise UserError(
                f"{self._base}/{name} is not a table of a round: move the file elsewhere"
            ) from None

    @contextmanager
    def _open(
        self, name: str, dictionaries: Sequence[str] | None = None
    ) -> Iterator[pq.ParquetFile]:
        with (
            self._readable(name) as path,
            pq.ParquetFile(path, filesystem=self._files, read_dictionary=dictionaries) as file,
        ):
            self._check_columns(name, file.schema_arrow)
            yield file

    def _check_columns(self, name: str, found: pa.Schema) -> None:
        """Raise `UserError` if a table lacks one of its columns."""
        for field in _SCHEMAS[name.partition("/")[0]]:
            place = found.get_field_index(field.name)
            kind = pa.null() if place < 0 else found.field(place).type
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            if kind != field.type:
                raise UserError(
                    f"{self._base}/{name}.parquet has no column {field.name} of type "
                    f"{field.type}: crawl again into another folder"
                )

    @contextmanager
    def _readable(self, name: str) -> Iterator[str]:
        """Yield the path of a table; report read errors in one line."""
        path = f"{self._base}/{name}.parquet"
        self.local_path(f"{name}.parquet")
        try:
            yield path
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(
                f"{path} cannot be read ({first_line(error)}): crawl again into another folder"
            ) from None


class _RoundsTable(NamedTuple):
    """A table of a bucket with the last and first round of its rows."""

    name: str
    last: int
    first: int


def last_rows(ids: Ints) -> tuple[Ints, Ints]:
    """Return the sorted distinct ids, int64 (m,), and the last position of each id."""
    order = np.argsort(ids, kind="stable")  # fast, because the ids of each part are sorted
    ids = ids[order]
    is_last = np.append(ids[1:] != ids[:-1], True)[: len(ids)]
    return ids[is_last], order[is_last]
