"""Training the critic of a definition, and ranking classes by how well pages fit them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.bag_of_words import FEW_PAGES
from focuscrawl.critic.classifiers import LogisticModel
from focuscrawl.critic.corpus import read_known, resolve
from focuscrawl.critic.languages import (
    ENGLISH,
    frequency,
    languages_of,
    n_words,
    normal,
    runs,
    words_as_written,
)
from focuscrawl.critic.phrase_model import OFF_TOPIC, WordsModel, phrases_of, words_of
from focuscrawl.critic.training import learn_critic, topic_name, train_from_little
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import SILENT
from focuscrawl.page.words import tokenize
from focuscrawl.taxonomy import OTHER, ROOT, Taxonomy, ancestors, lies_under
from focuscrawl.taxonomy.topic_tree import child
from focuscrawl.topics.definition import load_base_critic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.topics.definition import TopicDefinition
    from focuscrawl.webs.web_protocol import Web

    Example = tuple[tuple[str, str], Bag]  # (URL, class), words

_PHRASE_WORD_COUNT = 10  # words count as a page on the topic that has each so often
_MIN_READABLE = 0.5  # of the critic's examples must be readable


def train_definition(
    definition: TopicDefinition,
    webs: Sequence[Web],
    *,
    relevant: Collection[str] = (),
    progress: Progress = SILENT,
) -> tuple[TrainedCritic, tuple[str, ...]]:
    """Train the critic of a definition.

    The examples of its critic, those moved into sub-classes there, are joined by the pages that
    a person has judged: a good page becomes an example of the marked class that the critic
    holds most probable for it, a bad one of the most probable class that is not marked. Words
    count as one more good page. Where fewer than 100 examples are off the topic, everyday words
    join them, and all classes are held for equally likely.

    Without a critic, or with one that knows one topic only, a critic of one topic is learned from
    all that there is of it (`focuscrawl.critic.training`): phrases, a description, good
    and bad pages, those of the critic included; pages of the webs stand for all others.

    Parameters
    ----------
    webs : where pages are looked for, in this order
    relevant : URLs of them that a crawl has judged to be on the topic so far
    progress : reports how many pages will be read, and every few that were

    Returns
    -------
    The critic, and the classes of it that are marked

    Raises
    ------
    UserError
        If the critic or a class is unknown, or too many of the pages cannot be read.
    """
    base = load_base_critic(definition)
    if base is None or _is_single_topic(base, definition):
        return _train_few_shot(definition, base, webs, relevant, progress)
    _check_marked_classes(definition, base)
    marked, inner = definition.topics, _inner_classes(definition, base)
    moved = {url: path for path, urls in definition.classes.items() for url in urls}
    wanted = dict.fromkeys([*(url for url, _ in base.examples), *moved, *definition.judged_urls])
    progress.start(len(wanted))
    pages = read_known(webs, list(wanted), progress=progress)
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
        usable.append(
            (
                ("", _largest_class(marked, leaves)),
                dict.fromkeys(tokenize(words)[0], _PHRASE_WORD_COUNT),
            )
        )
    few = _add_background(usable, marked)
    trained = learn_critic(
        usable,
        kind=base.model.kind,
        uniform_prior=few or getattr(base.model, "uniform_prior", False),
        calibrate=base.calibrated,
    )
    # what stands for words, or for a language, is no page
    examples = tuple(pair for pair in trained.examples if pair[0])
    return replace(trained, examples=examples), _classes_with_examples(marked, trained)


def check_marked_classes(definition: TopicDefinition) -> None:
    """Check that the critic of a definition has the classes that are marked.

    Raises
    ------
    UserError
        There is no such critic, or no such class; the nearest are named.
    """
    if (base := load_base_critic(definition)) is not None:
        _check_marked_classes(definition, base)


def check_trainable(definition: TopicDefinition, webs: Sequence[Web]) -> None:
    """Check, without reading a page, that the critic of a definition can be trained.

    Parameters
    ----------
    webs : where pages are looked for

    Raises
    ------
    UserError
        If the critic or a class is unknown, or too few of the critic's examples are there.
    """
    base = load_base_critic(definition)
    if base is None:
        return
    _check_marked_classes(definition, base)
    if base.pages.n_pages:
        return
    urls = [url for url, _ in base.examples]
    there = {a for web in webs for a, b in zip(urls, resolve(web, urls), strict=True) if b}
    _check_enough(len(there), definition, base)


def training_urls(definition: TopicDefinition) -> tuple[str, ...]:
    """Return the URLs of all pages that a critic of one topic is learned from.

    None where the critic of the definition has a taxonomy: what its examples were is recorded.
    """
    base = load_base_critic(definition)
    if base is not None and not _is_single_topic(base, definition):
        return ()
    return tuple(_labels(definition, base))


class RankedClass(NamedTuple):
    """How well a node of the taxonomy fits some pages.

    Attributes
    ----------
    topic : path
    share : mean posterior of the node over the pages, in [0, 1]; of an inner node, the sum of
        the leaves below it
    pages : of how many of them it is, or holds, the most probable leaf
    """

    topic: str
    share: float
    pages: int


def rank_classes(classes: Sequence[str], probabilities: NDArray[np.float64]) -> list[RankedClass]:
    """Rank the nodes of a taxonomy, leaves and inner ones, by how well they fit pages.

    Parameters
    ----------
    classes : leaf paths
    probabilities : (n_pages, n_classes), posteriors

    Returns
    -------
    Nodes with a share, the largest first; of equals the one lowest in the tree first: an inner
    node that holds what one leaf below it holds says nothing new, and is left out
    """
    tree = Taxonomy({path: [] for path in classes})
    number = {path: i for i, path in enumerate(classes)}
    if not len(probabilities):
        return []
    best = probabilities.argmax(axis=1)
    fits: dict[str, RankedClass] = {}
    for path in tree.topics:
        leaves = [number[leaf] for leaf in tree.leaves_under(path)]
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


def _check_enough(read: int, definition: TopicDefinition, base: TrainedCritic) -> None:
    if read < _MIN_READABLE * len(base.examples):
        raise UserError(
            f"only {read} of the {len(base.examples)} examples of {definition.critic} can be "
            "read: name the recording that it was trained on, with web = in the definition, or "
            "with --web"
        )


def _labels(definition: TopicDefinition, base: TrainedCritic | None) -> dict[str, bool]:
    """Return whether pages are on the one topic, by URL; the latest judgement of a page counts."""
    before = {} if base is None else {url: path != OFF_TOPIC for url, path in base.examples}
    return before | dict.fromkeys(definition.good, True) | dict.fromkeys(definition.bad, False)


def _is_single_topic(base: TrainedCritic, definition: TopicDefinition) -> bool:
    """Return whether a critic was learned from examples of one topic, and still is of one."""
    if isinstance(base.model, WordsModel):
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
    """Train a critic of one topic, with what its critic was learned from."""
    known = _labels(definition, base)
    phrases = [list(phrase) for phrase in base.phrases] if base is not None else []
    topic = topic_name(definition.name)
    if base is not None:
        _check_marked_classes(definition, base)
        topic = next(path for path in base.model.classes if path != OFF_TOPIC)
    if definition.words:
        phrases += phrases_of(", ".join(definition.words))
    if definition.description:
        phrases.append(words_of(definition.description))
    trained = train_from_little(
        phrases,
        [url for url, yes in known.items() if yes],
        [url for url, yes in known.items() if not yes],
        webs,
        topic=topic,
        relevant=relevant,
        before=base,
        progress=progress,
    )
    if base is not None:
        read = {url for url, _ in trained.examples}
        _check_enough(sum(url in read for url, _ in base.examples), definition, base)
    return trained, (topic,)


def _check_marked_classes(definition: TopicDefinition, base: TrainedCritic) -> None:
    """Raise `UserError` unless the critic or the definition knows every class that is marked."""
    known = Taxonomy({path: [] for path in (*base.model.classes, *definition.classes)})
    for topic in definition.topics:
        if lies_under(topic, [OFF_TOPIC]):
            raise UserError(f"{topic} is what is off the topic: it cannot be marked")
        if topic not in known:
            near = known.nearest(topic) or list(known.leaves[:5])
            raise UserError(
                f"{definition.critic} has no class {topic}; near it: {', '.join(near)}"
            )


def _inner_classes(definition: TopicDefinition, base: TrainedCritic) -> frozenset[str]:
    """Return the classes that have others below them; their own pages go to their ``Other``."""
    classes = (*base.model.classes, *definition.classes)
    return frozenset(above for path in classes for above in ancestors(path))


def _assign_classes(
    definition: TopicDefinition,
    base: TrainedCritic,
    bags: Mapping[str, Bag],
    moved: Mapping[str, str],
) -> list[tuple[str, str]]:
    """Return the judged pages, each with the class it fits best; or that it was moved to."""
    classes = base.model.classes
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
                        f"every class of {definition.critic} is marked, so a page cannot be bad: "
                        "mark fewer"
                    )
                log = base.model.log_posteriors([bags[url]])[0]
                path = classes[max(columns, key=lambda i: float(log[i]))]
            placed.append((url, path))
    return placed


def _largest_class(marked: Sequence[str], placed: Sequence[tuple[str, str]]) -> str:
    """Return the marked class that has the most examples."""
    sizes = Counter(path for _, path in placed if lies_under(path, marked))
    return sizes.most_common(1)[0][0] if sizes else marked[0]


def _classes_with_examples(marked: Sequence[str], trained: TrainedCritic) -> tuple[str, ...]:
    """Return the marked classes that have examples."""
    there = tuple(t for t in marked if any(lies_under(c, [t]) for c in trained.model.classes))
    if not there:
        raise UserError(f"no page of {', '.join(marked)} can be read: it cannot be learned")
    return there


def _add_background(usable: list[Example], marked: Sequence[str]) -> bool:
    """Add languages as they are written to a side off the topic that has few examples.

    Everyday words that only the pages on the topic happen to have would speak for it, the more
    of them a person has judged. So the largest class off the topic gets one more page: as many
    words as the pages on the topic have, each of theirs as often as English has it; on pages in
    other languages, each everyday word of these.

    Returns
    -------
    Whether it was added: the numbers of examples then say nothing of how frequent a class is
    """
    off = [pair for pair, _ in usable if not lies_under(pair[1], marked)]
    if not off or len(off) >= FEW_PAGES:
        return False
    topic_words: Counter[str] = Counter()
    for (_, path), bag in usable:
        if lies_under(path, marked):
            topic_words.update(bag)
    languages = languages_of([bag for _, bag in usable])
    if languages == ENGLISH:
        n = sum(topic_words.values())
        counts = {word: round(n * frequency(word, languages)) for word in sorted(topic_words)}
        background: Bag = {word: count for word, count in counts.items() if count}
    else:
        length = sum(
            n * n_words(run) for word, n in topic_words.items() for run in runs(normal(word))
        )
        background = words_as_written(length, languages)
    if not background:
        return False
    largest = Counter(path for _, path in off).most_common(1)[0][0]
    usable.append((("", largest), background))
    return True
