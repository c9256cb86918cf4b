"""Features as numbers: a kind and a word in one key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE_KINDS = ("text", "title", "heading", "url", "page")
LINK_KINDS = ("anchor", "near", "above", "target", "link")
KINDS = (*PAGE_KINDS, *LINK_KINDS)
_KIND = {kind: np.uint64(i) for i, kind in enumerate(KINDS)}
_BITS = np.uint64(8)  # of a key that hold the kind


def keyed(kind: str, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the keys of words (n,), as `WordHashes` numbers them, in a place of one kind."""
    return words << _BITS | _KIND[kind]


def keyed_in_turn(
    kinds: tuple[str, ...], lengths: list[int], words: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return the keys of words of which the first so many are of the first kind, and so on."""
    keys: NDArray[np.uint64] = words << _BITS
    keys |= np.repeat(np.array([_KIND[kind] for kind in kinds]), lengths)
    return keys


def kind_and_word(key: int) -> tuple[str, int]:
    """Return what a key was made of."""
    return KINDS[key & ((1 << int(_BITS)) - 1)], key >> int(_BITS)
