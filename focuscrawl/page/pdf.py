"""PDF: its text, a leaf a page, what it says of itself, and the links that lead out of it."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import MAX_URL, resolve
from focuscrawl.page.documents import PDF, Entry, UnreadableError, document_view
from focuscrawl.page.parse import MAX_LINKS, MAX_SIZE
from focuscrawl.page.walk import fold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from focuscrawl.page.view import PageView

with needs("pdf", "reading PDF"):
    from pypdf import DocumentInformation, PdfReader

MOST_PAGES = 200  # of a document; what comes after is not read
_FIELD = 1000  # characters of what it says of itself


class PdfText(NamedTuple):
    """What a PDF says, and says of itself; empty, None: it does not.

    Attributes
    ----------
    pages : text of each
    links : where they lead; `Entry.leaf` is the page
    date : it was changed, or made
    """

    pages: list[str]
    links: list[Entry]
    title: str
    author: str
    date: date | None


def read_pdf(body: bytes, url: str) -> PageView:
    """Read the first pages of a PDF as a page; see `pdf_text`."""
    found = pdf_text(body, url)
    return document_view(url, PDF, found.title, found.pages, found.links)


def pdf_text(body: bytes, url: str) -> PdfText:
    """Return what the first pages of a PDF say, 2 MiB of text at most.

    Raises
    ------
    UnreadableError
        It is damaged, or locked with a password.
    """
    try:
        return _read(PdfReader(io.BytesIO(body), strict=False), url)
    except Exception as error:  # whatever is wrong with it: its readers raise all sorts
        raise UnreadableError(type(error).__name__) from error


def _read(reader: PdfReader, url: str) -> PdfText:
    texts: list[str] = []
    entries: list[Entry] = []
    length = 0
    for number, page in enumerate(_first_pages(reader)):
        texts.append(page.extract_text()[: MAX_SIZE - length])
        length += len(texts[-1])
        entries += [Entry(target, "", number) for target in _targets(page, url)]
        if length >= MAX_SIZE:
            break
    said = reader.metadata
    title, author = ("", "") if said is None else (said.title or "", said.author or "")
    return PdfText(
        *(texts, entries[:MAX_LINKS], fold(str(title)[:_FIELD]), fold(str(author)[:_FIELD])),
        None if said is None else _date(said),
    )


def _date(said: DocumentInformation) -> date | None:
    for name in ("modification_date", "creation_date"):
        with suppress(ValueError, TypeError, OverflowError):  # what is no date
            at = getattr(said, name)
            if at is not None:
                return at.date()  # type: ignore[no-any-return]
    return None


def _first_pages(reader: PdfReader) -> Iterator[Any]:
    for number in range(min(len(reader.pages), MOST_PAGES)):
        yield reader.pages[number]


def _targets(page: Any, url: str) -> Iterator[str]:
    """Iterate over the URLs that the links of a page of a document lead to."""
    for annotation in (page.annotations or [])[:MAX_LINKS]:
        action = annotation.get_object().get("/A")
        action = None if action is None else action.get_object()
        written = None if action is None else action.get("/URI")
        if written is None or len(str(written)) > MAX_URL:
            continue
        target = resolve(url, [str(written)])[0]
        if target is not None and len(target) <= MAX_URL:
            yield target
