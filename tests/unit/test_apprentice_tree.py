"""Places in the tree, against what can be counted on the tree itself."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.link_context import (
    ANCESTOR_SALT,
    FAR,
    PATH_SALT,
    Tree,
    by_ancestor,
    by_path,
    window,
)
from focuscrawl.page import parse_page
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.tree import parse_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from focuscrawl.apprentice.sparse_rows import SparseRows

BITS = 24
D_MAX = 4
HIDDEN = {"script", "style", "template"}
NO_LEAF = {"html", "head", "body", "meta", "base", "link", "title", *HIDDEN}


class Leaf(NamedTuple):
    text: str
    path: tuple[int, ...]  # the elements it lies in, from the root


def leaves_of(root: etree._Element | None) -> list[Leaf]:
    if root is None:
        return []
    numbers = {element: i for i, element in enumerate(root.iter())}
    title = next(root.iter("title"), None)

    def inside(element: etree._Element, path: tuple[int, ...]) -> Iterator[Leaf]:
        if element is title or element.tag in HIDDEN:
            return
        within = (*path, numbers[element])
        text = element.text or ""
        found = [Leaf(text, within)] if text.strip() else []
        for child in element:
            found += inside(child, within)
            if (child.tail or "").strip():
                found.append(Leaf(child.tail or "", within))
        empty = not len(element) and not text.strip() and element.tag not in NO_LEAF
        if empty or (not found and element.get("href") and element.tag == "a"):
            found = [Leaf("", path)]
        yield from found

    first = [] if title is None else [Leaf(title.text or "", ())]
    return [*first, *inside(root, ())]


def meeting(a: Leaf, b: Leaf) -> int:
    """Count the elements that two leaves both lie in."""
    both = zip(a.path, b.path, strict=False)
    return next(
        (depth for depth, (x, y) in enumerate(both) if x != y), min(len(a.path), len(b.path))
    )


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
def test_depths_are_those_of_the_tree(markup: str) -> None:
    body = markup.encode()
    view = parse_page(body, "http://site.example/", depths=True)
    leaves = leaves_of(parse_tree(to_utf8(body, None)[0]))
    words = [
        (word, at)
        for at, leaf in enumerate(leaves)
        for word in re.findall(r"[^\W_]+", leaf.text.lower())
    ]
    assert view.n_leaves == len(leaves)
    assert list(zip(view.tokens, view.token_leaf.tolist(), strict=True)) == words
    assert view.leaf_depth.tolist() == [len(leaf.path) for leaf in leaves]
    pairs = zip(leaves[:1] + leaves[:-1], leaves, strict=True)
    expected = [meeting(a, b) for a, b in pairs]
    assert view.leaf_meeting.tolist() == [0, *expected[1:]][: len(leaves)]

    tree = Tree(view.leaf_depth, view.leaf_meeting, D_MAX)
    number = np.arange(len(leaves))
    a, b = np.nonzero(np.abs(number[:, None] - number) <= D_MAX)
    found = tree.meeting(a.astype(np.int32), b.astype(np.int32)).tolist()
    assert found == [
        meeting(leaves[i], leaves[j]) for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]

    near = window(
        WordHashes()(view.tokens),
        view.token_leaf,
        view.links.left,
        view.links.right,
        d_max=D_MAX,
        max_tokens=None,
        repeats=True,
    )
    paths, ancestors = by_path(near, tree, BITS), by_ancestor(near, tree, BITS)
    for link, (left, right) in enumerate(
        zip(view.links.left.tolist(), view.links.right.tolist(), strict=True)
    ):
        by_length, by_height = [], []
        for word, at in words:
            end = min(max(at, left), right)
            if abs(at - end) <= D_MAX:
                up = len(leaves[end].path) - meeting(leaves[at], leaves[end])
                down = len(leaves[at].path) - meeting(leaves[at], leaves[end])
                by_length.append((word, min(up + down, FAR)))
                by_height.append((word, min(up, FAR)))
        assert features(paths, link) == hashed(by_length, PATH_SALT)
        assert features(ancestors, link) == hashed(by_height, ANCESTOR_SALT)


def features(rows: SparseRows, number: int) -> Counter[int]:
    return Counter(rows.take(np.array([number])).indices.tolist())


def hashed(pairs: list[tuple[str, int]], salt: int) -> Counter[int]:
    hashes = WordHashes()
    return Counter(int(bucket(hashes([word]), salt + k, BITS)[0]) for word, k in pairs)


def test_a_link_in_a_list_is_near_its_item_and_far_from_the_next() -> None:
    page = b"<ul><li>mine <a href=x><b>here</b></a><li>other</ul>"
    view = parse_page(page, "http://site.example/", depths=True)
    # html 1, body 2, ul 3, li 4, a 5, b 6
    assert view.leaf_depth.tolist() == [4, 6, 4]
    assert view.leaf_meeting.tolist() == [0, 4, 3]
    tree = Tree(view.leaf_depth, view.leaf_meeting, 5)
    near = window(
        WordHashes()(view.tokens), view.token_leaf, view.links.left, view.links.right, d_max=5
    )
    lengths = [("mine", 2), ("here", 0), ("other", 4)]
    assert features(by_path(near, tree, BITS), 0) == hashed(lengths, PATH_SALT)
    heights = [("mine", 2), ("here", 0), ("other", 3)]
    assert features(by_ancestor(near, tree, BITS), 0) == hashed(heights, ANCESTOR_SALT)


def test_what_is_very_far_is_all_one() -> None:
    page = f"far{'<div>' * 30}<a href=x>link</a>".encode()
    view = parse_page(page, "http://site.example/", depths=True)
    tree = Tree(view.leaf_depth, view.leaf_meeting, 1)
    near = window(
        WordHashes()(view.tokens), view.token_leaf, view.links.left, view.links.right, d_max=1
    )
    expected = [("far", FAR), ("link", 0)]
    assert features(by_path(near, tree, BITS), 0) == hashed(expected, PATH_SALT)
    assert features(by_ancestor(near, tree, BITS), 0) == hashed(expected, ANCESTOR_SALT)


@given(st.binary(max_size=80))
def test_any_bytes_have_depths(body: bytes) -> None:
    view = parse_page(body, "http://site.example/", depths=True)
    assert len(view.leaf_depth) == len(view.leaf_meeting) == view.n_leaves
    assert (view.leaf_meeting <= view.leaf_depth).all()
    plain = parse_page(body, "http://site.example/")
    assert not len(plain.leaf_depth) + len(plain.leaf_meeting)
    assert plain.tokens == view.tokens
