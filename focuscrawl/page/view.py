"""`PageView`: a page as critic and link features see it; packed to pass between processes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from focuscrawl.page.words import PageWords

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray


def _empty() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Links:
    """The out-links of a page in document order, duplicates kept; columns of one length n.

    Attributes
    ----------
    urls : n normalised absolute URLs (`focuscrawl.foundation.urls`); only http and https
    anchors : n texts inside the link elements, white space folded, at most 1,000 characters;
        where there is none the ``alt`` of the area or image, or the ``title``; may be empty
    left, right : int32 (n,), first and last DOM leaf that the link element covers
        (methods 4, [A02 section 2.2.1]); ``left <= right``
    nofollow : bool (n,), the link carries ``rel=nofollow``, or one of the kinds that it was
        divided into, ``sponsored`` and ``ugc``
    """

    urls: list[str]
    anchors: list[str]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    nofollow: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.urls)


@dataclass(frozen=True, slots=True)
class PageView:
    """What one parse of a page yields, shared by all who read it.

    Attributes
    ----------
    url : the page's own URL, normalised
    title : text of ``<title>``, white space folded; a page that has one has it as leaf 0
    tokens : lower-case words of title and text in document order, of at most 40 characters
    token_leaf : int32 (n_tokens,), the number of the DOM leaf each token lies in
    n_leaves : DOM leaves, counted left to right, those without text included
    links : the out-links
    links_cut : link elements beyond `focuscrawl.page.parse.MAX_LINKS`, which are not among them
    canonical : target of ``<link rel=canonical>`` if it is another http(s) URL or the page itself
    refresh : target of ``<meta http-equiv=refresh>``, None without one
    noindex, nofollow : what ``<meta name=robots>`` or X-Robots-Tag asks
    encoding : the encoding the page was read in, by its Python name
    headings : texts of ``<h1>`` to ``<h6>``, white space folded, at most 300 characters
    heading_leaf : int32 (n_headings,), the number of the first leaf of each, ascending
    refresh_delay : seconds after which a browser goes to `refresh`
    language : ``<html lang>``, as written; empty: none
    feeds : URLs of the feeds that it names with ``<link rel=alternate>``
    translations, translated_to : URLs of the same in other languages, as it declares, and these
        languages (``hreflang``)
    scripts : it has scripts that a browser would run
    kind : empty for a page; else what it is of `focuscrawl.page.documents`
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
        """The words of `tokens`, found out once."""
        if self._words is None:
            object.__setattr__(self, "_words", PageWords(self.tokens))
        assert self._words is not None
        return self._words

    def words_around(
        self, links: NDArray[np.int64], most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the words in some of the links and around them begin and end.

        Parameters
        ----------
        links : int64 (n,), places among `links`
        most : words on either side

        Returns
        -------
        Two of int64 (n,), places among `tokens`, the second not included
        """
        first = self.token_leaf.searchsorted(self.links.left[links])
        last = self.token_leaf.searchsorted(self.links.right[links], side="right")
        return np.maximum(first - most, 0), np.minimum(last + most, len(self.tokens))


#: the columns of a packed view, and the types of those that are arrays
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
    """Pack a page as lines of JSON, to pass it to another process.

    A line a column, so that no single call takes long: other threads want the interpreter, too.
    """
    for owner, columns in ((view.links, _LINK_COLUMNS), (view, _PAGE_COLUMNS)):
        for name, kind in columns.items():
            value = getattr(owner, name)
            yield json.dumps(value if kind is None else value.tolist()).encode() + b"\n"


def unpack_view(lines: BinaryIO) -> PageView:
    """Read what `pack_view` has packed; ValueError if it ends before."""
    links = Links(**_columns(lines, _LINK_COLUMNS))
    return PageView(links=links, **_columns(lines, _PAGE_COLUMNS))


def _columns(lines: BinaryIO, columns: Mapping[str, Any]) -> dict[str, Any]:
    read = {name: json.loads(lines.readline()) for name in columns}
    return {
        name: value if columns[name] is None else np.array(value, columns[name])
        for name, value in read.items()
    }
