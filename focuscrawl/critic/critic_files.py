"""Save critics to folders such as ``models/NAME``, and load them by name or path.

The folder of a critic has a manifest (`focuscrawl.foundation.model_folder`), ``model.npz`` with
the arrays of the model, and ``examples.csv`` with the training pages. Loading validates all files.
"""

from __future__ import annotations

import csv
import hashlib
import io
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.bag_of_words import ClassCounts
from focuscrawl.critic.calibration import Calibration
from focuscrawl.critic.classifiers import KINDS, LinearModel, LogisticModel, NaiveBayes
from focuscrawl.critic.corpus import PackedBags
from focuscrawl.critic.focused_critic import FocusedCritic, TrainedCritic, is_few_shot
from focuscrawl.critic.languages import ENGLISH
from focuscrawl.critic.page_vectors import PageVectors, Subwords, load_word_vectors
from focuscrawl.critic.phrase_model import OFF_TOPIC, PhraseModel
from focuscrawl.critic.protocol import CustomCritic, is_callable_spec, load_custom
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import (
    decode_lines,
    encode_lines,
    pack_arrays,
    require_array,
    unpack_finite_arrays,
)
from focuscrawl.foundation.model_folder import ModelFormat, find_model_folder, model_folders
from focuscrawl.taxonomy import Taxonomy, parse_topics

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.critic.languages import LanguageShares


_ARRAYS, _EXAMPLES = "model.npz", "examples.csv"
_COLUMNS = ["url", "topic"]
_LEAVE_OUT = "leave out the option calibrated"
FORMAT = ModelFormat(
    "critic",
    (*KINDS, PhraseModel.kind, LogisticModel.kind),
    1,
    (_ARRAYS, _EXAMPLES),
    "focuscrawl critic train",
)


def save_critic(trained: TrainedCritic, out: str | Path, *, force: bool = False) -> int:
    """Save a critic to the folder `out` atomically, and return the size of the files in bytes.

    Parameters
    ----------
    out : folder to create
    force : whether to replace an existing critic

    Raises
    ------
    UserError
        If `out` exists and `force` is false, or is not a critic, or cannot be written.
    """
    arrays, of_model = pack_model(trained.model)
    arrays |= trained.pages.pack()
    if trained.calibration is not None:
        arrays["calibration"] = np.array([trained.calibration.scale, trained.calibration.exponent])
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([_COLUMNS, *trained.examples])
    facts = {
        "classes": list(trained.model.classes),
        "absent": list(trained.untrained_topics),
        "training_set": trained.training_set,
        "cross_validation": dict(trained.cross_validation),
        "calibrated": trained.calibrated,
        "skipped": dict(trained.skipped),
        "unread": list(trained.unread),
        "query": [list(phrase) for phrase in trained.phrases],
        "random_state": trained.random_state,
        **of_model,
    }
    files = {_ARRAYS: pack_arrays(arrays), _EXAMPLES: table.getvalue().encode()}
    return FORMAT.write(Path(out), trained.model.kind, facts, files, force=force)


def read_critic(folder: str | Traversable) -> tuple[TrainedCritic, str]:
    """Read the critic in `folder` (may be in a zip archive); return the critic and its hex digest.

    Raises
    ------
    UserError
        If the critic is damaged, was modified, or has another format.
    """
    return FORMAT.read(Path(folder) if isinstance(folder, str) else folder, _unpack)


def _unpack(manifest: dict[str, Any], files: dict[str, bytes]) -> TrainedCritic:
    arrays = unpack_finite_arrays(files[_ARRAYS])
    calibration = None
    if "calibration" in arrays:
        scale, exponent = require_array(arrays, "calibration", (2,), "f").tolist()
        calibration = Calibration(scale, exponent)
    rows = list(csv.reader(io.StringIO(files[_EXAMPLES].decode(), newline="")))
    if not rows or rows[0] != _COLUMNS or any(len(row) != 2 for row in rows):
        raise ValueError(f"{_EXAMPLES} has columns other than url,topic")
    model = _unpack_model(manifest, arrays)
    if list(model.classes) != manifest["classes"]:
        raise ValueError("the classes of the manifest and the model differ")
    if any(unicodedata.category(c).startswith("C") for path in model.classes for c in path):
        raise ValueError("the name of a class has control characters")
    if not {topic for _, topic in rows[1:]} <= set(model.classes):
        raise ValueError(f"{_EXAMPLES} has a topic that is not a class")
    phrases = tuple(tuple(map(str, phrase)) for phrase in manifest.get("query", ()))
    random_state = int(manifest.get("random_state", 0))
    if not all(phrases) or random_state < 0:
        raise ValueError("the manifest has an invalid query or random_state")
    pages = PackedBags.unpack(arrays)
    if 0 < pages.n_pages < len(rows) - 1:
        raise ValueError("the words of examples are missing")
    return TrainedCritic(
        model=model,
        examples=tuple((url, topic) for url, topic in rows[1:]),
        training_set=str(manifest["training_set"]),
        untrained_topics=tuple(map(str, manifest["absent"])),
        calibration=calibration,
        calibrated=bool(manifest["calibrated"]),
        cross_validation=dict(manifest["cross_validation"]),
        skipped=dict(manifest["skipped"]),
        unread=tuple(map(str, manifest.get("unread", ()))),
        phrases=phrases,
        random_state=random_state,
        pages=pages,
    )


def pack_model(model: TopicModel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays of `model`, and the entries of the manifest that describe the model."""
    if isinstance(model, PhraseModel):
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
        # counts by class instead of logarithms: zeros and small integers compress well
        "counts": np.ascontiguousarray(counts.counts.T.astype(smallest)),
        "words": encode_lines(counts.words),
    }, {
        "pages": dict(zip(counts.classes, counts.pages.tolist(), strict=True)),
        "words": len(counts.words),
        "uniform_prior": model.uniform_prior,
        **_pack_languages(model.languages),
    }


def _pack_languages(shares: LanguageShares) -> dict[str, Any]:
    return {} if shares == ENGLISH else {"languages": [list(each) for each in shares]}


def _unpack_languages(manifest: Mapping[str, Any]) -> LanguageShares:
    if "languages" not in manifest:
        return ENGLISH
    shares = tuple((str(code), float(share)) for code, share in manifest["languages"])
    if not shares or not all(0.0 <= share <= 1.0 for _, share in shares):
        raise ValueError("the manifest has invalid shares of languages")
    return shares


def _unpack_model(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TopicModel:
    """Rebuild the model; ValueError, KeyError or TypeError if its parts are inconsistent."""
    kind = manifest["kind"]
    if kind == PhraseModel.kind:
        forms = [str(form) for form in manifest["forms"]]
        background = require_array(arrays, "background", (len(forms),), "f").tolist()
        phrases = [[str(word) for word in phrase] for phrase in manifest["phrases"]]
        return PhraseModel(
            phrases, dict(zip(forms, background, strict=True)), _unpack_languages(manifest)
        )
    if kind == LogisticModel.kind:
        return _unpack_logistic(manifest, arrays)
    pages = manifest["pages"]
    vocabulary = decode_lines(arrays, "words")
    counts = require_array(arrays, "counts", (len(pages), len(vocabulary)), "u")
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
    link_model, link_facts = pack_model(model.link_model)
    arrays: dict[str, NDArray[Any]] = {
        "words": encode_lines(vectors.words),
        "idf": vectors.idf,
        "weights": linear.weights.astype(np.float32),
        "intercept": linear.intercept.astype(np.float32),
        **{f"reader_{name}": array for name, array in link_model.items()},
    }
    if vectors.centre is not None:
        subwords = load_word_vectors().split(vectors.words)
        arrays["centre"] = vectors.centre
        arrays["pieces"] = subwords.ids.astype(np.uint32)
        arrays["pieces_of_words"] = np.diff(subwords.starts).astype(np.uint16)
    return arrays, {
        "words": len(vectors.words),
        "embeddings": vectors.centre is not None,
        "reader": link_facts,
        **_pack_languages(vectors.languages),
    }


def _unpack_subwords(arrays: Mapping[str, NDArray[Any]], n_words: int) -> Subwords:
    """Return the stored subwords of words; computing them takes longer than judging a page."""
    lengths = require_array(arrays, "pieces_of_words", (n_words,), "u")
    ids = require_array(arrays, "pieces", (int(lengths.sum()),), "u")
    if ids.max(initial=0) >= load_word_vectors().n_subwords:
        raise ValueError("a word has an unknown subword")
    return Subwords.from_lengths(ids, lengths)


def _unpack_logistic(
    manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> LogisticModel:
    vocabulary = decode_lines(arrays, "words")
    classes = tuple(map(str, manifest["classes"]))
    columns = 1 if len(classes) == 2 else len(classes)
    centre = None
    if manifest["embeddings"]:
        centre = require_array(arrays, "centre", (len(arrays["centre"]),), "f")
    vectors = PageVectors(
        vocabulary,
        require_array(arrays, "idf", (len(vocabulary),), "f"),
        centre,
        _unpack_languages(manifest),
        _unpack_subwords(arrays, len(vocabulary)) if "pieces" in arrays else None,
    )
    if centre is not None and len(centre) != vectors.dimensions:
        raise ValueError(f"embeddings have {len(centre)} dimensions, not {vectors.dimensions}")
    shape = (len(vocabulary) + vectors.dimensions, columns)
    linear = LinearModel(
        classes,
        require_array(arrays, "weights", shape, "f").astype(np.float64),
        require_array(arrays, "intercept", (columns,), "f").astype(np.float64),
    )
    link_facts = {"kind": NaiveBayes.kind, **manifest["reader"]}
    link_model = _unpack_model(
        link_facts,
        {n.removeprefix("reader_"): a for n, a in arrays.items() if n.startswith("reader_")},
    )
    if not isinstance(link_model, NaiveBayes):
        raise ValueError("the link model is not naive Bayes")
    return LogisticModel(vectors, linear, link_model)


def load_critic(
    spec: str, topic: str, *, calibrated: bool | None = None
) -> FocusedCritic | CustomCritic:
    """Load a critic, and set the topics whose pages count as relevant.

    Parameters
    ----------
    spec : folder of a trained critic, its name under ``models/``, or ``module:callable``
    topic : topic paths, comma-separated; topics below them are marked too
    calibrated : whether judgements are calibrated; None for the default of the critic

    Raises
    ------
    UserError
        If the critic is missing or damaged, has no class or example of a topic, or lacks a
        requested calibration.
    """
    if is_callable_spec(spec) and not Path(spec).exists():
        if calibrated:
            raise UserError(f"critic {spec}: a callable has no calibration; {_LEAVE_OUT}")
        return load_custom(spec, _require_topics(topic))
    return load_trained(spec, topic, calibrated=calibrated)


def load_trained(spec: str, topic: str, *, calibrated: bool | None = None) -> FocusedCritic:
    """Load a trained critic as `load_critic` does, but never import a callable.

    The function is for critic names that were read from files, because such files may come from
    somebody else.
    """
    topics = _require_topics(topic)
    folder = find_model(spec)
    trained, digest = read_critic(folder)
    calibrate = trained.calibrated if calibrated is None else calibrated
    if calibrate and trained.calibration is None:
        raise UserError(f"{folder}: the critic has no calibration; {_LEAVE_OUT}")
    marked = _find_focus_leaves(folder, trained, topics)
    focus = "\0".join([digest, f"calibrated={calibrate}", *sorted(marked)])
    return FocusedCritic(
        trained.model,
        np.array([path in marked for path in trained.model.classes]),
        tuple(url for url, path in trained.examples if path in marked),
        hashlib.sha256(focus.encode()).hexdigest(),
        trained.calibration if calibrate else None,
        trained.phrases,
        requires_main_text=is_few_shot(trained),
    )


def default_topic(spec: str, remedy: str) -> str:
    """Return the topic of a critic that was trained on keywords or on good and bad pages.

    Parameters
    ----------
    spec : folder of a trained critic, its name under ``models/``, or ``module:callable``
    remedy : how the user can name a topic, for the error message

    Raises
    ------
    UserError
        If the critic has several topics, is a callable, is missing, or is damaged.
    """
    if is_callable_spec(spec) and not Path(spec).exists():
        raise UserError(
            f"no topic given: {remedy}; the critic {spec} is Python code, for which the topic may "
            "have any name"
        )
    trained, _ = read_critic(find_model(spec))
    topics = [name for name in trained.model.classes if name != OFF_TOPIC]
    if not is_few_shot(trained):
        raise UserError(
            f"no topic given: {remedy}; the critic {spec} has {len(topics)} topics, such as "
            f"{' and '.join(topics[:2])}"
        )
    return ",".join(topics)


def reject_callable_spec(name: str, where: str, option: str) -> str:
    """Return a critic's name that was read from a file; raise `UserError` if it is a callable.

    The file may come from somebody else, and only the user may name Python code to run.

    Parameters
    ----------
    where : place of the name, for the error message
    option : option or argument by which the user can name the critic
    """
    if is_callable_spec(name):
        raise UserError(
            f"{where}: its critic {name} is Python code, which runs only if you name it: "
            f"add {option}{name}"
        )
    return name


def find_model(spec: str) -> Traversable:
    """Return the folder of the trained critic `spec`, which is a path or a name in `models`.

    The folder of the critic may be inside the zip archive from which the package was imported.

    Raises
    ------
    UserError
        If there is no such critic.
    """
    folder = find_model_folder(spec)
    if folder is not None:
        return folder
    known = sorted({name for models in model_folders() for name in _list_critics(models)})
    advice = f"available: {', '.join(known)}" if known else "train it: focuscrawl critic train"
    raise UserError(f"critic {spec} not found; {advice}")


def model_file(name: str) -> Traversable | None:
    """Return the file ``models/...`` inside the package; None if there is no such file."""
    start, slash, rest = name.partition("models/")
    if slash and not start and ".." not in rest.split("/"):
        for models in model_folders()[1:]:
            if (models / rest).is_file():
                return models / rest
    return None


def _require_topics(topic: str) -> tuple[str, ...]:
    topics = parse_topics(topic)
    if not topics:
        raise UserError("the topic is empty; give topic paths like /Sports, comma-separated")
    return topics


def _list_critics(models: Traversable) -> list[str]:
    if not models.is_dir():
        return []
    return [each.name for each in models.iterdir() if FORMAT.exists_in(each)]


def _find_focus_leaves(
    folder: Traversable, trained: TrainedCritic, topics: Sequence[str]
) -> set[str]:
    """Return the classes at or below `topics`."""
    classes = Taxonomy({path: [] for path in trained.model.classes})
    marked: set[str] = set()
    for topic in topics:
        if topic in trained.untrained_topics:
            raise UserError(
                f"{folder}: no example of topic {topic} could be read at training; train again "
                "with examples that the web has"
            )
        if topic not in classes:
            near = classes.nearest(topic) or list(classes.leaves[:5])
            raise UserError(f"{folder}: unknown topic {topic}; similar topics: {', '.join(near)}")
        marked.update(classes.leaves_under(topic))
    return marked
