"""How much work a page is, told from its bytes in a fraction of the time that the work takes.

The parse takes time in proportion to tags and bytes, with one exception: libxml2 looks through
all attributes of an element for each that is added, so that a tag of 100,000 takes as long as
ten million tags.
"""

from __future__ import annotations

import re
import string
from enum import IntEnum

import numpy as np

#: bytes; no longer page takes 20 ms or less, whatever they are
SMALL_SIZE = 80_000
_SMALL_TAGS = 8_000
# What takes a second or so; more tags than that are too many, and attributes are counted.
_LARGE_SIZE = 300_000
_LARGE_TAGS = 100_000

# Attributes of a tag, squared and added up, that take 20 ms; and a second, which a page that is
# not large may take.
_MANY = 20_000_000
_MANY_ALONE = 500_000_000
# Bytes between ends of tags, squared and added up, that can hold as many: an attribute has 3 or
# more. A stretch shorter than the least holds too few to count.
_STRETCHED = 200_000_000
_LEAST = 1000
# A tag and its attributes (WHATWG HTML, "tokenization"). No repetition gives anything back, so
# that each byte is looked at once.
_VALUE = rb"""[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >]*+)"""
_ATTRIBUTE = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:" + _VALUE + rb")?+"
_TAG = re.compile(
    rb"<[a-z][^\t\n\f\r />]*+((?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEFORE_VALUE = b"=" + string.whitespace.encode()


class Effort(IntEnum):
    """How long a parse may take.

    SMALL: no longer than an event loop may be held. LARGE: longer, but not for ever; beside other
    work. UNBOUNDED: nobody knows; where it can be ended.
    """

    SMALL = 1
    LARGE = 2
    UNBOUNDED = 3


def effort(utf8: bytes, least: Effort = Effort.SMALL) -> Effort:
    """Tell how much work it is to parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it
    least : what is returned at least; less is not looked for, which takes time as well
    """
    if least <= Effort.SMALL and _is_small(utf8):
        return Effort.SMALL
    return max(least, Effort.LARGE if _is_bounded(utf8) else Effort.UNBOUNDED)


def _is_small(utf8: bytes) -> bool:
    size = len(utf8)
    if size <= _SMALL_TAGS:
        return True
    return size <= SMALL_SIZE and _tags(utf8) <= _SMALL_TAGS and not _is_stretched(utf8)


def _is_bounded(utf8: bytes) -> bool:
    if len(utf8) <= _LARGE_SIZE:
        return not _is_crowded(utf8, _MANY_ALONE)
    return _tags(utf8) <= _LARGE_TAGS and not _is_crowded(utf8, _MANY)


def _tags(utf8: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(utf8, np.uint8) == ord("<")))


def _is_stretched(utf8: bytes) -> bool:
    """Tell whether there is room for tags with very many attributes.

    The last ``>`` of every 1,000 bytes is looked for, so that few bytes are looked at. A stretch
    goes on over those that may be in the value of an attribute, where they end no tag.
    """
    at, start, squares, size = 0, 0, 0, len(utf8)
    while at < size - _LEAST:
        end = utf8.rfind(b">", at + 1, at + _LEAST)
        if end < 0:
            end = utf8.find(b">", at + _LEAST)
        at = size if end < 0 else end
        square = (at - start) ** 2 if at - start >= _LEAST else 0
        if squares + square > _STRETCHED:
            return True
        if not _is_quoted(utf8, start, at):
            start, squares = at, squares + square
    return False


def _is_quoted(utf8: bytes, start: int, at: int) -> bool:
    """Tell whether a value may have begun after `start` that has not ended before `at`."""
    for quote in (b'"', b"'"):
        opening = utf8.rfind(quote, start, at)
        if opening <= start or utf8[opening - 1] not in _BEFORE_VALUE:
            continue
        if utf8[start:opening].rstrip().endswith(b"="):
            return True
    return False


def _is_crowded(utf8: bytes, most: int) -> bool:
    """Tell whether tags have more attributes, squared and added up, than `most`.

    They are counted only where there is room for many.
    """
    if not _is_stretched(utf8):
        return False
    squares = 0
    for tag in _TAG.finditer(utf8):
        if tag.end() - tag.start() >= _LEAST:
            squares += len(_ATTRIBUTES.findall(tag[1])) ** 2
            if squares > most:
                return True
    return False
