"""The main text of pages, and what they say of themselves: for people who take pages home.

Not here: the words that a critic judges by (`focuscrawl.page`), which are all there are on a page.
"""

from focuscrawl.text.extraction import EXTRACTORS, ExtractorApart, PageText, extract_text

__all__ = ["EXTRACTORS", "ExtractorApart", "PageText", "extract_text"]
