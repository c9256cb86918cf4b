"""Dmoz (Open Directory) dumps: ``content.rdf.u8``.

The dumps are XML in name only: stray bytes, bare ampersands, unknown entities, tags left open.
A conforming parser stops at the first, and libxml2's recovery loses every record after an
unbalanced tag. So this is a scanner that knows only the few tags it needs, each of which can be
told without knowing what surrounds it: damage costs the record it is in and no other.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import open_source
from focuscrawl.taxonomy.topic_tree import Sampling, Taxonomy, is_too_deep, normalise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 1 << 20  # bytes

# <Topic r:id="Top/Arts"> … </Topic>, in it <link r:resource="http://…"/> (link1 for the best)
# and <pdf|rss|atom r:resource=…/>; <ExternalPage about="http://…">, in it <topic>Top/Arts</topic>
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
# control characters, which terminals obey, and the surrogates that a numeric entity can smuggle in
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")


def read_dmoz(path: str | Path, max_examples: int | None = 300, random_state: int = 0) -> Taxonomy:
    """Read the topics and example URLs of a Dmoz dump, plain or gzipped, as a stream.

    Examples are a topic's ``link`` and every ``ExternalPage`` that names the topic, each URL
    once a topic. Addresses other than http and https are left out, and what Dmoz lists as PDF
    or feed: a critic learns from web pages.

    Parameters
    ----------
    path : ``content.rdf.u8`` or ``content.rdf.u8.gz``
    max_examples : the most examples held of a topic, drawn uniformly; None for all. `prune`
        needs as many as the larger of its own two bounds
    random_state : seed of the draw; `prune` must be given the same

    Returns
    -------
    Taxonomy
        The tree as Dmoz has it, not pruned; Dmoz's ``Top`` is the root.

    Raises
    ------
    UserError
        If the file cannot be read or holds no Dmoz topics.
    """
    sampling = None if max_examples is None else Sampling(max_examples, random_state)
    examples: dict[str, list[str]] = {}
    large: set[str] = set()
    with open_source(path) as source:
        for topic, urls in _examples(source):
            known = examples.get(topic)
            merged = list(dict.fromkeys([*known, *urls])) if known else urls
            if sampling is not None and len(merged) > sampling.size:
                large.add(topic)
                # room for as many again, so that a topic that keeps coming is not drawn each time
                if len(merged) > 2 * sampling.size:
                    merged = sampling.draw(merged)
            examples[topic] = merged
    if not examples:
        raise UserError(f"{path}: no Dmoz topics in it; give it a content.rdf.u8[.gz]")
    if sampling is not None:
        for topic in large:
            examples[topic] = sampling.draw(examples[topic])
    return Taxonomy(examples, sampling if large else None)


def _examples(source: BinaryIO) -> Iterator[tuple[str, list[str]]]:
    """Yield topics with examples of theirs, distinct; a topic may come again with others.

    A dump lists a topic's links and right after it their pages, so nearly every topic comes
    once and whole. One with more levels than a taxonomy may have is damage.
    """
    for topic, links in groupby(_links(source), key=itemgetter(0)):
        urls = dict.fromkeys(url for _, url in links if _is_web(url))
        if not is_too_deep(path := normalise(topic)):
            yield path, list(urls)


def _links(source: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield (topic, URL) in file order, with an empty URL where a topic begins."""
    topic = page = ""
    in_topic = False  # in a Topic; a link whose Topic tag was lost to damage has no topic
    unwanted: set[str] = set()  # PDFs and feeds of the topic: they have pages of their own too
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
    """Yield the tags that matter: name and the one attribute or the text that counts."""
    rest = b""
    while chunk := source.read(_CHUNK):
        rest += chunk
        # the last tag opened may go on in the next chunk; one cut after "<" may be a closing one
        end = rest.rfind(b"<")
        while end >= 0 and rest[end + 1 : end + 2] in (b"/", b""):
            end = rest.rfind(b"<", 0, end)
        yield from _scan_tags(rest[: max(end, 0)])
        # a megabyte without a tag is damage: nothing there to wait for
        rest = rest[max(end, 0) :][-_CHUNK:]
    yield from _scan_tags(rest)


def _scan_tags(text: bytes) -> Iterator[tuple[str, str]]:
    for opened, double, single, closed, inner, topic in _TAG.findall(text):
        yield (opened or closed or inner).decode(), _decode(double or single or topic)


def _decode(text: bytes) -> str:
    """Decode an attribute or text: UTF-8, or what editors left in it as Latin-1."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        decoded = text.decode("latin-1")
    if "&" in decoded:
        decoded = _ENTITY.sub(_decode_entity, decoded)
    return decoded.strip() if decoded.isprintable() else _FORBIDDEN.sub("", decoded).strip()


def _decode_entity(entity: re.Match[str]) -> str:
    """Return what an entity stands for; a broken one stands for itself."""
    name, decimal, hexadecimal = entity.groups()
    if name:
        return _NAMED_ENTITIES[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else entity[0]
