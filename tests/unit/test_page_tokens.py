"""Tokens against the regular expression that defines them, and their numbers."""

from __future__ import annotations

import re
from collections import Counter
from zlib import crc32

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page.words import MAX_TOKEN_LENGTH, PageWords, tokenize

WORD = re.compile(r"[^\W_]+")
# Beyond the first two planes there are only rare ideographs, which are no tokens here;
# the Turkish I is the one letter whose lower case is two characters, and the Greek S the one
# whose lower case depends on what follows. Where most letters are of scripts with marks, these are
# parts of words, or left out with joiners: test_critic_languages.py.
TEXT = st.text(
    st.characters(
        max_codepoint=0x1FFFF,
        exclude_characters="İΣς\u0640\u200c\u200d",
        exclude_categories=["Mn", "Mc", "Me"],
    ),
    max_size=MAX_TOKEN_LENGTH,
)
CONTROLS = st.text(st.sampled_from([*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"aé_"]))
LATIN = st.text(st.characters(max_codepoint=0x036F, exclude_characters="İ"))


@settings(max_examples=150)
@given(st.lists(st.one_of(TEXT, LATIN, CONTROLS)))
def test_tokens_are_runs_of_letters_and_digits(leaves: list[str]) -> None:
    tokens, token_leaf = tokenize(leaves)
    expected = [
        (word.lower(), number)
        for number, leaf in enumerate(leaves)
        for word in WORD.findall(leaf)
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
    assert tokens == ["été", "istanbul", "λόγο\N{GREEK SMALL LETTER SIGMA}", "x²", "y", "z"]
    assert token_leaf.tolist() == [0, 0, 0, 2, 2, 2]


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
def test_every_token_has_the_number_and_the_hash_of_its_word(tokens: list[str]) -> None:
    words = PageWords(tokens)
    assert [words.distinct[number] for number in words.indices.tolist()] == tokens
    assert [*words.bag.items()] == [*Counter(tokens).items()]  # in the same order, too
    assert words.hashes.dtype == np.uint64
    expected = [crc32(token.encode("utf-8", "surrogatepass")) for token in tokens]
    assert words.hashes.tolist() == expected
