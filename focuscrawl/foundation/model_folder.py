"""Learned things on disk: a folder of a manifest and one file of arrays; no code in them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl import __version__
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = "manifest.json"


class Kind(NamedTuple):
    """What is in a folder.

    Attributes
    ----------
    kind : what its manifest calls it
    format : of its files; another one is refused
    arrays : name of the file of arrays
    name : for people
    command : what makes one
    """

    kind: str
    format: int
    arrays: str
    name: str
    command: str

    def manifest(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to write beside the arrays."""
        return {"kind": self.kind, "format": self.format, "focuscrawl": __version__, **facts}

    def is_in(self, folder: Path) -> bool:
        """Tell whether there is one in a folder, sound or not."""
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(manifest, dict) and manifest.get("kind") == self.kind

    def write(self, out: Path, manifest: Mapping[str, Any], arrays: bytes) -> None:
        """Write the folder `out`, whole or not at all.

        Raises
        ------
        UserError
            `out` is there already, or cannot be written.
        """
        check_out(out)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
                folder = Path(scratch, out.name)
                folder.mkdir()
                (folder / self.arrays).write_bytes(arrays)
                (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
                folder.rename(out)
        except OSError as error:
            raise UserError(f"{out} cannot be written ({error.strerror}): name another") from None

    def read(self, folder: Path) -> tuple[dict[str, Any], bytes]:
        """Return the manifest and the arrays; whether they belong together is not looked at.

        Raises
        ------
        UserError
            There is none, or it is of another kind or format.
        """
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            arrays = (folder / self.arrays).read_bytes()
        except (OSError, ValueError):
            raise UserError(
                f"{folder} holds no {self.name}: train one with `{self.command}`"
            ) from None
        if not isinstance(manifest, dict) or manifest.get("kind") != self.kind:
            raise UserError(f"{folder} holds no {self.name} but another model")
        if manifest.get("format") != self.format:
            raise UserError(
                f"{folder} is of format {manifest.get('format')}, not {self.format}: "
                "train it again"
            )
        return manifest, arrays


def check_out(out: Path) -> None:
    """Raise `UserError` if there is something at `out`; ask before a long training."""
    if out.exists():
        raise UserError(f"{out} is there already: name another folder")


def damaged(folder: Path) -> UserError:
    """Return the error for arrays that are not those of the manifest."""
    return UserError(f"{folder} is damaged: its digest is not the manifest's; train it again")
