"""Reads bookmarks, which can be example pages, from the HTML file that browsers export."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import read_text
from focuscrawl.page.walk import parse_tree

_MAX_FOLDER_DEPTH = 64
_MAX_TITLE = 1000  # characters of a title
_MAX_TAGS = 200  # start and end tags read of one title


class Bookmark(NamedTuple):
    """A bookmark of a web page."""

    url: str  # normalised
    title: str
    folder: str  # names of the bookmark's folders, outermost first, joined by "/"


def read_bookmarks(path: str | Path, folder: str | None = None) -> list[Bookmark]:
    """Read the bookmarks of web pages from a file like ``bookmarks.html``, each URL once.

    If `folder` is given, only bookmark folders of this name, at any depth, and their subfolders
    are read.

    Raises
    ------
    UserError
        The file cannot be read, has no bookmark, or has no bookmark in `folder`.
    """
    return parse_bookmarks(read_text(path), str(path), folder)


def parse_bookmarks(text: str, where: str, folder: str | None = None) -> list[Bookmark]:
    """Return the bookmarks in the text of a bookmarks file, as `read_bookmarks` does."""
    first: dict[str, Bookmark] = {}
    for each in _iter_bookmarks(text.encode(errors="replace")):
        first.setdefault(each.url, each)
    bookmarks = list(first.values())
    if not bookmarks:
        raise UserError(f"{where} has no bookmark of a web page: export bookmarks as HTML")
    if folder is None:
        return bookmarks
    inside = [each for each in bookmarks if folder in each.folder.split("/")]
    if not inside:
        names = sorted({name for each in bookmarks for name in each.folder.split("/") if name})
        raise UserError(f"{where} has no folder {folder}. Folders: {', '.join(names) or 'none'}")
    return inside


def _iter_bookmarks(html: bytes) -> Iterator[Bookmark]:
    """Yield bookmarks; a ``<DL>`` contains a folder, and the ``<H3>`` before has its name."""
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
    """Return the start of an element's text; the tag limit bounds the cost of nested titles."""
    pieces = []
    for event, inner in itertools.islice(etree.iterwalk(element, ("start", "end")), _MAX_TAGS):
        piece = inner.text if event == "start" else inner.tail if inner is not element else None
        pieces.append((piece or "")[:_MAX_TITLE])
    return " ".join("".join(pieces).split())[:_MAX_TITLE]
