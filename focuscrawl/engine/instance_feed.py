"""Training instances (u,v) for a file of JSON lines or a callable of the user."""

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

_MOST = 200_000  # links that wait for their targets
D_MAX = 5  # DOM offsets on either side of a link [A02 section 3.4]


@dataclass(frozen=True, slots=True)
class Instance:
    """A link (u,v) with both ends judged [A02 section 2.2].

    Attributes
    ----------
    source, target : URLs of u and v
    anchor : text of the link
    features : words around the link by DOM offset, ``word@offset``, each once (methods 4.2)
    score : of the link, when it was found; None: not followed
    relevance_source, relevance_target : R(u), and R(v), the label
    """

    source: str
    target: str
    anchor: str
    features: tuple[str, ...]
    score: float | None
    relevance_source: float
    relevance_target: float


class InstanceFeed:
    """Pairs every link that this run finds with the relevance of its target.

    Links of earlier runs are not among them: their words were not stored. Nor are those whose
    targets were not fetched while 200,000 other links were found.

    Parameters
    ----------
    named : a callable, or the name of a file, see `instance_sink`
    """

    def __init__(self, crawl: Crawl, named: Path | Callable[[Instance], object]) -> None:
        self._crawl = crawl
        self._file: TextIO | None = None
        if isinstance(named, Path):
            self._file = named.open("a", encoding="utf-8")
            self._emit: Callable[[Instance], object] = self._write
        else:
            self._emit = named
        # by the id of their target, which is not judged yet; the oldest first
        self._links: dict[int, list[Instance]] = {}
        self._waiting = 0
        self._relevance: dict[int, float] = {}

    @classmethod
    def of(cls, crawler: Crawler, crawl: Crawl) -> Self | None:
        """Create the feed that ``FOCUSCRAWL_INSTANCES`` names; None: it names none."""
        named = instance_sink(crawl.config.instances)
        if named is None:
            return None
        feed = cls(crawl, named)
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
        """Add a visit that was expanded: v of the links into it, u of its own."""
        if visit.is_refetch:
            return
        self._relevance[visit.url_id] = visit.relevance
        for link in self._pop(visit.url_id):
            self._emit(replace(link, target=visit.url, relevance_target=visit.relevance))
        if visit.view is None or not visit.link_rows:
            return
        words = _features(visit.view, [row.dom_position for row in visit.link_rows])
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
        while self._waiting > _MOST:
            self._pop(next(iter(self._links)))

    def _pop(self, target: int) -> list[Instance]:
        links = self._links.pop(target, [])
        self._waiting -= len(links)
        return links


def instance_sink(named: str | None) -> Path | Callable[[Instance], object] | None:
    """Return where instances go: to a file, or to a ``module:callable``; None: nowhere.

    Raises
    ------
    UserError
        There is no such callable, or no folder for the file.
    """
    if not named:
        return None
    module, colon, name = named.partition(":")
    if not colon or "/" in named:
        if not Path(named).parent.is_dir():
            raise UserError(f"FOCUSCRAWL_INSTANCES={named}: there is no such folder")
        return Path(named)
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"FOCUSCRAWL_INSTANCES={named}: {error}") from None
    if not callable(found):
        raise UserError(f"FOCUSCRAWL_INSTANCES={named}: {name} cannot be called")
    return cast("Callable[[Instance], object]", found)


def _features(view: PageView, left: list[int]) -> list[tuple[str, ...]]:
    """Return the features ⟨t,d⟩ of the links that start at some DOM leaves."""
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
    named = [
        intern(f"{token}@{d}") for token, d in zip(tokens, around.offset.tolist(), strict=True)
    ]
    starts = (ends - around.lengths).tolist()
    return [
        tuple(dict.fromkeys(named[start:end]))
        for start, end in zip(starts, ends.tolist(), strict=True)
    ]
