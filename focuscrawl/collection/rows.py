"""The columns of a collection: the same names and types whatever was collected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.foundation.extras import needs
from focuscrawl.report.plain_text import without_controls

if TYPE_CHECKING:
    from focuscrawl.collection.collection import CollectedPage


class Chunk(NamedTuple):
    """A part of a text, from one character up to another."""

    start: int
    end: int


#: column: type of Arrow, by its name there; lists as ``list<...>``
COLUMNS = {
    "url": "string",
    "seq": "int64",
    "fetched_at": "timestamp",
    "relevance": "float64",
    "topic": "string",
    "language": "string",
    "language_confidence": "float64",
    "title": "string",
    "description": "string",
    "author": "string",
    "date": "date",
    "license": "string",
    "robots": "string",
    "kind": "string",
    "canonical": "string",
    "text": "string",
    "markdown": "string",
    "words": "int64",
    "hash": "string",
    "extractor": "string",
    "duplicates": "list<string>",
    "chunks": "list<chunk>",
}
#: column: what it says, for who has nothing but the collection
MEANINGS = {
    "url": "address of the page",
    "seq": "number of its fetch in the crawl",
    "fetched_at": "time of the fetch, UTC",
    "relevance": "R: the critic's probability that the page is on the topic",
    "topic": "the critic's most probable class of the topic",
    "language": "ISO 639-1, by the words of the text, else as the page says; empty: unknown",
    "language_confidence": "probability of the language; 0: only the page says so",
    "title": "as the page says",
    "description": "as the page says",
    "author": "as the page says",
    "date": "published or changed, as the page says",
    "license": "what the page links to as its licence; empty: nothing, which is no permission",
    "robots": "what the page asks of robots and text miners; unknown: it is kept no longer",
    "kind": "type of its JSON-LD or Open Graph",
    "canonical": "address that the page names as its own",
    "text": "main text, plain",
    "markdown": "main text with headings, lists and emphasis",
    "words": "words of the text, as spaces part them",
    "hash": "SHA-256 of the text in UTF-8",
    "extractor": "what found the text",
    "duplicates": "addresses of pages that say the same, or nearly",
    "chunks": "parts of the text: its characters (code points) from start up to end",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def row_of(page: CollectedPage, chunk: int = 0) -> dict[str, Any]:
    """Return a page as a row.

    Parameters
    ----------
    chunk : characters of a chunk at most; 0: no chunks
    """
    of = page.of
    row: dict[str, Any] = {
        "url": page.url,
        "seq": page.seq,
        "fetched_at": page.fetched_at,
        "relevance": page.relevance,
        "topic": page.topic,
        "language": of.language,
        "language_confidence": of.confidence,
        "title": page.title,
        "description": of.description,
        "author": of.author,
        "date": of.date,
        "license": of.license,
        "robots": "unknown" if page.robots is None else ", ".join(page.robots),
        "kind": of.kind,
        "canonical": of.canonical,
        "text": of.text,
        "markdown": of.markdown,
        "words": len(of.text.split()),
        "hash": page.hash,
        "extractor": of.extractor,
        "duplicates": list(map(_plain, page.duplicates)),
    }
    row = {k: _plain(v) if isinstance(v, str) else v for k, v in row.items()}
    return {**row, "chunks": chunks_of(row["text"], chunk) if chunk else []}


def _plain(text: str) -> str:
    return _SURROGATE.sub("\ufffd", without_controls(text))


def chunks_of(text: str, most: int) -> list[Chunk]:
    """Split a text at sentences and paragraphs, for retrieval.

    Parameters
    ----------
    most : characters of a chunk
    """
    with needs("text", "chunks of text"):
        from semantic_text_splitter import TextSplitter  # noqa: PLC0415
    found = TextSplitter(most).chunk_indices(text)
    return [Chunk(start, start + len(part)) for start, part in found]
