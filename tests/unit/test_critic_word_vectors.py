"""Static word embeddings: near where the meaning is, the same however often they are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from focuscrawl.critic import word_vectors
from focuscrawl.critic.word_vectors import WordVectors
from focuscrawl.errors import UserError


def cosine(vectors: WordVectors, one: str, other: str) -> float:
    a, b = vectors.of([one, other])
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_meaning_are_near() -> None:
    vectors = WordVectors()
    assert cosine(vectors, "bird", "owl") > cosine(vectors, "bird", "carburetor") + 0.1
    assert vectors.of([]).shape == (0, vectors.dimensions)


def test_what_is_forgotten_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = WordVectors()
    words = [f"{a}{b}" for a in ("bird", "fish", "tree") for b in ("", "s", "house", "zyx")]
    expected = vectors.of(words)
    monkeypatch.setattr(word_vectors, "_REMEMBERED", 5)
    few = WordVectors()
    for start in range(0, len(words), 3):
        found = few.of(words[start : start + 3])
        assert found == pytest.approx(expected[start : start + 3])


def test_several_threads_may_ask() -> None:
    vectors = WordVectors()
    words = [f"word{i}" for i in range(300)]
    expected = WordVectors().of(words)
    with ThreadPoolExecutor(4) as pool:
        asked = [words[i:] + words[:i] for i in range(0, 300, 25)]
        for part, found in zip(asked, pool.map(vectors.of, asked), strict=True):
            at = [words.index(word) for word in part]
            assert found == pytest.approx(expected[at])


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "find_spec", lambda _: None)
    assert not word_vectors.word_vectors_installed()
    with pytest.raises(UserError, match=r"pip install 'focuscrawl\[embeddings\]'"):
        WordVectors()
