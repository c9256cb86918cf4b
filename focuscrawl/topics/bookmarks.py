"""Bookmarks of a browser as examples [F99 section 2], in the format all browsers export."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize


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
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; export the bookmarks of a browser") from None
    reader = _Reader()
    reader.feed(text)
    reader.close()
    found = {each.url: each for each in reversed(reader.bookmarks)}
    bookmarks = [each for each in reader.bookmarks if found[each.url] is each]
    if not bookmarks:
        raise UserError(f"{path}: no bookmark of a web page in it; export bookmarks as HTML")
    if folder is None:
        return bookmarks
    inside = [each for each in bookmarks if folder in each.folder.split("/")]
    if not inside:
        names = sorted({name for each in bookmarks for name in each.folder.split("/") if name})
        raise UserError(f"{path}: no folder {folder}; there are {', '.join(names) or 'none'}")
    return inside


class _Reader(HTMLParser):
    """``<DL>`` is a folder's content, the ``<H3>`` before it the folder's name, ``<A>`` a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.bookmarks: list[Bookmark] = []
        self._folders: list[str] = []
        self._heading = ""
        self._text: list[str] | None = None
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "dl":
            self._folders.append(self._heading)
            self._heading = ""
        elif tag in {"a", "h3"}:
            self._text = []
            self._href = dict(attrs).get("href") if tag == "a" else None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "dl" and self._folders:
            self._folders.pop()
        elif tag in {"a", "h3"} and self._text is not None:
            text = " ".join("".join(self._text).split())
            self._text = None
            if tag == "h3":
                self._heading = text.replace("/", "-")
            else:
                self._keep(text)

    def _keep(self, title: str) -> None:
        url = None if self._href is None else normalize(self._href)
        if url is not None:
            folder = "/".join(name for name in self._folders if name)
            self.bookmarks.append(Bookmark(url, title, folder))
