"""Static word embeddings: near where the meaning is."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.critic import word_vectors
from focuscrawl.critic.word_vectors import WordVectors
from focuscrawl.errors import UserError


def cosine(vectors: WordVectors, one: str, other: str) -> float:
    a, b = vectors.of([one, other]).astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_meaning_are_near() -> None:
    vectors = WordVectors()
    assert cosine(vectors, "bird", "owl") > cosine(vectors, "bird", "carburetor") + 0.1
    assert vectors.of([]).shape == (0, vectors.dimensions)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "find_spec", lambda _: None)
    assert not word_vectors.word_vectors_installed()
    with pytest.raises(UserError, match=r"pip install 'focuscrawl\[embeddings\]'"):
        WordVectors()
