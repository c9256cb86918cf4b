"""Writes training instances (links) to a JSON lines file, or passes them to a user's callable."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scrapy import signals

from focuscrawl.apprentice.link_features import window
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TextIO

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.page import PageView

_MAX_WAITING = 200_000  # links whose target is not judged yet
D_MAX = 5  # DOM offsets on either side of a link [A02 section 3.4]


@dataclass(frozen=True, slots=True)
class Instance:
    """A training instance: a link from a judged page to a judged page [A02 section 2.2].

    Attributes
    ----------
    source, target : str
        URLs of u and v.
    anchor : str
        Text of the link.
    features : tuple of str
        Distinct words around the link with DOM offset, ``word@offset`` (methods.md 4.2).
    score : float or None
        Score of the link when it was found; None if not followed.
    relevance_source, relevance_target : float
        Relevance of u, and relevance of v, which is the label.
    """

    source: str
    target: str
    anchor: str
    features: tuple[str, ...]
    score: float | None
    relevance_source: float
    relevance_target: float


class InstanceFeed:
    """Outputs a training instance for each link found in this run, when its target is judged.

    Links of earlier runs are left out, because the store does not contain their words. A link is
    dropped if the crawl finds 200,000 further links before the target of the link is fetched.
    """

    def __init__(self, crawl: Crawl, destination: Path | Callable[[Instance], object]) -> None:
        self._crawl = crawl
        self._file: TextIO | None = None
        if isinstance(destination, Path):
            self._file = destination.open("a", encoding="utf-8")
            self._emit: Callable[[Instance], object] = self._write
        else:
            self._emit = destination
        # by URL id of the target, oldest first
        self._links: dict[int, list[Instance]] = {}
        self._waiting = 0
        self._relevance: dict[int, float] = {}

    @classmethod
    def of(cls, crawler: Crawler, crawl: Crawl) -> Self | None:
        """Create the feed if ``FOCUSCRAWL_INSTANCES`` is set, else return None."""
        destination = instance_sink(crawl.config.instances)
        if destination is None:
            return None
        feed = cls(crawl, destination)
        crawler.signals.connect(feed.close, signals.spider_closed)
        return feed

    def _write(self, instance: Instance) -> None:
        assert self._file is not None
        self._file.write(f"{json.dumps(asdict(instance), ensure_ascii=False)}\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def add(self, visit: PageVisit) -> None:
        """Output the instances of links to a judged page, and remember the page's own links."""
        if visit.is_refetch:
            return
        self._relevance[visit.url_id] = visit.relevance
        for link in self._pop(visit.url_id):
            self._emit(replace(link, target=visit.url, relevance_target=visit.relevance))
        if visit.view is None or not visit.link_rows:
            return
        words = _link_features(visit.view, [row.dom_position for row in visit.link_rows])
        for row, features in zip(visit.link_rows, words, strict=True):
            known = self._relevance.get(row.target)
            target = "" if known is None else self._crawl.urls[row.target]
            link = Instance(
                visit.url, target, row.anchor, features, row.score, visit.relevance, known or 0.0
            )
            if known is not None:
                self._emit(link)
            else:
                self._links.setdefault(row.target, []).append(link)
                self._waiting += 1
        while self._waiting > _MAX_WAITING:
            self._pop(next(iter(self._links)))

    def _pop(self, target: int) -> list[Instance]:
        links = self._links.pop(target, [])
        self._waiting -= len(links)
        return links


def instance_sink(destination: str | None) -> Path | Callable[[Instance], object] | None:
    """Return the file or the callable (``module:callable``) that receives the instances.

    Raises
    ------
    UserError
        The callable or the folder of the file does not exist.
    """
    if not destination:
        return None
    module, colon, name = destination.partition(":")
    if not colon or "/" in destination:
        if not Path(destination).parent.is_dir():
            raise UserError(
                f"FOCUSCRAWL_INSTANCES={destination}: the folder does not exist: create the folder"
            )
        return Path(destination)
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"FOCUSCRAWL_INSTANCES={destination}: cannot import the callable: {error}"
        ) from None
    if not callable(found):
        raise UserError(
            f"FOCUSCRAWL_INSTANCES={destination}: {name} is not callable: name a function"
        )
    return cast("Callable[[Instance], object]", found)


def _link_features(view: PageView, left: list[int]) -> list[tuple[str, ...]]:
    """Return the features ⟨t,d⟩ of the links that start at the DOM leaves ``left``."""
    right = dict(zip(view.links.left.tolist(), view.links.right.tolist(), strict=True))
    around = window(
        np.arange(len(view.tokens), dtype=np.uint64),
        view.token_leaf,
        np.array(left, np.int32),
        np.array([right[each] for each in left], np.int32),
        d_max=D_MAX,
    )
    ends = np.cumsum(around.lengths)
    tokens = [view.tokens[i] for i in around.words.tolist()]
    names = [
        intern(f"{token}@{d}") for token, d in zip(tokens, around.offset.tolist(), strict=True)
    ]
    starts = (ends - around.lengths).tolist()
    return [
        tuple(dict.fromkeys(names[start:end]))
        for start, end in zip(starts, ends.tolist(), strict=True)
    ]
