"""Critics on disk: exact, and trusted only when their parts fit each other.

Damage, other formats and replacing are tested in `test_foundation_model_folder`.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from focuscrawl.critic import load_critic
from focuscrawl.critic.bag_of_words import TrainingRows
from focuscrawl.critic.calibration import Calibration
from focuscrawl.critic.classifiers import HierarchicalNaiveBayes, NaiveBayes
from focuscrawl.critic.corpus import PackedBags
from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.errors import UserError

BAGS = [{"bird": 9, "wing": 300}, {"code": 2}, {"kernel": 70_000, "café": 1}]
TOPICS = ["/Science/Birds", "/Computers/Code", "/Computers/Kernels"]
PAGES = [{"bird": 1}, {"kernel": 2, "café": 1}, {}]


def trained(kind: type[NaiveBayes] = NaiveBayes) -> TrainedCritic:
    return TrainedCritic(
        model=kind(TrainingRows.from_bags(BAGS, TOPICS).count()),
        examples=tuple((f"http://{i}.example/,é", t) for i, t in enumerate(TOPICS)),
        training_set="0" * 64,
        untrained_topics=("/Computers/Lost",),
        calibration=Calibration(2.0, 0.9),
        cross_validation={"folds": 3, "accuracy": 0.5, "mean_recall": 0.5},
        skipped={"not HTML": 1},
        unread=("http://lost.example/",),
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the manifest as its author could: with a digest that fits."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= changes
    manifest.pop("digest")
    manifest["digest"] = sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace_arrays(folder: Path, **arrays: np.ndarray) -> None:
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=True, **arrays)
    (folder / "model.npz").write_bytes(packed.getvalue())
    files = json.loads((folder / "manifest.json").read_text())["files"]
    rewrite(folder, files=files | {"model.npz": sha256(packed.getvalue()).hexdigest()})


@pytest.mark.parametrize("kind", [NaiveBayes, HierarchicalNaiveBayes])
def test_comes_back_as_it_was(tmp_path: Path, kind: type[NaiveBayes]) -> None:
    before = trained(kind)
    size = save_critic(before, tmp_path / "a")
    after, _ = read_critic(tmp_path / "a")
    assert type(after.model) is kind
    np.testing.assert_array_equal(
        after.model.log_posteriors(PAGES), before.model.log_posteriors(PAGES)
    )
    for name in ("examples", "training_set", "untrained_topics", "calibration", "calibrated",
                 "cross_validation", "skipped", "unread"):  # fmt: skip
        assert getattr(after, name) == getattr(before, name)
    assert size == sum(map(len, contents(tmp_path / "a").values()))


def test_words_come_back(tmp_path: Path) -> None:
    model = build_phrase_model("kernel code, birds")
    save_critic(TrainedCritic(model=model), tmp_path / "w")
    critic = load_critic(str(tmp_path / "w"), "/good")
    expected = np.exp(model.log_posteriors(PAGES))
    np.testing.assert_array_equal(critic.judge_bags(PAGES).probabilities, expected)  # type: ignore[union-attr]
    assert critic.examples == ()
    with pytest.raises(UserError, match="no calibration"):
        load_critic(str(tmp_path / "w"), "/good", calibrated=True)


def test_pages_that_it_was_learned_from_come_back(tmp_path: Path) -> None:
    save_critic(replace(trained(), pages=PackedBags.from_bags([*PAGES, *BAGS])), tmp_path / "a")
    found, _ = read_critic(str(tmp_path / "a"))
    assert found.pages.bags() == [*PAGES, *BAGS]
    with np.load(tmp_path / "a" / "model.npz") as arrays:
        packed = dict(arrays)
    for name, wrong in (
        ("page_ids", packed["page_ids"] + 1),
        ("page_counts", packed["page_counts"] * 0),
        ("page_starts", packed["page_starts"][::-1]),
        ("page_starts", packed["page_starts"][:3]),
        ("page_starts", packed["page_starts"][:0]),
        ("page_words", packed["page_words"].astype(float)),
    ):
        replace_arrays(tmp_path / "a", **packed | {name: wrong})
        with pytest.raises(UserError, match="is a damaged critic"):
            read_critic(str(tmp_path / "a"))


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "pickle"},
        {"classes": ["/A", "/B", "/C"]},
        {"pages": {"/A": 1}},
        {"pages": {"/Computers/Code": 0, "/Computers/Kernels": 1, "/Science/Birds": 1}},
        {"pages": None},
        {"files": {}},
        {"absent": 7},
        {"cross_validation": "good"},
        {"query": [[]]},
        {"query": 7},
        {"random_state": -1},
        {"random_state": "seven"},
        {"languages": []},
        {"languages": [["de", 7.0]]},
        {"languages": [["de"]]},
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    save_critic(trained(), tmp_path / "a")
    rewrite(tmp_path / "a", **changes)
    with pytest.raises(UserError, match="is a damaged critic"):
        read_critic(tmp_path / "a")


COUNTS = np.zeros((3, 1), dtype=np.uint8)
WORD = np.frombuffer(b"bird", dtype=np.uint8)


@pytest.mark.parametrize(
    "arrays",
    [
        {"counts": COUNTS},
        {"counts": COUNTS.astype(np.float64), "words": WORD},
        {"counts": COUNTS[:2], "words": WORD},
        {"counts": COUNTS.astype(object), "words": WORD},
        {"counts": np.zeros((3, 2), np.uint8), "words": np.frombuffer(b"a\na", dtype=np.uint8)},
        {"counts": COUNTS, "words": np.frombuffer(b"\xff", dtype=np.uint8)},
        {"counts": COUNTS, "words": WORD, "calibration": np.array([np.nan, 1.0])},
        {"counts": COUNTS, "words": WORD, "calibration": np.array([-1.0, 1.0])},
        {"counts": np.full((3, 1), 2**63, np.uint64), "words": WORD},
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    save_critic(trained(), tmp_path / "a")
    replace_arrays(tmp_path / "a", **arrays)
    with pytest.raises(UserError, match="is a damaged critic"):
        read_critic(tmp_path / "a")


def test_focus_marks_leaves_below(tmp_path: Path) -> None:
    save_critic(trained(), tmp_path / "a")
    critic = load_critic(str(tmp_path / "a"), "Computers/")
    assert critic.classes == ("/Computers/Code", "/Computers/Kernels", "/Science/Birds")
    assert critic.marked.tolist() == [True, True, False]
    assert set(critic.examples) == {"http://1.example/,é", "http://2.example/,é"}
    verdict = critic.judge_bags(PAGES)  # type: ignore[union-attr]
    assert verdict.probabilities is not None
    np.testing.assert_allclose(verdict.relevance, verdict.probabilities[:, :2].sum(axis=1))
    both = load_critic(str(tmp_path / "a"), "/Science/Birds, /Computers")
    assert both.marked.all()
    assert (both.judge_bags(PAGES).relevance <= 1.0).all()  # type: ignore[union-attr]


def test_fingerprint_tells_model_focus_and_calibration(tmp_path: Path) -> None:
    save_critic(trained(), tmp_path / "a")
    save_critic(trained(HierarchicalNaiveBayes), tmp_path / "b")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    same = load_critic(a, "/Computers")
    assert load_critic(a, "/Computers/Code,/Computers/Kernels").fingerprint == same.fingerprint
    others = [
        load_critic(a, "/Science"),
        load_critic(b, "/Computers"),
        load_critic(a, "/Computers", calibrated=True),
    ]
    assert len({critic.fingerprint for critic in [same, *others]}) == 4


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("/Computer/Code", "unknown topic /Computer/Code; similar topics: /Computers/Code"),
        ("/Zebra", "similar topics: /Computers/Code"),
        ("/Computers/Lost", "no example"),
        (" , ", "the topic is empty"),
    ],
)
def test_topics_the_critic_does_not_know(tmp_path: Path, topic: str, message: str) -> None:
    save_critic(trained(), tmp_path / "a")
    with pytest.raises(UserError, match=message):
        load_critic(str(tmp_path / "a"), topic)


def test_models_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_critic(trained(), tmp_path / "models" / "birds")
    monkeypatch.chdir(tmp_path)
    for spec in ("birds", "models/birds", str(tmp_path / "models" / "birds")):
        assert load_critic(spec, "/Science").classes
    with pytest.raises(UserError, match=r"critic bird not found; available: .*birds"):
        load_critic("bird", "/Science")
