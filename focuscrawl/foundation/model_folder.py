"""Models on disk: the one format of critics, apprentices and models of paths.

A model is a folder of ``manifest.json`` and a few files of a model's own, arrays and tables. The
manifest says of what kind and format the model is, whatever else there is to know of it, and the
SHA-256 of every file, its own included. There are no timestamps: the same model is the same
bytes. Reading runs no code from the files, and hands out nothing whose digest does not fit.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import changing, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.resources.abc import Traversable

    Manifest = dict[str, Any]
    Files = dict[str, bytes]

T = TypeVar("T")

MANIFEST = "manifest.json"
#: what reading a file raises whose bytes are not what they should be
UNSOUND = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    EOFError, csv.Error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class ModelFormat:
    """The folders of one sort of model: how they are written, checked and read.

    Attributes
    ----------
    name : of the sort, for people
    kinds : what a manifest may call it
    format : number that is written and read; folders of others are refused
    files : names of the files beside the manifest
    command : what trains one
    """

    name: str
    kinds: tuple[str, ...]
    format: int
    files: tuple[str, ...]
    command: str

    def is_in(self, folder: Path) -> bool:
        """Tell whether there is one in a folder, sound or not."""
        try:
            manifest = json.loads(read_regular(folder / MANIFEST))
        except (OSError, ValueError, RecursionError, UserError):
            return False
        return isinstance(manifest, dict) and manifest.get("kind") in self.kinds

    def check_out(self, out: Path, *, force: bool | None = None) -> None:
        """Raise `UserError` unless a model may be written to `out`; ask before a long training.

        Parameters
        ----------
        force : whether a model that is there may be replaced; None: no, and nobody can say so
        """
        if not out.exists():
            return
        if not force:
            way_out = ", or --force to replace it" if force is not None else ""
            raise UserError(f"{out} is there already: name another folder{way_out}")
        if not (out / MANIFEST).is_file():
            raise UserError(f"{out} is there already, and not a {self.name}: name another folder")

    def write(
        self, out: Path, kind: str, facts: Manifest, files: Files, *, force: bool | None = None
    ) -> int:
        """Write a model to the folder `out`, whole or not at all.

        Parameters
        ----------
        facts : what the manifest says besides
        files : their content, by name
        force : see `check_out`

        Returns
        -------
        Its size in bytes.

        Raises
        ------
        UserError
            See `check_out`; or `out` cannot be written.
        """
        self.check_out(out, force=force)
        manifest = {"format": self.format, "focuscrawl": __version__, "kind": kind, **facts}
        manifest["files"] = {name: _sha256(content) for name, content in files.items()}
        manifest["digest"] = _digest(manifest)
        contents = {**files, MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode()}
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                changing(out),
                tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch,
            ):
                self.check_out(out, force=force)  # another program may have written it meanwhile
                fresh = Path(scratch, "new")
                fresh.mkdir()
                for name, content in contents.items():
                    (fresh / name).write_bytes(content)
                old = Path(scratch, "old")
                if out.exists():
                    out.rename(old)
                try:
                    fresh.rename(out)
                except OSError:
                    if old.exists():
                        old.rename(out)
                    raise
        except OSError as error:
            raise UserError(f"{out} cannot be written ({error.strerror}): name another") from None
        return sum(map(len, contents.values()))

    def read(self, folder: Traversable, unpack: Callable[[Manifest, Files], T]) -> tuple[T, str]:
        """Read the model in `folder`, which may lie in an archive.

        Parameters
        ----------
        unpack : makes the model of a manifest and files whose digests fit; what does not fit
            together may raise any of the errors of conversions and look-ups

        Returns
        -------
        The model, and a hex digest of it.

        Raises
        ------
        UserError
            There is none, or it is of another kind, of a format that is not read, or not whole.
        """
        try:
            manifest = json.loads(read_regular(folder / MANIFEST))
            self._check_kind(folder, manifest)
            files = {name: read_regular(folder / name) for name in self.files}
            _check_digests(manifest, files)
            return unpack(manifest, files), manifest["digest"]
        except OSError as error:
            if not (folder / MANIFEST).is_file():
                raise UserError(
                    f"{folder} holds no {self.name}: name another folder, or train it again "
                    f"with `{self.command}`"
                ) from None
            raise self._not_whole(folder, f"{error.strerror}: {error.filename}") from error
        except UNSOUND as error:
            raise self._not_whole(folder, reason(error)) from error

    def _check_kind(self, folder: Traversable, manifest: Any) -> None:
        if not isinstance(manifest, dict):
            raise TypeError(f"{MANIFEST} is not a table")
        kind, number = manifest.get("kind"), manifest.get("format")
        if kind not in self.kinds:
            raise ValueError(f"it is of kind {kind!r}")
        if number != self.format:
            raise UserError(
                f"{folder}: a {self.name} of format {number!r:.20}, and this focuscrawl reads "
                f"{self.format}: train it again with `{self.command}`, or take the focuscrawl "
                "that wrote it"
            )

    def _not_whole(self, folder: Traversable, why: str) -> UserError:
        return UserError(
            f"{folder}: not a whole {self.name} ({why}); train it again with `{self.command}`"
        )


def reason(error: BaseException) -> str:
    """Return in one line what is wrong with what was read."""
    return " ".join(str(error).split()) or type(error).__name__


def _check_digests(manifest: Manifest, files: Files) -> None:
    """Raise ValueError if a file, or the manifest itself, is not what was written."""
    if manifest["digest"] != _digest(manifest):
        raise ValueError(f"{MANIFEST} was changed")
    for name, content in files.items():
        if _sha256(content) != manifest["files"][name]:
            raise ValueError(f"{name} was changed or cut short")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the digest of all that a manifest says but its own digest."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return _sha256(json.dumps(rest, sort_keys=True).encode())
