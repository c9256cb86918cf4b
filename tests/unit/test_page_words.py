"""Words of a page, by number."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.page.words import PageWords


@given(st.lists(st.sampled_from(["a", "b", "ß", "\ud800", "long word"])))
def test_every_token_has_the_number_and_the_hash_of_its_word(tokens: list[str]) -> None:
    words = PageWords(tokens)
    assert [words.distinct[number] for number in words.number.tolist()] == tokens
    assert [*words.bag.items()] == [*Counter(tokens).items()]  # in the same order, too
    assert words.hashes.dtype == np.uint64
    expected = [crc32(token.encode("utf-8", "surrogatepass")) for token in tokens]
    assert words.hashes.tolist() == expected
