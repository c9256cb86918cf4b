"""Trains the critic of a topic definition, and ranks classes by their fit to pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.bag_of_words import FEW_PAGES
from focuscrawl.critic.classifiers import LogisticModel
from focuscrawl.critic.corpus import find_pages, find_urls
from focuscrawl.critic.languages import (
    ENGLISH,
    detect_languages,
    estimate_word_count,
    expected_word_counts,
    frequency,
    normalise_word,
    split_scripts,
)
from focuscrawl.critic.phrase_model import OFF_TOPIC, PhraseModel, parse_description, parse_phrases
from focuscrawl.critic.training import parse_topic_name, train_few_shot, train_on_bags
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.page.words import tokenize
from focuscrawl.taxonomy import OTHER, ROOT, Taxonomy, ancestors, lies_under
from focuscrawl.taxonomy.topic_tree import child
from focuscrawl.topics.definition import load_base_critic

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.topics.definition import TopicDefinition
    from focuscrawl.webs.web_protocol import Web

    Example = tuple[tuple[str, str], Bag]  # (URL, class), words

_PHRASE_WORD_COUNT = 10  # keywords become an example page that has each word so often
_MIN_READABLE = 0.5  # share of the critic's examples


def train_definition(
    definition: TopicDefinition,
    webs: Sequence[Web],
    *,
    relevant: Collection[str] = (),
    progress: Progress = NO_PROGRESS,
) -> tuple[TrainedCritic, tuple[str, ...]]:
    """Train a critic from a topic definition.

    If the topic definition names a critic with a taxonomy, the new critic has the classes of that
    critic, and the new classes to which the definition moves examples. The new critic is trained
    on the examples of the old critic and on the judged pages. A page judged good becomes an
    example of its most probable on-topic class. A page judged bad becomes an example of its most
    probable off-topic class. The keywords are added to the training data as one more good page. If
    there are fewer than 100 off-topic examples, general word frequencies are added as one more
    off-topic example, and all classes get the same prior probability.

    If the topic definition names no critic, or a critic for one topic, a few-shot critic is
    trained from keywords, the description and judged pages (see `focuscrawl.critic.training`). A
    sample of the pages in `webs` serves as off-topic pages of the few-shot critic.

    Parameters
    ----------
    webs : sequence of Web
        Webs to read pages from, in this order.
    relevant : collection of str
        URLs of pages in `webs` that a crawl has judged relevant so far.
    progress : Progress
        Gets the number of pages to read, and the pages read.

    Returns
    -------
    critic : TrainedCritic
    topics : tuple of str
        The marked classes of the critic.

    Raises
    ------
    UserError
        The critic or a class is unknown, or too many training pages cannot be read.
    """
    base = load_base_critic(definition)
    if base is None or _is_single_topic(base, definition):
        trained, topics = _train_few_shot(definition, base, webs, relevant, progress)
        return _with_unread(trained, definition), topics
    _check_marked_classes(definition, base)
    marked, inner = definition.topics, _inner_classes(definition, base)
    moved = {url: path for path, urls in definition.classes.items() for url in urls}
    wanted = dict.fromkeys([*(url for url, _ in base.examples), *moved, *definition.judged_urls])
    progress.start(len(wanted))
    pages = find_pages(webs, list(wanted), progress=progress)
    bags = {url: page.bag for url, page in pages.items()}
    _check_enough(sum(url in bags for url, _ in base.examples), definition, base)
    judged = {url for url in definition.judged_urls if url in bags}
    placed = {**dict(base.examples), **moved}
    kept = [(url, path) for url, path in placed.items() if url in bags and url not in judged]
    kept += _assign_classes(definition, base, bags, moved)
    leaves = [(url, child(path, OTHER) if path in inner else path) for url, path in kept]
    usable: list[Example] = [((url, path), bags[url]) for url, path in leaves]
    words = [*definition.words, *filter(None, [definition.description])]
    if words:
        bag = dict.fromkeys(tokenize(words)[0], _PHRASE_WORD_COUNT)
        usable.append((("", _largest_class(marked, leaves)), bag))
    few = _add_background(usable, marked)
    trained = train_on_bags(
        usable,
        kind=base.model.kind,
        uniform_prior=few or getattr(base.model, "uniform_prior", False),
        calibrate=base.calibrated,
    )
    # the examples made of keywords and of word frequencies have no URL
    examples = tuple(pair for pair in trained.examples if pair[0])
    trained = replace(trained, examples=examples)
    return _with_unread(trained, definition), _classes_with_examples(marked, trained)


def check_marked_classes(definition: TopicDefinition) -> None:
    """Raise `UserError` if a topic definition marks classes that its critic does not have.

    Raises
    ------
    UserError
        The critic does not exist or lacks a class; the message names similar classes.
    """
    if (base := load_base_critic(definition)) is not None:
        _check_marked_classes(definition, base)


def check_trainable(definition: TopicDefinition, webs: Sequence[Web]) -> None:
    """Check, without reading pages, that `train_definition` can train from `webs`.

    Raises
    ------
    UserError
        The critic or a class is unknown, or `webs` have too few of the critic's examples.
    """
    base = load_base_critic(definition)
    if base is None:
        return
    _check_marked_classes(definition, base)
    if base.pages.n_pages:
        return
    urls = [url for url, _ in base.examples]
    found = {a for web in webs for a, b in zip(urls, find_urls(web, urls), strict=True) if b}
    _check_enough(len(found), definition, base)


def training_urls(definition: TopicDefinition) -> tuple[str, ...]:
    """Return the URLs of the training pages of the few-shot critic of a topic definition.

    The result is empty if the definition's critic has a taxonomy, because no examples need to be
    fetched.
    """
    base = load_base_critic(definition)
    if base is not None and not _is_single_topic(base, definition):
        return ()
    return tuple(_labels(definition, base))


class RankedClass(NamedTuple):
    """A class of a taxonomy, with a measure of how well the class fits given pages.

    The posterior probability of an inner class is the sum of the posterior probabilities of its
    leaves.
    """

    topic: str  # path of the node
    share: float  # mean posterior of the node over the pages, in [0, 1]
    pages: int  # number of pages whose most probable leaf is the node or below it


def rank_classes(classes: Sequence[str], probabilities: Floats) -> list[RankedClass]:
    """Rank the classes of a taxonomy by how well each class fits given pages.

    Parameters
    ----------
    classes : sequence of str
        Paths of the leaves.
    probabilities : NDArray[np.float64] of shape (n_pages, n_classes)
        Posteriors.

    Returns
    -------
    list of RankedClass
        Best fit first; of equal nodes the deepest first. Inner nodes with the same pages as one
        of their children are omitted.
    """
    tree = Taxonomy({path: [] for path in classes})
    columns = {path: i for i, path in enumerate(classes)}
    if not len(probabilities):
        return []
    best = probabilities.argmax(axis=1)
    fits: dict[str, RankedClass] = {}
    for path in tree.topics:
        leaves = [columns[leaf] for leaf in tree.leaves_under(path)]
        if path == ROOT or not leaves:
            continue
        share = float(probabilities[:, leaves].sum(axis=1).mean())
        fits[path] = RankedClass(path, min(share, 1.0), int(np.isin(best, leaves).sum()))
    kept = [
        fit
        for path, fit in fits.items()
        if not any(fits[below].pages == fit.pages for below in tree.children(path))
    ]
    return sorted(kept, key=lambda fit: (-fit.pages, -fit.share, -fit.topic.count("/"), fit.topic))


def _with_unread(trained: TrainedCritic, definition: TopicDefinition) -> TrainedCritic:
    read = {url for url, _ in trained.examples}
    unread = (url for url in definition.judged_urls if (normalize(url) or url) not in read)
    return replace(trained, unread=tuple(sorted(unread)))


def _check_enough(read: int, definition: TopicDefinition, base: TrainedCritic) -> None:
    if read < _MIN_READABLE * len(base.examples):
        raise UserError(
            f"only {read} of the {len(base.examples)} examples of {definition.critic} can be "
            "read: name the recording with its training pages as web in the definition, or with "
            "--web"
        )


def _labels(definition: TopicDefinition, base: TrainedCritic | None) -> dict[str, bool]:
    """Return whether each training page is on topic, by URL; judgements override examples."""
    before = {} if base is None else {url: path != OFF_TOPIC for url, path in base.examples}
    return before | dict.fromkeys(definition.good, True) | dict.fromkeys(definition.bad, False)


def _is_single_topic(base: TrainedCritic, definition: TopicDefinition) -> bool:
    """Return whether a critic knows one topic only, and the definition does not split it."""
    if isinstance(base.model, PhraseModel):
        return True
    of_two = isinstance(base.model, LogisticModel) and len(base.model.classes) == 2
    return of_two and OFF_TOPIC in base.model.classes and not definition.classes


def _train_few_shot(
    definition: TopicDefinition,
    base: TrainedCritic | None,
    webs: Sequence[Web],
    relevant: Collection[str],
    progress: Progress,
) -> tuple[TrainedCritic, tuple[str, ...]]:
    known = _labels(definition, base)
    phrases = [list(phrase) for phrase in base.phrases] if base is not None else []
    topic = parse_topic_name(definition.name)
    if base is not None:
        _check_marked_classes(definition, base)
        topic = next(path for path in base.model.classes if path != OFF_TOPIC)
    if definition.words:
        phrases += parse_phrases(", ".join(definition.words))
    if definition.description:
        phrases.append(parse_description(definition.description))
    trained = train_few_shot(
        phrases,
        [url for url, yes in known.items() if yes],
        [url for url, yes in known.items() if not yes],
        webs,
        topic=topic,
        relevant=relevant,
        previous=base,
        progress=progress,
    )
    if base is not None:
        read = {url for url, _ in trained.examples}
        _check_enough(sum(url in read for url, _ in base.examples), definition, base)
    return trained, (topic,)


def _check_marked_classes(definition: TopicDefinition, base: TrainedCritic) -> None:
    known = Taxonomy({path: [] for path in (*base.model.classes, *definition.classes)})
    for topic in definition.topics:
        if lies_under(topic, [OFF_TOPIC]):
            raise UserError(f"{topic} is the class of off-topic pages: it cannot be marked")
        if topic not in known:
            near = known.nearest(topic) or list(known.leaves[:5])
            raise UserError(
                f"{definition.critic} has no class {topic}. Similar classes: {', '.join(near)}"
            )


def _inner_classes(definition: TopicDefinition, base: TrainedCritic) -> frozenset[str]:
    """Return the classes with subclasses; their own pages become examples of ``Other``."""
    classes = (*base.model.classes, *definition.classes)
    return frozenset(above for path in classes for above in ancestors(path))


def _assign_classes(
    definition: TopicDefinition,
    base: TrainedCritic,
    bags: Mapping[str, Bag],
    moved: Mapping[str, str],
) -> list[tuple[str, str]]:
    """Return the judged pages, each with the class it was moved to or its most probable class."""
    classes = _current_paths(base, moved)
    topics = definition.topics
    on = [
        i
        for i, path in enumerate(classes)
        if lies_under(path, topics) or any(lies_under(topic, [path]) for topic in topics)
    ]
    off = [i for i, path in enumerate(classes) if i not in on]
    placed: list[tuple[str, str]] = []
    for urls, columns in ((definition.good, on), (definition.bad, off)):
        for url in urls:
            if url not in bags:
                continue
            path = moved.get(url)
            if path is None:
                if not columns:
                    raise UserError(
                        f"every class of {definition.critic} is marked, so no class is left for "
                        "bad pages: mark fewer classes"
                    )
                log = base.model.log_posteriors([bags[url]])[0]
                path = classes[max(columns, key=lambda i: float(log[i]))]
            placed.append((url, path))
    return placed


def _current_paths(base: TrainedCritic, moved: Mapping[str, str]) -> list[str]:
    """Return the path of each class; a class whose examples were all moved has their new path."""
    paths: dict[str, set[str]] = {}
    for url, path in base.examples:
        paths.setdefault(path, set()).add(moved.get(url, path))
    return [
        next(iter(found)) if len(found := paths.get(path, {path})) == 1 else path
        for path in base.model.classes
    ]


def _largest_class(marked: Sequence[str], placed: Sequence[tuple[str, str]]) -> str:
    sizes = Counter(path for _, path in placed if lies_under(path, marked))
    return sizes.most_common(1)[0][0] if sizes else marked[0]


def _classes_with_examples(marked: Sequence[str], trained: TrainedCritic) -> tuple[str, ...]:
    there = tuple(t for t in marked if any(lies_under(c, [t]) for c in trained.model.classes))
    if not there:
        raise UserError(f"no example of {', '.join(marked)} can be read: add good pages")
    return there


def _add_background(usable: list[Example], marked: Sequence[str]) -> bool:
    """Add general word frequencies to the off-topic examples if those are few.

    With few off-topic examples, everyday words that only on-topic pages happen to contain would
    count for the topic. Therefore the largest off-topic class gets one more page, as long as the
    on-topic pages together. The added page has the words of the on-topic pages in their general
    English frequencies, or the everyday words of other languages.

    Returns
    -------
    bool
        Whether the page was added. The class sizes are then no estimate of the priors.
    """
    off = [pair for pair, _ in usable if not lies_under(pair[1], marked)]
    if not off or len(off) >= FEW_PAGES:
        return False
    topic_words: Counter[str] = Counter()
    for (_, path), bag in usable:
        if lies_under(path, marked):
            topic_words.update(bag)
    languages = detect_languages([bag for _, bag in usable])
    if languages == ENGLISH:
        n = sum(topic_words.values())
        counts = {word: round(n * frequency(word, languages)) for word in sorted(topic_words)}
        background: Bag = {word: count for word, count in counts.items() if count}
    else:
        length = sum(
            n * estimate_word_count(run)
            for word, n in topic_words.items()
            for run in split_scripts(normalise_word(word))
        )
        background = expected_word_counts(length, languages)
    if not background:
        return False
    largest = Counter(path for _, path in off).most_common(1)[0][0]
    usable.append((("", largest), background))
    return True
