"""Page studies on a web small enough to count by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.hashing import WordHashes
from focuscrawl.lab.whole_web import WholeWeb
from focuscrawl.webs.web_protocol import Answer
from studies.page_studies import (
    Instances,
    Tokens,
    accuracy_table,
    sample_instances,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGES = {
    "hub": "<p>good <a href='a'>jazz</a> <a href='b'>junk</a><p>more <a href='c'>jazz</a>",
    "a": "<a href='hub'>home</a> <a href='c'>jazz</a>",
    "b": "nothing",
    "c": "<a href='a'>jazz</a>",
    "copy": "",
}
URLS = [f"http://h/{name}" for name in PAGES]


class Shelf:
    """A web of `PAGES`."""

    name = fingerprint = "shelf"

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        return [url if url in URLS else None for url in urls]

    def fetch(self, url: str) -> Answer | None:
        body = PAGES[url.rpartition("/")[2]].encode()
        return Answer(url, 200, [("Content-Type", "text/html")], body)

    def urls(self) -> Iterator[str]:
        return iter(URLS)


@pytest.fixture
def whole() -> WholeWeb:
    """hub -> a, b, c; a -> hub, c, copy; c -> a; copy has the content of a."""
    return WholeWeb(
        urls=URLS,
        classes=["/Music/Jazz", "/Other"],
        probabilities=np.array([[0.6, 0.4], [1, 0], [0, 1], [0.9, 0.1], [1, 0]], np.float32),
        content=np.array([0, 1, 2, 3, 1]),
        bounds=np.array([0, 3, 6, 6, 7, 7]),
        targets=np.array([1, 2, 3, 0, 3, 4, 1]),
    )


def test_instances_are_links_with_both_ends_fetched(whole: WholeWeb) -> None:
    found = sample_instances(Shelf(), whole, "/Music/Jazz", ["http://h/hub"], fetches=3)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [
        (0, 1),
        (0, 3),
        (1, 0),
        (1, 3),
        (3, 1),
    ]  # b was not fetched
    np.testing.assert_allclose(found.relevance, [1, 0.9, 0.6, 0.9, 1], atol=1e-6)
    assert found.high.all()
    jazz = WordHashes()(["jazz"])[0]
    first = slice(found.tokens.indptr[0], found.tokens.indptr[1])
    at = found.tokens.offsets[first][found.tokens.words[first] == jazz]
    assert at.tolist() == [0, 3]  # its own anchor, and that of c
    # a was fetched before c, and its link is 3 leaves before that of c on the hub
    assert [1, -3, 1] in found.cocited.tolist()
    assert all(row[0] != 0 for row in found.cocited.tolist())  # nothing came before a but the hub


def made_up(words: list[list[tuple[int, int]]], high: list[bool]) -> Instances:
    """Instances of given (word, offset) pairs; each link to a page of its own."""
    n = len(words)
    flat = [pair for each in words for pair in each]
    return Instances(
        source=np.zeros(n, np.int64),
        target=np.arange(n),
        relevance=np.array(high, np.float64),
        left=np.zeros(n, np.int64),
        right=np.zeros(n, np.int64),
        tokens=Tokens(
            np.array([word for word, _ in flat], np.uint64),
            np.array([offset for _, offset in flat], np.int64),
            np.cumsum([0, *map(len, words)]),
        ),
        cocited=np.zeros((0, 3), np.int64),
    )


def test_offsets_tell_what_words_alone_do_not(whole: WholeWeb) -> None:
    """The same two words on either side of every link; their order says where it leads."""
    words = [[(7, -1), (9, 0), (8, 1)] if i % 2 else [(8, -1), (9, 0), (7, 1)] for i in range(60)]
    table = accuracy_table(made_up(words, [bool(i % 2) for i in range(60)]), whole)
    average = table.set_index(["folds", "features", "d_max"])["average"]
    for folds in ("links", "pages"):
        assert average[folds, "offsets", 1] == 1.0
        assert average[folds, "text", 1] < 0.7
        assert average[folds, "offsets", 0] < 0.7
    assert set(table["features"]) == {
        "offsets",
        "text",
        "offsets + class names",
        "offsets + class prefixes",
        "offsets + co-citation",
    }
    assert (table["instances"] == 60).all()
    assert (table["high"] == 30).all()


ELEMENTS = ["p", "b", "td", "li", "script", "head", "body", "title", "noframes", "style"]
PARTS = ["<br>", "<img>", "<meta>", "<a href=x>", "</a>", "<!--c-->", "text", " "]
PARTS += [f"<{name}>" for name in ELEMENTS] + [f"</{name}>" for name in ELEMENTS]
