"""Bookmarks of a browser as examples [F99 section 2], in the format all browsers export."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import read_text
from focuscrawl.page.walk import parse_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_FOLDER_DEPTH = 64  # folders in folders
_MAX_TITLE = 1000  # characters of a title
_MAX_TAGS = 200  # of elements in a title, ends counted too


class Bookmark(NamedTuple):
    """One bookmark.

    Attributes
    ----------
    url : normalised
    title : as the browser kept it
    folder : names of the folders it lies in, from the outermost, joined by ``/``
    """

    url: str
    title: str
    folder: str


def read_bookmarks(path: str | Path, folder: str | None = None) -> list[Bookmark]:
    """Read a ``bookmarks.html``; what is no web page is left out, a URL counts once.

    Parameters
    ----------
    folder : only what lies in a folder of this name, at any depth, or in one below it

    Raises
    ------
    UserError
        If the file cannot be read, or has no bookmark, or none in `folder`.
    """
    return parse_bookmarks(read_text(path), str(path), folder)


def parse_bookmarks(text: str, where: str, folder: str | None = None) -> list[Bookmark]:
    """Return the bookmarks in the text of such a file; `where` it is from, for the message.

    Raises
    ------
    UserError
        As `read_bookmarks`.
    """
    first: dict[str, Bookmark] = {}
    for each in _iter_bookmarks(text.encode(errors="replace")):
        first.setdefault(each.url, each)
    bookmarks = list(first.values())
    if not bookmarks:
        raise UserError(f"{where}: no bookmark of a web page in it; export bookmarks as HTML")
    if folder is None:
        return bookmarks
    inside = [each for each in bookmarks if folder in each.folder.split("/")]
    if not inside:
        names = sorted({name for each in bookmarks for name in each.folder.split("/") if name})
        raise UserError(f"{where}: no folder {folder}; there are {', '.join(names) or 'none'}")
    return inside


def _iter_bookmarks(html: bytes) -> Iterator[Bookmark]:
    """Yield the bookmarks: a ``<DL>`` is a folder's content, the ``<H3>`` before it its name."""
    root = parse_tree(html)
    if root is None:
        return
    folders: list[str] = []
    heading = ""
    for event, element in etree.iterwalk(root, ("start", "end"), ("dl", "h3", "a")):
        if element.tag == "dl" and event == "end":
            folders.pop()
        elif event == "end":
            continue
        elif element.tag == "h3":
            heading = _text(element).replace("/", "-")
        elif element.tag == "dl":
            folders.append(heading)
            heading = ""
        elif (url := normalize(element.get("href", ""))) is not None:
            yield Bookmark(
                url, _text(element), "/".join(filter(None, folders[:_MAX_FOLDER_DEPTH]))
            )


def _text(element: etree._Element) -> str:
    """Return the beginning of the text in an element; titles in titles cost each its own tags."""
    pieces = []
    for event, inner in itertools.islice(etree.iterwalk(element, ("start", "end")), _MAX_TAGS):
        piece = inner.text if event == "start" else inner.tail if inner is not element else None
        pieces.append((piece or "")[:_MAX_TITLE])
    return " ".join("".join(pieces).split())[:_MAX_TITLE]
