"""PDF: its text, a leaf a page, and the links that lead out of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import MAX_URL, resolve
from focuscrawl.page.documents import PDF, Entry, UnreadableError, document_view
from focuscrawl.page.parse import MAX_LINKS, MAX_SIZE
from focuscrawl.page.walk import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.page.view import PageView

with needs("pdf", "reading PDF"):
    from pypdf import PdfReader

MOST_PAGES = 200  # of a document; what comes after is not read
_TITLE = 1000  # characters


def read_pdf(body: bytes, url: str) -> PageView:
    """Read the first pages of a PDF, 2 MiB of text at most.

    Raises
    ------
    UnreadableError
        It is damaged, or locked with a password.
    """
    try:
        return _read(PdfReader(io.BytesIO(body), strict=False), url)
    except Exception as error:  # whatever is wrong with it: its readers raise all sorts
        raise UnreadableError(type(error).__name__) from error


def _read(reader: PdfReader, url: str) -> PageView:
    texts: list[str] = []
    entries: list[Entry] = []
    length = 0
    for number, page in enumerate(_first_pages(reader)):
        texts.append(page.extract_text()[: MAX_SIZE - length])
        length += len(texts[-1])
        entries += [Entry(target, "", number) for target in _targets(page, url)]
        if length >= MAX_SIZE:
            break
    title = "" if reader.metadata is None else str(reader.metadata.title or "")
    return document_view(url, PDF, fold(title[:_TITLE]), texts, entries[:MAX_LINKS])


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
