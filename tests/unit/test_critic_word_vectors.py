"""Static word embeddings: near where the meaning is."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.cli.critic_examples import warn_of_missing_embeddings
from focuscrawl.critic import page_vectors
from focuscrawl.critic.few_shot import learn_from_query
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.page_vectors import WordVectors
from focuscrawl.critic.phrase_model import read_phrases
from focuscrawl.errors import UserError


def cosine(vectors: WordVectors, one: str, other: str) -> float:
    a, b = vectors.of([one, other]).astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_meaning_are_near() -> None:
    vectors = WordVectors()
    assert cosine(vectors, "bird", "owl") > cosine(vectors, "bird", "carburetor") + 0.1
    assert vectors.of([]).shape == (0, vectors.dimensions)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_vectors, "find_spec", lambda _: None)
    assert not page_vectors.word_vectors_installed()
    with pytest.raises(UserError, match=r"pip install 'focuscrawl\[embeddings\]'"):
        WordVectors()


def test_training_warns_once_where_they_would_have_been_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    english, german = (
        TrainedCritic(model=learn_from_query([[word]], embeddings=False, languages=((code, 1.0),)))
        for word, code in (("ornithology", "en"), ("vogelkunde", "de"))
    )
    warn_of_missing_embeddings(english)
    assert capsys.readouterr().err == ""  # they are installed
    monkeypatch.setattr(page_vectors, "find_spec", lambda _: None)
    for trained in (english, german, TrainedCritic(model=read_phrases("ornithology"))):
        warn_of_missing_embeddings(trained)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "pip install 'focuscrawl[embeddings]'" in said.err
