"""An apprentice on disk: what one crawl has learned, for another to begin with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from focuscrawl.foundation.model_folder import Kind, damaged

if TYPE_CHECKING:
    from pathlib import Path

_KIND = Kind("apprentice", 2, "apprentice.npz", "apprentice", "focuscrawl apprentice train")


def save_apprentice(graduate: bytes, out: Path, about: dict[str, str | int]) -> None:
    """Write a folder with the manifest and the arrays; it appears whole or not at all.

    Parameters
    ----------
    graduate : see `Apprentice.graduate`
    about : for people: topic, instances, crawl
    """
    digest = hashlib.sha256(graduate).hexdigest()
    _KIND.write(out, _KIND.manifest({"digest": digest, **about}), graduate)


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
    manifest, graduate = _KIND.read(folder)
    if manifest.get("digest") != hashlib.sha256(graduate).hexdigest():
        raise damaged(folder)
    return graduate
