"""What a person is asked about, why a critic judges as it does, and judgements as a list."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.critic.focused_critic import WordReason, WordReasons
from focuscrawl.errors import UserError
from focuscrawl.page.parse import parse_page
from focuscrawl.report.status import open_store
from focuscrawl.studio import page_cards
from focuscrawl.studio.judging import list_judgements
from focuscrawl.studio.page_cards import (
    PageCard,
    Question,
    Questions,
    Reservations,
    describe_reasons,
    mark_words,
)
from focuscrawl.studio.topic_routes import Judgement
from focuscrawl.topics import TopicDefinition, write_definition

from .small_crawl import being_written

A, B, C = (f"http://a.example/{name}" for name in "abc")


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Questions:
    """Questions about three pages, which are chosen at once."""

    class Now:
        def submit(self, *_: Any) -> Future[list[Question]]:
            done = Future[list[Question]]()
            cards = [PageCard(url, url, [], False, None, None) for url in (A, B, C)]
            done.set_result([Question(card, parse_page(b"<p>knots", card.url)) for card in cards])
            return done

    found = Questions()
    monkeypatch.setattr(found, "_thread", Now())
    found.start_choosing(tmp_path)
    return found


def asked(questions: Questions, crawl: Path, person: str) -> str | None:
    found, _ = questions.next(crawl, person)
    return None if found is None else found.card.url


def test_two_persons_are_asked_about_different_pages(questions: Questions, tmp_path: Path) -> None:
    assert asked(questions, tmp_path, "x") == asked(questions, tmp_path, "x") == A
    assert asked(questions, tmp_path, "y") == B
    questions.settle(tmp_path, A, judged=True)
    assert asked(questions, tmp_path, "x") == C
    questions.settle(tmp_path, C, judged=True)
    assert asked(questions, tmp_path, "x") == B  # the last page, which another person has open


def test_a_reservation_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    reservations = Reservations()
    reservations.reserve("topic", A, "x")
    assert reservations.order([A, B], "topic", "y") == [B, A]
    assert reservations.order([A, B], "other topic", "y") == [A, B]
    monkeypatch.setattr(page_cards, "_RESERVED", 0.0)
    reservations.reserve("topic", A, "x")
    assert reservations.order([A, B], "topic", "y") == [A, B]


def test_a_page_whose_judgement_is_removed_is_asked_about_again(
    questions: Questions, tmp_path: Path
) -> None:
    for url in (A, B, C):
        assert asked(questions, tmp_path, "x") == url
        questions.settle(tmp_path, url, judged=True)
    assert asked(questions, tmp_path, "x") is None  # the next pages have to be chosen
    questions.start_choosing(tmp_path)
    questions.settle(tmp_path, C, judged=False)
    assert asked(questions, tmp_path, "x") == C
    questions.settle(tmp_path, C, judged=True)
    assert asked(questions, tmp_path, "x") is None


def test_a_verdict_replaces_another_and_can_be_removed() -> None:
    known = TopicDefinition(words=("knots",), good=(A,), bad=(B,))
    changed = Judgement.parse({"urls": [A, C], "verdict": "bad"}).change(known)
    assert (changed.good, changed.bad) == ((), (B, A, C))
    removed = Judgement.parse({"url": B, "verdict": "none"}).change(changed)
    assert removed.bad == (A, C)
    before = Judgement([A, B, C], "good").before(known)
    assert before == {A: "good", B: "bad", C: "none"}
    for wrong in ({"url": A, "verdict": "fine"}, {"url": "x y", "verdict": "good"}):
        with pytest.raises(UserError):
            Judgement.parse(wrong)


def test_words_are_marked_where_they_are_whole_words() -> None:
    assert mark_words("The Bike, bikes", ["bike"], ["the"]) == [
        ("", ""), ("The", "off"), (" ", ""), ("Bike", "on"), (", bikes", ""),
    ]  # fmt: skip
    assert ("自転車", "on") in mark_words("私の自転車です", ["自転車"], [])
    assert mark_words("a.b", [], []) == [("a.b", "")]
    # only words with some weight
    words = WordReasons([WordReason("bike", 1.5), WordReason("we", 0.01)], [], 0.0, 0.02)
    card = PageCard(A, "", ["we bike"], False, 0.9, words)
    assert card.paragraphs == [[("we ", ""), ("bike", "on"), ("", "")]]


def test_reasons_are_sentences() -> None:
    peloton = [WordReason("peloton", 1.5), WordReason("we", 0.01)]
    words = WordReasons(peloton, [], 0.7, 0.02)
    found = describe_reasons(0.55, words.to_dict())
    assert found == [
        "The critic is not sure, but tends to the verdict that this page is on the "
        "topic: relevance 0.55.",
        "Words that speak for the topic: peloton.",
        "In its meaning, the whole text is close to the topic.",
    ]
    cooking = [WordReason("cooking", -0.3)]
    against = describe_reasons(0.8, WordReasons(peloton, cooking, 0.0, 0.02).to_dict())
    assert against[2] == "Words that speak against the topic: cooking."
    assert "is sure that this page is not on the topic" in describe_reasons(0.01, None)[0]
    assert describe_reasons(None, None) == [
        "The topic has no critic yet that could judge this page."
    ]


def test_a_verdict_against_words_for_the_topic_is_explained() -> None:
    words = WordReasons([WordReason("peloton", 1.5)], [], 0.7, 0.02).to_dict()
    assert describe_reasons(0.37, words)[-1] == (
        "Together, the words raise the relevance only from 0.02 (the relevance of a page "
        "without words) to 0.37. A relevant page has a relevance above 0.5."
    )
    against = WordReasons([], [WordReason("cooking", -0.3)], 0.7, 0.02).to_dict()
    assert "Together" not in describe_reasons(0.01, against)[-1]
    assert "relevance 0.499." in describe_reasons(0.4991, against)[0]
    assert describe_reasons(0.02, words)[-1] == (
        "The main text says too little about the topic, so the critic judges the "
        "page like a page without words."
    )


def test_judgements_are_listed_and_searched(tmp_path: Path) -> None:
    with being_written(tmp_path / "crawl") as crawl:
        crawl.fetch(A, relevance=0.9, title="Knots")
        crawl.fetch(B, relevance=0.8, title="Ropes")
    definition = TopicDefinition(words=("knots",), good=(A, C), bad=(B,))
    write_definition(definition, tmp_path / "crawl" / "topic.toml")
    with closing(open_store(tmp_path / "crawl")) as store:

        def listed(**query: str) -> list[str]:
            rows = list_judgements(store, tmp_path / "crawl", query)["rows"]
            return [row["url"] for row in rows]

        found = list_judgements(store, tmp_path / "crawl", {"n": "2"})
        assert listed() == [B, C, A]
        assert listed(q="ROPES") == [B]
        assert listed(q="knots a.example", verdict="good") == [A]
        assert listed(verdict="good") == [C, A]
    assert (found["total"], len(found["rows"])) == (3, 2)
    assert [row["differs"] for row in found["rows"]] == [True, False]
