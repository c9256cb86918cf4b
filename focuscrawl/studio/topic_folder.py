"""The files of a topic in the folder: critics, classes, examples."""

from __future__ import annotations

import json
import re
from contextlib import closing
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.page_source import LIVE, webs_of
from focuscrawl.critic.critic_files import find_model, load_trained, read_critic
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_plain, read_regular
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.report.outcomes import is_error, outcome
from focuscrawl.report.status import open_store
from focuscrawl.studio.page_cards import page_card
from focuscrawl.taxonomy import ROOT, lies_under, normalise
from focuscrawl.topics import read_definition
from focuscrawl.topics.definition import class_tree, marking, pages_below, unmarking
from focuscrawl.webs.opening import check_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.studio.page_cards import PageCard
    from focuscrawl.studio.served_folder import StudioFolder
    from focuscrawl.taxonomy import Taxonomy
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


_TOPIC = "topic.toml"
_NUMBERED = re.compile(r"critic-(\d{1,9})")
_EXAMPLES = ".examples"  # hidden: each is a crawl of a few pages, which nobody looks for in a list
_URLS = "examples.txt"  # in such a crawl: the pages that were asked for


class TopicRoom:
    """What belongs to one definition.

    Its critics are ``critic-1``, ``critic-2``, ... beside a ``topic.toml``, or in a folder called
    as a file of another name; pages that are fetched for it are in ``.examples`` there.

    Parameters
    ----------
    folder : that is served
    path : of the definition

    Attributes
    ----------
    folder : that is served
    name : of the definition in it
    """

    def __init__(self, folder: StudioFolder, path: Path) -> None:
        self.path = path
        self.name = folder.name_of(path)
        self.folder = folder
        base = path.parent if path.name == _TOPIC else path.with_suffix("")
        self._base = folder.place(folder.name_of(base))

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name.removesuffix(f"/{_TOPIC}")

    @property
    def is_of_crawl(self) -> bool:
        """Whether a crawl follows it, which has critics of its own, and pages to judge."""
        return CrawlFolder(self.path.parent).exists

    @property
    def examples(self) -> Path:
        """The folder of what is fetched and measured for it; `UserError`: it is a link."""
        return self.folder.place(f"{self.folder.name_of(self._base)}/{_EXAMPLES}")

    def critics(self) -> list[Path]:
        """Return its critics, the latest last."""
        numbered = []
        for path in self._base.glob("critic-*"):
            match = _NUMBERED.fullmatch(path.name)
            if match is not None and self.folder.is_critic(path):
                numbered.append((int(match[1]), path))
        return [path for _, path in sorted(numbered)]

    def next_critic(self) -> str:
        """Return what the next critic is to be called, from the folder that is served."""
        taken = {path.name for path in self._base.glob("critic-*")}
        number = 1
        while f"critic-{number}" in taken:
            number += 1
        return self.shown(self._base / f"critic-{number}")

    def next_examples(self) -> str:
        """Return where pages are to be fetched to next."""
        numbers = [int(path.name) for path in self._fetched()]
        return self.shown(self._base / _EXAMPLES / str(max(numbers, default=0) + 1))

    def shown(self, path: Path) -> str:
        """Return a path as commands take it: from the folder, and never like an option."""
        return f"./{self.folder.name_of(path)}"

    def marked(self, critic: Path) -> tuple[str, ...]:
        """Return the classes of one of its critics that are on the topic."""
        definition = read_definition(self.path)
        if definition.topics:
            return definition.topics
        classes = load_classes(critic)
        return tuple(path for path in classes if path != OFF_TOPIC)

    def latest(self) -> FocusedCritic | None:
        """Return the critic that was trained last, pointed at the topic; None if there is none."""
        critics = self.critics()
        if not critics:
            return None
        critic = critics[-1]
        topics = ",".join(self.marked(critic))
        return _load(str(critic), topics, (critic / MANIFEST).stat().st_mtime_ns)

    def learned_from(self) -> frozenset[str]:
        """Return the pages that its latest critic has learned from; none if there is no critic."""
        critics = self.critics()
        if not critics:
            return frozenset()
        changed = (critics[-1] / MANIFEST).stat().st_mtime_ns
        return _examples_of(str(critics[-1]), changed)

    def recordings(self) -> list[str]:
        """Return where the pages that were fetched for it are, as commands take it.

        A crawl that brought nothing is left out: what it was for is fetched anew.
        """
        found: dict[str, None] = {}
        for path in self._fetched():
            crawl = CrawlFolder(path)
            if crawl.exists and not crawl.in_use and not _brought(crawl):
                continue
            files = sorted(each for each in path.glob("*.warc.gz") if not each.is_symlink())
            if files:
                found |= dict.fromkeys(map(self.shown, files))
            elif CrawlFolder(path).exists:
                with closing(open_store(path)) as store:
                    identity = store.identity()
                if identity.get("web", LIVE) != LIVE:
                    name = identity.get("web_name", "")
                    check_named(name, path)
                    found[name] = None
        return list(found)

    def fetched(self) -> dict[str, Path]:
        """Return the pages that were asked for, in order, with the crawl that fetched each.

        Crawls that still fetch are left out, and pages that could not be had.
        """
        found: dict[str, Path] = {}
        for path in self._fetched():
            crawl = CrawlFolder(path)
            if not crawl.exists or crawl.in_use:
                continue
            try:
                with open(path / _URLS, encoding="utf-8", opener=open_plain) as file:
                    lines = file.read().splitlines()
            except (OSError, ValueError, UserError):
                continue
            brought = _brought(crawl)
            found |= {line.strip(): path for line in lines if line.strip() in brought}
        return found

    def webs(self, fetched: Path) -> list[Web]:
        """Open what a crawl that fetched pages has recorded, if it has."""
        if not CrawlFolder(fetched).exists:
            return []
        try:
            with closing(open_store(fetched)) as store:
                return webs_of(store.identity(), fetched)
        except UserError:
            return []

    def _fetched(self) -> list[Path]:
        folder = self.examples
        if not folder.is_dir():
            return []
        found = [each for each in folder.iterdir() if each.name.isdecimal()]
        return sorted((each for each in found if not each.is_symlink()), key=_number)


def _number(path: Path) -> int:
    return int(path.name)


def load_classes(critic: Path) -> tuple[str, ...]:
    """Return the classes of a critic, by its manifest."""
    return tuple(map(str, json.loads(read_regular(critic / MANIFEST)).get("classes", ())))


def _brought(crawl: CrawlFolder) -> frozenset[str]:
    """Return the URLs of a crawl at rest that were answered."""
    return _answered(str(crawl.path), crawl.store_path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _answered(folder: str, _changed: int) -> frozenset[str]:
    asked = "SELECT u.url, p.status, p.error FROM url u JOIN page p ON p.url = u.id"
    try:
        with closing(open_store(folder)) as store:
            rows = [*store.rows(asked)]
    except UserError:
        return frozenset()
    return frozenset(
        url for url, status, error in rows if not is_error(outcome(status, error, duplicate=False))
    )


@lru_cache(maxsize=8)
def _load(spec: str, topics: str, _changed: int) -> FocusedCritic:
    return load_trained(spec, topics)


@lru_cache(maxsize=8)
def _examples_of(spec: str, _changed: int) -> frozenset[str]:
    return frozenset(url for url, _ in read_critic(find_model(spec))[0].examples)


_ROWS = 300  # shown at once; of more, the levels that fit
_CLASS_EXAMPLES = 200  # of a class


def rows(
    classes: Taxonomy, definition: TopicDefinition | None, *, under: str = ROOT, search: str = ""
) -> tuple[list[dict[str, Any]], bool]:
    """Return the classes at and below one, or those whose path has a text in it.

    Returns
    -------
    Of each ``path``, ``name``, ``level``, ``pages`` (below it, too), ``below`` (classes),
    ``marked`` (``here``, ``above`` or empty); and whether some are not shown

    Raises
    ------
    UserError
        There is no class `under`.
    """
    top = normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"there is no class {top}; near it: {', '.join(near)}")
    found = classes.descendants(top)
    if search:
        wanted = search.casefold()
        found = [path for path in found if wanted in path.casefold()]
    whole = len(found)
    level = top.rstrip("/").count("/")
    deepest = max((path.count("/") for path in found), default=0)
    while len(found) > _ROWS and not search and deepest > level + 1:
        deepest -= 1
        found = [path for path in found if path.count("/") <= deepest]
    pages = pages_below(classes)
    moved = _moved(definition)
    topics = () if definition is None else definition.topics
    shown = [
        {
            "path": path,
            "name": path.rpartition("/")[2],
            "level": 0 if search else path.count("/") - level - 1,
            "pages": pages[path],
            "below": len(classes.children(path)),
            "split": [each for each in moved if each.startswith(f"{path}/")],
            "marked": "here" if path in topics else "above" if lies_under(path, topics) else "",
        }
        for path in found[:_ROWS]
    ]
    return shown, len(shown) < whole


def examples(
    classes: Taxonomy, path: str, definition: TopicDefinition | None
) -> list[dict[str, str]]:
    """Return example pages of a class: ``url`` and, if moved into a sub-class, ``moved``."""
    moved = {url: to for to, urls in _moved(definition).items() for url in urls}
    return [
        {"url": url, "moved": moved.get(url, "")}
        for url in classes.examples(path)[:_CLASS_EXAMPLES]
    ]


def marked(
    definition: TopicDefinition, path: str, classes: Taxonomy, *, good: bool
) -> TopicDefinition:
    """Return the definition with a class marked as good, or no longer; see `class_tree`."""
    wanted = normalise(path)
    if wanted not in classes:
        raise UserError(f"there is no class {wanted}")
    return marking(definition, wanted) if good else unmarking(definition, wanted, classes)


def _moved(definition: TopicDefinition | None) -> Mapping[str, tuple[str, ...]]:
    return {} if definition is None else definition.classes


def tree_of(critic: Traversable) -> Taxonomy:
    """Return the classes of a critic."""
    return _tree(str(critic), hash(read_regular(critic / MANIFEST)))


@lru_cache(maxsize=4)
def _tree(spec: str, _changed: int) -> Taxonomy:
    return class_tree(read_critic(find_model(spec))[0])


class Examples:
    """Pages that were fetched for topics and not judged yet, in the order named.

    Those passed over come back when the studio is started again.
    """

    def __init__(self) -> None:
        self._passed: dict[str, set[str]] = {}
        self._lock = Lock()

    def waiting(self, room: TopicRoom) -> list[str]:
        """Return the URLs of the pages that wait."""
        return [*self._waiting(room)]

    def next(self, room: TopicRoom) -> PageCard | None:
        """Return the page to judge next; None if none that can be read waits."""
        for url, crawl in self._waiting(room).items():
            card = page_card(room.webs(crawl), url, room.latest())
            if card is not None:
                return card
            self.skip(room, url)
        return None

    def skip(self, room: TopicRoom, url: str) -> None:
        """Pass over a page."""
        with self._lock:
            self._passed.setdefault(room.name, set()).add(url)

    def plain(self, room: TopicRoom) -> dict[str, Any]:
        """Return ``waiting`` (a number) and ``page``, the next one or None."""
        card = self.next(room)
        return {"waiting": len(self.waiting(room)), "page": None if card is None else card.plain()}

    def _waiting(self, room: TopicRoom) -> dict[str, Path]:
        """Return the pages that wait, and the crawls that have fetched them."""
        settled = read_definition(room.path).judged | self._passed.get(room.name, set())
        return {url: crawl for url, crawl in room.fetched().items() if url not in settled}


def new_judgements(room: TopicRoom) -> int:
    """Return how many judged pages the latest critic has not learned from."""
    return len(read_definition(room.path).judged - room.learned_from())


_SIDE = 220  # of the square that the curve is in
_LEFT, _TOP = 46, 12
_SMALLEST, _LARGEST = 3.0, 11.0  # radii


def curve(bins: Sequence[Mapping[str, float]]) -> dict[str, Any] | None:
    """Return where the points of a reliability table are; None if it is empty.

    Parameters
    ----------
    bins : ``pages``, ``confidence`` and ``frequency`` of each

    Returns
    -------
    ``points``: ``x``, ``y``, ``r`` (their area is as their number of pages) and ``said``, in
    words; ``line``: through them; ``left``, ``top``, ``side`` of the square
    """
    if not bins:
        return None
    most = max(each["pages"] for each in bins)
    points = [
        {
            "x": round(_LEFT + _SIDE * each["confidence"], 1),
            "y": round(_TOP + _SIDE * (1.0 - each["frequency"]), 1),
            "r": round(max(_SMALLEST, _LARGEST * (each["pages"] / most) ** 0.5), 1),
            "said": f"R around {each['confidence']:.2f}: {each['frequency']:.0%} of "
            f"{each['pages']:,.0f} pages are on the topic",
        }
        for each in bins
    ]
    line = " ".join(f"{each['x']},{each['y']}" for each in points)
    return {"points": points, "line": line, "left": _LEFT, "top": _TOP, "side": _SIDE}
