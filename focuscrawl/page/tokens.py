"""Words of a page, all leaves at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Longer runs are base64, hashes and glued listings: no two pages share them.
MAX_TOKEN_LENGTH = 40

_LEAF_END = "\0"  # libxml2 keeps no NUL in a text
_MARK = ord("\n")  # what it is folded to
_SPACE = ord(" ")


def _fold_table() -> NDArray[np.uint32]:
    """Map code points to lower case, what is neither letter nor digit to a space.

    Code points of plane 2 and above (rare ideographs) clip to the last entry, a space.
    """
    points = np.arange(0x20000, dtype=np.uint32)
    characters = points.view("<U1")
    lower = np.strings.lower(characters).astype("<U1").view(np.uint32)
    folded = np.where(np.strings.isalnum(characters), lower, np.uint32(_SPACE))
    folded[ord(_LEAF_END)] = _MARK
    return folded


_FOLD = _fold_table()
_FOLD_ASCII = _FOLD[:256].astype(np.uint8).tobytes()


def tokenize(leaves: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    r"""Split the texts of a page into tokens.

    A token is a run of letters and digits (``[^\W_]``), in lower case, of at most
    `MAX_TOKEN_LENGTH` characters; longer runs are left out. It never crosses a leaf.

    Parameters
    ----------
    leaves : one text a leaf, "" for a leaf without text

    Returns
    -------
    tokens : in order
    token_leaf : int32 (n_tokens,), index of the leaf that each token lies in, ascending
    """
    text = _LEAF_END.join(["", *leaves, ""])
    codes: NDArray[np.uint8] | NDArray[np.uint32]
    if text.isascii():
        folded = text.encode("ascii").translate(_FOLD_ASCII)
        codes = np.frombuffer(folded, np.uint8)
        tokens = folded.decode("ascii").split()
    else:
        codes = _FOLD.take(np.frombuffer(text.encode("utf-32-le"), np.uint32), mode="clip")
        tokens = codes.tobytes().decode("utf-32-le").split()
    if not tokens:
        return [], np.empty(0, np.int32)
    in_token = codes > _SPACE
    edges = np.flatnonzero(in_token[1:] != in_token[:-1])  # one before each start, each last
    starts = edges[::2]
    lengths = edges[1::2] - starts
    if lengths.max() > MAX_TOKEN_LENGTH:
        keep = lengths <= MAX_TOKEN_LENGTH
        starts = starts[keep]
        tokens = [token for token in tokens if len(token) <= MAX_TOKEN_LENGTH]
    marks = np.flatnonzero(codes == _MARK)
    return tokens, np.searchsorted(marks, starts, side="right").astype(np.int32) - np.int32(1)
