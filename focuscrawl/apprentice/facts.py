"""What the apprentice takes from a page: all it will ever ask of it, in a few arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.addresses import (
    PLACES,
    SHAPES,
    TWINS,
    address_features,
    address_words,
    table_of_keys,
)
from focuscrawl.apprentice.context import context_features
from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.reading import TextReader
from focuscrawl.apprentice.rows import Rows, pointers
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from focuscrawl.apprentice.reading import WordReader
    from focuscrawl.page.view import PageView

BITS = 18  # of the feature space
_TITLE, _CLASS = 3, 4  # salts
_TOP = 3  # classes of u that are named


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts of a page u, its n links, and the m URLs among them nobody knew.

    Attributes
    ----------
    relevance : float64 (1,), R(u)
    own_keys : uint32 (1, 15), the keys of u itself
    page_indices : int32, features of the page
    targets : int64 (n,), numbers of the URLs the links lead to
    position : int32 (n,), first DOM leaf of each link
    reading : float32 (n,), log-odds of c* by the words of anchor and URL
    link_indices, link_lengths : int32, `Rows` of the links' features
    new : int64 (m,), numbers of the URLs that are new
    url_indices, url_lengths : int32, `Rows` of their features
    url_keys : uint32 (m, 15), `focuscrawl.apprentice.addresses.address_keys`
    """

    relevance: NDArray[np.float64]
    own_keys: NDArray[np.uint32]
    page_indices: NDArray[np.int32]
    targets: NDArray[np.int64]
    position: NDArray[np.int32]
    reading: NDArray[np.float32]
    link_indices: NDArray[np.int32]
    link_lengths: NDArray[np.int32]
    new: NDArray[np.int64]
    url_indices: NDArray[np.int32]
    url_lengths: NDArray[np.int32]
    url_keys: NDArray[np.uint32]

    @property
    def links(self) -> Rows:
        """Features of the links."""
        return Rows(self.link_indices, pointers(self.link_lengths))

    @property
    def urls(self) -> Rows:
        """Features of the new URLs."""
        return Rows(self.url_indices, pointers(self.url_lengths))

    def to_bytes(self) -> bytes:
        """Pack the facts, for the store: the lengths of the columns, then the columns."""
        columns = [getattr(self, name).astype(dtype, copy=False) for name, dtype in _COLUMNS]
        sizes = np.array([column.size for column in columns], "<i4")
        return b"".join(part.tobytes() for part in (sizes, *columns))

    @classmethod
    def from_bytes(cls, data: bytes) -> PageFacts:
        """Unpack what `to_bytes` has packed."""
        sizes = np.frombuffer(data, "<i4", len(_COLUMNS)).tolist()
        at, columns = 4 * len(_COLUMNS), {}
        for (name, dtype), size in zip(_COLUMNS, sizes, strict=True):
            columns[name] = np.frombuffer(data, dtype, size, at)
            at += columns[name].nbytes
        for name in ("own_keys", "url_keys"):
            columns[name] = columns[name].reshape(-1, PLACES + SHAPES + TWINS)
        return cls(**columns)


_COLUMNS = (
    ("relevance", "<f8"),
    ("own_keys", "<u4"),
    ("page_indices", "<i4"),
    ("targets", "<i8"),
    ("position", "<i4"),
    ("reading", "<f4"),
    ("link_indices", "<i4"),
    ("link_lengths", "<i4"),
    ("new", "<i8"),
    ("url_indices", "<i4"),
    ("url_lengths", "<i4"),
    ("url_keys", "<u4"),
)


class PageReader:
    """Takes the facts from pages.

    Parameters
    ----------
    words : the critic's reading of words
    groups : kinds of hashed features that are on: ``context`` (t, d), ``url``, ``title``,
        ``classes``
    d_max : DOM offsets looked at on either side of a link
    classes : names of the critic's classes
    """

    def __init__(
        self,
        words: WordReader,
        *,
        groups: Collection[str] = ("context", "url", "title"),
        d_max: int = 5,
        classes: tuple[str, ...] = (),
    ) -> None:
        self._reader = words
        self._anchors = TextReader(words, tokenize)
        self._paths = TextReader(words, address_words)
        self._groups = frozenset(groups)
        self._d_max = d_max
        self._hashes = WordHashes()
        self._class_features = [self._prefixes(name) for name in classes]

    def read(
        self,
        view: PageView,
        links: NDArray[np.int64],
        targets: NDArray[np.int64],
        new: NDArray[np.bool_],
        *,
        relevance: float,
        probabilities: NDArray[np.float64] | None = None,
    ) -> PageFacts:
        """Read a page.

        Parameters
        ----------
        view : the page
        links : int64 (n,), which of its links lead to URLs that can be followed
        targets : int64 (n,), the numbers of those URLs
        new : bool (n,), the target was not known before; may repeat
        relevance : R(u)
        probabilities : float64 (n_classes,), posteriors of u, for the group ``classes``
        """
        numbers = links.tolist()
        anchors = [view.links.anchors[i] for i in numbers]
        urls = [view.links.urls[i] for i in numbers]
        left, right = view.links.left[links], view.links.right[links]
        evidence = self._anchors.read(anchors) + self._paths.read(urls)
        context = self._context(view, left, right)
        fresh, first = np.unique(targets[new], return_index=True)
        first = np.flatnonzero(new)[first]
        addresses = [urls[i] for i in first.tolist()]
        keys = table_of_keys(addresses)
        rows = self._addresses(addresses, keys)
        return PageFacts(
            relevance=np.array([relevance]),
            own_keys=table_of_keys([view.url]),
            page_indices=self._page(view, probabilities),
            targets=targets,
            position=left,
            reading=self._reader.log_odds(evidence).astype(np.float32),
            link_indices=context.indices,
            link_lengths=context.lengths.astype(np.int32),
            new=fresh,
            url_indices=rows.indices,
            url_lengths=rows.lengths.astype(np.int32),
            url_keys=keys,
        )

    def _context(self, view: PageView, left: NDArray[np.int32], right: NDArray[np.int32]) -> Rows:
        if "context" not in self._groups:
            return Rows(np.zeros(0, np.int32), np.zeros(len(left) + 1, np.int64))
        hashes = self._hashes(view.tokens)
        return context_features(hashes, view.token_leaf, left, right, d_max=self._d_max, bits=BITS)

    def _addresses(self, urls: list[str], keys: NDArray[np.uint32]) -> Rows:
        if "url" not in self._groups:
            return Rows(np.zeros(0, np.int32), np.zeros(len(urls) + 1, np.int64))
        return address_features(urls, keys, self._hashes, bits=BITS)

    def _page(
        self, view: PageView, probabilities: NDArray[np.float64] | None
    ) -> NDArray[np.int32]:
        found = [np.zeros(0, np.int32)]
        if "title" in self._groups:
            found.append(bucket(self._hashes(tokenize([view.title])[0]), _TITLE, BITS))
        if "classes" in self._groups and probabilities is not None:
            top = np.argsort(-probabilities, kind="stable")[:_TOP]
            found += [self._class_features[i] for i in top.tolist() if probabilities[i] > 0.1]
        return np.concatenate(found)

    def _prefixes(self, name: str) -> NDArray[np.int32]:
        """Return the features of a class: its name and all prefixes of it [A02 section 3.8]."""
        parts = name.split("/")
        paths = ["/".join(parts[: i + 1]) or "/" for i in range(len(parts))]
        return bucket(self._hashes(paths), _CLASS, BITS)
