"""Critics on disk: ``models/NAME``.

A folder of ``manifest.json`` (what the critic is, and the digest of every file), ``model.npz``
(arrays) and ``examples.csv`` (the training pages). No timestamps: training twice on the same
pages writes the same bytes. Loading runs no code from the files and checks all that it uses.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tempfile
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl import __version__
from focuscrawl.critic.calibration import Calibration
from focuscrawl.critic.serialization import expect, pack_model, read_arrays, unpack_model
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

FORMAT = 1
MANIFEST = "manifest.json"
#: what reading a file raises whose bytes are not what they should be
_UNSOUND = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    EOFError, csv.Error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_ARRAYS = "model.npz"
_EXAMPLES = "examples.csv"


def save_critic(trained: TrainedCritic, out: str | Path, *, force: bool = False) -> int:
    """Write a critic to the folder `out`, whole or not at all.

    Parameters
    ----------
    trained : the critic
    out : folder to make
    force : replace an existing critic

    Returns
    -------
    Its size in bytes.

    Raises
    ------
    UserError
        If `out` exists and `force` is not given, or it is not a critic, or cannot be written.
    """
    check_out(out, force=force)
    path = Path(out)
    contents = _contents(trained)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
            fresh = Path(scratch, "new")
            fresh.mkdir()
            for name, content in contents.items():
                (fresh / name).write_bytes(content)
            if path.exists():
                path.rename(Path(scratch, "old"))
            fresh.rename(path)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose another") from error
    return sum(map(len, contents.values()))


def check_out(out: str | Path, *, force: bool = False) -> None:
    """Raise `UserError` unless a critic may be written to `out`; ask before a long training."""
    path = Path(out)
    if not path.exists():
        return
    if not (path / MANIFEST).is_file():
        raise UserError(f"{out} exists and is not a critic; choose another --out")
    if not force:
        raise UserError(f"{out} exists; choose another --out, or --force to replace it")


def _contents(trained: TrainedCritic) -> dict[str, bytes]:
    arrays, facts = pack_model(trained.model)
    if trained.calibration is not None:
        scale, exponent = trained.calibration.scale, trained.calibration.exponent
        arrays["calibration"] = np.array([scale, exponent])
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["url", "topic"])
    writer.writerows(trained.examples)
    files = {_ARRAYS: packed.getvalue(), _EXAMPLES: table.getvalue().encode()}
    manifest = {
        "format": FORMAT,
        "focuscrawl": __version__,
        "kind": trained.model.kind,
        "classes": list(trained.model.classes),
        "absent": list(trained.absent),
        "training_set": trained.training_set,
        "cross_validation": dict(trained.cross_validation),
        "calibrated": trained.calibrated,
        "skipped": dict(trained.skipped),
        **facts,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    manifest["digest"] = _digest(manifest)
    return {**files, MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode()}


def _digest(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_critic(folder: str | Traversable) -> tuple[TrainedCritic, str]:
    """Read the critic in `folder`, which may lie in an archive.

    Returns
    -------
    The critic, and a hex digest of it.

    Raises
    ------
    UserError
        If it is damaged, was tampered with, or is of a newer format.
    """
    path = Path(folder) if isinstance(folder, str) else folder
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        if not isinstance(manifest, dict):
            raise _damaged(path, f"{MANIFEST} is not a table")
        if isinstance(manifest.get("format"), int) and manifest["format"] > FORMAT:
            raise UserError(
                f"{folder}: format {manifest['format']} of a newer focuscrawl "
                f"({manifest.get('focuscrawl')}); this one reads {FORMAT}: upgrade it"
            )
        if manifest.get("digest") != _digest(manifest):
            raise _damaged(path, f"{MANIFEST} was changed")
        contents = {}
        for name in (_ARRAYS, _EXAMPLES):
            contents[name] = (path / name).read_bytes()
            if hashlib.sha256(contents[name]).hexdigest() != manifest["files"][name]:
                raise _damaged(path, f"{name} was changed or cut short")
        return _unpack(manifest, contents), manifest["digest"]
    except OSError as error:
        raise _damaged(path, f"{error.strerror}: {error.filename}") from error
    except _UNSOUND as error:
        raise _damaged(path, " ".join(str(error).split()) or type(error).__name__) from error


def _damaged(path: Traversable, reason: str) -> UserError:
    return UserError(f"{path}: not a whole critic ({reason}); train it again")


def _unpack(manifest: dict[str, Any], contents: dict[str, bytes]) -> TrainedCritic:
    arrays = read_arrays(contents[_ARRAYS])
    calibration = None
    if "calibration" in arrays:
        scale, exponent = expect(arrays, "calibration", (2,), "f").tolist()
        calibration = Calibration(scale, exponent)
    rows = list(csv.reader(io.StringIO(contents[_EXAMPLES].decode(), newline="")))
    if not rows or rows[0] != ["url", "topic"] or any(len(row) != 2 for row in rows):
        msg = f"{_EXAMPLES} is not url,topic"
        raise ValueError(msg)
    model = unpack_model(manifest, arrays)
    if list(model.classes) != manifest["classes"]:
        msg = "classes do not match"
        raise ValueError(msg)
    if any(unicodedata.category(c).startswith("C") for path in model.classes for c in path):
        msg = "a class has a name that cannot be printed"
        raise ValueError(msg)
    if not {topic for _, topic in rows[1:]} <= set(model.classes):
        msg = f"{_EXAMPLES} has a topic that is no class"
        raise ValueError(msg)
    return TrainedCritic(
        model=model,
        examples=tuple((url, topic) for url, topic in rows[1:]),
        training_set=str(manifest["training_set"]),
        absent=tuple(map(str, manifest["absent"])),
        calibration=calibration,
        calibrated=bool(manifest["calibrated"]),
        cross_validation=dict(manifest["cross_validation"]),
        skipped=dict(manifest["skipped"]),
    )
