"""The class `PageView`, a parsed page, with functions that serialise pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from focuscrawl.page.words import PageWords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools, Ints


def _empty() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Links:
    """The n out-links of a page in document order, with duplicates.

    Attributes
    ----------
    urls : n normalised absolute URLs with http or https (`focuscrawl.foundation.urls`)
    anchors : n texts inside the link elements, with collapsed white space and at most 1,000
        characters. Links without text have the ``alt`` of the area or image, or the ``title``
    left, right : int32 (n,), first and last DOM leaf inside the link element (methods.md 4,
        [A02 section 2.2.1]); ``left <= right``
    nofollow : bool (n,), whether the link has ``rel`` ``nofollow``, ``sponsored`` or ``ugc``
    """

    urls: list[str]
    anchors: list[str]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    nofollow: Bools

    def __len__(self) -> int:
        return len(self.urls)


@dataclass(frozen=True, slots=True)
class PageView:
    """A parsed page or document.

    Attributes
    ----------
    url : normalised URL of the page
    title : text of ``<title>`` with collapsed white space; the title of a page is leaf 0
    tokens : lower-case words of title and text in document order, of at most 40 characters
    token_leaf : int32 (n_tokens,), index of the DOM leaf of each token
    n_leaves : number of DOM leaves, with and without text
    links : out-links
    links_cut : number of links left out because of limits (`focuscrawl.page.parse.MAX_LINKS`)
    canonical : http(s) target of ``<link rel=canonical>``, if declared
    refresh : target of ``<meta http-equiv=refresh>``, if declared
    noindex, nofollow : rules of ``<meta name=robots>`` and X-Robots-Tag
    encoding : Python name of the encoding
    headings : texts of ``<h1>`` to ``<h6>`` with collapsed white space, at most 300 characters
    heading_leaf : int32 (n_headings,), index of the first leaf of each heading, ascending
    refresh_delay : delay of `refresh` in seconds
    language : ``lang`` or ``xml:lang`` of ``<html>`` as declared, or empty
    feeds : URLs of feeds in ``<link rel=alternate>``
    translations, translated_to : URLs of the page in other languages, and these languages
        (``hreflang``)
    scripts : whether the page has scripts that a browser would run
    kind : kind of document (`focuscrawl.page.documents`); empty for an HTML page
    """

    url: str
    title: str
    tokens: list[str]
    token_leaf: NDArray[np.int32]
    n_leaves: int
    links: Links
    canonical: str | None = None
    refresh: str | None = None
    noindex: bool = False
    nofollow: bool = False
    encoding: str = "utf-8"
    headings: list[str] = field(default_factory=list)
    heading_leaf: NDArray[np.int32] = field(default_factory=_empty)
    links_cut: int = 0
    refresh_delay: float = 0.0
    language: str = ""
    feeds: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)
    translated_to: list[str] = field(default_factory=list)
    scripts: bool = False
    kind: str = ""
    _words: PageWords | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def words(self) -> PageWords:
        """The distinct words of the page, computed at the first access."""
        if self._words is None:
            object.__setattr__(self, "_words", PageWords(self.tokens))
        assert self._words is not None
        return self._words

    def words_around(self, links: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the start and end index in `tokens` of the words in and around each link.

        Parameters
        ----------
        links : int64 (n,), indices of links
        most : number of words on each side
        """
        first = self.token_leaf.searchsorted(self.links.left[links])
        last = self.token_leaf.searchsorted(self.links.right[links], side="right")
        return np.maximum(first - most, 0), np.minimum(last + most, len(self.tokens))


#: columns of a serialised view, with the type of columns that are arrays
_LINK_COLUMNS = dict.fromkeys(field.name for field in fields(Links)) | {
    "left": np.int32,
    "right": np.int32,
    "nofollow": np.bool_,
}
_PAGE_COLUMNS = dict.fromkeys(
    field.name for field in fields(PageView) if field.init and field.name != "links"
) | {
    "token_leaf": np.int32,
    "heading_leaf": np.int32,
}


def pack_view(view: PageView) -> Iterator[bytes]:
    """Serialise a parsed page as lines of JSON for another process.

    Each attribute of the page becomes one line, so that no single call of the JSON encoder blocks
    the other threads for long.
    """
    for owner, columns in ((view.links, _LINK_COLUMNS), (view, _PAGE_COLUMNS)):
        for name, kind in columns.items():
            value = getattr(owner, name)
            yield json.dumps(value if kind is None else value.tolist()).encode() + b"\n"


def unpack_view(lines: BinaryIO) -> PageView:
    """Read a page from lines that `pack_view` wrote; raise ValueError if lines are missing."""
    links = Links(**_columns(lines, _LINK_COLUMNS))
    return PageView(links=links, **_columns(lines, _PAGE_COLUMNS))


def _columns(lines: BinaryIO, columns: Mapping[str, Any]) -> dict[str, Any]:
    read = {name: json.loads(lines.readline()) for name in columns}
    return {
        name: value if columns[name] is None else np.array(value, columns[name])
        for name, value in read.items()
    }
