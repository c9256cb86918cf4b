"""Uniform samples that can be merged: of a set of URLs, keep those with the smallest hashes.

The k smallest hashes of a union are among the k smallest of its parts. So a topic may be cut
down while it is read, merged into its parent and cut again, and the result is the sample that
cutting once at the end would give: uniform, whatever the order of reading and merging.
"""

from __future__ import annotations

import heapq
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


class Sampling(NamedTuple):
    """How large topics are cut down.

    Attributes
    ----------
    size : examples kept of a topic, at most
    random_state : seed of the hash that decides which
    """

    size: int
    random_state: int

    def draw(self, urls: Collection[str]) -> list[str]:
        """Return `size` of `urls`, or all of them when they are no more.

        Parameters
        ----------
        urls : distinct URLs, in any order: it does not change which are drawn
        """
        if len(urls) <= self.size:
            return list(urls)
        key = str(self.random_state).encode()

        def rank(url: str) -> tuple[bytes, str]:
            # lone surrogates (a mangled table) have no UTF-8 of their own
            encoded = url.encode("utf-8", "surrogatepass")
            return blake2b(encoded, digest_size=8, key=key).digest(), url

        return heapq.nsmallest(self.size, urls, key=rank)
