"""Pages that say nearly the same."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import random
import re
from zlib import crc32

import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.crawl.duplicates import MIN_RESEMBLANCE, MinHashIndex, sketch
from focuscrawl.page.words import PageWords, tokenize


def words(seed: int, n: int = 400) -> list[str]:
    rng = random.Random(seed)
    return [f"word{rng.randrange(5000)}" for _ in range(n)]


def found(*texts: list[str]) -> list[int | None]:
    seen = MinHashIndex()
    return [_found(seen, number, text) for number, text in enumerate(texts)]


def _found(seen: MinHashIndex, number: int, text: list[str]) -> int | None:
    data = sketch(PageWords(text))
    assert data is not None
    near = seen.find_or_add(number, data)
    assert near is None or MIN_RESEMBLANCE <= near[1] <= 1.0
    return None if near is None else near[0]


def test_a_changed_date_makes_no_new_page() -> None:
    page = words(0)
    versions = [[*page[:200], f"version{i}", *page[201:]] for i in range(30)]
    assert found(page, *versions, words(1)) == [None, *[0] * 30, None]


def test_half_of_the_words_make_a_new_page() -> None:
    template = words(0, 200)
    assert found(*([*template, *words(i, 200)] for i in range(1, 30))) == [None] * 29


def test_long_pages_are_told_apart_by_some_of_their_words() -> None:
    page = words(0, 20_000)
    changed = [*page[:10_000], "something", "else", *page[10_000:]]
    assert found(page, changed, words(1, 20_000)) == [None, 0, None]


def test_few_words_are_alike_by_accident() -> None:
    assert sketch(PageWords([])) is None
    assert sketch(PageWords(["photo"] * 1000)) is None
    assert sketch(PageWords(words(0, 34))) is None
    assert sketch(PageWords(words(0, 60))) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "自行车是一种由人力驱动的交通工具通常有两个轮子越来越多的城市修建了自行车道并且鼓励市民骑车出行",
        "การปั่นจักรยานเป็นกิจกรรมที่ดีต่อสุขภาพและช่วยลดมลพิษในเมืองใหญ่ของประเทศไทย",
        "自転車は人間の力で動く乗り物でふつうは二つの車輪がありペダルをこいで前に進むことができます",
    ],
)
def test_characters_of_scripts_without_spaces_are_compared(sentence: str) -> None:
    rng = random.Random(0)
    text = "".join(rng.sample(sentence, len(sentence)))
    pages = ["".join(rng.choices(sentence, k=180)) for _ in range(2)]
    texts = [sentence, pages[0], f"{pages[0][:90]}。2024，{pages[0][90:]}", pages[1], text]
    assert found(*(tokenize([each])[0] for each in texts)) == [None, None, 1, None, None]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("gpsέ导航ก", min_size=1, max_size=6), max_size=12), st.integers(1, 30))
def test_characters_of_scripts_without_spaces_are_hashed_as_words(
    tokens: list[str], most: int
) -> None:
    split = [re.findall("[导航ก]|[^导航ก]+", token) for token in tokens]
    expected = [crc32(part.encode()) for parts in split for part in parts]
    if any(map(re.compile("[导航ก]").search, tokens)):
        expected = expected[:most]
    assert PageWords(tokens).split_hashes(most).tolist() == expected


def test_the_oldest_are_forgotten_where_not_all_are_kept() -> None:
    for most, first in ((5, None), (None, 0)):
        seen = MinHashIndex(most)
        for number in range(10):
            assert _found(seen, number, words(number)) is None
        assert _found(seen, 10, words(0)) == first
        assert _found(seen, 11, words(9)) == 9


def shingles(tokens: list[str]) -> list[int]:
    """Hashes of four words in a row, the smallest 512, with whole numbers of Python."""
    step, mix, whole = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, (1 << 64) - 1
    words = [crc32(token.encode()) for token in tokens]
    hashes = set()
    for i in range(len(words) - 3):
        mixed = 0
        for word in words[i : i + 4]:
            mixed = (mixed * step + word) & whole
        hashes.add((mixed * mix & whole) >> 32)
    return sorted(hashes)[:512]


def test_they_are_those_of_datasketch() -> None:
    near, seen = MinHashLSH(num_perm=64, params=(8, 8)), MinHashIndex()
    pages: dict[int, MinHash] = {}
    base = words(0)
    for number in range(60):
        changed = 2 * (number % 20)
        text = [*words(number, changed), *base[changed:]]
        page = MinHash(64, scheme="affine32", hashfunc=lambda hashed: hashed)
        page.update_batch(shingles(text))
        data = sketch(PageWords(text)) or b""
        assert data == page.hashvalues.astype("<u4").tobytes()
        alike = {other: page.jaccard(pages[other]) for other in sorted(near.query(page))}
        best = max(alike, key=alike.__getitem__, default=None)
        expected = None if best is None or alike[best] < MIN_RESEMBLANCE else (best, alike[best])
        assert seen.find_or_add(number, data) == expected
        if expected is None:
            near.insert(number, page)
            pages[number] = page
    assert 1 < len(pages) < 40
