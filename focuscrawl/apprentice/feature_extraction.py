"""Feature extraction: from a parsed page to `PageFacts`, by the groups that are on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.apprentice.critic_reading import TextReader, WordReader
from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.link_context import MAX_TOKENS, by_offset, window
from focuscrawl.apprentice.options import DEFAULT_GROUPS
from focuscrawl.apprentice.page_facts import BITS, PageFacts, pack_words
from focuscrawl.apprentice.sparse_rows import SparseRows, beside
from focuscrawl.apprentice.url_features import address_features, address_words, table_of_keys
from focuscrawl.apprentice.url_relations import site_features
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.page.view import PageView

TITLE, CLASS, HEADING, ANCHOR, SECTION = 3, 4, 5, 6, 7  # salts
PROBABILITY = 9
_TOP = 3  # classes of u that are named
_AROUND = 10  # words on either side of a link that the critic reads
_LIKELY = 0.1  # posterior of a class that is named
_POSSIBLE = 0.001  # of one that has a value


class FeatureExtractor:
    """Takes the facts from pages.

    Parameters
    ----------
    words : the critic's reading of words
    groups : kinds of features that are on, see `focuscrawl.apprentice.options.GROUPS`
    d_max : DOM offsets looked at on either side of a link
    classes : names of the critic's classes
    counts, tokens : see `focuscrawl.apprentice.options.Options`
    """

    def __init__(
        self,
        words: WordReader,
        *,
        groups: Collection[str] = DEFAULT_GROUPS,
        d_max: int = 5,
        classes: tuple[str, ...] = (),
        counts: bool = False,
        tokens: int = MAX_TOKENS,
    ) -> None:
        self._reader = words
        self._anchors = TextReader(words, tokenize)
        self._paths = TextReader(words, address_words)
        self._groups = frozenset(groups)
        self._d_max = d_max
        self._hashes = WordHashes()
        self._class_features = [self._prefixes(name) for name in classes]
        self._of_classes = bucket(self._hashes(classes), PROBABILITY, BITS)
        self._counts = counts
        self._tokens = tokens or None

    @classmethod
    def of(cls, critic: Critic, options: Options) -> Self:
        """Return one for the pages that a critic judges, as an apprentice's options have it."""
        words = WordReader(critic, ask=getattr(critic, "reads_words", False))
        return cls(
            words,
            groups=options.groups,
            d_max=options.d_max,
            classes=critic.classes,
            counts=options.counts,
            tokens=options.tokens,
        )

    def read(
        self,
        view: PageView,
        links: Ints,
        targets: Ints,
        new: Bools,
        *,
        relevance: float,
        probabilities: Floats | None = None,
    ) -> PageFacts:
        """Read a page.

        Parameters
        ----------
        view : the page
        links : int64 (n,), which of its links lead to URLs that can be followed
        targets : int64 (n,), the numbers of those URLs
        new : bool (n,), the target was not known before; may repeat
        relevance : R(u)
        probabilities : float64 (n_classes,), posteriors of u, for the groups ``classes`` and
            ``probabilities``
        """
        numbers = links.tolist()
        anchors = [view.links.anchors[i] for i in numbers]
        urls = [view.links.urls[i] for i in numbers]
        fresh, first = np.unique(targets[new], return_index=True)
        first = new.nonzero()[0][first]
        addresses = [urls[i] for i in first.tolist()]
        keys = table_of_keys(addresses)
        page_indices, page_values = self._page(view, probabilities)
        return PageFacts(
            relevance=np.array([relevance]),
            own_keys=table_of_keys([view.url]),
            page_indices=page_indices,
            page_values=page_values,
            targets=targets,
            position=view.links.left[links],
            reading=self._read(anchors, urls),
            around=self._read_around(view, links),
            links=self._links(view, links, anchors, urls),
            new=fresh,
            urls=self._addresses(addresses, keys),
            url_keys=keys,
            vocabulary=pack_words(dict.fromkeys([*view.words.distinct, *self._unseen(anchors)])),
        )

    def with_addresses(self, facts: PageFacts, urls: Sequence[str]) -> PageFacts:
        """Return the facts of a page that no URL it links to was known before.

        Parameters
        ----------
        urls : where each of the links leads, (n,)
        """
        new, first = np.unique(facts.targets, return_index=True)
        addresses = [urls[i] for i in first.tolist()]
        keys = table_of_keys(addresses)
        return replace(facts, new=new, urls=self._addresses(addresses, keys), url_keys=keys)

    def _unseen(self, anchors: list[str]) -> list[str]:
        """Return words of anchors; those that stand in for an image are not on the page."""
        return tokenize(anchors)[0] if "anchor" in self._groups else []

    def _read(self, anchors: list[str], urls: list[str]) -> NDArray[np.float32]:
        if "reading" not in self._groups:
            return np.zeros(len(urls), np.float32)
        evidence = self._anchors.read(anchors) + self._paths.read(urls)
        return self._reader.log_odds(evidence).astype(np.float32)

    def _read_around(self, view: PageView, links: Ints) -> NDArray[np.float32]:
        if "surroundings" not in self._groups:
            return np.zeros(len(links), np.float32)
        evidence = self._reader.evidence_around(view, links, _AROUND)
        return self._reader.log_odds(evidence).astype(np.float32)

    def _links(
        self, view: PageView, links: Ints, anchors: list[str], urls: list[str]
    ) -> SparseRows:
        on = self._groups
        left, right = view.links.left[links], view.links.right[links]
        parts = [SparseRows.empty(len(links))]
        if "context" in on:
            near = window(
                view.words.hashes,
                view.token_leaf,
                left,
                right,
                d_max=self._d_max,
                max_tokens=self._tokens,
                repeats=self._counts,
            )
            parts = [by_offset(near, BITS)]
        if "anchor" in on:
            parts.append(self._hashes.rows(anchors, ANCHOR, BITS))
        if "section" in on:
            above = view.heading_leaf.searchsorted(left, side="right")
            headings = self._hashes.rows(["", *view.headings], SECTION, BITS)
            parts.append(headings.take(above))
        if "site" in on:
            parts.append(site_features(view.url, urls, BITS))
        return beside(*parts)[0] if len(parts) > 1 else parts[0]

    def _addresses(self, urls: list[str], keys: NDArray[np.uint32]) -> SparseRows:
        if "url" not in self._groups:
            return SparseRows.empty(len(urls))
        return address_features(urls, keys, self._hashes, bits=BITS)

    def _page(
        self, view: PageView, probabilities: Floats | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the features of a page, and their values; (0,) if all are 1."""
        found = [np.zeros(0, np.int32)]
        if "title" in self._groups:
            found.append(self._hashes.rows([view.title], TITLE, BITS).indices)
        if "headings" in self._groups:
            words = dict.fromkeys(tokenize(view.headings)[0])
            found.append(bucket(self._hashes([*words]), HEADING, BITS))
        if "classes" in self._groups and probabilities is not None:
            top = np.argsort(-probabilities, kind="stable")[:_TOP]
            found += [self._class_features[i] for i in top.tolist() if probabilities[i] > _LIKELY]
        there = np.unique(np.concatenate(found))
        if "probabilities" not in self._groups or probabilities is None:
            return there, np.zeros(0, np.float32)
        possible = np.flatnonzero(probabilities > _POSSIBLE)
        values = np.concatenate([np.ones(len(there)), probabilities[possible]])
        return np.append(there, self._of_classes[possible]), values.astype(np.float32)

    def _prefixes(self, name: str) -> NDArray[np.int32]:
        return bucket(self._hashes(class_prefixes(name)), CLASS, BITS)


def class_prefixes(name: str) -> list[str]:
    """Return a class's path and all prefixes of it [A02 section 3.8]."""
    parts = name.split("/")
    return ["/".join(parts[: i + 1]) or "/" for i in range(len(parts))]
