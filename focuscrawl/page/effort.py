"""How much work a page is, told from its bytes in a fraction of the time that the work takes.

The parse takes time in proportion to tags and bytes, with one exception: libxml2 looks through
all attributes of an element for each that is added, so that a tag of 100,000 takes as long as
ten million tags.
"""

from __future__ import annotations

import re
from enum import IntEnum

#: bytes; no longer page takes 20 ms or less, whatever they are
SMALL_SIZE = 80_000
_SMALL_TAGS = 8_000
# What takes a second or so; more tags than that are too many, and attributes are counted.
_LARGE_SIZE = 300_000
_LARGE_TAGS = 100_000

# Attributes of a tag, squared and added up, that take 20 ms.
_MANY = 20_000_000
# Bytes without ``>``, squared and added up, that can hold as many: an attribute has 3 or more. A
# stretch shorter than the least holds too few to count.
_STRETCHED = 200_000_000
_LEAST = 500
# ``>`` in the value of an attribute, where it ends no tag. Few hide 50 kB of a tag at most.
_FEW = 100
_QUOTED = re.compile(rb"""=[\t\n\f\r ]*+(?:"[^">]*+>|'[^'>]*+>)""")
# A tag and its attributes (WHATWG HTML, "tokenization"). No repetition gives anything back, so
# that each byte is looked at once.
_VALUE = rb"""[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >]*+)"""
_ATTRIBUTE = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:" + _VALUE + rb")?+"
_TAG = re.compile(
    rb"<[a-z][^\t\n\f\r />]*+((?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)


class Effort(IntEnum):
    """How long a parse may take.

    SMALL: no longer than an event loop may be held. LARGE: longer, but not for ever; beside other
    work. UNBOUNDED: nobody knows; where it can be ended.
    """

    SMALL = 1
    LARGE = 2
    UNBOUNDED = 3


def effort(utf8: bytes) -> Effort:
    """Tell how much work it is to parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it
    """
    size = len(utf8)
    if size <= _SMALL_TAGS:
        return Effort.SMALL
    if size <= SMALL_SIZE:
        small = utf8.count(b"<") <= _SMALL_TAGS and not _is_stretched(utf8)
        return Effort.SMALL if small else Effort.LARGE
    if size <= _LARGE_SIZE:
        return Effort.LARGE
    bounded = utf8.count(b"<") <= _LARGE_TAGS and not _is_crowded(utf8)
    return Effort.LARGE if bounded else Effort.UNBOUNDED


def _is_stretched(utf8: bytes) -> bool:
    """Tell whether there is room for tags with very many attributes.

    The last ``>`` of every 500 bytes is looked for, so that few bytes are looked at.
    """
    at, size, squares = 0, len(utf8), 0
    if size**2 <= _STRETCHED:
        return False
    while at < size - _LEAST:
        end = utf8.rfind(b">", at + 1, at + _LEAST)
        if end < 0:
            end = utf8.find(b">", at + _LEAST)
            end = size if end < 0 else end
            squares += (end - at) ** 2
        at = end
    return squares > _STRETCHED


def _is_crowded(utf8: bytes) -> bool:
    """Tell whether tags have so many attributes that it counts.

    They are counted only where there is room for them, or many a ``>`` is not what it seems.
    """
    if not _is_stretched(utf8) and len(_QUOTED.findall(utf8)) <= _FEW:
        return False
    squares = 0
    for tag in _TAG.finditer(utf8):
        if tag.end() - tag.start() >= _LEAST:
            squares += len(_ATTRIBUTES.findall(tag[1])) ** 2
            if squares > _MANY:
                return True
    return False
