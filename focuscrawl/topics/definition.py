"""The definition of a topic: a TOML file that people edit; its classes, marked and split."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from focuscrawl.critic.critic_files import find_model, read_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import changing, write_whole
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.foundation.user_input import read_toml, text_of
from focuscrawl.taxonomy import ROOT, Taxonomy, ancestors, lies_under, normalise
from focuscrawl.taxonomy.topic_tree import parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from focuscrawl.critic.focused_critic import TrainedCritic


_TEXT_KEYS = ("critic", "web", "name", "description")
_LIST_KEYS = ("topics", "words", "seeds", "good", "bad")
_URL_KEYS = ("seeds", "good", "bad")
_CLASSES_KEY = "classes"
_MAX_ATTEMPTS = 5  # to change what an editor saves meanwhile: it takes no lock
_HEADING = "A topic: edit it, then `focuscrawl topic apply` it to a crawl."


@dataclass(frozen=True)
class TopicDefinition:
    """What a topic is [F99 section 2: nodes of a taxonomy marked, and examples].

    Attributes
    ----------
    critic : a trained critic whose classes are the taxonomy; None: only examples and words
    web : where the pages of its examples are; None: where the crawl's are
    topics : classes marked, normalised; those below them are marked, too
    words : phrases of the topic
    seeds : start URLs
    good, bad : URLs of pages that a person has judged to be on the topic, and not to be
    classes : sub-classes that a class was split into, by their paths, with the URLs moved there
    name : what the class of the topic is called where `critic` has none for it, normalised
    description : the topic in a paragraph
    """

    critic: str | None = None
    web: str | None = None
    topics: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None

    @property
    def judged_urls(self) -> frozenset[str]:
        """URLs that a person has judged."""
        return frozenset({*self.good, *self.bad})

    def with_judgements(
        self, good: Iterable[str] = (), bad: Iterable[str] = ()
    ) -> TopicDefinition:
        """Return the definition with more judgements; the latest of a page counts."""
        new = {**dict.fromkeys(good, True), **dict.fromkeys(bad, False)}
        kept_good = [url for url in self.good if url not in new]
        kept_bad = [url for url in self.bad if url not in new]
        return replace(
            self,
            good=tuple(dict.fromkeys([*kept_good, *(url for url, yes in new.items() if yes)])),
            bad=tuple(dict.fromkeys([*kept_bad, *(url for url, yes in new.items() if not yes)])),
        )

    def with_subclasses(self, moved: Mapping[str, Iterable[str]]) -> TopicDefinition:
        """Return the definition with URLs moved into sub-classes, out of those they were in."""
        away = {url for urls in moved.values() for url in urls}
        classes = {
            path: [url for url in urls if url not in away] for path, urls in self.classes.items()
        }
        for path, urls in moved.items():
            classes.setdefault(normalise(path), []).extend(urls)
        kept = {path: tuple(dict.fromkeys(urls)) for path, urls in classes.items() if urls}
        return replace(self, classes=kept)


def read_definition(path: str | Path) -> TopicDefinition:
    """Read a definition.

    Raises
    ------
    UserError
        If the file cannot be read, is no TOML, or says something that makes no sense.
    """
    try:
        content = read_toml(text_of(Path(path)))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}; make a definition with focuscrawl topic new"
        ) from None
    except ValueError as error:
        raise UserError(f"{path} is no TOML file: {error}") from None
    return _parse_definition(str(path), content)


def write_definition(definition: TopicDefinition, path: str | Path) -> None:
    """Write a new definition, whole or not at all; `edit_definition` changes one that is there.

    Comments in a file that is there stay.

    Raises
    ------
    UserError
        If the file cannot be written, or could not be read again.
    """
    path = Path(path)
    try:
        if path.exists():
            document = tomlkit.parse(text_of(path))
        else:
            document = tomlkit.document()
            document.add(tomlkit.comment(_HEADING))
            document.add(tomlkit.nl())
        _update_document(document, definition)
        _parse_definition(str(path), document.unwrap())
        write_whole(path, tomlkit.dumps(document))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    except (TOMLKitError, ValueError) as error:
        raise UserError(f"{path} is no TOML file: {error}") from None


def edit_definition(
    path: Path,
    change: Callable[[TopicDefinition], TopicDefinition],
    create: Callable[[], TopicDefinition] | None = None,
) -> TopicDefinition:
    """Read a definition, change it and write it; no other program does so meanwhile.

    Where an editor has saved the file since it was read, the change is made to what is there then.

    Parameters
    ----------
    path : of the file
    change : what is done to the definition; called again where it has to be done again
    create : makes the definition where there is no file yet; None: there has to be one

    Returns
    -------
    The definition as written

    Raises
    ------
    UserError
        It cannot be read or written, or changes all the time.
    """
    try:
        with changing(path):
            for _ in range(_MAX_ATTEMPTS):
                before = _read_bytes(path)
                if before is None and create is not None:
                    changed = change(create())
                else:
                    changed = change(read_definition(path))
                if _read_bytes(path) == before:
                    write_definition(changed, path)
                    return changed
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    raise UserError(f"{path} changes all the time: close what writes it, and do this again")


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
    # read from a text: values that are put in one after another take the square of their number
    lines = [f"    {tomlkit.string(value).as_string()},\n" for value in values]
    array = tomlkit.value(f"[\n{''.join(lines)}]" if lines else "[]")
    assert isinstance(array, tomlkit.items.Array)
    return array


def _parse_definition(where: str, content: dict[str, Any]) -> TopicDefinition:
    known = {*_TEXT_KEYS, *_LIST_KEYS, _CLASSES_KEY}
    unknown = sorted(set(content) - known)
    if unknown:
        there = ", ".join(sorted(known))
        raise UserError(f"{where}: unknown key {unknown[0][:80]}; there are {there}")
    given: dict[str, Any] = {}
    for name in _TEXT_KEYS:
        value = content.get(name)
        if not (value is None or (isinstance(value, str) and value.strip())):
            raise UserError(f"{where}: {name} must be a text, not {value!r:.80}")
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
        raise UserError(f"{where}: {both[0]} is both good and bad; take it out of one")
    moved = Counter(url for urls in given[_CLASSES_KEY].values() for url in urls)
    twice = sorted(url for url, times in moved.items() if times > 1)
    if twice:
        raise UserError(f"{where}: {twice[0]} is in two classes; take it out of one")
    _check_critic_keys(where, given)
    if not any(given[name] for name in ("critic", "words", "description", "good")):
        raise UserError(
            f"{where} says too little: name a critic and topics, or words, a description or good "
            "pages"
        )
    if ROOT in given["topics"]:
        raise UserError(f"{where}: {ROOT} is every topic; mark some below it")
    return TopicDefinition(**given)


def _check_critic_keys(where: str, given: Mapping[str, Any]) -> None:
    """Raise `UserError` where what is said of a critic's classes does not go with the critic."""
    critic = given["critic"]
    if critic is None and (given["topics"] or given[_CLASSES_KEY]):
        which = "topics" if given["topics"] else _CLASSES_KEY
        raise UserError(f"{where}: {which} are those of a critic: name it, too, or take them out")
    if critic is not None and not given["topics"]:
        raise UserError(f"{where}: no class of {critic} is marked; name some in topics")
    if critic is not None and given["name"] is not None:
        raise UserError(f"{where}: the classes of {critic} have names: take out name")


def _parse_texts(where: str, name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise UserError(f"{where}: {name} must be a list of texts")
    return tuple(dict.fromkeys(value.strip() for value in values if value.strip()))


def _parse_url(where: str, text: str) -> str:
    url = normalize(text)
    if url is None:
        raise UserError(f"{where}: {text!r:.200} {no_url(text)}")
    return url


def load_base_critic(definition: TopicDefinition) -> TrainedCritic | None:
    """Read the critic that a definition names; None if it names none.

    Raises
    ------
    UserError
        There is no such critic, or it is damaged.
    """
    if definition.critic is None:
        return None
    return read_critic(find_model(definition.critic))[0]


def class_tree(trained: TrainedCritic) -> Taxonomy:
    """Return the classes of a critic, with the pages that each was learned from."""
    known: dict[str, list[str]] = {path: [] for path in trained.model.classes}
    for url, path in trained.examples:
        known.setdefault(path, []).append(url)
    return Taxonomy(known)


def count_examples(classes: Taxonomy) -> dict[str, int]:
    """Return how many examples each class has, those below it included."""
    counts: dict[str, int] = defaultdict(int)
    for path in reversed(classes.topics):  # what is below comes first
        counts[path] += len(classes.examples(path))
        if path != ROOT:
            counts[path.rpartition("/")[0] or ROOT] += counts[path]
    return counts


def mark_class(definition: TopicDefinition, path: str) -> TopicDefinition:
    """Return the definition with one more class marked, and all below it with it."""
    kept = [each for each in definition.topics if not lies_under(each, [path])]
    return replace(definition, topics=(*kept, path))


def unmark_class(definition: TopicDefinition, path: str, classes: Taxonomy) -> TopicDefinition:
    """Return the definition with a class and all below it marked no longer.

    Where a class above is marked, the others below that are marked in its stead.

    Raises
    ------
    UserError
        Nothing would be marked any more.
    """
    topics: list[str] = []
    for each in definition.topics:
        if not lies_under(path, [each]):
            topics += [] if lies_under(each, [path]) else [each]
            continue
        # what is beside the way from the marked class down to it stays marked
        for above in [*ancestors(path), path]:
            if above != each and lies_under(above, [each]):
                beside = classes.children(parent(above))
                topics += [other for other in beside if other != above]
    if not topics:
        raise UserError(f"{path} is all that is marked: mark another class first")
    return replace(definition, topics=tuple(topics))


def split_classes(
    definition: TopicDefinition,
    moved: Mapping[str, Sequence[str]],
    mark: Sequence[str] | None = None,
) -> TopicDefinition:
    """Return the definition with pages moved into sub-classes.

    Parameters
    ----------
    moved : URLs, normalised, by the path of a sub-class
    mark : sub-classes that are marked instead of the class that is split; None: marked is what was

    Raises
    ------
    UserError
        The definition names no critic, or a path lies below none of its classes, or `mark` names
        no sub-class.
    """
    trained = load_base_critic(definition)
    if trained is None:
        raise UserError("the definition names no critic: there are no classes to split")
    classes = (*trained.model.classes, *definition.classes)
    for path in moved:
        if not any(_is_below(path, broad) for broad in classes):
            raise UserError(
                f"{path} lies below no class of {definition.critic}: name its sub-classes like "
                f"{classes[0]}/Name"
            )
    changed = definition.with_subclasses(moved)
    if mark is None:
        return changed
    unknown = [path for path in mark if path not in changed.classes]
    if unknown:
        raise UserError(f"{unknown[0]} is to be marked: the definition has no such sub-class")
    split = {path for path in trained.model.classes if any(_is_below(m, path) for m in moved)}
    kept = [path for path in changed.topics if path not in split]
    return replace(changed, topics=tuple(dict.fromkeys([*kept, *mark])))


def _is_below(path: str, topic: str) -> bool:
    return path.startswith(f"{topic}/")
