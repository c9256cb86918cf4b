"""Checking critics from few examples, on generated pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longer import long

from focuscrawl.critic.assessment import check_few_examples, read_examples
from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.example_checks import (
    cross_validate_few_shot,
    estimate_recall,
    estimate_share,
    find_warnings,
    measure_cohesion,
)
from focuscrawl.critic.few_shot import fit_scorer, vectorize_pages
from focuscrawl.critic.focused_critic import TrainedCritic, is_few_shot
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.critic.training import train_critic, train_few_shot
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label
from focuscrawl.testing.tiny_web import TinyWeb

from .topic_pages import COMMON, SUBJECTS

if TYPE_CHECKING:
    from focuscrawl.critic.example_checks import FewExamplesReport

pytestmark = pytest.mark.usefixtures("own_cache", "embeddings")

SIX = [subject for subject in SUBJECTS if subject != "cycling"]


def text_of(subject: str, generator: np.random.Generator, share: float = 0.4) -> str:
    own = SUBJECTS[subject].split()
    return " ".join(
        str(generator.choice(own if generator.random() < share else COMMON.split()))
        for _ in range(60)
    )


def url_of(subject: str, number: int) -> str:
    return f"http://{subject}-{number % 5}.example/{subject}/{number}"


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """30 pages of each of six subjects."""
    generator = np.random.default_rng(3)
    return {url_of(each, i): text_of(each, generator) for each in SIX for i in range(30)}


@pytest.fixture(scope="module")
def bags(texts: dict[str, str]) -> dict[str, Counter[str]]:
    return {url: Counter(text.split()) for url, text in texts.items()}


@pytest.fixture(scope="module")
def web(texts: dict[str, str]) -> TinyWeb:
    return web_of(texts)


def web_of(texts: dict[str, str]) -> TinyWeb:
    return TinyWeb({url: f"<p>{text}" for url, text in texts.items()})


def urls_of(subject: str, n: int, start: int = 0) -> list[str]:
    return [url_of(subject, i) for i in range(start, start + n)]


def checked(trained: TrainedCritic, web: TinyWeb) -> FewExamplesReport:
    return check_few_examples(trained, read_examples(trained, web), web)


def test_a_clear_topic_is_found(web: TinyWeb) -> None:
    critic = train_few_shot([], urls_of("birds", 10), urls_of("law", 4), [web], topic="/Birds")
    report = checked(critic, web)
    assert report.topic == "/Birds"
    assert report.recall is not None
    assert report.recall.value > 0.6
    called = {page.url for page in report.called_relevant()}
    birds = {page.url for page in report.others if "/birds/" in page.url}
    assert len(birds) == 20
    assert len(birds & called) >= 18
    assert len(called - birds) <= 5
    assert len(report.words_for) == 12
    assert set(report.words_for[:5]) <= set(SUBJECTS["birds"].split())
    assert not set(report.words_against) & set(SUBJECTS["birds"].split())
    assert report.warnings == ()


@pytest.mark.parametrize("embeddings", [False], indirect=True)
def test_an_example_of_something_else_is_the_most_doubtful_of_its_side(web: TinyWeb) -> None:
    good = [*urls_of("birds", 9), url_of("sailing", 0)]
    bad = [*urls_of("law", 3), url_of("birds", 20)]
    report = checked(train_few_shot([], good, bad, [web]), web)
    worst = {page.label: page.url for page in reversed(report.doubtful(14))}
    assert worst == {"/good": url_of("sailing", 0), "/bad": url_of("birds", 20)}
    assert len(report.doubtful(10)) == 10
    assert len(report.examples) == 14


@pytest.mark.parametrize("n", [3, *long(2, 26)])
def test_every_page_is_held_out(bags: dict[str, Counter[str]], n: int, embeddings: bool) -> None:
    listed = [*bags.values()]
    good, bad, others = listed[:n], listed[40:44], listed[60:]
    vectors, pages = vectorize_pages([], good, bad, others, embeddings=embeddings)
    odds = cross_validate_few_shot(vectors, [], pages, 0)
    seen = fit_scorer(vectors, [], pages)
    for rows, held_out in zip(pages, odds, strict=True):
        assert held_out.shape == (rows.shape[0],)
        assert not np.isclose(held_out, seen.log_odds(rows)).any()
    assert odds.good.mean() < seen.log_odds(pages.good).mean()
    again = cross_validate_few_shot(vectors, [], pages, 0)
    assert all((a == b).all() for a, b in zip(odds, again, strict=True))


def test_two_topics_are_told(web: TinyWeb) -> None:
    report = checked(train_few_shot([], urls_of("birds", 6) + urls_of("law", 6), [], [web]), web)
    (warning,) = report.warnings
    assert "two groups" in warning
    one, two = warning[warning.index("(") : -1].split(";")
    assert sum(word in SUBJECTS["birds"] for word in one.strip("( ").split(", ")) >= 4
    assert sum(word in SUBJECTS["law"] for word in two.strip().split(", ")) >= 4


def test_examples_of_everything_are_too_broad(
    bags: dict[str, Counter[str]], embeddings: bool
) -> None:
    others = [bag for url, bag in bags.items() if not url.endswith(("/0", "/1"))]
    for subjects, broad in ((["birds"], False), (SIX, True)):
        good = [bags[url_of(each, i)] for each in subjects for i in (0, 1)]
        vectors, pages = vectorize_pages([], good, [], others, embeddings=embeddings)
        found = measure_cohesion(vectors, pages)
        assert found.broad is broad
        assert found.groups == ()


def test_words_or_one_example_alone_tell_nothing_of_recall(web: TinyWeb) -> None:
    learned = train_few_shot([["feather"], ["plumage"]], [], [], [web])
    query = train_few_shot([["feather"], ["plumage"]], [], [], ())
    one = train_few_shot([], urls_of("birds", 1), [], [web])
    words = TrainedCritic(model=build_phrase_model("feather, plumage"))
    for critic in (learned, query, one, words):
        report = checked(critic, web)
        assert report.recall is None
        assert report.examples == ()
        best = max(report.others, key=lambda page: page.relevance)
        assert "/birds/" in best.url
    assert report.words_for == ()  # of the last
    assert "feather" in checked(learned, web).words_for


def test_phrases_count_in_the_check_as_in_training(web: TinyWeb, tmp_path: Path) -> None:
    trained = train_few_shot([["feather"]], urls_of("birds", 1), [], [web], random_state=7)
    save_critic(trained, tmp_path / "critic")
    critic, _ = read_critic(str(tmp_path / "critic"))
    assert critic.phrases == (("feather",),)
    assert critic.random_state == 7
    report = checked(critic, web)
    (example,) = report.examples  # held out: the phrase stands in for it
    assert example.relevance > 0.5
    assert report.recall is None
    assert report.doubtful(1) == []  # one example is too few to call it mislabelled
    assert any("only 1 good example" in warning for warning in report.warnings)


def test_pages_that_are_gone(texts: dict[str, str], web: TinyWeb) -> None:
    birds = urls_of("birds", 5)
    critic = train_few_shot([], birds, urls_of("law", 2), [web])

    def without(urls: Sequence[str]) -> TinyWeb:
        return web_of({url: text for url, text in texts.items() if url not in urls})

    assert len(checked(critic, without(birds[:2])).examples) == 5
    with pytest.raises(UserError, match="has no good example of the critic"):
        checked(critic, without(birds))
    only = web_of(dict.fromkeys(birds[:3], "a bird"))
    with pytest.raises(UserError, match="no pages besides"):
        checked(train_few_shot([], birds[:3], [], [only]), only)


def test_what_is_from_little(web: TinyWeb) -> None:
    assert is_few_shot(train_few_shot([], urls_of("birds", 2), [], [web]))
    assert is_few_shot(TrainedCritic(model=build_phrase_model("bird")))
    labels = [Label(url, "/good", "train") for url in urls_of("birds", 6)]
    labels += [Label(url, "/bad", "train") for url in urls_of("law", 6)]
    for kind in ("flat", "discriminative"):
        assert not is_few_shot(train_critic(labels, web, kind=kind))


def test_warnings_of_words_and_hosts(bags: dict[str, Counter[str]]) -> None:
    others = [*bags.items()]
    (found,) = find_warnings([["the", "of"], ["feather"]], [], others, None, None)
    assert found.startswith("'the of' is too common: ")
    assert "have all words of the phrase" in found
    same = ["http://one.example/a", "http://one.example/b", "http://one.example/c"]
    (found,) = find_warnings([], same, others, None, None)
    assert "one.example" in found
    site = [(f"http://one.example/{i}", bag) for i, (_, bag) in enumerate(others)]
    assert not list(find_warnings([], same, site, None, None))
    assert not list(find_warnings([["the", "of"]], same, others[:5], None, None))
    little = estimate_recall(np.full(12, -4.0))
    (found,) = find_warnings([], urls_of("birds", 12), others, None, little)
    assert "misses many good examples" in found


odds = st.lists(st.floats(-50, 50), min_size=1, max_size=40).map(np.array)


@given(odds, st.floats(0.01, 5))
def test_recall_is_a_share_that_grows_with_the_log_odds(log_odds: np.ndarray, more: float) -> None:
    found = estimate_recall(log_odds)
    assert 0.0 <= found.low <= found.high <= 1.0
    assert 0.0 <= found.value <= 1.0
    mirrored = estimate_recall(-log_odds)
    assert mirrored.value == pytest.approx(1.0 - found.value)
    far = estimate_recall(np.abs(log_odds) + more)
    assert far.value > 0.5
    assert far.value > found.value or (log_odds > 0).all()


def test_more_pages_say_more() -> None:
    few, many = estimate_share(3, 5), estimate_share(60, 100)
    assert few.value == many.value == pytest.approx(0.6)
    assert few.low < many.low < 0.6 < many.high < few.high
    assert estimate_share(0, 10).value == 0.0
    assert estimate_share(0, 10).high > 0.1
    assert estimate_share(10, 10).low == pytest.approx(1.0 - estimate_share(0, 10).high)
