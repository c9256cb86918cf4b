"""Tokens against the regular expression that defines them, and their numbers."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import pickle
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal
from unicodedata import category, normalize
from zlib import crc32

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from focuscrawl.page import words as page_words
from focuscrawl.page.words import (
    MAX_TOKEN_LENGTH,
    PageWords,
    WordColumn,
    WordTable,
    count_words,
    tokenize,
    word_hashes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARKS = "".join(c for c in map(chr, range(0x20000)) if category(c) in {"Mn", "Mc"})
WORD = re.compile(rf"(?:[^\W_]|[{MARKS}])+")
# Left out are characters that nobody sees, and Arabic and Hebrew points, which are dropped. So are
# the Turkish I, whose lower case is two characters, and the Greek S, whose lower case depends on
# the next letter.
TEXT = st.text(
    st.characters(
        exclude_characters="İΣς\u0640\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
        + "".join(map(chr, [*range(0x0590, 0x0900), *range(0xFE00, 0xFE10)])),
        exclude_categories=["Me", "Cf", "Cn", "Cs"],
    ),
    max_size=MAX_TOKEN_LENGTH,
).filter(lambda text: not any("\U000e0000" <= c < "\U000e1000" for c in text))
CONTROLS = st.text(st.sampled_from([*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"aé_"]))
LATIN = st.text(
    st.characters(max_codepoint=0x036F, exclude_characters="İ\xad\u034f"),
    max_size=MAX_TOKEN_LENGTH,
)


@settings(max_examples=150)
@given(st.lists(st.one_of(TEXT, LATIN, CONTROLS)))
def test_tokens_are_runs_of_letters_and_digits(leaves: list[str]) -> None:
    tokens, token_leaf = tokenize(leaves)
    expected = [
        (word.lower(), number)
        for number, leaf in enumerate(leaves)
        for word in WORD.findall(normalize("NFC", leaf))
        if len(word) <= MAX_TOKEN_LENGTH
    ]
    assert list(zip(tokens, token_leaf.tolist(), strict=True)) == expected
    assert token_leaf.dtype == np.int32


def test_what_is_longer_than_a_word_is_left_out() -> None:
    tokens, token_leaf = tokenize(["a" * 40 + " " + "b" * 41, "É" * 41, "c"])
    assert tokens == ["a" * 40, "c"]
    assert token_leaf.tolist() == [0, 2]


def test_case_and_rare_characters() -> None:
    tokens, token_leaf = tokenize(["ÉTÉ İstanbul ΛΌΓΟΣ", "", "x²_y 😀z \U00020000"])
    sigma = "\N{GREEK SMALL LETTER SIGMA}"
    assert tokens == ["été", "istanbul", f"λόγο{sigma}", "x²", "y", "z", "\U00020000"]
    assert token_leaf.tolist() == [0, 0, 0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    "word",
    [
        *("bicyclette", "vélo", "đường", "świetlówka", "ёжик", "йод", "δρόμος"),
        *("हिन्दी", "தமிழ்", "ภาษาไทย", "ひらがな", "ガギグゲゴ", "한국어", "漢字"),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "unseen", ["\xad", "\u034f", "\u200d", "\u2060", "\ufeff", "\ufe0f", "\U000e0101"]
)
def test_composition_and_invisible_characters_do_not_change_a_word(
    word: str, form: Literal["NFC", "NFD"], unseen: str
) -> None:
    written = unseen.join(normalize(form, part) for part in (word[:2], word[2:]))
    tokens, token_leaf = tokenize(["page", "", f"of {written}{unseen} {unseen} here", "end"])
    assert tokens == ["page", "of", normalize("NFC", word), "here", "end"]
    assert token_leaf.tolist() == [0, 2, 2, 2, 3]


def test_a_zero_width_space_separates_words_only_in_scripts_without_spaces() -> None:
    tokens, _ = tokenize(["Donau\u200bdampf\u200bschiff вело\u200bсипед 自行\u200b车"])
    assert tokens == ["donaudampfschiff", "велосипед", "自行车"]
    assert tokenize(["ភាសា\u200bខ្មែរ ภาษา\u200bไทย"])[0] == ["ភាសា", "ខ្មែរ", "ภาษา", "ไทย"]


def test_marks_that_no_letter_contains_are_parts_of_words() -> None:
    assert tokenize(["the за\u0301мок Yorùbá ọ̀rọ̀"])[0] == ["the", "за\u0301мок", "yorùbá", "ọ̀rọ̀"]
    assert tokenize(["plain text, then हिन्दी and कि"])[0][-3:] == ["हिन्दी", "and", "कि"]


@pytest.mark.parametrize(
    "sentence",
    [
        "การปั่นจักรยานเป็นกิจกรรมที่ดีต่อสุขภาพและช่วยลดมลพิษในเมืองใหญ่ของประเทศไทย",
        "การเรียน" * 40,
        "2024年" + "自行车是一种交通工具" * 9,
        "ភាសាខ្មែរ" * 20,
    ],
)
def test_long_sentences_without_spaces_are_split(sentence: str) -> None:
    tokens, token_leaf = tokenize(["", f"text {sentence}"])
    assert "".join(tokens) == f"text{sentence}"
    assert set(map(len, tokens[1:-1])) <= {*range(30, MAX_TOKEN_LENGTH + 1)}
    assert not any(category(token[0]).startswith("M") for token in tokens)
    assert set(token_leaf.tolist()) == {1}


def test_marks_without_end_are_split_in_time() -> None:
    tokens, _ = tokenize(["漢" + "\u0301" * 2_000_000])
    assert {*map(len, tokens[:-1])} == {MAX_TOKEN_LENGTH}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("Two words -- and more", 5),
        ("été à la mer", 4),
        ("자전거는 바퀴가 두 개", 4),
        ("自行车是一种交通工具，有两个轮子。", 15 / 1.6),
        ("自転車 は ペダル で 進む", 10 / 1.6),
        ("การปั่นจักรยาน", 14 / 4),
        ("GPS 导航 (2024年) — OK!", 3 / 1.6 + 3),
    ],
)
def test_words_are_counted_by_script(text: str, words: float) -> None:
    assert count_words(text) == pytest.approx(words)


FAR = st.text(st.sampled_from([*map(chr, range(0x20)), *"あの漢กำעִ\u0640\u200d "]))


@settings(max_examples=100)
@given(st.lists(FAR, min_size=1, max_size=6))
def test_a_token_of_any_script_is_of_its_own_leaf(leaves: list[str]) -> None:
    """Also where characters go without a trace, and whatever control characters there are."""
    leaves = [f"漢字漢字漢字 {leaf}" for leaf in leaves]  # so each is read as the whole is
    tokens, token_leaf = tokenize(leaves)
    assert all(0 <= at < len(leaves) for at in token_leaf.tolist())
    for number, leaf in enumerate(leaves):
        of_leaf = [token for token, at in zip(tokens, token_leaf, strict=True) if at == number]
        assert of_leaf == tokenize([leaf])[0]


@given(st.lists(st.sampled_from(["a", "b", "ß", "\ud800", "long word"])))
@example(["b", "a", "b", "b", "a"] * 400)
def test_every_token_has_the_number_and_the_hash_of_its_word(tokens: list[str]) -> None:
    words = PageWords(tokens)
    assert [words.distinct[number] for number in words.indices.tolist()] == tokens
    assert [*words.bag.items()] == [*Counter(tokens).items()]  # in the same order, too
    assert words.hashes.dtype == np.uint64
    expected = [crc32(token.encode("utf-8", "surrogatepass")) for token in tokens]
    assert words.hashes.tolist() == expected
    copy = pickle.loads(pickle.dumps(words))
    assert copy.distinct == words.distinct
    assert copy.indices.tolist() == words.indices.tolist()


def test_words_of_a_page_outlive_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    page = PageWords(["reef", "knot", "reef"])
    monkeypatch.setattr(page_words, "_MAX_WORDS", 0)
    other = PageWords(["sea", "reef"])
    assert other.table is not page.table
    assert page.distinct == ["reef", "knot"]
    assert page.hashes[0] == page.hashes[2] == other.hashes[1] == word_hashes(["reef"])[0]


def test_threads_that_share_a_table_agree_on_the_values_of_words() -> None:
    table, computed = WordTable(), list[str]()

    def lengths(words: list[str]) -> NDArray[np.int64]:
        computed.extend(words)
        return np.array([[len(word), 2 * len(word)] for word in words])

    column = WordColumn(lengths, np.int64, 2)
    pages = [[f"{'x' * (i % 50)}{(i * step) % 997}" for i in range(2000)] for step in range(1, 9)]

    def read(page: list[str]) -> bool:
        distinct, indices = table.number_page(page)
        values = table.take(column, distinct)[indices]
        return table.words(distinct[indices]) == page and values[:, 1].tolist() == [
            2 * len(word) for word in page
        ]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, pages * 5))
    assert len(computed) == len(set(computed)) == len(table)
