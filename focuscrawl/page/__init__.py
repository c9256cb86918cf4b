"""Parse HTML and other documents to `PageView`, with text, words, links and metadata.

Fetching, judging and scoring of pages are in other packages.
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
