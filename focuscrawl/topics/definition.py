"""Reads, edits and writes topic definitions, in which users mark, move and split classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from focuscrawl.critic.critic_files import find_model, read_critic
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    reporting_write_errors,
    safe_join,
    update_lock,
    write_atomically,
)
from focuscrawl.foundation.urls import parse_url
from focuscrawl.foundation.user_input import parse_toml, read_regular_text
from focuscrawl.taxonomy import ROOT, Taxonomy, ancestors, lies_under, normalise
from focuscrawl.taxonomy.topic_tree import parent

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic


DEFINITION_FILE = "topic.toml"  #: name of the definition in a crawl's folder
_TEXT_KEYS = ("critic", "web", "name", "description")
_LIST_KEYS = ("topics", "words", "seeds", "good", "bad", "targets")
_URL_KEYS = ("seeds", "good", "bad", "targets")
_CLASSES_KEY = "classes"
_MAX_ATTEMPTS = 5  # text editors ignore the lock: a save between read and write needs a retry
_HEADING = "A topic definition: edit it, then apply it to a crawl with `focuscrawl topic apply`."


@dataclass(frozen=True)
class TopicDefinition:
    """A topic: on-topic classes of a taxonomy, keywords and examples [F99 section 2].

    Attributes
    ----------
    critic : str, optional
        A trained critic whose classes are the taxonomy. None: the topic has keywords and examples
        only.
    web : str, optional
        The recorded web that has the example pages. None: the web of the crawl.
    topics : tuple of str
        Normalised paths of the marked classes. A mark includes the classes below.
    words : tuple of str
        Keywords: phrases of the topic.
    seeds : tuple of str
        Start URLs.
    good, bad : tuple of str
        URLs of pages that a person judged to be on and off topic.
    targets : tuple of str
        URLs of target pages: relevant pages that crawls have to find by links.
    classes : mapping of str to tuple of str
        Paths of new or existing classes, each with the example URLs moved there.
    name : str, optional
        Normalised path of the topic's class where there is no `critic`.
    description : str, optional
        A paragraph about the topic.
    """

    critic: str | None = None
    web: str | None = None
    topics: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None

    @property
    def judged_urls(self) -> frozenset[str]:
        """URLs of all pages that the topic definition lists as good or bad."""
        return frozenset({*self.good, *self.bad})

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict ``good`` or ``bad`` of each judged page, by its URL."""
        return dict.fromkeys(self.good, "good") | dict.fromkeys(self.bad, "bad")

    def with_judgements(
        self, good: Iterable[str] = (), bad: Iterable[str] = ()
    ) -> TopicDefinition:
        """Return the topic definition with further judgements; they replace earlier judgements.

        Pages with a judgement are removed from the target pages.
        """
        new = {**dict.fromkeys(good, True), **dict.fromkeys(bad, False)}
        kept_good = [url for url in self.good if url not in new]
        kept_bad = [url for url in self.bad if url not in new]
        return replace(
            self,
            good=tuple(dict.fromkeys([*kept_good, *(url for url, yes in new.items() if yes)])),
            bad=tuple(dict.fromkeys([*kept_bad, *(url for url, yes in new.items() if not yes)])),
            targets=tuple(url for url in self.targets if url not in new),
        )

    def without_judgements(self, urls: Iterable[str]) -> TopicDefinition:
        """Return the topic definition without the judgements of some pages."""
        removed = {*urls}
        return replace(
            self,
            good=tuple(url for url in self.good if url not in removed),
            bad=tuple(url for url in self.bad if url not in removed),
        )

    def with_moved_examples(self, moved: Mapping[str, Iterable[str]]) -> TopicDefinition:
        """Return the topic definition with example URLs moved to other classes."""
        away = {url for urls in moved.values() for url in urls}
        classes = {
            path: [url for url in urls if url not in away] for path, urls in self.classes.items()
        }
        for path, urls in moved.items():
            classes.setdefault(normalise(path), []).extend(urls)
        kept = {path: tuple(dict.fromkeys(urls)) for path, urls in classes.items() if urls}
        return replace(self, classes=kept)


def read_definition(path: str | Path) -> TopicDefinition:
    """Read a topic definition from a TOML file.

    Raises
    ------
    UserError
        The file cannot be read, is not TOML, or has an invalid value.
    """
    try:
        content = parse_toml(read_regular_text(Path(path)))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}; create a definition with focuscrawl topic new"
        ) from None
    except ValueError as error:
        raise UserError(f"{path} is no TOML file: {error}") from None
    return _parse_definition(str(path), content)


def read_verdicts(crawl_dir: Path) -> dict[str, str]:
    """Return the verdict ``good`` or ``bad`` of each judged page of a crawl, by its URL."""
    path = safe_join(crawl_dir, DEFINITION_FILE)
    return read_definition(path).verdicts if path.exists() else {}


def write_definition(definition: TopicDefinition, path: str | Path) -> None:
    """Write a topic definition atomically; comments of an existing file are kept.

    Raises
    ------
    UserError
        The file cannot be written, or the definition is invalid.

    See Also
    --------
    edit_definition : change a definition that other programs may change, too
    """
    path = Path(path)
    try:
        if path.exists():
            document = tomlkit.parse(read_regular_text(path))
        else:
            document = tomlkit.document()
            document.add(tomlkit.comment(_HEADING))
            document.add(tomlkit.nl())
        _update_document(document, definition)
        _parse_definition(str(path), document.unwrap())
        write_atomically(path, tomlkit.dumps(document))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    except (TOMLKitError, ValueError) as error:
        raise UserError(f"{path} is no TOML file: {error}") from None


def edit_definition(
    path: Path,
    change: Callable[[TopicDefinition], TopicDefinition],
    create: Callable[[], TopicDefinition] | None = None,
) -> TopicDefinition:
    """Change a definition file while holding its lock; return the new definition.

    Text editors ignore the lock. If a text editor saves the file during the change, the change is
    applied to the newly saved file.

    Parameters
    ----------
    change : callable
        Returns the changed definition. The callable runs again after a concurrent save.
    create : callable, optional
        Returns the definition to change if the file does not exist.

    Raises
    ------
    UserError
        The file cannot be read or written, or keeps changing.
    """
    with reporting_write_errors(path), update_lock(path):
        for _ in range(_MAX_ATTEMPTS):
            before = _read_bytes(path)
            if before is None and create is not None:
                changed = change(create())
            else:
                changed = change(read_definition(path))
            if _read_bytes(path) == before:
                write_definition(changed, path)
                return changed
    raise UserError(f"another program keeps changing {path}: close it and try again")


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _update_document(document: tomlkit.TOMLDocument, definition: TopicDefinition) -> None:
    for name in (*_TEXT_KEYS, *_LIST_KEYS):
        value = getattr(definition, name)
        if not value:
            document.pop(name, None)
        elif name in _TEXT_KEYS:
            if document.get(name) != value:
                document[name] = value
        elif list(document.get(name, ())) != list(value):
            document[name] = _toml_array(value)
    if not definition.classes:
        document.pop(_CLASSES_KEY, None)
        return
    now = {path: list(urls) for path, urls in document.get(_CLASSES_KEY, {}).items()}
    if now != {path: list(urls) for path, urls in definition.classes.items()}:
        table = tomlkit.table()
        for path, urls in definition.classes.items():
            table[path] = _toml_array(urls)
        document[_CLASSES_KEY] = table


def _toml_array(values: Iterable[str]) -> tomlkit.items.Array:
    # parsing a text takes linear time, appending values one by one quadratic time
    lines = [f"    {tomlkit.string(value).as_string()},\n" for value in values]
    array = tomlkit.value(f"[\n{''.join(lines)}]" if lines else "[]")
    assert isinstance(array, tomlkit.items.Array)
    return array


def _parse_definition(where: str, content: dict[str, Any]) -> TopicDefinition:
    known = {*_TEXT_KEYS, *_LIST_KEYS, _CLASSES_KEY}
    unknown = sorted(set(content) - known)
    if unknown:
        keys = ", ".join(sorted(known))
        raise UserError(f"{where}: unknown key {unknown[0][:80]}. Valid keys: {keys}")
    given: dict[str, Any] = {}
    for name in _TEXT_KEYS:
        value = content.get(name)
        if not (value is None or (isinstance(value, str) and value.strip())):
            raise UserError(f"{where}: {name} must be a non-empty string, not {value!r:.80}")
        given[name] = value
    for name in _LIST_KEYS:
        given[name] = _parse_texts(where, name, content.get(name, []))
    for name in _URL_KEYS:
        given[name] = tuple(_parse_url(where, url) for url in given[name])
    given["topics"] = tuple(map(normalise, given["topics"]))
    given["name"] = given["name"] and normalise(given["name"])
    classes = content.get(_CLASSES_KEY, {})
    if not isinstance(classes, dict):
        raise UserError(f"{where}: {_CLASSES_KEY} must be a table of lists of URLs")
    given[_CLASSES_KEY] = {
        normalise(path): tuple(_parse_url(where, url) for url in _parse_texts(where, path, urls))
        for path, urls in classes.items()
    }
    both = sorted(set(given["good"]) & set(given["bad"]))
    if both:
        raise UserError(f"{where}: {both[0]} is both good and bad: remove one of the two entries")
    used = {*given["good"], *given["bad"], *given["seeds"]}
    both = sorted(used.intersection(given["targets"]))
    if both:
        raise UserError(
            f"{where}: {both[0]} is a target page and in good, bad or seeds: remove one of the "
            "two entries"
        )
    moved = Counter(url for urls in given[_CLASSES_KEY].values() for url in urls)
    twice = sorted(url for url, times in moved.items() if times > 1)
    if twice:
        raise UserError(f"{where}: {twice[0]} is in two classes: remove one of the two entries")
    _check_critic_keys(where, given)
    if not any(given[name] for name in ("critic", "words", "description", "good")):
        raise UserError(
            f"{where} does not define a topic: add critic and topics, or words, a description or "
            "good pages"
        )
    if ROOT in given["topics"]:
        raise UserError(f"{where}: {ROOT} includes all topics: name classes below it in topics")
    return TopicDefinition(**given)


def _check_critic_keys(where: str, given: Mapping[str, Any]) -> None:
    critic = given["critic"]
    if critic is None and (given["topics"] or given[_CLASSES_KEY]):
        which = "topics" if given["topics"] else _CLASSES_KEY
        raise UserError(f"{where}: {which} needs a critic: add critic, or remove {which}")
    if critic is not None and not given["topics"]:
        raise UserError(f"{where}: topics is empty: name classes of {critic} in topics")
    if critic is not None and given["name"] is not None:
        raise UserError(f"{where}: name and critic exclude each other: remove name")


def _parse_texts(where: str, name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise UserError(f"{where}: {name} must be a list of strings")
    return tuple(dict.fromkeys(value.strip() for value in values if value.strip()))


def _parse_url(where: str, text: str) -> str:
    return parse_url(text, f"{where}: {text!r:.200}")


def load_base_critic(definition: TopicDefinition) -> TrainedCritic | None:
    """Return the critic that a topic definition names; None if no critic is named."""
    if definition.critic is None:
        return None
    return read_critic(find_model(definition.critic))[0]


def class_tree(trained: TrainedCritic) -> Taxonomy:
    """Return the classes of a critic, with the training pages of each class."""
    known: dict[str, list[str]] = {path: [] for path in trained.model.classes}
    for url, path in trained.examples:
        known.setdefault(path, []).append(url)
    return Taxonomy(known)


def count_examples(classes: Taxonomy) -> dict[str, int]:
    """Return the number of examples of each class, including examples of its subclasses."""
    counts: dict[str, int] = defaultdict(int)
    for path in reversed(classes.topics):  # children before parents
        counts[path] += len(classes.examples(path))
        if path != ROOT:
            counts[path.rpartition("/")[0] or ROOT] += counts[path]
    return counts


def mark_class(definition: TopicDefinition, path: str) -> TopicDefinition:
    """Return a copy of the definition with a class and its subclasses marked as on topic."""
    kept = [each for each in definition.topics if not lies_under(each, [path])]
    return replace(definition, topics=(*kept, path))


def unmark_class(definition: TopicDefinition, path: str, classes: Taxonomy) -> TopicDefinition:
    """Return a copy of the definition without the marks of a class and its subclasses.

    If an ancestor of the class is marked as on topic, the ancestor's other descendants are marked
    instead.

    Raises
    ------
    UserError
        No marked class would remain.
    """
    topics: list[str] = []
    for each in definition.topics:
        if not lies_under(path, [each]):
            topics += [] if lies_under(each, [path]) else [each]
            continue
        # siblings of the path from the marked ancestor down to the class stay marked
        for above in [*ancestors(path), path]:
            if above != each and lies_under(above, [each]):
                siblings = classes.children(parent(above))
                topics += [other for other in siblings if other != above]
    if not topics:
        raise UserError(f"{path} is the only marked class: mark another class first")
    return replace(definition, topics=tuple(topics))


def move_examples(
    definition: TopicDefinition,
    moved: Mapping[str, Sequence[str]],
    mark: Sequence[str] | None = None,
) -> TopicDefinition:
    """Return the topic definition with example pages moved to other classes [F99 section 2].

    Parameters
    ----------
    moved : mapping of str to sequence of str
        Normalised URLs by the path of their class.
    mark : sequence of str, optional
        Classes of `moved` to mark instead of the classes above them. None: keep the marks.

    Raises
    ------
    UserError
        The definition names no critic, a path is no class for pages, or `mark` has a class to
        which no page was moved.
    """
    trained = _load_taxonomy(definition)
    for path in moved:
        if path == ROOT or lies_under(path, [OFF_TOPIC]):
            raise UserError(f"pages cannot be moved to {path}: name a class such as /Sports/Name")
    changed = definition.with_moved_examples(moved)
    if mark is None:
        return changed
    unknown = [path for path in mark if path not in changed.classes]
    if unknown:
        raise UserError(f"cannot mark {unknown[0]}: no page was moved to this class")
    split = {path for path in trained.model.classes if any(_is_below(m, path) for m in moved)}
    kept = [path for path in changed.topics if path not in split]
    return replace(changed, topics=tuple(dict.fromkeys([*kept, *mark])))


def move_class(definition: TopicDefinition, path: str, new_path: str) -> TopicDefinition:
    """Return the definition with a class, its subclasses and their marks moved to a new path.

    Parameters
    ----------
    path, new_path : str
        Normalised paths; the new path may be a new or an existing class.

    Raises
    ------
    UserError
        The definition names no critic, the class has no examples, or the new path is invalid.
    """
    trained = _load_taxonomy(definition)
    if lies_under(new_path, [path]):
        raise UserError(f"{path} cannot be moved to {new_path}, which is the class or below it")
    if lies_under(path, [OFF_TOPIC]):
        raise UserError(f"{path} is the class of off-topic pages: it cannot be moved")
    placed = dict(trained.examples)
    placed |= {url: there for there, urls in definition.classes.items() for url in urls}
    moved: dict[str, list[str]] = {}
    for url, there in placed.items():
        if lies_under(there, [path]):
            moved.setdefault(new_path + there[len(path) :], []).append(url)
    if not moved:
        near = Taxonomy({there: [] for there in placed.values()}).nearest(path)
        raise UserError(f"no class {path} has examples. Similar: {', '.join(near)}")
    changed = move_examples(definition, moved)
    topics = [
        new_path + each[len(path) :] if lies_under(each, [path]) else each
        for each in changed.topics
    ]
    return replace(changed, topics=tuple(dict.fromkeys(topics)))


def _load_taxonomy(definition: TopicDefinition) -> TrainedCritic:
    trained = load_base_critic(definition)
    if trained is None:
        raise UserError("the definition has no classes to change: add a critic with a taxonomy")
    return trained


def _is_below(path: str, topic: str) -> bool:
    return path.startswith(f"{topic}/")
