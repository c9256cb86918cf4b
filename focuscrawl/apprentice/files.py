"""An apprentice on disk: what one crawl has learned, for another to begin with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.options import Options
from focuscrawl.foundation.model_folder import ModelFormat

if TYPE_CHECKING:
    from pathlib import Path

_ARRAYS = "apprentice.npz"
FORMAT = ModelFormat("apprentice", ("apprentice",), 5, (_ARRAYS,), "focuscrawl apprentice train")


def save_apprentice(graduate: bytes, out: Path, about: dict[str, str | int]) -> None:
    """Write the folder of an apprentice; it appears whole or not at all.

    Parameters
    ----------
    graduate : see `Apprentice.export`
    about : for people: topic, instances, crawl
    """
    FORMAT.write(out, "apprentice", {**about}, {_ARRAYS: graduate})


def apprentice_digest(folder: Path) -> str:
    """Return what tells the apprentice in `folder` from others; raises as `read_apprentice`."""
    return hashlib.sha256(read_apprentice(folder)).hexdigest()[:16]


def read_apprentice(folder: Path) -> bytes:
    """Return what `save_apprentice` was given; it is plain arrays and runs nobody's code.

    Raises
    ------
    UserError
        There is none, it is damaged, or of another format.
    """
    graduate, _ = FORMAT.read(folder, lambda _, files: checked(files[_ARRAYS]))
    return graduate


def checked(graduate: bytes) -> bytes:
    """Return what `Apprentice.export` has returned; errors of conversions if it is not that."""
    Apprentice.warm_started(Options(), graduate)
    return graduate
