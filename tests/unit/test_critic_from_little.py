"""A critic from a phrase and a few pages: each adds something, none is taken at its word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.feature_extraction import WordEvidence
from focuscrawl.critic.classifiers import as_matrix
from focuscrawl.critic.critic_files import load_trained, read_critic, save_critic
from focuscrawl.critic.few_shot import (
    cluster_pages,
    fit_few_shot,
    fit_phrases,
    fit_scorer,
    vectorize_pages,
)
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.critic.training import parse_topic_name
from focuscrawl.errors import UserError
from unit.topic_pages import WORDS, pages_of

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.classifiers import LogisticModel

OTHERS = [*pages_of(None, 60), *pages_of("engines", 60), *pages_of("cooking", 60)]
BIRDS, ENGINES = pages_of("birds", 20, 7), pages_of("engines", 20, 7)
EMBEDDINGS = pytest.mark.parametrize("embeddings", [True, False])


def relevance(model: LogisticModel, pages: Sequence[Bag]) -> np.ndarray:
    on = [path for path in model.classes if path != "/bad"]
    column = model.classes.index(on[0])
    return np.exp(model.log_posteriors(pages))[:, column]


@EMBEDDINGS
def test_a_phrase_finds_pages_of_its_words(embeddings: bool) -> None:
    model = fit_few_shot([["birds"]], unlabelled=OTHERS, embeddings=embeddings)
    assert (relevance(model, BIRDS) > 0.5).mean() > 0.9
    assert (relevance(model, ENGINES) > 0.5).mean() < 0.1


def test_a_phrase_that_no_page_has_waits_for_one_that_has(tmp_path: Path) -> None:
    alone = fit_few_shot([["heliograph"]], unlabelled=OTHERS, embeddings=False)
    assert not (relevance(alone, [*BIRDS, *ENGINES]) > 0.5).any()
    assert (relevance(alone, [{**bag, "heliograph": 9} for bag in BIRDS]) > 0.5).all()
    good = pages_of("birds", 3)
    with_pages = fit_few_shot([["heliograph"]], good, unlabelled=OTHERS, embeddings=False)
    assert (relevance(with_pages, BIRDS) > 0.5).mean() > 0.9
    save_critic(TrainedCritic(model=with_pages), tmp_path / "a")
    kept, _ = read_critic(str(tmp_path / "a"))  # its weights are such as a critic has
    expected = with_pages.log_posteriors(BIRDS)
    assert np.allclose(kept.model.log_posteriors(BIRDS), expected, rtol=1e-3)


@EMBEDDINGS
def test_good_pages_find_others_like_them(embeddings: bool) -> None:
    model = fit_few_shot(good=pages_of("birds", 3), unlabelled=OTHERS, embeddings=embeddings)
    assert (relevance(model, BIRDS) > 0.5).all()
    assert (relevance(model, ENGINES) > 0.5).mean() < 0.1


def test_a_topic_of_every_fourth_page_is_found() -> None:
    """Its pages do not stand out by two standard deviations: they are too many for that."""
    others = [*OTHERS, *pages_of("birds", 60, 3)]
    model = fit_few_shot(good=pages_of("birds", 20), unlabelled=others, embeddings=False)
    assert (relevance(model, BIRDS) > 0.5).mean() > 0.6
    assert (relevance(model, ENGINES) > 0.5).mean() < 0.1


def test_bad_pages_count_against_what_is_like_them() -> None:
    mixed = [*pages_of("birds", 3), *pages_of("engines", 3, 1)]
    without = fit_few_shot(good=mixed, unlabelled=OTHERS[:60], embeddings=False)
    bad = pages_of("engines", 12, 2)
    judged = fit_few_shot(good=mixed, bad=bad, unlabelled=OTHERS[:60], embeddings=False)
    gap = [
        relevance(model, BIRDS).mean() - relevance(model, ENGINES).mean()
        for model in (without, judged)
    ]
    assert gap[1] > gap[0] + 0.1


def test_good_pages_that_are_much_alike_do_not_hide_others() -> None:
    """Pages of a site stand out far by its menu; what stands out less is found all the same."""
    menu = {f"menu{i}": 9 for i in range(6)}
    birds = pages_of("birds", 20)
    halves = []
    for good in (birds, [{**page, **menu} for page in birds]):
        vectors, pages = vectorize_pages([["birds"]], good, [], OTHERS, embeddings=False)
        judge = fit_scorer(vectors, [["birds"]], pages)
        said = (
            as_matrix(vectors.transform(good), len(vectors.words)) @ judge.weights
            + judge.intercept
        )
        assert said.mean() > 4.0
        halves.append(judge.threshold)
    assert halves == [2.0, 2.0]


def test_a_phrase_that_says_nothing_of_the_good_pages_hardly_weighs() -> None:
    good = pages_of("birds", 10)
    alone = fit_few_shot(good=good, unlabelled=OTHERS, embeddings=False)
    misled = fit_few_shot([["turbo"]], good, unlabelled=OTHERS, embeddings=False)
    for pages, least in ((BIRDS, 0.9), (ENGINES, 0.8)):
        same = (relevance(alone, pages) > 0.5) == (relevance(misled, pages) > 0.5)
        assert same.mean() >= least


def test_pages_that_stand_out_most_are_learned_from() -> None:
    """The phrase's word is on few birds' pages; the others are found by what those share."""
    rare = [{**page, "ornithology": 3} for page in pages_of("birds", 12, 3)]
    silent = [dict(page) for page in BIRDS]
    model = fit_few_shot([["ornithology"]], unlabelled=[*OTHERS, *rare], embeddings=False)
    assert relevance(model, silent).mean() > relevance(model, ENGINES).mean() + 0.2


@EMBEDDINGS
def test_a_phrase_alone_needs_no_pages(embeddings: bool) -> None:
    model = fit_phrases([["birds"]], embeddings=embeddings)
    said = relevance(model, [BIRDS[0], ENGINES[0]])
    assert said[0] > 0.5 > said[1]


def test_meaning_finds_what_the_words_do_not() -> None:
    model = fit_phrases([["ornithology"]], embeddings=True)
    birds, engines = relevance(model, BIRDS), relevance(model, ENGINES)
    assert birds.min() > engines.max()  # no page has the word


@pytest.mark.parametrize("name", ["/Aviation", "/good", "/Zoology"])
def test_relevance_is_that_of_the_topic_however_it_is_called(name: str) -> None:
    model = fit_few_shot(
        good=pages_of("birds", 3), unlabelled=OTHERS, topic=name, embeddings=False
    )
    assert model.classes == tuple(sorted(["/bad", name]))
    assert model.marked_link_classes(np.array([path == name for path in model.classes])).sum() == 1
    assert relevance(model, BIRDS).mean() > 0.5 > relevance(model, ENGINES).mean()


def test_links_are_read_by_the_kinds_of_what_is_off_the_topic(tmp_path: Path) -> None:
    """Words of another topic speak against this one, though few pages off the topic have them."""
    good, rare = pages_of("birds", 3), pages_of("cooking", 20, 5)
    others = [*pages_of(None, 260), *rare]
    model = fit_few_shot([["birds"]], good, unlabelled=others, embeddings=False)
    assert [path[:5] for path in model.link_model.classes] == ["/bad/"] * 18 + ["/good"]
    assert sum(model.link_model.counts.pages) == 1 + len(good) + len(others)
    save_critic(TrainedCritic(model), tmp_path / "critic")
    critic = load_trained(str(tmp_path / "critic"), "/good")
    said = WordEvidence(critic)
    assert said.columns == 19
    texts = [WORDS["birds"][:3], WORDS["cooking"][:3]]
    odds = log_odds(said, texts)
    assert odds[0] > 0.0 > odds[1]


def test_pages_of_a_topic_are_of_a_kind() -> None:
    topics = ["birds", "cooking", "engines"]
    bags = [bag for topic in topics for bag in pages_of(topic, 40)]
    _, pages = vectorize_pages([], bags[:1], [], bags, embeddings=False)
    kinds = cluster_pages(pages.unlabelled)
    assert kinds.tolist() == cluster_pages(pages.unlabelled).tolist()
    assert len(set(kinds.tolist())) == 8
    for place in range(3):
        own, rest = kinds[40 * place :][:40], np.delete(kinds, np.s_[40 * place : 40 * place + 40])
        assert not set(own.tolist()) & set(rest.tolist())
    assert set(cluster_pages(pages.unlabelled[:29]).tolist()) == {0}
    assert cluster_pages(pages.unlabelled[:0]).shape == (0,)


def log_odds(reader: WordEvidence, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the log-odds of texts, less those of a text of no word."""
    words = [word for text in texts for word in text]
    owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    nothing = reader.log_odds(np.zeros((1, reader.columns), np.float32))
    return reader.log_odds(reader.evidence(words, owner, len(texts))) - nothing


def test_a_phrase_that_is_everywhere_is_refused() -> None:
    with pytest.raises(UserError, match="'the' is on nearly every page"):
        parse_phrases("birds, the")
    assert parse_phrases("the birds") == [["the", "birds"]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/bad", "is reserved"),
        ("/", "is reserved"),
        ("bad/x", "is reserved"),
        (" ", "is empty"),
        ("a, b", "commas separate topics"),
    ],
)
def test_a_topic_has_a_name_of_its_own_that_a_crawl_takes(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_topic_name(name)
