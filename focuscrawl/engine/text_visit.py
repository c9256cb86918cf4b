"""A fetch with its text, as feeds get it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING

from focuscrawl.crawl.visit import Visit
from focuscrawl.report.plain_text import without_controls

if TYPE_CHECKING:
    from datetime import date

    from focuscrawl.text import PageText


@dataclass(slots=True, kw_only=True)
class TextVisit(Visit):
    """A recorded fetch, and the text of its page: Scrapy's item with ``FOCUSCRAWL_TEXT``.

    The names are those of a collection's columns (docs/collect.md). All are None where no text
    was wanted, of pages off the topic say, or where there is none.

    Attributes
    ----------
    text_error : why there is no text though it was wanted
    """

    text: str | None = None
    description: str | None = None
    author: str | None = None
    date: date | None = None
    language: str | None = None
    language_confidence: float | None = None
    canonical: str | None = None
    license: str | None = None
    kind: str | None = None
    hash: str | None = None
    extractor: str | None = None
    text_error: str | None = None

    @classmethod
    def of(
        cls, visit: Visit, found: PageText | str | None = None, *, markdown: bool = False
    ) -> TextVisit:
        """Return a fetch with what was found on its page.

        Parameters
        ----------
        found : why there is none, if it is no text; None: none was wanted
        markdown : the text is to have headings, lists, emphasis
        """
        item = cls(**{each.name: getattr(visit, each.name) for each in fields(Visit)})
        if isinstance(found, str):
            item.text_error = found
        elif found is not None:
            found = found.map(without_controls)
            item.title = visit.title or found.title
            item.text = found.markdown if markdown else found.text
            item.hash = sha256(found.text.encode("utf-8", "surrogatepass")).hexdigest()
            item.language_confidence = found.confidence
            for name in _AS_FOUND:
                setattr(item, name, getattr(found, name))
        return item


_AS_FOUND = (
    "description",
    "author",
    "date",
    "language",
    "canonical",
    "license",
    "kind",
    "extractor",
)
