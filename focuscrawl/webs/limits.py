"""What a recording may hold: as much as the crawler takes in of the live Web, and no more.

A recording may come from a stranger, as a page does; see ``docs/security.md``.
"""

from __future__ import annotations

LARGEST_BODY = 10 * 1024 * 1024  #: bytes of a body, packed and unpacked
LARGEST_HEAD = 256 * 1024  #: bytes of an HTTP head
LARGEST_BLOCK = LARGEST_HEAD + LARGEST_BODY  #: bytes of what a record holds, unpacked
LONGEST_URL = 2083  #: characters


class TooLargeError(Exception):
    """There is more of something than is taken in."""
