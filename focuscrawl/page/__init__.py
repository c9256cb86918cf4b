"""Parses HTML and other documents to a `PageView`, with text, words, links and metadata.

Other packages fetch, judge and score pages.
"""

from focuscrawl.page.content_type import can_be_html, is_html, read_content_type
from focuscrawl.page.parse import ParseCost, ParseLimitError, parse_page
from focuscrawl.page.parser_process import ParserProcess, shared_parser
from focuscrawl.page.view import Links, PageView

__all__ = [
    "Links",
    "PageView",
    "ParseCost",
    "ParseLimitError",
    "ParserProcess",
    "can_be_html",
    "is_html",
    "parse_page",
    "read_content_type",
    "shared_parser",
]
