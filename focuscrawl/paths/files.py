"""Models of paths on disk: a manifest and one file of arrays."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import ModelFormat
from focuscrawl.foundation.packed_arrays import (
    array_of_lines,
    expect,
    lines_of,
    pack_arrays,
    unpack_arrays,
)
from focuscrawl.paths.calibration import Calibration, Evidence
from focuscrawl.paths.crf import ChainCRF
from focuscrawl.paths.critic import TOPIC, PathCritic
from focuscrawl.paths.features import KINDS, FeatureVocabulary, ReadingLimits
from focuscrawl.paths.model import PathModel
from focuscrawl.paths.states import PathStates

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARRAYS = "model.npz"
FORMAT = ModelFormat("model of paths", ("paths",), 5, (_ARRAYS,), "focuscrawl paths train")


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
    facts = {
        "labels": model.states.labels,
        "distances": model.states.distances,
        "one_state": model.states.one_state,
        "tied": model.states.tied,
        "away": model.away,
        "words": model.reading.words,
        "near": model.reading.near,
        "calibration": None if model.calibration is None else asdict(model.calibration),
        **about,
    }
    arrays = {
        "shared": model.crf.shared_.astype(np.float32),
        "edge": np.where(model.crf.structure.edges, model.crf.edge_, 0.0),
        "rewards": model.rewards,
        "names": array_of_lines(model.vocabulary.names),
    }
    FORMAT.write(out, "paths", facts, {_ARRAYS: pack_arrays(arrays)})


def is_path_model(folder: str) -> bool:
    """Tell whether there is a model of paths in a folder."""
    return FORMAT.is_in(Path(folder))


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
    return FORMAT.read(folder, _unpack)


def _unpack(manifest: dict[str, Any], files: dict[str, bytes]) -> PathModel:
    labels = [str(label) for label in manifest["labels"]]
    one_state = bool(manifest["one_state"])
    if manifest["distances"]:
        tied = bool(manifest["tied"])
        states = PathStates.partially_supervised(len(labels) - 2, one_state=one_state, tied=tied)
    else:
        states = PathStates.supervised(labels, one_state=one_state)
    if list(states.labels) != labels or not all(label.isprintable() for label in labels):
        msg = "labels that no model has"
        raise ValueError(msg)
    arrays = unpack_arrays(files[_ARRAYS])
    names = lines_of(arrays, "names")
    if not {name.partition(" ")[0] for name in names} <= set(KINDS):
        msg = "a feature of no kind"
        raise ValueError(msg)
    structure = states.structure
    crf = ChainCRF(structure)
    crf.set_weights(
        expect(arrays, "shared", (len(names), len(structure.groups)), "f").astype(np.float64),
        expect(arrays, "edge", structure.edges.shape, "f").astype(np.float64),
    )
    rewards = expect(arrays, "rewards", (len(labels),), "f").astype(np.float64)
    reading = ReadingLimits(int(manifest["words"]), int(manifest["near"]))
    away = float(manifest["away"])
    if not 0.0 <= away <= 1.0:
        msg = "a share that is none"
        raise ValueError(msg)
    calibration = _calibration(manifest["calibration"])
    return PathModel(states, FeatureVocabulary(names), crf, rewards, away, reading, calibration)


def _calibration(found: dict[str, Any] | None) -> Calibration | None:
    """Return what `asdict` made a dictionary of; None where the model has none."""
    if found is None:
        return None
    link, page = (
        Evidence(float(found[kind]["slope"]), float(found[kind]["offset"]))
        for kind in ("link", "page")
    )
    numbers = [link.slope, link.offset, page.slope, page.offset]
    read = Calibration(link, page, float(found["prior"]), int(found["goals"]))
    if not (0.0 < read.prior < 1.0 and read.goals > 0 and np.isfinite(numbers).all()):
        msg = "a calibration that is none"
        raise ValueError(msg)
    return read
