"""Models of paths on disk: a folder of ``manifest.json`` and ``model.npz``; no code in them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.serialization import expect, read_arrays
from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import Kind, damaged
from focuscrawl.paths.crf import ChainCRF
from focuscrawl.paths.critic import TOPIC, PathCritic
from focuscrawl.paths.feature_keys import KINDS
from focuscrawl.paths.features import Reading, Vocabulary
from focuscrawl.paths.model import PathModel
from focuscrawl.paths.states import PathStates

if TYPE_CHECKING:
    from collections.abc import Mapping

_KIND = Kind("paths", 3, "model.npz", "model of paths", "focuscrawl paths train")
_UNSOUND = (
    ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def save_model(model: PathModel, out: Path, about: Mapping[str, Any]) -> None:
    """Write a model to the folder `out`, whole or not at all.

    Parameters
    ----------
    about : for people: how many paths it is from, say

    Raises
    ------
    UserError
        `out` is there already, or cannot be written.
    """
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        allow_pickle=False,
        shared=model.crf.shared_.astype(np.float32),
        edge=np.where(model.crf.structure.edges, model.crf.edge_, 0.0),
        rewards=model.rewards,
        names=np.frombuffer("\n".join(model.vocabulary.names).encode(), np.uint8),
    )
    manifest = _KIND.manifest(
        {
            "labels": model.states.labels,
            "distances": model.states.distances,
            "away": model.away,
            "words": model.reading.words,
            "near": model.reading.near,
            "arrays": hashlib.sha256(packed.getvalue()).hexdigest(),
            **about,
        }
    )
    _KIND.write(out, {**manifest, "digest": _digest(manifest)}, packed.getvalue())


def is_path_model(folder: str) -> bool:
    """Tell whether there is a model of paths in a folder."""
    return _KIND.is_in(Path(folder))


def load_path_critic(folder: str, topic: str) -> PathCritic:
    """Load a model of paths as a critic.

    Raises
    ------
    UserError
        There is none, it is damaged or of another format, or `topic` is not its topic.
    """
    if topic.strip().strip("/") != TOPIC.strip("/"):
        raise UserError(f"{folder}: a model of paths has one topic: add -a topic={TOPIC}")
    model, digest = read_model(Path(folder))
    return PathCritic(model, digest)


def read_model(folder: Path) -> tuple[PathModel, str]:
    """Return the model in a folder, and a hex digest of it.

    Raises
    ------
    UserError
        There is none, it is damaged, or of another format.
    """
    manifest, content = _KIND.read(folder)
    if (
        manifest.get("digest") != _digest(manifest)
        or manifest.get("arrays") != hashlib.sha256(content).hexdigest()
    ):
        raise damaged(folder)
    try:
        return _unpack(manifest, content), str(manifest["digest"])
    except _UNSOUND as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{folder} is no sound model ({reason}): train it again") from None


def _unpack(manifest: dict[str, Any], content: bytes) -> PathModel:
    labels = [str(label) for label in manifest["labels"]]
    if manifest["distances"]:
        states = PathStates.partially_supervised(len(labels) - 2)
    else:
        states = PathStates.supervised(labels)
    if list(states.labels) != labels or not all(label.isprintable() for label in labels):
        msg = "labels that no model has"
        raise ValueError(msg)
    arrays = read_arrays(content)
    text = arrays["names"]
    names = expect(arrays, "names", text.shape, "u").astype(np.uint8).tobytes().decode()
    listed = names.split("\n")
    if any(name.partition(" ")[0] not in KINDS for name in listed):
        msg = "a feature of no kind"
        raise ValueError(msg)
    structure = states.structure
    crf = ChainCRF(structure)
    crf.set_weights(
        expect(arrays, "shared", (len(listed), len(structure.groups)), "f").astype(np.float64),
        expect(arrays, "edge", structure.edges.shape, "f").astype(np.float64),
    )
    rewards = expect(arrays, "rewards", (len(labels),), "f").astype(np.float64)
    reading = Reading(int(manifest["words"]), int(manifest["near"]))
    away = float(manifest["away"])
    if not 0.0 <= away <= 1.0:
        msg = "a share that is none"
        raise ValueError(msg)
    return PathModel(states, Vocabulary(listed), crf, rewards, away, reading)


def _digest(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
