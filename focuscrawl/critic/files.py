"""Critics on disk: ``models/NAME``.

Beside its manifest (`focuscrawl.foundation.model_folder`) a critic has ``model.npz``, the arrays
of its model, and ``examples.csv``, the training pages. All that is read from them is checked.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.calibration import Calibration
from focuscrawl.critic.counts import ClassCounts
from focuscrawl.critic.discriminative import Linear, LogisticModel
from focuscrawl.critic.kept_pages import KeptPages
from focuscrawl.critic.naive_bayes import KINDS, NaiveBayes
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.phrase_model import WordsModel
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.critic.word_vectors import Pieces, word_vectors
from focuscrawl.critic.written import ENGLISH
from focuscrawl.foundation.model_folder import ModelFormat
from focuscrawl.foundation.packed_arrays import (
    array_of_lines,
    expect,
    lines_of,
    pack_arrays,
    unpack_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.critic.written import Shares

_ARRAYS, _EXAMPLES = "model.npz", "examples.csv"
_COLUMNS = ["url", "topic"]
FORMAT = ModelFormat(
    "critic",
    (*KINDS, WordsModel.kind, LogisticModel.kind),
    1,
    (_ARRAYS, _EXAMPLES),
    "focuscrawl critic train",
)


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
    arrays, of_model = pack_model(trained.model)
    arrays |= trained.pages.pack()
    if trained.calibration is not None:
        arrays["calibration"] = np.array([trained.calibration.scale, trained.calibration.exponent])
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([_COLUMNS, *trained.examples])
    facts = {
        "classes": list(trained.model.classes),
        "absent": list(trained.absent),
        "training_set": trained.training_set,
        "cross_validation": dict(trained.cross_validation),
        "calibrated": trained.calibrated,
        "skipped": dict(trained.skipped),
        "query": [list(phrase) for phrase in trained.phrases],
        "random_state": trained.random_state,
        **of_model,
    }
    files = {_ARRAYS: pack_arrays(arrays), _EXAMPLES: table.getvalue().encode()}
    return FORMAT.write(Path(out), trained.model.kind, facts, files, force=force)


def read_critic(folder: str | Traversable) -> tuple[TrainedCritic, str]:
    """Read the critic in `folder`, which may lie in an archive.

    Returns
    -------
    The critic, and a hex digest of it.

    Raises
    ------
    UserError
        If it is damaged, was tampered with, or is of another format.
    """
    return FORMAT.read(Path(folder) if isinstance(folder, str) else folder, _unpack)


def _unpack(manifest: dict[str, Any], files: dict[str, bytes]) -> TrainedCritic:
    arrays = unpack_numbers(files[_ARRAYS])
    calibration = None
    if "calibration" in arrays:
        scale, exponent = expect(arrays, "calibration", (2,), "f").tolist()
        calibration = Calibration(scale, exponent)
    rows = list(csv.reader(io.StringIO(files[_EXAMPLES].decode(), newline="")))
    if not rows or rows[0] != _COLUMNS or any(len(row) != 2 for row in rows):
        raise ValueError(f"{_EXAMPLES} is not url,topic")
    model = _unpack_model(manifest, arrays)
    if list(model.classes) != manifest["classes"]:
        raise ValueError("classes do not match")
    if any(unicodedata.category(c).startswith("C") for path in model.classes for c in path):
        raise ValueError("a class has a name that cannot be printed")
    if not {topic for _, topic in rows[1:]} <= set(model.classes):
        raise ValueError(f"{_EXAMPLES} has a topic that is no class")
    phrases = tuple(tuple(map(str, phrase)) for phrase in manifest.get("query", ()))
    random_state = int(manifest.get("random_state", 0))
    if not all(phrases) or random_state < 0:
        raise ValueError("it does not say how it was trained")
    pages = KeptPages.unpack(arrays)
    if 0 < pages.n_pages < len(rows) - 1:
        raise ValueError("pages of examples are missing")
    return TrainedCritic(
        model=model,
        examples=tuple((url, topic) for url, topic in rows[1:]),
        training_set=str(manifest["training_set"]),
        absent=tuple(map(str, manifest["absent"])),
        calibration=calibration,
        calibrated=bool(manifest["calibrated"]),
        cross_validation=dict(manifest["cross_validation"]),
        skipped=dict(manifest["skipped"]),
        phrases=phrases,
        random_state=random_state,
        pages=pages,
    )


def pack_model(model: TopicModel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays of `model`, and the facts about it that go into the manifest."""
    if isinstance(model, WordsModel):
        forms = sorted(model.background)
        arrays: dict[str, NDArray[Any]] = {
            "background": np.array([model.background[form] for form in forms])
        }
        phrases = [list(phrase) for phrase in model.phrases]
        return arrays, {"phrases": phrases, "forms": forms, **_pack_languages(model.languages)}
    if isinstance(model, LogisticModel):
        return _pack_logistic(model)
    if not isinstance(model, NaiveBayes):
        raise TypeError(f"no file format for {type(model).__name__}")
    counts = model.counts
    smallest = np.min_scalar_type(int(counts.counts.max(initial=0)))
    return {
        # class by class and counts, not logarithms: mostly zeros and small numbers pack well
        "counts": np.ascontiguousarray(counts.counts.T.astype(smallest)),
        "words": array_of_lines(counts.words),
    }, {
        "pages": dict(zip(counts.classes, counts.pages.tolist(), strict=True)),
        "words": len(counts.words),
        "uniform_prior": model.uniform_prior,
        **_pack_languages(model.languages),
    }


def _pack_languages(shares: Shares) -> dict[str, Any]:
    """Return what a manifest says of languages: nothing if it is English alone."""
    return {} if shares == ENGLISH else {"languages": [list(each) for each in shares]}


def _unpack_languages(manifest: Mapping[str, Any]) -> Shares:
    if "languages" not in manifest:
        return ENGLISH
    shares = tuple((str(code), float(share)) for code, share in manifest["languages"])
    if not shares or not all(0.0 <= share <= 1.0 for _, share in shares):
        raise ValueError("languages without shares")
    return shares


def _unpack_model(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TopicModel:
    """Make the model again; ValueError, KeyError or TypeError if its parts do not fit."""
    kind = manifest["kind"]
    if kind == WordsModel.kind:
        forms = [str(form) for form in manifest["forms"]]
        background = expect(arrays, "background", (len(forms),), "f").tolist()
        phrases = [[str(word) for word in phrase] for phrase in manifest["phrases"]]
        return WordsModel(
            phrases, dict(zip(forms, background, strict=True)), _unpack_languages(manifest)
        )
    if kind == LogisticModel.kind:
        return _unpack_logistic(manifest, arrays)
    pages = manifest["pages"]
    vocabulary = lines_of(arrays, "words")
    counts = expect(arrays, "counts", (len(pages), len(vocabulary)), "u")
    return KINDS[kind](
        ClassCounts(
            tuple(pages),
            vocabulary,
            np.ascontiguousarray(counts.T.astype(np.int64)),
            np.array([int(number) for number in pages.values()], dtype=np.int64),
        ),
        uniform_prior=bool(manifest["uniform_prior"]),
        languages=_unpack_languages(manifest),
    )


def _pack_logistic(model: LogisticModel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    vectors, linear = model.vectors, model.linear
    reader, of_reader = pack_model(model.reader)
    arrays: dict[str, NDArray[Any]] = {
        "words": array_of_lines(vectors.words),
        "idf": vectors.idf,
        "weights": linear.weights.astype(np.float32),
        "intercept": linear.intercept.astype(np.float32),
        **{f"reader_{name}": array for name, array in reader.items()},
    }
    if vectors.centre is not None:
        pieces = word_vectors().pieces(vectors.words)
        arrays["centre"] = vectors.centre
        arrays["pieces"] = pieces.ids.astype(np.uint32)
        arrays["pieces_of_words"] = np.diff(pieces.starts).astype(np.uint16)
    return arrays, {
        "words": len(vectors.words),
        "embeddings": vectors.centre is not None,
        "reader": of_reader,
        **_pack_languages(vectors.languages),
    }


def _unpack_pieces(arrays: Mapping[str, NDArray[Any]], n_words: int) -> Pieces:
    """Return what words are made of: to find it out costs more than to read a page."""
    lengths = expect(arrays, "pieces_of_words", (n_words,), "u")
    ids = expect(arrays, "pieces", (int(lengths.sum()),), "u")
    if ids.max(initial=0) >= word_vectors().n_pieces:
        raise ValueError("a word has a piece that there is none of")
    return Pieces.of_lengths(ids, lengths)


def _unpack_logistic(
    manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> LogisticModel:
    vocabulary = lines_of(arrays, "words")
    classes = tuple(map(str, manifest["classes"]))
    columns = 1 if len(classes) == 2 else len(classes)
    centre = None
    if manifest["embeddings"]:
        centre = expect(arrays, "centre", (len(arrays["centre"]),), "f")
    vectors = PageVectors(
        vocabulary,
        expect(arrays, "idf", (len(vocabulary),), "f"),
        centre,
        _unpack_languages(manifest),
        _unpack_pieces(arrays, len(vocabulary)) if "pieces" in arrays else None,
    )
    if centre is not None and len(centre) != vectors.dimensions:
        raise ValueError(f"embeddings of {len(centre)} dimensions")
    shape = (len(vocabulary) + vectors.dimensions, columns)
    linear = Linear(
        classes,
        expect(arrays, "weights", shape, "f").astype(np.float64),
        expect(arrays, "intercept", (columns,), "f").astype(np.float64),
    )
    of_reader = {"kind": NaiveBayes.kind, **manifest["reader"]}
    reader = _unpack_model(
        of_reader,
        {n.removeprefix("reader_"): a for n, a in arrays.items() if n.startswith("reader_")},
    )
    if not isinstance(reader, NaiveBayes):
        raise ValueError("the reader of words is no naive Bayes")
    return LogisticModel(vectors, linear, reader)
