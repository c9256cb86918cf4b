"""The text of a PDF that is taken home, and what it says of itself."""

from __future__ import annotations

from focuscrawl.foundation.extras import needs
from focuscrawl.page.documents import PDF
from focuscrawl.page.language import tell
from focuscrawl.text.extraction import LONGEST, PageText

PYPDF = "pypdf"  #: extractor of these texts


def extract_pdf(body: bytes, url: str) -> PageText:
    """Take the text out of a PDF, its pages as paragraphs.

    Raises
    ------
    UnreadableError
        It is damaged, or locked with a password.
    UserError
        The library is not installed.
    """
    with needs("pdf", "taking the text of PDF home"):
        from focuscrawl.page.pdf import pdf_text  # noqa: PLC0415
    found = pdf_text(body, url)
    text = "\n\n".join(filter(None, map(str.strip, found.pages)))[:LONGEST]
    language, confidence = tell(text, "")
    return PageText(
        text=text,
        markdown=text,
        title=found.title,
        description="",
        author=found.author,
        date=found.date,
        language=language,
        confidence=round(confidence, 4),
        canonical="",
        license="",
        kind=PDF,
        extractor=PYPDF,
    )
