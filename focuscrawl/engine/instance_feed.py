"""Writes training instances to a JSON lines file, or passes them to a user's callable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast
from zlib import crc32

import numpy as np
from scrapy import signals

from focuscrawl.crawl.learning import Learning
from focuscrawl.errors import UserError
from focuscrawl.strategies import find_strategy

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.apprentice.instances import TrainingSet
    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.strategies import ModelUpdate


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance that a model was trained on: a judged URL v and the links into v.

    Attributes
    ----------
    model : int
        Version of the model.
    target : str
        The URL v.
    sources : tuple of str
        URL of the page u of each link (u, v) that the features describe.
    relevance_sources : tuple of float
        Relevance of each of these pages.
    relevance_target : float
        Relevance of v.
    label : float
        Training label of v (methods.md 6).
    score : float
        Predicted label, before v was fetched.
    features : tuple of int
        Numbers of the hashed features. If a number is repeated, its values add up.
    values : tuple of float
        Value of each feature.
    inputs : tuple of float
        Dense inputs (`focuscrawl.apprentice.options.input_names`).
    """

    model: int
    target: str
    sources: tuple[str, ...]
    relevance_sources: tuple[float, ...]
    relevance_target: float
    label: float
    score: float
    features: tuple[int, ...]
    values: tuple[float, ...]
    inputs: tuple[float, ...]


class InstanceFeed:
    """Emits the instances that each model of a crawl was trained on.

    An instance is emitted when a model is trained on it for the first time. It is emitted again
    for each later model if its label or features have changed. The last emitted instance of a URL
    is the present instance of the URL. A run that resumes a crawl emits all instances of its first
    model.
    """

    def __init__(self, crawl: Crawl, destination: Path | Callable[[Instance], object]) -> None:
        self._crawl = crawl
        self._file: TextIO | None = None
        if isinstance(destination, Path):
            self._file = destination.open("a", encoding="utf-8")
            self._receive: Callable[[Instance], object] = self._write
        else:
            self._receive = destination
        # checksum of the last emitted instance, by URL id of v and positions of the links
        self._emitted: dict[tuple[int, ...], int] = {}

    @classmethod
    def connect(cls, crawler: Crawler, crawl: Crawl) -> None:
        """Connect a feed to a crawl with the setting ``FOCUSCRAWL_INSTANCES``."""
        destination, learning = instance_sink(crawl.config), crawl.part(Learning)
        if destination is not None and learning is not None:
            feed = cls(crawl, destination)
            learning.listeners.append(feed.emit)
            crawler.signals.connect(feed.close, signals.spider_closed)

    def emit(self, update: ModelUpdate) -> None:
        """Emit the new and the changed instances of a model."""
        if update.training_set is None:
            return
        emitted: dict[tuple[int, ...], int] = {}
        n = len(update.training_set.instances)
        for i, links in zip(range(n), _links_of_instances(update.training_set), strict=False):
            key, content = self._identify(update.training_set, i, links)
            if self._emitted.get(key) != content:
                self._receive(self._instance(update.version, update.training_set, i, links))
            emitted[key] = content
        self._emitted = emitted

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, instance: Instance) -> None:
        assert self._file is not None
        self._file.write(f"{json.dumps(asdict(instance), ensure_ascii=False)}\n")

    @staticmethod
    def _identify(training: TrainingSet, i: int, links: Ints) -> tuple[tuple[int, ...], int]:
        """Return the URL id and the links of an instance, and a checksum of its content."""
        features, row = training.instances, slice(*training.instances.rows.indptr[i : i + 2])
        content = b"".join(
            part.tobytes()
            for part in (
                features.rows.indices[row],
                features.values[row],
                features.dense[i],
                training.labels[i],
            )
        )
        url = int(training.judged.urls[training.owner[i]])
        return (url, *links.tolist()), crc32(content)

    def _instance(self, model: int, training: TrainingSet, i: int, links: Ints) -> Instance:
        urls, features, at = self._crawl.urls, training.instances, training.owner[i]
        row = slice(*features.rows.indptr[i : i + 2])
        return Instance(
            model=model,
            target=urls[int(training.judged.urls[at])],
            sources=tuple(urls[u] for u in training.table.source.data[links].tolist()),
            relevance_sources=tuple(training.table.relevance.data[links].tolist()),
            relevance_target=float(training.relevance[at]),
            label=float(training.labels[i]),
            score=float(training.judged.predicted[at]),
            features=tuple(features.rows.indices[row].tolist()),
            values=tuple(features.values[row].tolist()),
            inputs=tuple(features.dense[i].tolist()),
        )


def instance_sink(config: CrawlConfig) -> Path | Callable[[Instance], object] | None:
    """Return the file or callable in ``FOCUSCRAWL_INSTANCES``, which receives the instances.

    Raises
    ------
    UserError
        The callable or the folder of the file does not exist, or the strategy of the crawl emits
        no instances.
    """
    destination = config.instances
    if not destination:
        return None
    if not find_strategy(config.strategy).emits_instances:
        raise UserError(
            f"FOCUSCRAWL_INSTANCES: the strategy {config.strategy} is not trained on instances: "
            "choose the strategy apprentice"
        )
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


def _links_of_instances(training: TrainingSet) -> Iterator[Ints]:
    """Yield the positions of the links that each instance uses."""
    links, owner = training.links()
    ends = np.searchsorted(owner, np.arange(1, len(training.instances)))
    yield from np.split(links, ends)
