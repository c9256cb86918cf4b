"""The files of a crawl in rounds, that appear whole, on any file system PyArrow reaches."""

from __future__ import annotations

import json
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.file_systems import file_system_of, first_line
from focuscrawl.foundation.locks import BETWEEN, TRIES
from focuscrawl.foundation.plain_files import refuse_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        """Return where a file is on this machine; None if the tables are elsewhere."""
        return Path(self._base, name) if isinstance(self._files, fs.LocalFileSystem) else None

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
        refuse_link(path)
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
        with self._reached(name):
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
        """Say in a line, within the ``with`` block, that a file cannot be read or written."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._base}/{name} cannot be reached: {first_line(error)}"
            ) from None

    def _names(self, folder: str) -> list[str]:
        """Return the names of the tables in a folder, in their order, without their ending."""
        return sorted(name.removesuffix(".parquet") for name in self.files(folder))
