"""Detection of duplicates (same bytes; similar text and canonical link) and near-duplicates."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.store.history import DIGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page.words import PageWords


MIN_RESEMBLANCE = 0.9  # least resemblance of near-duplicates
MAX_NAMING = 10  # pages with one canonical URL that are compared with a further page
_SHINGLE_LENGTH = 4  # words, or characters in scripts without spaces
_MAX_CHARACTERS = 100_000  # of a page in such a script
_MIN_SHINGLES = 32  # distinct; shorter texts are similar by chance
_MAX_SHINGLES = 512  # of a long page
_N_HASHES = 64  # in a sketch
_SKETCH = 4 * _N_HASHES  # bytes
_BANDS, _ROWS = 8, 8  # find 99 % of the pairs with resemblance 0.9, and 3 % of those with 0.6

_STEP, _MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)
# The permutations and the mixing of the package datasketch (affine32), so that new sketches are
# comparable with the sketches in older stores.
_random = np.random.RandomState(1)
_FACTOR = _random.randint(0, 1 << 31, _N_HASHES, np.uint32)[:, None] * np.uint32(2) + np.uint32(1)
_OFFSET = _random.randint(0, 1 << 32, _N_HASHES, np.uint32)[:, None]


class Original(NamedTuple):
    """The earlier page of which a page is a duplicate."""

    url_id: int
    same_bytes: bool  # False for nearly the same text


class Duplicates:
    """Index of the fetched pages by content, URL and canonical URL, to find duplicates.

    A page is a duplicate if an earlier page has the same bytes. A page is also a duplicate if an
    earlier page has nearly the same text and a canonical link connects the pages. The canonical
    link leads from one page to the other, or both pages have a canonical link to the same URL. A
    canonical link alone does not prove a duplicate, because many templates give the same canonical
    URL on all pages, and the canonical URL may not exist. Canonical URLs on other hosts are
    ignored, because any page can give any URL as canonical.

    If many earlier pages give the same canonical URL as a page, the page is compared with only ten
    of these pages.
    """

    def __init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self._by_url: dict[str, list[tuple[int, bytes]]] = {}  # with the text in short
        self._copies: dict[int, int] = {}

    def clear(self) -> None:
        """Remove all pages."""
        self._by_digest.clear()
        self._by_url.clear()
        self._copies.clear()

    @staticmethod
    def digest(body: bytes) -> bytes:
        """Return the digest of a response body."""
        return hashlib.blake2b(body, digest_size=DIGEST).digest()

    @staticmethod
    def known_urls(url: str, canonical: str | None) -> list[str]:
        """Return the URL of a page, and its canonical URL if both URLs are on the same host."""
        if canonical is None or canonical == url:
            return [url]
        same_host = canonical.split("/", 3)[2] == url.split("/", 3)[2]
        return [url, canonical] if same_host else [url]

    def find(self, digest: bytes, urls: list[str], signature: bytes) -> Original | None:
        """Return the earlier page of which a page is a duplicate, or None.

        Parameters
        ----------
        digest, signature : bytes
            See `digest` and `text_signature`.
        urls : list of str
            See `known_urls`.
        """
        same = self.find_same_bytes(digest)
        if same is not None:
            return Original(same, same_bytes=True)
        text = shorten(signature)
        for url in urls:
            for earlier, other in self._pages_of(url):
                if _has_same_text(text, other):
                    return Original(earlier, same_bytes=False)
        return None

    def find_same_bytes(self, digest: bytes) -> int | None:
        """Return the URL id of the earlier page whose body has the given digest, or None."""
        return self._by_digest.get(digest)

    def _pages_of(self, url: str) -> Iterator[tuple[int, bytes]]:
        """Yield the URL id and the short text of the pages with a URL or canonical URL."""
        yield from self._by_url.get(url, ())

    def add(self, url_id: int, digest: bytes, urls: list[str], signature: bytes) -> None:
        """Add a fetched page that is no duplicate; the parameters are those of `find`."""
        self._by_digest.setdefault(digest, url_id)
        page = url_id, shorten(signature)
        for own, url in zip((True, False), urls, strict=False):
            pages = self._by_url.setdefault(url, [])
            if own or len(pages) < MAX_NAMING:
                pages.append(page)

    def add_copy(self, url_id: int, original_id: int) -> None:
        """Add a fetched duplicate."""
        self._copies[url_id] = original_id

    def is_copy(self, url_id: int, original_id: int) -> bool:
        """Tell whether a URL was recorded as a duplicate of a given page."""
        return self._copies.get(url_id) == original_id


def text_signature(words: PageWords) -> bytes:
    """Return the MinHash signature of a page; if the page has few words, digests of the words.

    The first digest is of all words, the second of the words that are no numbers. For a page
    without words, the function returns empty bytes, so that two such pages do not count as
    duplicates.
    """
    if not len(words.indices):
        return b""
    return sketch(words) or _digest_short(words)


def _digest_short(words: PageWords) -> bytes:
    is_text = np.array([not word.isdecimal() for word in words.distinct])
    texts = words.hashes, words.hashes[is_text[words.indices]]
    found = [text.tobytes() for text in texts if len(text)]
    return b"".join(hashlib.blake2b(text, digest_size=DIGEST).digest() for text in found)


def is_sketch(signature: bytes) -> bool:
    """Tell whether a text signature is a MinHash, as `MinHashIndex` requires."""
    return len(signature) == _SKETCH


def shorten(signature: bytes) -> bytes:
    """Return the lowest byte of each hash of a MinHash, or the digest of all words."""
    return signature[::4] if is_sketch(signature) else signature[:DIGEST]


def _has_same_text(text: bytes, other: bytes) -> bool:
    if len(text) == len(other) == _N_HASHES:
        equal = np.frombuffer(text, np.uint8) == np.frombuffer(other, np.uint8)
        return float(equal.mean()) >= MIN_RESEMBLANCE
    return bool(text) and text == other


def sketch(page: PageWords) -> bytes | None:
    """Return the MinHash of a page's four-word shingles; None if the page has few words.

    In scripts without spaces, each character counts as a word. For a long page, only the 512
    shingles with the smallest hashes are used.

    Notes
    -----
    A. Z. Broder, On the resemblance and containment of documents, 1997.
    """
    words = page.split_hashes(_MAX_CHARACTERS)
    n = len(words) - _SHINGLE_LENGTH + 1
    if n < _MIN_SHINGLES:
        return None
    mixed = words[:n].copy()
    for i in range(1, _SHINGLE_LENGTH):
        mixed = mixed * _STEP + words[i : n + i]
    mixed = np.sort((mixed * _MIX >> _HALF).astype(np.uint32))
    new = mixed[1:] != mixed[:-1]
    shingles = np.concatenate([mixed[:1], mixed[1:][new]])[:_MAX_SHINGLES]
    if len(shingles) < _MIN_SHINGLES:
        return None
    minima: NDArray[np.uint32] = (_FACTOR * _murmur_finalizer(shingles) + _OFFSET).min(axis=1)
    return minima.astype("<u4").tobytes()


def _murmur_finalizer(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    # the finalizer of MurmurHash3: every bit depends on all bits
    numbers = (numbers ^ (numbers >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    numbers = (numbers ^ (numbers >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return numbers ^ (numbers >> np.uint32(16))


class MinHashIndex:
    """Index of the MinHash signatures of the latest pages that were not near-duplicates.

    The content of the index depends only on the order of the pages. A resumed crawl finds the same
    near-duplicates as an uninterrupted crawl.

    Parameters
    ----------
    max_pages : int or None
        Number of pages in the index; None for no limit.
    """

    def __init__(self, max_pages: int | None = None) -> None:
        self._max_pages = max_pages
        # for each band position: pages by the value of the band
        self._buckets: list[dict[bytes, list[int]]] = [{} for _ in range(_BANDS)]
        self._sketches: dict[int, bytes] = {}
        self._order: deque[int] = deque()

    def find_or_add(self, url_id: int, data: bytes) -> tuple[int, float] | None:
        """Return a page's earlier near-duplicate; if there is none, add the page to the index.

        Returns
        -------
        tuple of (int, float) or None
            URL id of the most similar earlier page, and estimated Jaccard resemblance, at least
            `MIN_RESEMBLANCE`.
        """
        bands = _bands(data)
        near = zip(self._buckets, bands, strict=True)
        found = sorted({other for pages, band in near for other in pages.get(band, ())})
        if found:
            others = b"".join([self._sketches[other] for other in found])
            equal = np.frombuffer(others, "<u4").reshape(-1, _N_HASHES) == np.frombuffer(
                data, "<u4"
            )
            alike = equal.mean(axis=1)
            best = int(alike.argmax())
            if alike[best] >= MIN_RESEMBLANCE:
                return found[best], float(alike[best])
        for pages, band in zip(self._buckets, bands, strict=True):
            pages.setdefault(band, []).append(url_id)
        self._sketches[url_id] = data
        self._order.append(url_id)
        if self._max_pages is not None and len(self._order) > self._max_pages:
            self._remove(self._order.popleft())
        return None

    def _remove(self, url: int) -> None:
        for pages, band in zip(self._buckets, _bands(self._sketches.pop(url)), strict=True):
            pages[band].remove(url)
            if not pages[band]:
                del pages[band]


def _bands(data: bytes) -> list[bytes]:
    return [data[start : start + 4 * _ROWS] for start in range(0, len(data), 4 * _ROWS)]
