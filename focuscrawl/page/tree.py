"""Clean UTF-8 to an element tree: one lenient lxml parse."""

from __future__ import annotations

import re
import threading

from lxml import etree


class _Parsers(threading.local):
    """A parser for each thread: lxml has whoever comes second wait until the first is through."""

    def __init__(self) -> None:
        # Comments and processing instructions are no leaves, so they need not be nodes. An index
        # of ids would cost a fifth of the parse and nobody asks for it.
        self.parser = etree.HTMLParser(
            encoding="utf-8",
            recover=True,
            huge_tree=True,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )


_parsers = _Parsers()

# libxml2 stops, with all that follows unread, at an element more than this deep.
_DEPTH_LIMIT = 2048
# What of a page that is nested deeper is kept: links, metadata, and what cannot be nested.
_NESTING_TAG = re.compile(
    rb"</?(?!(?:a|area|base|br|frame|hr|iframe|img|input|link|meta|noframes|script|style"
    rb"|textarea|title)[\s/>])[a-z][^<>]*>",
    re.IGNORECASE,
)
# Parts two texts without being a leaf.
_PART = b"<base>"


def parse_tree(utf8: bytes) -> etree._Element | None:
    """Parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it

    Returns
    -------
    The root element, None if the page holds nothing.

    Notes
    -----
    A page nested deeper than libxml2 reads (2,048 elements) is read flat: its links and texts
    are kept, the elements around them are not.
    """
    root = _parse(utf8)
    if root is not None and _is_cut(root):
        root = _parse(_NESTING_TAG.sub(_PART, utf8))
    return root


def _parse(utf8: bytes) -> etree._Element | None:
    try:
        root = etree.fromstring(utf8, _parsers.parser)
    except etree.ParseError:  # nothing but white space
        return None
    if root is not None:  # nothing but comments
        # what follows ``</html>`` becomes a tree of its own: browsers show it with the rest
        root.extend([*root.itersiblings()])
    return root


def _is_cut(root: etree._Element) -> bool:
    """Tell whether the parse stopped at the depth limit: then the last node is that deep."""
    depth = 1
    while len(root):
        root = root[-1]
        depth += 1
    return depth >= _DEPTH_LIMIT - 1
