"""Features of a link: words around it, words of its URL, whether it leaves the site, and more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote
from zlib import crc32

import numpy as np

from focuscrawl.apprentice.hashing import (
    SparseRows,
    hash_features,
    multi_arange,
    row_pointers,
)
from focuscrawl.page.words import tokenize, word_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints


HASH_BITS = 18
HASH_SIZE = 1 << HASH_BITS  # features of the hashed space
WORD, PREFIX, SITE = 1, 2, 8  # salts
OFFSET_SALT = 1 << 16  # plus the offset
#: tokens before, inside and after a link that become features; a DOM leaf can be a chapter, and an
#: unclosed anchor can span the page
MAX_TOKENS = 40
RELATIONS = ("another host", "same host", "same directory", "directory below", "directory above")
RELATION_FEATURES = hash_features(np.arange(len(RELATIONS), dtype=np.uint64), SITE, HASH_BITS)
_CACHE_SIZE = 50_000  # URLs, about 20 MB, as the pages of a host share many links
_UINT16_MAX = 0xFFFF
_EXTENSION = 7  # characters, dot included
_DIGITS = re.compile(b"[0-9]+")
_INDEX = re.compile(rb"/(?:index|default|home|welcome)\.[a-z]{2,5}$", re.IGNORECASE)
_DEEPEST = 8  # directories; deeper directories have no prefix feature
PREFIXES = _DEEPEST + 1
PATTERNS = 4
ALIASES = 2


def url_words(urls: Sequence[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the words of path and query of `urls`, and for each word the position of its URL."""
    paths = [url.split("/", 3)[-1] for url in urls]
    return tokenize([unquote(path) if "%" in path else path for path in paths])


def url_set_keys(url: str) -> list[int]:
    """Return hashes that identify sets of similar URLs to which `url` belongs.

    The result has `PREFIXES` + `PATTERNS` + `ALIASES` hashes:

    - Prefixes are the host and each directory of the path, from large to small, padded with zeros.
      The full path counts as a prefix only if the URL has a query.
    - There are four patterns. The first is the extension with the names of the query arguments.
      The second is the first pattern with the host. The third is the last path segment, and the
      fourth the whole URL, both with all digits replaced by 0. URLs with the same pattern often
      have similar relevance.
    - Aliases are two short forms of the URL, one with the query and one without. Different URLs of
      the same page often have the same aliases, for example ``/a``, ``/a/`` and ``/a/index.html``.
    """
    address = url[url.index("//") + 2 :].encode("utf-8", "surrogatepass")
    path, question, query = address.partition(b"?")
    parts = path.split(b"/", _DEEPEST + 1)
    inside = parts[: _DEEPEST + 1] if question else parts[:-1]
    number = 0
    keys = [0] * PREFIXES
    for i, part in enumerate(inside[:PREFIXES]):
        keys[i] = number = crc32(part, number ^ 0x2F)
    host = parts[0]
    folded, _, arguments = _DIGITS.sub(b"0", address[len(host) :]).partition(b"?")
    if arguments:
        arguments = b",".join(sorted([p.partition(b"=")[0] for p in arguments.split(b"&")]))
    directory, _, name = folded.rpartition(b"/")
    dot = name.rfind(b".")
    extension = name[dot:] if dot >= 0 and len(name) - dot <= _EXTENSION else name and b"-"
    kind = b"%s?%s" % (extension, arguments)
    last = b"%s %s?%s" % (host, name, arguments)
    same = _INDEX.sub(b"", path).rstrip(b"/").lower()
    keys += (
        crc32(kind),
        crc32(host + kind),
        crc32(last),
        crc32(last, crc32(directory)),
        crc32(same + question + query),
        crc32(same),
    )
    return keys


def url_key_table(urls: Sequence[str]) -> NDArray[np.uint32]:
    """Return `url_set_keys` of each URL, uint32 (n, PREFIXES + PATTERNS + ALIASES)."""
    keys = [url_set_keys(url) for url in urls]
    return np.array(keys, np.uint32).reshape(-1, PREFIXES + PATTERNS + ALIASES)


def url_features(urls: Sequence[str], keys: NDArray[np.uint32]) -> SparseRows:
    """Return one row of features per URL: the words of its path and query, and its path prefixes.

    Parameters
    ----------
    urls : length n, normalised URLs
    keys : uint32, result of `url_key_table` for the URLs
    """
    words, number = url_words(urls)
    inside = keys[:, :PREFIXES] > 0
    features = np.concatenate(
        [
            hash_features(word_hashes(words), WORD, HASH_BITS),
            hash_features(keys[:, :PREFIXES][inside].astype(np.uint64), PREFIX, HASH_BITS),
        ]
    )
    owner = np.concatenate([number.astype(np.int64), np.nonzero(inside)[0]])
    order = np.argsort(owner, kind="stable")
    return SparseRows(features[order], row_pointers(np.bincount(owner, minlength=len(urls))))


def site_features(source: str, targets: Sequence[str]) -> SparseRows:
    """Return one feature per link: how the link's target is related to its page (`RELATIONS`).

    The source and target URLs must be normalised.
    """
    host, directory = _host_and_directory(source)
    found = [_relation(host, directory, *_host_and_directory(target)) for target in targets]
    return SparseRows(RELATION_FEATURES[np.array(found, np.int64)], np.arange(len(targets) + 1))


@lru_cache(maxsize=_CACHE_SIZE)
def _host_and_directory(url: str) -> tuple[str, str]:
    address = url.partition("//")[2].partition("?")[0]
    return address.partition("/")[0], address[: address.rfind("/") + 1]


def _relation(host: str, directory: str, other_host: str, other: str) -> int:
    if host != other_host:
        return 0
    if directory == other:
        return 2
    if other.startswith(directory):
        return 3
    return 4 if directory.startswith(other) else 1


class Window(NamedTuple):
    """The tokens (words) in and around each link of a page; links are in document order.

    Attributes
    ----------
    tokens : int64 (n_tokens,), positions of the tokens on the page
    offset : int32 (n_tokens,), DOM offset of each token from its link
    lengths : int64 (n_links,), number of tokens of each link
    """

    tokens: Ints
    offset: NDArray[np.int32]
    lengths: Ints


def window(
    words: NDArray[np.int32] | None,
    token_leaf: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    *,
    d_max: int,
    max_tokens: int | None = MAX_TOKENS,
) -> Window:
    """Find the tokens (words) in and around the links of a page.

    Parameters
    ----------
    words : int32 (n_tokens,), number of the word of each token (`PageWords.indices`), to skip
        repeated words of a leaf; None to keep them, for learners that count words
    token_leaf : int32 (n_tokens,), DOM leaf of each token, ascending
    left, right : int32 (n_links,), first and last DOM leaf under each link
    d_max : largest DOM offset on either side
    max_tokens : largest number of tokens before, inside and after a link; the nearest are used
    """
    kept = None if words is None else _first_in_leaf(words, token_leaf)
    if kept is not None:
        token_leaf = token_leaf.take(kept)
    begin, first = token_leaf.searchsorted(np.array([left - d_max, left]))
    last, end = token_leaf.searchsorted(np.array([right, right + d_max]), side="right")
    inside = last - first
    if max_tokens is not None:
        begin = np.maximum(begin, first - max_tokens)
        end = np.minimum(end, last + max_tokens)
        inside = np.minimum(inside, max_tokens)
    starts = np.array([begin, first, last]).T
    spans = np.array([first - begin, inside, end - last]).T
    at = multi_arange(starts.ravel(), spans.ravel())
    lengths = spans.sum(axis=1)
    leaf = token_leaf.take(at)
    nearest = np.minimum(np.maximum(leaf, left.repeat(lengths)), right.repeat(lengths))
    return Window(at if kept is None else kept.take(at), leaf - nearest, lengths)


def offset_features(near: Window, hashes: NDArray[np.uint64]) -> SparseRows:
    """Return a feature for each pair of a word near a link and its DOM offset [A02 2.2.2].

    Parameters
    ----------
    hashes : uint64, hash of each token of the page
    """
    salt = (near.offset + OFFSET_SALT).astype(np.uint64)
    words = hashes.take(near.tokens)
    return SparseRows(hash_features(words, salt, HASH_BITS), row_pointers(near.lengths))


def _first_in_leaf(words: NDArray[np.int32], token_leaf: NDArray[np.int32]) -> Ints | None:
    """Return the positions of the first token of each word in each leaf; None for all tokens."""
    # NumPy sorts numbers of 16 bits in linear time
    small = words if words.max(initial=0) > _UINT16_MAX else words.astype(np.uint16)
    order = small.argsort(kind="stable")
    word, leaf = small.take(order), token_leaf.take(order)
    repeated = order[1:][(word[1:] == word[:-1]) & (leaf[1:] == leaf[:-1])]
    if not len(repeated):
        return None
    kept = np.ones(len(words), bool)
    kept[repeated] = False
    return kept.nonzero()[0]


def cocitation(page: Ints, position: NDArray[np.int32], y: Floats, d_max: int) -> Floats:
    """Return inputs that tell whether other links near a link have relevant targets [A02 2.2.3].

    The input (HIGH, d) of a link is 1 if another link of the page, d DOM leaves away, has a
    relevant target. The input (LOW, d) of a link is 1 if another link of the page, d DOM leaves
    away, has an irrelevant target.

    Parameters
    ----------
    page : int64 (n_links,), page of each link, ascending
    position : int32 (n_links,), first leaf of each link, ascending within a page
    y : float64 (n_links,), relevance of each target; NaN for unfetched targets
    d_max : largest distance in leaves

    Returns
    -------
    NDArray[np.float64] of shape (n_links, 2 * (2 * d_max + 1))
        (HIGH, d) for d from -d_max to d_max, then (LOW, d).
    """
    width = 2 * d_max + 1
    found = np.zeros((len(page), 2 * width))
    level = np.where(y > 0.5, 0, width) + d_max
    known = np.isfinite(y)
    for apart in range(1, d_max + 1):  # difference of positions: each link has a leaf of its own
        distance = position[apart:] - position[:-apart]
        near = (page[apart:] == page[:-apart]) & (distance <= d_max) & (distance >= 0)
        left = np.flatnonzero(near)
        right = left + apart
        distance = distance[left]
        for one, other, offset in ((left, right, distance), (right, left, -distance)):
            judged = known[other]
            found[one[judged], (level[other] + offset)[judged]] = 1.0
    return found
