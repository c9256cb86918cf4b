"""A user's own callable in the critic's place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from focuscrawl.critic import load_critic
from focuscrawl.errors import UserError
from focuscrawl.page import parse_page

MODULE = """
import numpy as np
from focuscrawl.critic import Judgement

def about_birds(pages):
    return ["bird" in page.tokens for page in pages]

def by_class(pages):
    share = np.array([page.tokens.count("bird") / len(page.tokens) for page in pages])
    return Judgement(share, np.column_stack([1 - share, share]))
by_class.classes = ("/Code", "/Science/Birds")

class Judge:
    def __call__(self, pages):
        return np.full(len(pages), 0.5)
judge = Judge()

too_many = lambda pages: [0.0] * (len(pages) + 1)
too_large = lambda pages: [1.5] * len(pages)
not_a_number = lambda pages: [float("nan")] * len(pages)
nothing = lambda pages: None
text = lambda pages: ["high"] * len(pages)
classes_unnamed = lambda pages: Judgement(np.ones(len(pages)), np.ones((len(pages), 2)))
number = 7
"""
PAGES = [
    parse_page(b"<p>a bird in the hand", "http://a.example/"),
    parse_page(b"<p>a bug in the code", "http://b.example/"),
]


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "my_critic_module.py"
    path.write_text(MODULE)
    (tmp_path / "my_broken_module.py").write_text("import nothing_of_this_name")
    monkeypatch.chdir(tmp_path)
    yield path
    sys.modules.pop("my_critic_module", None)


def test_relevances() -> None:
    critic = load_critic("my_critic_module:about_birds", "/Science/Birds")
    found = critic.judge(PAGES)
    assert found.relevance.tolist() == [1.0, 0.0]
    assert found.relevance.dtype == np.float64
    assert found.probabilities is None
    assert critic.classes == ()
    assert critic.examples == ()
    assert critic.judge([]).relevance.shape == (0,)


def test_class_probabilities() -> None:
    critic = load_critic("my_critic_module:by_class", "/Science")
    found = critic.judge(PAGES)
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities[0], [0.8, 0.2])
    assert critic.marked.tolist() == [False, True]


def test_fingerprint_follows_code_and_focus(module: Path) -> None:
    critic = load_critic("my_critic_module:judge", "/Science")
    assert critic.judge(PAGES).relevance.tolist() == [0.5, 0.5]
    first = critic.fingerprint
    assert load_critic("my_critic_module:judge", "/Science").fingerprint == first
    assert load_critic("my_critic_module:judge", "/Arts").fingerprint != first
    module.write_text(MODULE + "\n# changed\n")
    assert load_critic("my_critic_module:judge", "/Science").fingerprint != first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("too_many", r"relevance must have shape \(2,\).*shape \(3,\)"),
        ("too_large", "values from 1.5"),
        ("not_a_number", "values from nan"),
        ("nothing", "relevance"),
        ("text", "list"),
        ("classes_unnamed", r"probabilities must have shape \(2, 0\)"),
    ],
)
def test_what_it_returns_is_checked(name: str, message: str) -> None:
    critic = load_critic(f"my_critic_module:{name}", "/Science")
    with pytest.raises(UserError, match=message) as caught:
        critic.judge(PAGES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("my_missing_module:judge", "ModuleNotFoundError"),
        ("my_broken_module:judge", "nothing_of_this_name"),
        ("my_critic_module:missing", "has no missing"),
        ("my_critic_module:number", "not callable"),
    ],
)
def test_what_cannot_be_loaded(spec: str, message: str) -> None:
    before = list(sys.path)
    with pytest.raises(UserError, match=message) as caught:
        load_critic(spec, "/Science")
    assert "\n" not in str(caught.value)
    assert sys.path == before
