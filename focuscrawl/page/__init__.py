"""HTML to `PageView`: what the rest of the program sees of a page, from one lenient parse.

Here: encodings, the parse, tokens, DOM leaves, out-links. Not here: fetching, judging, scoring.
"""

from focuscrawl.page.metadata import is_html, read_content_type
from focuscrawl.page.parse import ParseCost, ParseLimitError, parse_page
from focuscrawl.page.parser_process import ParserProcess, shared_parser
from focuscrawl.page.view import Links, PageView

__all__ = [
    "Links",
    "PageView",
    "ParseCost",
    "ParseLimitError",
    "ParserProcess",
    "is_html",
    "parse_page",
    "read_content_type",
    "shared_parser",
]
