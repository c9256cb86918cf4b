"""The text of a page as people read it."""

from __future__ import annotations

import pytest

from focuscrawl.page.parse import visible_paragraphs
from focuscrawl.studio.page_cards import read_question
from focuscrawl.webs.synthetic import SyntheticWeb


def shown(body: str, longest: int = 1000) -> tuple[list[str], bool]:
    return visible_paragraphs(f"<!doctype html>{body}".encode(), None, longest)


def test_case_and_punctuation_stay_and_programs_do_not_show() -> None:
    body = "<title>Auks</title><script>let a;</script><p>The <b>Great Auk</b>  didn't\nfly!"
    assert shown(body) == (["Auks The Great Auk didn't fly!"], False)


def test_words_within_a_sentence_have_no_blank_before_its_signs() -> None:
    body = "<p>The <b>razorbill</b>, a kin (<a href=/a>auks</a>) <sup>[<a href=/1>1</a>]</sup>."
    assert shown(body)[0] == ["The razorbill, a kin (auks) [1]."]


def test_short_texts_are_joined_and_paragraphs_end_with_a_sentence() -> None:
    long, words = " ".join(["An auk."] * 30), " ".join(["auk"] * 50)
    assert shown(f"<p>One.<p>Two.<p>{long}<p>Three.")[0] == [f"One. Two. {long}", "Three."]
    assert shown(f"<p>{words} <a href=/>is</a> one.<p>Two.")[0] == [f"{words} is one.", "Two."]
    assert shown(f"<p>{words}<p>{words}<p>Two")[0] == [f"{words} {words}", "Two"]
    assert shown(f"<p>{words}<p>{words}<b></b>, too.<p>Two")[0] == [
        f"{words} {words}, too.",
        "Two",
    ]


@pytest.mark.parametrize(("longest", "cut"), [(9, True), (10, False), (11, False)])
def test_so_much_is_shown_and_that_there_is_more_is_told(longest: int, cut: bool) -> None:
    text = "0123456789"
    assert shown(f"<p>{text}", longest) == ([text[:longest]], cut)


def test_of_a_page_too_large_to_be_read_whole_there_is_more() -> None:
    assert shown(f"<p>Auks.<!--{'-' * (2 << 20)}--><p>Puffins.") == (["Auks."], True)


def test_a_page_without_text_shows_none() -> None:
    assert shown("<p> <img src=a>") == ([], False)
    assert visible_paragraphs(b"", None, 10) == ([], False)


def test_who_judges_a_page_reads_it_as_it_is() -> None:
    web = SyntheticWeb()
    (seed, *_) = web.seeds("/Sports/Cycling")
    question = read_question([web], seed)
    assert question is not None
    card = question.card
    assert card.title in card.text[0]
    assert any(text != text.lower() for text in card.text)
    assert not any("<" in text for text in card.text)
