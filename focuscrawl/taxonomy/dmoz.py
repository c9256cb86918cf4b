"""Reads topic trees from dumps of the directory Dmoz (``content.rdf.u8``), and prunes the trees.

Dmoz dumps are invalid XML, with stray bytes, bare ampersands, unknown entities and unclosed tags.
XML parsers stop at the first error, and libxml2 in recovery mode loses all records after an
unbalanced tag. The module `dmoz` searches for a few tags with a regular expression, so an error
affects only one record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import open_maybe_gzip
from focuscrawl.taxonomy.topic_tree import (
    OTHER,
    ROOT,
    Sampling,
    Taxonomy,
    child,
    is_too_deep,
    normalise,
    parent,
)

_CHUNK = 1 << 20  # bytes

# <Topic r:id="Top/Arts"> … </Topic> contains <link r:resource="http://…"/> (link1 for the best)
# and <pdf|rss|atom r:resource=…/>; <ExternalPage about="http://…"> has <topic>Top/Arts</topic>
_TAG = re.compile(
    rb"<(?:"
    rb"(Topic|ExternalPage|link1?|pdf1?|rss1?|atom1?)\b"
    rb"(?:\s(?:[^<>]*?\s)?(?:\w+:)?(?:id|about|resource)\s*=\s*(?:\"([^\"<]*)\"|'([^'<]*)'))?"
    rb"|(/Topic)>"
    rb"|(topic)>([^<]*)<"
    rb")"
)
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));")
_NAMED_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# control characters, which terminals interpret, and surrogates of numeric entities
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")


def read_dmoz(path: str | Path, max_examples: int | None = 300, random_state: int = 0) -> Taxonomy:
    """Return the topic tree of a Dmoz dump, not pruned; Dmoz's topic ``Top`` is the root.

    The examples of a topic are its distinct ``link`` and ``ExternalPage`` URLs with http or https,
    except PDF documents and feeds.

    Parameters
    ----------
    path : ``content.rdf.u8`` or ``content.rdf.u8.gz``
    max_examples : maximum number of examples of a topic, sampled uniformly; None for all. Must not
        be smaller than ``min_examples`` and ``max_examples`` of a later `prune`
    random_state : seed of the sample; a later `prune` needs the same seed

    Raises
    ------
    UserError
        If the file cannot be read or has no Dmoz topics.
    """
    sampling = None if max_examples is None else Sampling(max_examples, random_state)
    examples: dict[str, list[str]] = {}
    large: set[str] = set()
    with open_maybe_gzip(path) as source:
        for topic, urls in _examples(source):
            known = examples.get(topic)
            merged = list(dict.fromkeys([*known, *urls])) if known else urls
            if sampling is not None and len(merged) > sampling.size:
                large.add(topic)
                # sampling at twice the size only, because a topic may occur many times
                if len(merged) > 2 * sampling.size:
                    merged = sampling.draw(merged)
            examples[topic] = merged
    if not examples:
        raise UserError(f"{path}: the file has no Dmoz topics; give a file content.rdf.u8[.gz]")
    if sampling is not None:
        for topic in large:
            examples[topic] = sampling.draw(examples[topic])
    return Taxonomy(examples, sampling if large else None)


def _examples(source: BinaryIO) -> Iterator[tuple[str, list[str]]]:
    """Yield topics with distinct examples; a topic may occur again with other examples.

    Topics with too many levels are errors of the dump, and are left out.
    """
    for topic, links in groupby(_links(source), key=itemgetter(0)):
        urls = dict.fromkeys(url for _, url in links if _is_web(url))
        if not is_too_deep(path := normalise(topic)):
            yield path, list(urls)


def _links(source: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield (topic, URL) in file order, with an empty URL at the start of a topic."""
    topic = page = ""
    in_topic = False  # inside a Topic; links after a damaged Topic tag have no topic
    unwanted: set[str] = set()  # PDF documents and feeds, which also have an ExternalPage
    for name, text in _tags(source):
        match name:
            case "Topic":
                topic, in_topic, page = text, bool(text), ""
                unwanted.clear()
                if topic:
                    yield topic, ""
            case "/Topic":
                in_topic = False
            case "link" | "link1":
                if in_topic:
                    yield topic, text
            case "ExternalPage":
                in_topic, page = False, text
            case "topic":
                if page and text and page not in unwanted:
                    yield text, page
                page = ""
            case _:
                unwanted.add(text)


def _is_web(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))


def _tags(source: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield the name of each relevant tag with its attribute or text."""
    rest = b""
    while chunk := source.read(_CHUNK):
        rest += chunk
        # the last opening tag may continue in the next chunk
        end = rest.rfind(b"<")
        while end >= 0 and rest[end + 1 : end + 2] in (b"/", b""):
            end = rest.rfind(b"<", 0, end)
        yield from _scan_tags(rest[: max(end, 0)])
        # a megabyte without a tag is an error of the dump, and is dropped
        rest = rest[max(end, 0) :][-_CHUNK:]
    yield from _scan_tags(rest)


def _scan_tags(text: bytes) -> Iterator[tuple[str, str]]:
    for opened, double, single, closed, inner, topic in _TAG.findall(text):
        yield (opened or closed or inner).decode(), _decode(double or single or topic)


def _decode(text: bytes) -> str:
    """Decode an attribute or text, in UTF-8 or else in Latin-1."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        decoded = text.decode("latin-1")
    if "&" in decoded:
        decoded = _ENTITY.sub(_decode_entity, decoded)
    return decoded.strip() if decoded.isprintable() else _FORBIDDEN.sub("", decoded).strip()


def _decode_entity(entity: re.Match[str]) -> str:
    """Return the character of an entity, or an invalid entity unchanged."""
    name, decimal, hexadecimal = entity.groups()
    if name:
        return _NAMED_ENTITIES[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else entity[0]


#: k of [A02]: minimum and maximum number of training pages of a class
EXAMPLES_PER_CLASS = 300
#: classes that must remain for pruning at `EXAMPLES_PER_CLASS` by default
_MIN_CLASSES = 100


def choose_min_examples(taxonomy: Taxonomy) -> int:
    """Return the default for the minimum number of examples per leaf of a topic tree.

    The default is `EXAMPLES_PER_CLASS` (the value in [A02]) if at least a hundred leaves remain
    after pruning, as in the case of Dmoz. Otherwise the default is 1, and no topic is merged.
    """
    if (
        sum(len(taxonomy.examples(topic)) for topic in taxonomy.topics)
        < _MIN_CLASSES * EXAMPLES_PER_CLASS
    ):
        return 1
    left = _move_to_other(_merge_small_leaves(taxonomy, EXAMPLES_PER_CLASS))
    return EXAMPLES_PER_CLASS if len(left) >= _MIN_CLASSES else 1


def prune(
    taxonomy: Taxonomy,
    min_examples: int = 300,
    max_examples: int = 300,
    random_state: int = 0,
) -> Taxonomy:
    """Merge small leaves into their parents, and sample the examples of large leaves.

    1. Leaves with fewer than `min_examples` examples are merged into their parents, repeatedly.
    2. The examples of an internal topic itself are moved to a new child topic ``Other``.
    3. Each leaf is reduced to a uniform sample of at most `max_examples` examples.

    In the result, only the root and leaves with the name ``Other`` may have fewer than
    `min_examples` examples.

    Parameters
    ----------
    taxonomy : tree to prune; the tree is not changed
    min_examples : k of [A02], minimum number of examples of a leaf, at least 1
    max_examples : maximum number of examples of a leaf, at least 1
    random_state : seed of the sample

    Returns
    -------
    Taxonomy
        A tree whose leaves have the sorted examples, independent of the order of the input.

    Raises
    ------
    UserError
        If the examples were sampled before, by `read_dmoz` or `prune`, to fewer examples than
        needed or with another seed. Then a uniform sample is impossible.
    """
    if min_examples < 1 or max_examples < 1:
        raise UserError(
            f"cannot prune to {min_examples} to {max_examples} examples per leaf: both numbers "
            "must be ≥ 1"
        )
    sampling = Sampling(max_examples, random_state)
    previous = taxonomy.sampling
    wanted = Sampling(max(min_examples, max_examples), random_state)
    if previous is not None and (
        previous.size < wanted.size or previous.random_state != random_state
    ):
        raise UserError(
            f"the examples were sampled before ({previous.size} per topic, random_state "
            f"{previous.random_state}); read them again with max_examples={wanted.size}, "
            f"random_state={random_state}"
        )
    own = _merge_small_leaves(taxonomy, min_examples)
    leaves = _move_to_other(own)
    return Taxonomy(
        {leaf: sorted(sampling.draw(urls)) for leaf, urls in leaves.items()},
        sampling
        if previous or any(len(urls) > max_examples for urls in leaves.values())
        else None,
    )


def _merge_small_leaves(taxonomy: Taxonomy, min_examples: int) -> dict[str, set[str]]:
    """Return the remaining topics with their own examples, children before parents."""
    merged: dict[str, set[str]] = {}
    parents: set[str] = set()
    kept: dict[str, set[str]] = {}
    for topic in reversed(taxonomy.topics):  # sorted, so that a path follows its prefixes
        own = merged.pop(topic, set())
        own.update(taxonomy.examples(topic))
        if topic in parents or len(own) >= min_examples or topic == ROOT:
            kept[topic] = own
            parents.add(parent(topic))
        else:
            merged.setdefault(parent(topic), set()).update(own)
    return kept


def _move_to_other(own: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the leaves with their examples, and examples of internal topics in ``Other``."""
    internal = {parent(topic) for topic in own if topic != ROOT}
    leaves: dict[str, set[str]] = {}
    for topic, urls in own.items():
        leaf = topic
        while leaf in internal:  # a topic Other may have children, too
            leaf = child(leaf, OTHER)
        if urls:
            leaves.setdefault(leaf, set()).update(urls)
    return leaves
