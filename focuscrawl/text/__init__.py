"""Extracts the main text and the metadata of pages, for exports and feeds.

The package `focuscrawl.page` reads all words of a page, from which critics judge the page.
"""

from focuscrawl.text.extraction import EXTRACTORS, ExtractorPool, PageText, extract_text

__all__ = ["EXTRACTORS", "ExtractorPool", "PageText", "extract_text"]
