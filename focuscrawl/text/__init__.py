"""The main text of pages, and their metadata, for exports.

Not here: the words that a critic judges by (`focuscrawl.page`), which are all there are on a page.
"""

from focuscrawl.text.extraction import EXTRACTORS, ExtractorPool, PageText, extract_text

__all__ = ["EXTRACTORS", "ExtractorPool", "PageText", "extract_text"]
