"""Words around links by DOM offset, against what can be counted on the tree itself."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.link_features import MAX_TOKENS, OFFSET_SALT, by_offset, window
from focuscrawl.page import parse_page
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.walk import parse_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from focuscrawl.apprentice.hashing import SparseRows

BITS = 24
D_MAX = 4
HIDDEN = {"script", "style", "template"}
NO_LEAF = {"html", "head", "body", "meta", "base", "link", "title", *HIDDEN}


def leaves_of(root: etree._Element | None) -> list[str]:
    """Return the text of each leaf."""
    if root is None:
        return []
    title = next(root.iter("title"), None)

    def inside(element: etree._Element) -> Iterator[str]:
        if element is title or element.tag in HIDDEN:
            return
        text = element.text or ""
        found = [text] if text.strip() else []
        for child in element:
            found += inside(child)
            if (child.tail or "").strip():
                found.append(child.tail or "")
        empty = not len(element) and not text.strip() and element.tag not in NO_LEAF
        if empty or (not found and element.get("href") and element.tag == "a"):
            found = [""]
        yield from found

    first = [] if title is None else [title.text or ""]
    return [*first, *inside(root)]


TAGS = ["div", "p", "ul", "li", "b", "h2", "table", "tr", "td", "span", "section"]
parts = st.one_of(
    st.sampled_from([" one", " two boats", " three", " ", "&nbsp;", "<!-- no -->"]),
    st.sampled_from([f"<{tag}>" for tag in TAGS]),
    st.sampled_from([f"</{tag}>" for tag in TAGS]),
    st.sampled_from(["<a href=x>", "</a>", "<a href=y>link</a>", "<a href=z></a>", "<a>"]),
    st.sampled_from(["<br>", "<img src=i>", "<script>no</script>", "<style>no</style>"]),
    st.sampled_from(["<template>no</template>", "<title>Name</title>", "<meta name=x>"]),
    st.sampled_from(["<body>", "<form>", "<a href=w><script>no</script></a>"]),
)
soup = st.integers(0, 40).flatmap(lambda n: st.lists(parts, min_size=n, max_size=n)).map("".join)


@settings(max_examples=150, deadline=None)
@given(soup)
def test_offsets_are_counted_in_leaves_of_the_tree(markup: str) -> None:
    body = markup.encode()
    view = parse_page(body, "http://site.example/")
    leaves = leaves_of(parse_tree(to_utf8(body, None)[0]))
    words = [
        (word, at)
        for at, text in enumerate(leaves)
        for word in re.findall(r"[^\W_]+", text.lower())
    ]
    assert view.n_leaves == len(leaves)
    assert list(zip(view.tokens, view.token_leaf.tolist(), strict=True)) == words
    near = window(
        WordHashes()(view.tokens),
        view.token_leaf,
        view.links.left,
        view.links.right,
        d_max=D_MAX,
        max_tokens=None,
        repeats=True,
    )
    rows = by_offset(near, BITS)
    for link, (left, right) in enumerate(
        zip(view.links.left.tolist(), view.links.right.tolist(), strict=True)
    ):
        offsets = [(word, at - min(max(at, left), right)) for word, at in words]
        expected = [(word, d) for word, d in offsets if abs(d) <= D_MAX]
        assert features(rows, link) == hashed(expected)


def features(rows: SparseRows, number: int) -> Counter[int]:
    return Counter(rows.take(np.array([number])).indices.tolist())


def hashed(pairs: list[tuple[str, int]]) -> Counter[int]:
    hashes = WordHashes()
    return Counter(int(bucket(hashes([word]), OFFSET_SALT + d, BITS)[0]) for word, d in pairs)


def around(page: bytes, d_max: int) -> SparseRows:
    view = parse_page(page, "http://site.example/")
    words, links = WordHashes()(view.tokens), view.links
    return by_offset(window(words, view.token_leaf, links.left, links.right, d_max=d_max), BITS)


def test_a_link_in_a_list_has_the_words_of_the_items_beside_it() -> None:
    rows = around(b"<ul><li>mine <a href=x><b>here</b></a><li>other</ul>", 5)
    assert features(rows, 0) == hashed([("mine", -1), ("here", 0), ("other", 1)])


def test_a_word_that_a_leaf_repeats_counts_once_there_and_again_in_the_next() -> None:
    rows = around(b"<p>tax tax tax<p><a href=x>tax boats tax</a>", 1)
    assert features(rows, 0) == hashed([("tax", -1), ("tax", 0), ("boats", 0)])


def test_of_a_long_leaf_the_nearest_words_are_looked_at() -> None:
    text = " ".join(f"w{i}" for i in range(MAX_TOKENS + 5))
    rows = around(f"<p>{text}<p><a href=x>link</a>".encode(), 1)
    nearest = [(f"w{i}", -1) for i in range(5, MAX_TOKENS + 5)]
    assert features(rows, 0) == hashed([*nearest, ("link", 0)])
