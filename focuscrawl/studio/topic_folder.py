"""Finds and reads the files of a topic, such as its critics and fetched example pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path, PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.collection.corpus_folder import ORDER_FILE
from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.page_source import LIVE, open_page_webs
from focuscrawl.critic.critic_files import find_model, read_critic
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, read_regular
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.report.outcomes import is_error, outcome
from focuscrawl.report.status import open_store
from focuscrawl.studio.page_cards import Reservations, load_unchanged, read_question
from focuscrawl.studio.served_folder import read_kind_and_classes
from focuscrawl.taxonomy import ROOT, lies_under, normalise, parse_topics
from focuscrawl.topics import read_definition
from focuscrawl.topics.definition import class_tree, count_examples, mark_class, unmark_class
from focuscrawl.webs.opening import check_web_from_file

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.page_cards import PageCard
    from focuscrawl.studio.served_folder import StudioFolder
    from focuscrawl.taxonomy import Taxonomy
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


TOPIC_FILE = "topic.toml"  #: name of the definition in a topic's or a crawl's folder
_CRITIC_NAME = re.compile(r"critic-(\d{1,9})")
_EXAMPLES_FOLDER = ".examples"  # hidden, so that the crawls in it are not listed
_URLS_FILE = "examples.txt"  # file of a crawl of examples: URLs to fetch


class TopicFiles:
    """The files of the topic whose definition is at `path`.

    The critics of the topic definition ``NAME/topic.toml`` are in the folders ``NAME/critic-1``,
    ``NAME/critic-2``, and so on. Crawls that fetched example pages are in the folder
    ``NAME/.examples``. A topic definition with the file name ``NAME.toml`` uses the same folders.
    """

    def __init__(self, folder: StudioFolder, path: Path) -> None:
        self.path = path
        self.name = folder.name_of(path)
        self.folder = folder
        base = path.parent if path.name == TOPIC_FILE else path.with_suffix("")
        self._base = folder.safe_path(folder.name_of(base))

    @property
    def title(self) -> str:
        """Name of the topic on pages of the studio."""
        return self.name.removesuffix(f"/{TOPIC_FILE}")

    @property
    def is_of_crawl(self) -> bool:
        """Whether the definition is in a crawl's folder and was applied to that crawl."""
        return CrawlFolder(self.path.parent).exists

    @property
    def examples_folder(self) -> Path:
        """Folder of the topic's example pages and of the measured quality of critics."""
        return self.folder.safe_path(f"{self.folder.name_of(self._base)}/{_EXAMPLES_FOLDER}")

    def critics(self) -> list[Path]:
        """Return the folders of the topic's critics, from the oldest to the latest."""
        numbered = []
        for path in self._base.glob("critic-*"):
            match = _CRITIC_NAME.fullmatch(path.name)
            if match is not None and self.folder.is_critic(path):
                numbered.append((int(match[1]), path))
        return [path for _, path in sorted(numbered)]

    def next_critic(self) -> str:
        """Return the path of the next critic as an argument of a command."""
        taken = {path.name for path in self._base.glob("critic-*")}
        number = next(n for n in count(1) if f"critic-{n}" not in taken)
        return self.argument_of(self._base / f"critic-{number}")

    def next_examples(self) -> str:
        """Return the folder for the next crawl that fetches examples, as a command argument."""
        numbers = [int(path.name) for path in self._fetch_folders()]
        return self.argument_of(self._base / _EXAMPLES_FOLDER / str(max(numbers, default=0) + 1))

    def argument_of(self, path: Path) -> str:
        """Return a path as a command argument; the prefix ``./`` distinguishes it from options."""
        return f"./{self.folder.name_of(path)}"

    def marked_classes(self, critic: Path) -> tuple[str, ...]:
        """Return the classes of a critic that the topic definition marks as on topic."""
        definition = read_definition(self.path)
        if definition.topics:
            return definition.topics
        _, classes = read_kind_and_classes(critic)
        return tuple(path for path in classes if path != OFF_TOPIC)

    def choice(self) -> tuple[str, str] | None:
        """Return the name and the on-topic classes of the topic's critic; None without a critic.

        The critic is the latest critic of the topic, or the critic that the definition names.
        """
        critics, definition = self.critics(), read_definition(self.path)
        if critics:
            return self.folder.name_of(critics[-1]), ",".join(self.marked_classes(critics[-1]))
        if definition.critic is None:
            return None
        try:
            self.folder.critic(definition.critic)
        except UserError:
            return None
        return definition.critic, ",".join(definition.topics)

    def has_crawl(self, crawl: Mapping[str, Any]) -> bool:
        """Return whether a crawl with the given ``critic`` and ``topic`` belongs to this topic.

        The values are those of `read_origin`.
        """
        critic = PurePath(crawl.get("critic", ""))
        if self.folder.root / critic.parent == self._base:
            return True
        definition = read_definition(self.path)
        named, marked = definition.critic, parse_topics(crawl.get("topic", ""))
        return (
            named is not None and PurePath(named) == critic and {*definition.topics} == {*marked}
        )

    def load_latest_critic(self) -> FocusedCritic | None:
        """Return the latest critic, with the topic's classes marked as on topic, or None."""
        critics = self.critics()
        if not critics:
            return None
        critic = critics[-1]
        topics = ",".join(self.marked_classes(critic))
        return load_unchanged(str(critic), topics, (critic / MANIFEST).stat().st_mtime_ns)

    def training_urls(self) -> frozenset[str]:
        """Return the URLs of the training pages of the latest critic."""
        return self._read_example_urls()[0]

    def unread_urls(self) -> list[str]:
        """Return the URLs of judged pages that the training of the latest critic could not read.

        URLs that the topic definition no longer contains are left out.
        """
        return sorted(self._read_example_urls()[1] & read_definition(self.path).judged_urls)

    def _read_example_urls(self) -> tuple[frozenset[str], frozenset[str]]:
        critics = self.critics()
        if not critics:
            return frozenset(), frozenset()
        changed = (critics[-1] / MANIFEST).stat().st_mtime_ns
        return _read_example_urls(str(critics[-1]), changed)

    def recordings(self) -> list[str]:
        """Return the recordings of fetched examples as arguments of a command.

        Crawls without any successful fetch are skipped, so that the pages of these crawls are
        fetched again.
        """
        return self._recordings_of(self._fetch_folders())

    def crawls(self) -> list[Path]:
        """Return the folders of the crawls of the topic, the latest crawl first."""
        found = []
        for path in self.folder.crawls():
            with suppress(UserError), closing(open_store(path)) as store:
                if self.has_crawl(read_origin(store, path)):
                    found.append(path)
        return sorted(found, key=lambda path: -CrawlFolder(path).store_path.stat().st_mtime_ns)

    def judged_recordings(self) -> list[str]:
        """Return the recordings of crawls with judged pages as arguments of a command."""
        return self._recordings_of(path for path in self.crawls() if (path / TOPIC_FILE).exists())

    def _recordings_of(self, folders: Iterable[Path]) -> list[str]:
        found: dict[str, None] = {}
        for path in folders:
            crawl = CrawlFolder(path)
            if crawl.exists and not crawl.in_use and not _answered_urls(crawl):
                continue
            files = sorted(each for each in path.glob("*.warc.gz") if not each.is_symlink())
            if files:
                found |= dict.fromkeys(map(self.argument_of, files))
            elif crawl.exists:
                with closing(open_store(path)) as store:
                    identity = store.identity()
                if identity.get("web", LIVE) != LIVE:
                    name = identity.get("web_name", "")
                    check_web_from_file(name, path)
                    found[name] = None
        return list(found)

    def fetched(self) -> dict[str, Path]:
        """Return the URLs of fetched example pages, each with the folder of its crawl.

        The result excludes pages of running crawls and failed fetches.
        """
        found: dict[str, Path] = {}
        for path in self._fetch_folders():
            crawl = CrawlFolder(path)
            if not crawl.exists or crawl.in_use:
                continue
            try:
                with open(path / _URLS_FILE, encoding="utf-8", opener=open_nofollow) as file:
                    lines = file.read().splitlines()
            except (OSError, ValueError, UserError):
                continue
            answered = _answered_urls(crawl)
            found |= {line.strip(): path for line in lines if line.strip() in answered}
        return found

    def webs(self, fetched: Path) -> list[Web]:
        """Open the recordings that contain the pages of the crawl in the folder `fetched`."""
        if not CrawlFolder(fetched).exists:
            return []
        try:
            with closing(open_store(fetched)) as store:
                return open_page_webs(store.identity(), fetched)
        except UserError:
            return []

    def _fetch_folders(self) -> list[Path]:
        folder = self.examples_folder
        if not folder.is_dir():
            return []
        found = [each for each in folder.iterdir() if each.name.isdecimal()]
        found = [each for each in found if not each.is_symlink()]
        return sorted(found, key=lambda path: int(path.name))


def read_origin(store: CrawlStore, crawl: Path) -> dict[str, str]:
    """Return the ``critic`` with which a crawl was started, and its ``topic``, or empty strings.

    After judgements, the crawl has a critic of its own, but the topic definition in the crawl's
    folder names the first critic.
    """
    identity = store.identity()
    path, critic = crawl / TOPIC_FILE, identity.get("critic_name", "")
    if path.exists():
        critic = read_definition(path).critic or ""
    return {"critic": critic, "topic": identity.get("topic", "")}


def find_topic(folder: StudioFolder, crawl: Path) -> TopicFiles | None:
    """Return the topic for which a crawl was started, or None if the folder has no such topic.

    The result is None for a crawl of a corpus, because a corpus resumes with the same topic.
    """
    with closing(open_store(crawl)) as store:
        origin = read_origin(store, crawl)
    found = next((topic for topic in read_topics(folder) if topic.has_crawl(origin)), None)
    return None if found is None or (found.path.parent / ORDER_FILE).exists() else found


def read_topics(folder: StudioFolder) -> list[TopicFiles]:
    """Return the files of each topic with a valid definition that does not belong to a crawl."""
    found = []
    for path in folder.toml_files():
        topic = TopicFiles(folder, path)
        if not topic.is_of_crawl:
            with suppress(UserError):
                read_definition(path)
                found.append(topic)
    return found


def _answered_urls(crawl: CrawlFolder) -> frozenset[str]:
    """Return the URLs that a stopped crawl fetched without an error."""
    return _read_answered(str(crawl.path), crawl.store_path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read_answered(folder: str, _changed: int) -> frozenset[str]:
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
def _read_example_urls(spec: str, _changed: int) -> tuple[frozenset[str], frozenset[str]]:
    critic, _ = read_critic(find_model(spec))
    return frozenset(url for url, _ in critic.examples), frozenset(critic.unread)


_MAX_ROWS = 300  # classes shown; deeper levels are left out if there are more
_MAX_EXAMPLES = 200  # of a class


def class_rows(
    classes: Taxonomy, definition: TopicDefinition | None, *, under: str = ROOT, search: str = ""
) -> tuple[list[dict[str, Any]], bool]:
    """Return the classes below the class `under`, filtered by the text `search`.

    Returns
    -------
    rows : list of dict
        ``path``, ``name``, ``level``, ``pages`` (including classes below), ``below`` (number of
        classes), ``split`` (subclasses of the definition), ``marked`` (``here``, ``above`` or
        empty).
    cut : bool
        Whether some classes are left out.
    """
    top = normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"no class {top} exists. Similar classes: {', '.join(near)}")
    found = classes.descendants(top)
    if search:
        wanted = search.casefold()
        found = [path for path in found if wanted in path.casefold()]
    n_found = len(found)
    level = top.rstrip("/").count("/")
    deepest = max((path.count("/") for path in found), default=0)
    while len(found) > _MAX_ROWS and not search and deepest > level + 1:
        deepest -= 1
        found = [path for path in found if path.count("/") <= deepest]
    pages = count_examples(classes)
    moved = _moved_urls(definition)
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
        for path in found[:_MAX_ROWS]
    ]
    return shown, len(shown) < n_found


def class_examples(
    classes: Taxonomy, path: str, definition: TopicDefinition | None
) -> list[dict[str, str]]:
    """Return the example URLs of a class, each with the class to which the user moved the URL."""
    moved = {url: to for to, urls in _moved_urls(definition).items() for url in urls}
    return [
        {"url": url, "moved": moved.get(url, "")} for url in classes.examples(path)[:_MAX_EXAMPLES]
    ]


def set_marked(
    definition: TopicDefinition, path: str, classes: Taxonomy, *, good: bool
) -> TopicDefinition:
    """Return the topic definition with a class marked as on topic or off topic."""
    wanted = normalise(path)
    if wanted not in classes:
        raise UserError(f"the critic has no class {wanted}: see the list of classes")
    return mark_class(definition, wanted) if good else unmark_class(definition, wanted, classes)


def _moved_urls(definition: TopicDefinition | None) -> Mapping[str, tuple[str, ...]]:
    return {} if definition is None else definition.classes


def load_class_tree(critic: Traversable) -> Taxonomy:
    """Return the classes of the critic in a folder."""
    return _load_tree(str(critic), hash(read_regular(critic / MANIFEST)))


@lru_cache(maxsize=4)
def _load_tree(spec: str, _changed: int) -> Taxonomy:
    return class_tree(read_critic(find_model(spec))[0])


class ExampleQueue:
    """For each topic, the fetched example pages that no person has judged yet.

    Skipped pages are shown again after a restart of the studio.
    """

    def __init__(self) -> None:
        self._skipped: dict[str, set[str]] = {}
        self._reservations = Reservations()
        self._lock = Lock()

    def unjudged(self, topic: TopicFiles) -> dict[str, Path]:
        """Return the URLs of example pages to judge, each with the folder of its crawl."""
        settled = read_definition(topic.path).judged_urls | self._skipped.get(topic.name, set())
        return {url: crawl for url, crawl in topic.fetched().items() if url not in settled}

    def next(self, topic: TopicFiles, person: str = "") -> PageCard | None:
        """Return the next example page for a person to judge, or None if no page is left."""
        left = self.unjudged(topic)
        for url in self._reservations.order([*left], topic.name, person):
            question = read_question(topic.webs(left[url]), url)
            if question is not None:
                self._reservations.reserve(topic.name, url, person)
                return question.judge(topic.load_latest_critic())
            self.settle(topic, url, skipped=True)
        return None

    def settle(self, topic: TopicFiles, url: str, *, skipped: bool) -> None:
        """Skip a page until the studio restarts, or show a skipped page again."""
        with self._lock:
            known = self._skipped.setdefault(topic.name, set())
            (known.add if skipped else known.discard)(url)

    def to_dict(self, topic: TopicFiles) -> dict[str, Any]:
        """Return the number of pages to judge, and the next page or None."""
        card = self.next(topic)
        return {
            "waiting": len(self.unjudged(topic)),
            "page": None if card is None else card.to_dict(),
        }


def count_new_judgements(topic: TopicFiles) -> int:
    """Return the number of pages that were judged after the training of the latest critic."""
    known = topic.training_urls().union(topic.unread_urls())
    return len(read_definition(topic.path).judged_urls - known)
