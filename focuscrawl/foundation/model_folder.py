"""The file format of all models: critics, apprentices and path models.

A model is a folder with ``manifest.json`` and some files of arrays and tables. The manifest
contains the kind and format of the model, facts about the model, and the SHA-256 digests of every
file and of the manifest itself. The files of a model contain no timestamps, so equal models have
equal bytes. Reading a model runs no code from its files, and checks every digest.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular, reporting_write_errors, update_lock

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    Manifest = dict[str, Any]
    Files = dict[str, bytes]

T = TypeVar("T")

MANIFEST = "manifest.json"
#: errors that decoding the bytes of a damaged file may raise
DECODING_ERRORS = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    EOFError, csv.Error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class ModelFormat:
    """Writes, checks and reads the folders of one type of model.

    Attributes
    ----------
    name : str
        Name of the type in messages, such as "critic".
    kinds : tuple of str
        Accepted values of ``kind`` in the manifest.
    format : int
        Format number; folders with another number are refused.
    files : tuple of str
        Names of the files besides the manifest.
    command : str
        Command that trains such a model.
    """

    name: str
    kinds: tuple[str, ...]
    format: int
    files: tuple[str, ...]
    command: str

    def exists_in(self, folder: Traversable) -> bool:
        """Return whether a folder contains a model of this format, intact or damaged."""
        try:
            manifest = json.loads(read_regular(folder / MANIFEST))
        except (OSError, ValueError, RecursionError, UserError):
            return False
        return isinstance(manifest, dict) and manifest.get("kind") in self.kinds

    def check_output(self, out: Path, *, force: bool | None = None) -> None:
        """Raise `UserError` if no model may be written to `out`; call this before training.

        Parameters
        ----------
        force : bool or None
            Whether to replace an existing model; None: no, and the command has no ``--force``.
        """
        if not out.exists():
            return
        if not force:
            way_out = ", or --force to replace it" if force is not None else ""
            raise UserError(f"{out} exists already: name another folder{way_out}")
        if not (out / MANIFEST).is_file():
            raise UserError(f"{out} exists already and is not a {self.name}: name another folder")

    def write(
        self, out: Path, kind: str, facts: Manifest, files: Files, *, force: bool | None = None
    ) -> int:
        """Write a model to the folder `out`, completely or not at all.

        Parameters
        ----------
        facts : dict
            Further entries of the manifest.
        files : dict of str to bytes
            Content of each file by its name.
        force : bool or None
            See `check_output`.

        Returns
        -------
        int
            Size of the model in bytes.

        Raises
        ------
        UserError
            `check_output` refuses the folder, or the folder cannot be written.
        """
        self.check_output(out, force=force)
        manifest = {"format": self.format, "focuscrawl": __version__, "kind": kind, **facts}
        manifest["files"] = {name: _sha256(content) for name, content in files.items()}
        manifest["digest"] = _digest(manifest)
        contents = {**files, MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode()}
        with reporting_write_errors(out, "name another folder"):
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                update_lock(out),
                tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch,
            ):
                self.check_output(out, force=force)  # another program may have written a model
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
        return sum(map(len, contents.values()))

    def read(self, folder: Traversable, unpack: Callable[[Manifest, Files], T]) -> tuple[T, str]:
        """Read the model in `folder`, which may be part of a zip archive.

        Parameters
        ----------
        unpack : callable
            Builds the model from the manifest and the files; may raise `DECODING_ERRORS`.

        Returns
        -------
        tuple of T and str
            The model and its hex digest.

        Raises
        ------
        UserError
            The folder has no model, or one of another kind or format, or a damaged one.
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
                    f"{folder} contains no {self.name}: name another folder, or train the "
                    f"{self.name} with `{self.command}`"
                ) from None
            raise self._damaged(folder, f"{error.strerror}: {error.filename}") from error
        except DECODING_ERRORS as error:
            raise self._damaged(folder, error_message(error)) from error

    def _check_kind(self, folder: Traversable, manifest: Any) -> None:
        if not isinstance(manifest, dict):
            raise TypeError(f"{MANIFEST} is not a table")
        kind, number = manifest.get("kind"), manifest.get("format")
        if kind not in self.kinds:
            raise ValueError(f"its kind is {kind!r}")
        if number != self.format:
            raise UserError(
                f"{folder} is a {self.name} of format {number!r:.20}; this version of focuscrawl "
                f"reads format {self.format}: train it again with `{self.command}`, or use the "
                "version that wrote it"
            )

    def _damaged(self, folder: Traversable, why: str) -> UserError:
        return UserError(
            f"{folder} is a damaged {self.name} ({why}): train it again with `{self.command}`"
        )


def find_model_folder(spec: str) -> Traversable | None:
    """Return the folder of the model that `spec` (path, or name in ``models``) names, or None.

    The folder may be inside the zip archive from which the package was imported.
    """
    path = Path(spec).expanduser()
    if (path / MANIFEST).is_file():
        return path
    name = spec.removeprefix("models/")
    if name and not Path(name).is_absolute():
        for models in model_folders():
            if (models / name / MANIFEST).is_file():
                return models / name
    return None


def model_folders() -> list[Traversable]:
    """Return the folders ``models`` in the current folder, beside the package and inside it."""
    package = resources.files("focuscrawl")
    checkout = [package.resolve().parent / "models"] if isinstance(package, Path) else []
    return [Path("models"), *checkout, package / "models"]


def error_message(error: BaseException) -> str:
    """Return the message of an error as one line, or its class name if there is no message."""
    return " ".join(str(error).split()) or type(error).__name__


def _check_digests(manifest: Manifest, files: Files) -> None:
    """Raise ValueError if a file or the manifest itself was changed."""
    if manifest["digest"] != _digest(manifest):
        raise ValueError(f"{MANIFEST} was changed")
    for name, content in files.items():
        if _sha256(content) != manifest["files"][name]:
            raise ValueError(f"{name} was changed or cut short")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the digest of all entries of a manifest except its own digest."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return _sha256(json.dumps(rest, sort_keys=True).encode())
