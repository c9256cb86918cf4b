"""Main text and metadata of pages, for exports and feeds.

`focuscrawl.page` reads all words of a page, which critics judge by.
"""

from focuscrawl.text.extraction import EXTRACTORS, ExtractorPool, PageText, extract_text

__all__ = ["EXTRACTORS", "ExtractorPool", "PageText", "extract_text"]
