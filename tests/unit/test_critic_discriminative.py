"""The discriminative critic: its judgements of pages and words, its file, its embeddings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from focuscrawl.cli.critic_examples import warn_of_missing_embeddings
from focuscrawl.critic import load_critic, page_vectors
from focuscrawl.critic.classifiers import LogisticModel, fit_scale
from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.few_shot import fit_phrases
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.page_vectors import PageVectors, Subwords, WordVectors, load_word_vectors
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.critic.training import train_on_bags
from focuscrawl.errors import UserError
from unit.topic_pages import pages_of

TOPICS = {"birds": "/Science/Birds", "cooking": "/Home/Cooking", "engines": "/Cars"}


def trained(*names: str) -> TrainedCritic:
    usable = [
        ((f"http://{name}.example/{i}", TOPICS[name]), bag)
        for name in names
        for i, bag in enumerate(pages_of(name, 15))
    ]
    return train_on_bags(usable, kind="discriminative")


@pytest.mark.parametrize("names", [tuple(TOPICS), ("birds", "engines")])
def test_pages_it_has_not_seen_are_told_apart(names: tuple[str, ...]) -> None:
    critic = trained(*names)
    assert isinstance(critic.model, LogisticModel)
    for name in names:
        posteriors = np.exp(critic.model.log_posteriors(pages_of(name, 10, random_state=9)))
        assert posteriors.sum(axis=1) == pytest.approx(np.ones(10))
        best = {critic.model.classes[i] for i in posteriors.argmax(axis=1)}
        assert best == {TOPICS[name]}
    assert critic.cross_validation["accuracy"] > 0.95


def test_words_of_links_are_read_by_naive_bayes_of_the_same_pages(tmp_path: Path) -> None:
    save_critic(trained(*TOPICS), tmp_path / "critic")
    critic = load_critic(str(tmp_path / "critic"), "/Science/Birds")
    words = ["", "nest", "piston", "unheard"]
    said = critic.judge_words(words)  # type: ignore[union-attr]
    reader = read_critic(str(tmp_path / "critic"))[0].model.link_model  # type: ignore[attr-defined]
    expected = np.exp(reader.log_posteriors([{}, {"nest": 1}, {"piston": 1}, {"unheard": 1}]))
    assert said.probabilities == pytest.approx(expected)
    nothing, nest, piston, unheard = said.relevance
    assert piston < nothing == unheard < nest


def test_it_is_the_same_when_read_back(tmp_path: Path) -> None:
    critic = trained(*TOPICS)
    save_critic(critic, tmp_path / "one")
    again, _ = read_critic(str(tmp_path / "one"))
    pages = [*pages_of("birds", 3), *pages_of(None, 3), {}, {"zyzzyva": 3}]
    found = again.model.log_posteriors(pages)
    assert np.isfinite(found).all()
    assert found == pytest.approx(critic.model.log_posteriors(pages), abs=1e-4)


def test_a_file_says_what_words_are_made_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save_critic(trained(*TOPICS), tmp_path / "critic")
    found = read_critic(str(tmp_path / "critic"))[0].model.vectors  # type: ignore[attr-defined]
    pages = [*pages_of("birds", 3), {}, {"zyzzyva": 1}]
    taken_apart = PageVectors(found.words, found.idf, found.centre).transform(pages)
    monkeypatch.setattr(type(load_word_vectors()), "split", None)  # no word is split again
    assert (found.transform(pages).meaning == taken_apart.meaning).all()


def test_words_are_the_means_of_their_pieces() -> None:
    pieces = Subwords.from_lengths(np.array([7, 7, 9, 9, 7]), np.array([1, 0, 2, 1, 1]))
    seven, none, both, nine, again = load_word_vectors().embed_subwords(pieces)
    assert (seven == again).all()
    assert not none.any()
    assert both == pytest.approx((seven.astype(float) + nine) / 2, abs=1e-3)


def test_log_odds_are_scaled_to_what_held_out_pages_say() -> None:
    sure = np.log([[0.99, 0.01]] * 100)
    truth = np.array([0] * 70 + [1] * 30)  # right in 70 of 100, said with log-odds of 4.6
    assert fit_scale(sure, truth) == pytest.approx(np.log(0.7 / 0.3) / np.log(99.0), rel=0.01)


def test_without_embeddings_it_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("focuscrawl.critic.training.word_vectors_installed", lambda: False)
    save_critic(trained(*TOPICS), tmp_path / "critic")
    model = read_critic(str(tmp_path / "critic"))[0].model
    assert model.vectors.dimensions == 0  # type: ignore[attr-defined]
    best = model.log_posteriors(pages_of("cooking", 5, random_state=3)).argmax(axis=1)
    assert {model.classes[i] for i in best} == {TOPICS["cooking"]}


def cosine(vectors: WordVectors, one: str, other: str) -> float:
    a, b = vectors.embed([one, other]).astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_meaning_are_near() -> None:
    vectors = WordVectors()
    assert cosine(vectors, "bird", "owl") > cosine(vectors, "bird", "carburetor") + 0.1
    assert vectors.embed([]).shape == (0, vectors.dimensions)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_vectors, "find_spec", lambda _: None)
    assert not page_vectors.word_vectors_installed()
    with pytest.raises(UserError, match=r"pip install 'focuscrawl\[embeddings\]'"):
        WordVectors()


def test_training_warns_once_where_they_would_have_been_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    english, german = (
        TrainedCritic(model=fit_phrases([[word]], embeddings=False, languages=((code, 1.0),)))
        for word, code in (("ornithology", "en"), ("vogelkunde", "de"))
    )
    warn_of_missing_embeddings(english)
    assert capsys.readouterr().err == ""  # they are installed
    monkeypatch.setattr(page_vectors, "find_spec", lambda _: None)
    for trained in (english, german, TrainedCritic(model=build_phrase_model("ornithology"))):
        warn_of_missing_embeddings(trained)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "pip install 'focuscrawl[embeddings]'" in said.err
