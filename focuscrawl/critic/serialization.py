"""Models as arrays and plain facts, and back: nothing in a file is ever run."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.counts import ClassCounts
from focuscrawl.critic.hierarchical import HierarchicalNaiveBayes
from focuscrawl.critic.naive_bayes import NaiveBayes
from focuscrawl.critic.phrase_model import WordsModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.critic.focused_critic import TopicModel

_MOST_BYTES = 1 << 30  # unpacked arrays; a larger model is a zip bomb or a mistake
_LEARNED = {kind.kind: kind for kind in (NaiveBayes, HierarchicalNaiveBayes)}


def pack_model(model: TopicModel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays of `model`, and the facts about it that go into the manifest."""
    if isinstance(model, WordsModel):
        forms = sorted(model.background)
        arrays: dict[str, NDArray[Any]] = {
            "background": np.array([model.background[form] for form in forms])
        }
        return arrays, {"phrases": [list(phrase) for phrase in model.phrases], "forms": forms}
    if not isinstance(model, NaiveBayes | HierarchicalNaiveBayes):
        msg = f"no file format for {type(model).__name__}"
        raise TypeError(msg)
    counts = model.counts
    smallest = np.min_scalar_type(int(counts.counts.max(initial=0)))
    words = "\n".join(counts.words).encode()
    return {
        # class by class and counts, not logarithms: mostly zeros and small numbers pack well
        "counts": np.ascontiguousarray(counts.counts.T.astype(smallest)),
        "words": np.frombuffer(words, dtype=np.uint8),
    }, {
        "pages": dict(zip(counts.classes, counts.pages.tolist(), strict=True)),
        "words": len(counts.words),
        "uniform_prior": model.uniform_prior,
    }


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` file; ValueError and the errors of zip files if it is not a sound one."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
            msg = "the arrays are too large"
            raise ValueError(msg)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def expect(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kinds: str
) -> NDArray[Any]:
    """Return an array of finite numbers of this `shape` and these dtype `kinds`, or ValueError."""
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds or not np.isfinite(array).all():
        msg = f"array {name} is {array.dtype} {array.shape}"
        raise ValueError(msg)
    return array


def unpack_model(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TopicModel:
    """Make the model again; ValueError, KeyError or TypeError if its parts do not fit."""
    kind = manifest["kind"]
    if kind == WordsModel.kind:
        forms = [str(form) for form in manifest["forms"]]
        background = expect(arrays, "background", (len(forms),), "f").tolist()
        phrases = [[str(word) for word in phrase] for phrase in manifest["phrases"]]
        return WordsModel(phrases, dict(zip(forms, background, strict=True)))
    if kind not in _LEARNED:
        msg = f"unknown kind {kind!r}"
        raise ValueError(msg)
    pages = manifest["pages"]
    text = arrays["words"]
    words = expect(arrays, "words", text.shape, "u").astype(np.uint8).tobytes().decode()
    vocabulary = tuple(words.split("\n")) if words else ()
    counts = expect(arrays, "counts", (len(pages), len(vocabulary)), "u")
    return _LEARNED[kind](
        ClassCounts(
            tuple(pages),
            vocabulary,
            np.ascontiguousarray(counts.T.astype(np.int64)),
            np.array([int(number) for number in pages.values()], dtype=np.int64),
        ),
        uniform_prior=bool(manifest["uniform_prior"]),
    )
