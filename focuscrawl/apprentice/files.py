"""An apprentice on disk: what one crawl has learned, for another to begin with."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from focuscrawl import __version__
from focuscrawl.errors import UserError

FORMAT = 2
_KIND = "apprentice"
_ARRAYS = "apprentice.npz"
_MANIFEST = "manifest.json"


def save_apprentice(graduate: bytes, out: Path, about: dict[str, str | int]) -> None:
    """Write a folder with the manifest and the arrays; it appears whole or not at all.

    Parameters
    ----------
    graduate : see `Apprentice.graduate`
    about : for people: topic, instances, crawl
    """
    if out.exists():
        raise UserError(f"{out} is there already: name another folder")
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "focuscrawl": __version__,
        "digest": hashlib.sha256(graduate).hexdigest(),
        **about,
    }
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent) as unfinished:
            folder = Path(unfinished) / out.name
            folder.mkdir()
            (folder / _ARRAYS).write_bytes(graduate)
            (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
            folder.rename(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from None


def apprentice_digest(folder: Path) -> str:
    """Return what tells the apprentice in `folder` from others; raises as `read_apprentice`."""
    return hashlib.sha256(read_apprentice(folder)).hexdigest()[:16]


def read_apprentice(folder: Path) -> bytes:
    """Return what `save_apprentice` was given; it is plain arrays and runs nobody's code.

    Raises
    ------
    UserError
        There is none, it is damaged, or a newer version wrote it.
    """
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        graduate = (folder / _ARRAYS).read_bytes()
    except (OSError, ValueError):
        raise UserError(
            f"{folder} holds no apprentice: train one with `focuscrawl apprentice train`"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise UserError(f"{folder} holds no apprentice but another model")
    if manifest.get("format") != FORMAT:
        raise UserError(
            f"{folder} is of format {manifest.get('format')}, not {FORMAT}: train it again"
        )
    if manifest.get("digest") != hashlib.sha256(graduate).hexdigest():
        raise UserError(f"{folder} is damaged: its digest is not the manifest's; train it again")
    return graduate
