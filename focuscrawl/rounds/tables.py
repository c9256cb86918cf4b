"""The tables of a crawl in rounds: files that appear whole, on any file system PyArrow reads.

==============================  =====================================================
``plan.json``                   which crawl this is
``names/ROUND/FROM-BUCKET``     URLs that pages of one bucket link to, for another
``links/ROUND/FROM-BUCKET``     the links, as evidence: a row a page
``urls/BUCKET/ROUND``           URLs that are new or changed; the last row of one counts
``evidence/BUCKET/ROUND``       links into the bucket, a row a page
                                (``ROUND-all``: of this and all earlier rounds)
``pages/BUCKET/ROUND``          the fetches of a round
``candidates/BUCKET/ROUND``     the best links after a round
``chosen/ROUND``                what a round fetches
``judged``, ``outcomes``        of a bucket and round: what is learned from; rates of the strategy
``models/ROUND``                what was learned
``rounds/ROUND.json``           a round is over; without it, its files are none
==============================  =====================================================
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.file_systems import file_system_of, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MANY = 10  # files of a table that are merged into one
_DIGITS = 5  # of a round, in names
_MERGED = "-all"
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
        ("duplicate_of", pa.string()),
        ("error", pa.string()),
        ("links", pa.int32()),
        ("dropped", pa.int32()),
    ]
)
CHOSEN = pa.schema(
    [*(field for field in URL if field.name != "relevance"), ("bucket", pa.int32())]
)


class Tables:
    """The files of one crawl.

    Parameters
    ----------
    root : a folder, or its URI: ``s3://...``, ``hdfs://...``
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._files, self._base = file_system_of(root)

    # -- tables ----------------------------------------------------------------------------

    def write(self, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a table, whole or not at all."""
        self.write_table(name, pa.Table.from_pylist(list(rows), schema))

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a table, whole or not at all."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self._put(f"{name}.parquet", sink.getvalue())

    def read(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a table that was written."""
        path = f"{self._base}/{name}.parquet"
        try:
            # one file, few columns: threads only wait for each other
            return pq.read_table(path, filesystem=self._files, columns=columns, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path} cannot be read: {first_line(error)}") from None

    def has(self, name: str) -> bool:
        """Tell whether a table was written."""
        return self._exists(f"{name}.parquet")

    def of_bucket(self, kind: str, bucket: int, until: int) -> list[str]:
        """Return the tables of a bucket that together say all up to a round, in their order."""
        folder = f"{kind}/{bucket:03}"
        names = [name for name in self._names(folder) if int(name[:_DIGITS]) <= until]
        merged = [at for at, name in enumerate(names) if name.endswith(_MERGED)]
        return [f"{folder}/{name}" for name in names[merged[-1] if merged else 0 :]]

    def add(self, kind: str, bucket: int, round_: int, table: pa.Table) -> None:
        """Add what a round has for a table of a bucket; many small files become one.

        What was merged stays until the round is over, see `drop_merged`.
        """
        before = self.of_bucket(kind, bucket, round_ - 1)
        name = f"{kind}/{bucket:03}/{round_:05}"
        if len(before) < _MANY:
            self.write_table(name, table)
        else:
            parts = [self.read(each) for each in before]
            self.write_table(name + _MERGED, pa.concat_tables([*parts, table]))

    def drop_merged(self, kind: str, bucket: int, round_: int) -> None:
        """Remove what is in a merged table, too, after a round."""
        kept = self.of_bucket(kind, bucket, round_)
        for name in self._names(f"{kind}/{bucket:03}"):
            path = f"{kind}/{bucket:03}/{name}"
            if path not in kept and int(name[:_DIGITS]) < round_:
                self._files.delete_file(f"{self._base}/{path}.parquet")

    def incoming(self, kind: str, bucket: int, round_: int) -> Iterator[str]:
        """Iterate over what other buckets have for this one after a round."""
        for name in self._names(f"{kind}/{round_:05}"):
            if name.endswith(f"-{bucket:03}"):
                yield f"{kind}/{round_:05}/{name}"

    # -- bytes -----------------------------------------------------------------------------

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

    def remove(self, folder: str) -> None:
        """Remove a folder of tables that nobody needs any more."""
        if self._exists(folder):
            self._files.delete_dir(f"{self._base}/{folder}")

    # -- files -----------------------------------------------------------------------------

    def _put(self, name: str, content: Any) -> None:
        path = f"{self._base}/{name}"
        draft = f"{self._base}/drafts/{secrets.token_hex(8)}"
        with self._reached(name):
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            self._files.create_dir(draft.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(draft) as file:
                file.write(content)
            self._files.move(draft, path)

    def _exists(self, name: str) -> bool:
        with self._reached(name):
            info = self._files.get_file_info(f"{self._base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    @contextmanager
    def _reached(self, name: str) -> Iterator[None]:
        """Say in a line, within the ``with`` block, that a file cannot be read or written."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._base}/{name} cannot be reached: {first_line(error)}"
            ) from None

    def _names(self, folder: str) -> list[str]:
        """Return the names of the tables in a folder, in their order, without their ending."""
        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
        with self._reached(folder):
            found = self._files.get_file_info(selector)
        return sorted(each.base_name.removesuffix(".parquet") for each in found)
