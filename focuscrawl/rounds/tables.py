"""Tables of a crawl in rounds: files that appear whole, on any file system PyArrow reads."""

from __future__ import annotations

import json
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    BETWEEN,
    TRIES,
    file_system_of,
    first_line,
    refuse_links,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from focuscrawl.foundation.arrays import Ints


_PIECE = 1 << 20  # bytes that are copied at once


class Files:
    """The files of one crawl.

    Parameters
    ----------
    root : a folder, or its URI: ``s3://...``, ``hdfs://...``
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._files, self._base = file_system_of(root)

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        self._put(name, content)

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
        self._put(name, json.dumps(dict(content), indent=1).encode())

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Read a file of JSON; None if there is none."""
        if not self._exists(name):
            return None
        try:
            content = json.loads(self.read_bytes(name))
        except ValueError:
            raise UserError(f"{self._base}/{name} is damaged: it is no JSON") from None
        if not isinstance(content, dict):
            raise UserError(f"{self._base}/{name} is damaged: it holds no names")
        return content

    def write_copy(self, name: str, path: Path, first: int = 0) -> int:
        """Copy a file of this machine, from a byte on; return how many bytes there were."""
        with path.open("rb") as source, self._drafted(name) as file:
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

    def has_file(self, name: str) -> bool:
        """Tell whether a file was written."""
        return self._exists(name)

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none if there is no folder."""
        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
        with self._reached(folder):
            return [each.base_name for each in self._files.get_file_info(selector)]

    def local(self, name: str) -> Path | None:
        """Return where a file is on this machine; None if the tables are elsewhere.

        The tables may be a stranger's, and folders of them are removed again.

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
            raise UserError(f"{path} is no plain file: remove it")
        return path

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other processes of this machine out within the ``with`` block.

        Storage elsewhere has no locks.

        Raises
        ------
        UserError
            Another process has claimed them, or the folder cannot be written.
        """
        path = self.local("rounds.lock")
        if path is None:
            yield
            return
        lock = FileLock(path, TRIES * BETWEEN, poll_interval=BETWEEN, fallback_to_soft=False)
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

    def remove(self, folder: str) -> None:
        """Remove a folder of tables that nobody needs any more."""
        if self._exists(folder):
            with self._reached(folder):
                self._files.delete_dir(f"{self._base}/{folder}")

    def _delete(self, name: str) -> None:
        with self._reached(name):
            self._files.delete_file(f"{self._base}/{name}")

    def _put(self, name: str, content: Any) -> None:
        with self._drafted(name) as file:
            file.write(content)

    @contextmanager
    def _drafted(self, name: str) -> Iterator[Any]:
        """Give a file to write to, which gets its name at the end of the ``with`` block."""
        path = f"{self._base}/{name}"
        draft = f"{self._base}/drafts/{secrets.token_hex(8)}"
        with self._reached(name), self._reached("drafts"):
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            self._files.create_dir(draft.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(draft) as file:
                yield file
            self._files.move(draft, path)

    def _exists(self, name: str) -> bool:
        with self._reached(name):
            info = self._files.get_file_info(f"{self._base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    @contextmanager
    def _reached(self, name: str) -> Iterator[None]:
        """Say in a line, within the ``with`` block, that a file cannot be read or written.

        Raises
        ------
        UserError
            That, or a link is on the way there, or it is neither a file nor a folder.
        """
        self.local(name)
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._base}/{name} cannot be reached: {first_line(error)}"
            ) from None

    def _names(self, folder: str) -> list[str]:
        """Return the names of the tables in a folder, in their order, without their ending."""
        return sorted(name.removesuffix(".parquet") for name in self.files(folder))


# The tables of a crawl in rounds: files that appear whole, on any file system PyArrow reads.
#
# ============================== =====================================================
# ``plan.json`` which crawl this is ``names/ROUND/FROM-BUCKET`` URLs that pages of one bucket link
# to, for another ``links/ROUND/FROM-BUCKET`` the links, as evidence: a row a page
# ``digests/ROUND/FROM-BUCKET`` contents of pages, for the bucket that keeps them, see `CONTENT`
# ``urls/BUCKET/ROUND`` URLs that are new or changed; the last row of one counts
# ``evidence/BUCKET/ROUND`` links into the bucket, a row a page ``known/BUCKET/ROUND`` the URLs
# that pages of the bucket are known by ``contents/BUCKET/ROUND`` what pages of all buckets
# contain, spread by that ``pages/BUCKET/ROUND`` the fetches of a round ``quotas/BUCKET/ROUND``
# what hosts and patterns of URLs have had and earned by then ``ended/BUCKET/ROUND.json`` URLs
# that may not be fetched; what limits are multiplied by ``candidates/BUCKET/ROUND`` the best
# links after a round ``counts/BUCKET/ROUND.json`` how many URLs are known by then
# ``chosen/ROUND`` what a round fetches ``judged``, ``outcomes`` of a bucket and round: what is
# learned from; rates of the strategy ``models/ROUND`` what was learned ``under-way/BUCKET-ROUND``
# what live fetches have so far, see `under_way` ``recorded/BUCKET/ROUND-FILE`` WARC files of live
# fetches ``rounds/ROUND.json`` a round is over; without it, its files are none ``rounds.lock``
# held by who crawls, on this machine ==============================
# =====================================================
#
# Files of ``urls``, ``evidence``, ``known`` and ``contents`` are merged: ``ROUND-FIRST`` is of
# all rounds from one to the other. There are about as many as the logarithm of the number of
# rounds.

_MERGED = ("urls", "evidence", "known", "contents")
_LAST = {"candidates": ".parquet", "quotas": ".parquet", "outcomes": ""}  #: of which one counts
_LARGEST = 1 << 26  # bytes in memory of a merged table, unless of its rows only some count
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


class Tables(Files):
    """The tables of one crawl, and its other files."""

    def write(self, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a table, whole or not at all."""
        self.write_table(name, pa.Table.from_pylist(list(rows), schema))

    def write_table(self, name: str, table: pa.Table, group: int | None = None) -> None:
        """Write a table, whole or not at all.

        Parameters
        ----------
        group : so many rows can be read apart, see `read_group`; by default all are one
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
        self._put(f"{name}.parquet", sink.getvalue())

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

    def read_group(self, name: str, group: int) -> pa.Table:
        """Read a group of rows of a table, by its number from 0; none after the last one."""
        with (
            self._readable(name) as path,
            pq.ParquetFile(path, filesystem=self._files) as file,
        ):
            known = group < file.num_row_groups
            return file.read_row_group(group) if known else file.schema_arrow.empty_table()

    def read_rows(self, name: str, rows: Ints) -> Iterator[pa.Table]:
        """Yield some rows of a table, group by group: no more than a group is held.

        Parameters
        ----------
        rows : int64 (n,), which ones, ascending
        """
        with (
            self._readable(name) as path,
            pq.ParquetFile(path, filesystem=self._files) as file,
        ):
            first = 0
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                here = rows[slice(*np.searchsorted(rows, [first, end]))] - first
                if len(here):
                    yield file.read_row_group(group, use_threads=False).take(pa.array(here))
                first = end

    def read_some(
        self, name: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows of a table, some at a time."""
        with (
            self._readable(name) as path,
            pq.ParquetFile(path, filesystem=self._files) as file,
        ):
            yield from file.iter_batches(1000, columns=columns, use_threads=False)

    @contextmanager
    def _readable(self, name: str) -> Iterator[str]:
        """Say in a line, within the ``with`` block, if a table cannot be read; yield its path."""
        path = f"{self._base}/{name}.parquet"
        self.local(f"{name}.parquet")
        try:
            yield path
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path} cannot be read: {first_line(error)}") from None

    def _size(self, name: str) -> tuple[int, int]:
        """Return how many rows a table has, and bytes in memory."""
        with self._readable(name) as path:
            found = pq.read_metadata(path, filesystem=self._files)
        groups = map(found.row_group, range(found.num_row_groups))
        return found.num_rows, sum(group.total_byte_size for group in groups)

    def has(self, name: str) -> bool:
        """Tell whether a table was written."""
        return self._exists(f"{name}.parquet")

    def of_bucket(self, kind: str, bucket: int, until: int) -> list[str]:
        """Return the tables of a bucket that together say all up to a round, in their order."""
        folder = f"{kind}/{bucket:03}"
        found: list[str] = []
        for name in reversed(self._names(folder)):
            last, first = _rounds(name)
            if last <= until:
                found.insert(0, f"{folder}/{name}")
                until = first - 1
        return found

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

        So each row is written as often as the logarithm of the number of rounds says [1]_, and no
        task needs more memory than a table of 64 MiB does. What was merged stays until the round
        is over, see `drop_old`.

        Parameters
        ----------
        by_id : of the rows with one ``id`` the last one counts; they are written in its order,
            as what is in order is sorted again in no time by whoever reads it
        group : see `write_table`

        References
        ----------
        .. [1] J. L. Bentley, J. B. Saxe: Decomposable searching problems I. J. Algorithms 1, 1980:
           the logarithmic method.
        """
        parts, first = [table], round_
        for before in reversed(self.of_bucket(kind, bucket, round_ - 1)):
            rows, size = self._size(before)
            grown = size + sum(part.nbytes for part in parts)
            if rows > sum(map(len, parts)) or (grown > _LARGEST and not by_id):
                break
            parts.insert(0, self.read(before))
            first = _rounds(before.rpartition("/")[2])[1]
        merged = pa.concat_tables(parts)
        if by_id and len(parts) > 1:
            merged = merged.take(pa.array(last_rows(merged["id"].to_numpy())[1]))
        ending = "" if first == round_ else f"-{first:05}"
        self.write_table(f"{kind}/{bucket:03}/{round_:05}{ending}", merged, group)

    def drop_old(self, buckets: int, round_: int, learned_from: int) -> None:
        """Remove, after a round, what is in a merged table, too, and what nothing reads any more.

        Parameters
        ----------
        learned_from : the first round whose judged URLs are learned from
        """
        for bucket in range(buckets):
            for kind in _MERGED:
                kept = self.of_bucket(kind, bucket, round_)
                for name in self._names(f"{kind}/{bucket:03}"):
                    path = f"{kind}/{bucket:03}/{name}"
                    if path not in kept and _rounds(name)[0] < round_:
                        self._delete(f"{path}.parquet")
            for kind, ending in _LAST.items():
                names = [n for n in self._names(f"{kind}/{bucket:03}") if int(n) <= round_]
                for name in names[:-1]:
                    self._delete(f"{kind}/{bucket:03}/{name}{ending}")
            for name in self._names(f"judged/{bucket:03}"):
                if int(name) < learned_from:
                    self._delete(f"judged/{bucket:03}/{name}")

    def incoming(self, kind: str, bucket: int, round_: int) -> Iterator[str]:
        """Iterate over what other buckets have for this one after a round."""
        for name in self._names(f"{kind}/{round_:05}"):
            if name.endswith(f"-{bucket:03}"):
                yield f"{kind}/{round_:05}/{name}"


def last_rows(ids: Ints) -> tuple[Ints, Ints]:
    """Return each id once, ascending, int64 (m,), and the place of its last row, int64 (m,)."""
    unique, last = np.unique(ids[::-1], return_index=True)
    return unique, len(ids) - 1 - last


def _rounds(name: str) -> tuple[int, int]:
    """Return the last and the first round of a table."""
    last, _, first = name.partition("-")
    return int(last), int(first or last)
