"""The pages of a crawl that are exported: read again, their text extracted, each once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.collection.origin import Origin, find_answer, read_robots_signals
from focuscrawl.crawl.duplicates import MinHashIndex, sketch
from focuscrawl.crawl.page_source import open_page_webs
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host
from focuscrawl.foundation.user_input import SILENT, Progress
from focuscrawl.page.documents import is_pdf
from focuscrawl.page.metadata import primary
from focuscrawl.page.words import PageWords, tokenize
from focuscrawl.report.plain_text import strip_controls
from focuscrawl.text import EXTRACTORS, ExtractorPool, PageText
from focuscrawl.text.extraction import RawPage
from focuscrawl.text.text_store import FILE, TextStore
from focuscrawl.webs import open_web
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


_DIGEST = 16  # bytes of a page's digest in the store
_FEW = 10  # words: less is no text
_TEMPLATE = 5  # pages of a host, and a fifth of them: a line of so many is boilerplate
_SHARE = 0.2
_AT_A_TIME = 50  # pages that are read before their texts are taken


#: column: its type, by the name it has in Arrow, and what it says to who has only the collection
COLUMNS = {
    "url": ("string", "address of the page"),
    "seq": ("int64", "number of its fetch in the crawl"),
    "fetched_at": ("timestamp", "time of the fetch, UTC"),
    "relevance": ("float64", "R: the critic's probability that the page is on the topic"),
    "topic": ("string", "the critic's most probable class of the topic"),
    "language": (
        "string",
        "ISO 639-1, by the words of the text, else as the page says; empty: unknown",
    ),
    "language_confidence": ("float64", "probability of the language; 0: only the page says so"),
    "title": ("string", "as the page says"),
    "description": ("string", "as the page says"),
    "author": ("string", "as the page says"),
    "date": ("date", "published or changed, as the page says"),
    "license": (
        "string",
        "what the page links to as its licence; empty: nothing, which is no permission",
    ),
    "robots": (
        "string",
        "what the page asks of robots and text miners; unknown: it is kept no longer",
    ),
    "kind": ("string", "type of its JSON-LD or Open Graph"),
    "canonical": ("string", "address that the page names as its own"),
    "text": ("string", "main text, plain"),
    "markdown": ("string", "main text with headings, lists and emphasis"),
    "words": ("int64", "words of the text, as spaces part them"),
    "hash": ("string", "SHA-256 of the text in UTF-8"),
    "extractor": ("string", "what found the text"),
    "duplicates": ("list<string>", "addresses of pages that say the same, or nearly"),
    "chunks": (
        "list<chunk>",
        "parts of the text: its characters (code points) from start up to end",
    ),
}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class ExportOptions:
    """Which pages are taken home.

    Attributes
    ----------
    min_relevance : R at least
    languages : codes of ISO 639-1; empty: all
    extractor : one of `focuscrawl.text.EXTRACTORS`
    near_duplicates : False: of pages that say nearly the same one stands for all
    """

    min_relevance: float = 0.5
    languages: tuple[str, ...] = ()
    extractor: str = EXTRACTORS[0]
    near_duplicates: bool = False


@dataclass
class ExportedPage:
    """One page that is taken home; see docs/how-to/export.md.

    Attributes
    ----------
    duplicates : URLs of pages that say the same, as the crawl found, or nearly the same
    robots : what it asks of robots, see `focuscrawl.collection.origin`; None: it is not kept
    """

    seq: int
    url: str
    fetched_at: datetime
    relevance: float
    topic: str
    title: str
    content: PageText
    hash: str
    duplicates: list[str] = field(default_factory=list)
    robots: list[str] | None = field(default_factory=list)


@dataclass
class Collection:
    """What is taken home of a crawl.

    Attributes
    ----------
    identity : of the crawl, see `focuscrawl.store.CrawlStore.identity`
    wanted : which pages were to be taken
    pages : in the order fetched
    skipped : how many pages were not taken, by why
    fetched : pages of the crawl that are relevant enough
    webs : that hold the pages as they came, in the order to look for one
    origin : what else its crawl has kept
    """

    identity: dict[str, str]
    wanted: ExportOptions
    pages: list[ExportedPage]
    skipped: Counter[str]
    fetched: int
    webs: Sequence[Web] = ()
    origin: Origin = field(default_factory=Origin)


def collect(
    store: CrawlStore,
    folder: Path,
    wanted: ExportOptions,
    *,
    web: str | None = None,
    processes: int = 2,
    progress: Progress = SILENT,
    critic_progress: Progress = SILENT,
) -> Collection:
    """Read the relevant pages of a crawl again, and take their text.

    Texts are kept in the crawl's folder (`TextStore`), so that another export, by other filters,
    reads no page twice. Of pages that say nearly the same (`MinHashIndex`) the most relevant one
    stands for all.

    Parameters
    ----------
    web : recording of pages that the crawl has not kept itself
    critic_progress : told of the examples that the critic is measured by

    Raises
    ------
    UserError
        The pages are nowhere, or what extracts texts is not installed.
    """
    identity = store.identity()
    rows = [*store.rows(_PAGES, (_DIGEST, wanted.min_relevance))]
    skipped: Counter[str] = Counter()
    progress.start(len(rows))
    pages = []
    webs = _webs(identity, folder, web)
    for row, text in _texts(rows, webs, folder, wanted, processes):
        progress.advance()
        if isinstance(text, str):
            skipped[text] += 1
        else:
            pages.append(_collected(row, text))
    pages = _in_languages(pages, wanted.languages, skipped)
    pages = _without_boilerplate(pages, skipped)
    repeated = _repeated(store)
    for page in pages:
        page.duplicates = repeated.get(page.url, [])
    if not wanted.near_duplicates:
        pages = _once(pages, skipped)
    for page in pages:
        answer = find_answer(webs, page.url)
        page.robots = None if answer is None else read_robots_signals(answer)
    origin = Origin.of(store, folder, webs, critic_progress)
    return Collection(identity, wanted, pages, skipped, len(rows), webs, origin)


def _webs(identity: dict[str, str], folder: Path, named: str | None) -> Sequence[Web]:
    """Return the webs to look for pages in; none if the crawl has kept nothing but texts."""
    try:
        return open_page_webs(identity, folder, [] if named is None else [open_web(named)])
    except UserError:
        if named is not None or not (folder / FILE).exists():
            raise
        return []


_PAGES = """
SELECT p.seq, u.url, p.fetched_at, p.relevance, p.topic, p.title, substr(p.digest, 1, ?) AS digest
FROM page p JOIN url u ON u.id = p.url
WHERE p.relevance >= ? AND p.duplicate_of IS NULL AND p.digest IS NOT NULL ORDER BY p.seq
"""


def _repeated(store: CrawlStore) -> dict[str, list[str]]:
    """Return the URLs that the crawl took for duplicates of each page, in the order fetched."""
    rows = store.rows(
        "SELECT u.url, first.url FROM page p JOIN url u ON u.id = p.url "
        "JOIN url first ON first.id = p.duplicate_of ORDER BY p.seq"
    )
    found: dict[str, list[str]] = defaultdict(list)
    for url, first in rows:
        found[first].append(url)
    return found


def _texts(
    rows: Sequence[sqlite3.Row],
    webs: Sequence[Web],
    folder: Path,
    wanted: ExportOptions,
    processes: int,
) -> Iterator[tuple[sqlite3.Row, PageText | str]]:
    """Yield each page with its text, or with why there is none."""
    with (
        TextStore(folder) as texts,
        ExtractorPool(wanted.extractor, processes) as extractor,
    ):
        asked: list[tuple[sqlite3.Row, RawPage]] = []

        def extracted() -> Iterator[tuple[sqlite3.Row, PageText | str]]:
            found = extractor.extract(page for _, page in asked)
            for (row, _), text in zip(asked, found, strict=True):
                texts.put(row["digest"], wanted.extractor, text)
                yield row, text if text is not None else "too hard to read"
            asked.clear()

        for row in rows:
            try:
                text = texts.get(row["digest"], wanted.extractor)
            except KeyError:
                page = _read(webs, row["url"], row["digest"])
                if page is None:
                    yield row, "not kept, or changed since"
                    continue
                asked.append((row, page))
                if len(asked) >= _AT_A_TIME:
                    yield from extracted()
            else:
                yield row, text if text is not None else "too hard to read"
        yield from extracted()


def _read(webs: Sequence[Web], url: str, digest: bytes) -> RawPage | None:
    for web in webs:
        (known,) = web.resolve([url])
        answer = None if known is None else web.fetch(known)
        if answer is None or blake2b(answer.body, digest_size=_DIGEST).digest() != digest:
            continue
        page = HtmlAnswer.of(answer, url)
        if page is not None:
            return RawPage(url, page.body, page.encoding)
        if 200 <= answer.status < 300 and not answer.too_large and is_pdf(answer.body):
            return RawPage(url, answer.body, None, pdf=True)
    return None


def _collected(row: sqlite3.Row, text: PageText) -> ExportedPage:
    fetched = datetime.fromisoformat(row["fetched_at"])
    text = text.map(strip_controls)
    return ExportedPage(
        seq=row["seq"],
        url=row["url"],
        fetched_at=fetched if fetched.tzinfo else fetched.replace(tzinfo=UTC),
        relevance=row["relevance"],
        topic=row["topic"] or "",
        title=row["title"] or text.title,
        content=text,
        hash=sha256(text.text.encode("utf-8", "surrogatepass")).hexdigest(),
    )


def _in_languages(
    pages: list[ExportedPage], languages: Sequence[str], skipped: Counter[str]
) -> list[ExportedPage]:
    if not languages:
        return pages
    wanted = {primary(code) for code in languages}
    kept = [page for page in pages if page.content.language in wanted]
    if len(kept) < len(pages):
        skipped["in other languages, or nobody knows"] = len(pages) - len(kept)
    return kept


def _without_boilerplate(pages: list[ExportedPage], skipped: Counter[str]) -> list[ExportedPage]:
    """Leave out pages that say nothing but what many pages of their host say, line by line."""
    hosts: dict[str, Counter[str]] = defaultdict(Counter)
    number: Counter[str] = Counter()
    for page in pages:
        name = host(page.url)
        number[name] += 1
        hosts[name].update(set(_lines(page)))
    kept = []
    for page in pages:
        name = host(page.url)
        most = max(_TEMPLATE, _SHARE * number[name])
        own = (line for line in _lines(page) if hosts[name][line] < most)
        if sum(len(line.split()) for line in own) >= _FEW:
            kept.append(page)
    if len(kept) < len(pages):
        skipped["nothing but boilerplate"] = len(pages) - len(kept)
    return kept


def _lines(page: ExportedPage) -> list[str]:
    return [line for each in page.content.text.splitlines() if (line := each.strip())]


def _once(pages: list[ExportedPage], skipped: Counter[str]) -> list[ExportedPage]:
    """Keep, of pages that say nearly the same, the most relevant one, which names the others."""
    index = MinHashIndex()
    by_seq = {page.seq: page for page in pages}
    same: dict[str, int] = {}  # by the hash of the text
    kept = []
    for page in sorted(pages, key=lambda each: (-each.relevance, each.seq)):
        first = same.setdefault(page.hash, page.seq)
        if first == page.seq:
            words, _ = tokenize([page.content.text])
            data = sketch(PageWords(words))
            near = None if data is None else index.find_or_add(page.seq, data)
            first = page.seq if near is None else near[0]
            same[page.hash] = first
        if first == page.seq:
            kept.append(page)
        else:
            by_seq[first].duplicates += [page.url, *page.duplicates]
    if len(kept) < len(pages):
        skipped["say nearly the same as another"] = len(pages) - len(kept)
    return sorted(kept, key=lambda each: each.seq)


class Chunk(NamedTuple):
    """A part of a text, from one character up to another."""

    start: int
    end: int


def to_row(page: ExportedPage, chunk: int = 0) -> dict[str, Any]:
    """Return a page as a row.

    Parameters
    ----------
    chunk : characters of a chunk at most; 0: no chunks
    """
    of = page.content
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
    return {**row, "chunks": split_into_chunks(row["text"], chunk) if chunk else []}


def _plain(text: str) -> str:
    return _SURROGATE.sub("\ufffd", strip_controls(text))


def split_into_chunks(text: str, most: int) -> list[Chunk]:
    """Split a text at sentences and paragraphs, for retrieval.

    Parameters
    ----------
    most : characters of a chunk
    """
    with needs("text", "chunks of text"):
        from semantic_text_splitter import TextSplitter  # noqa: PLC0415
    found = TextSplitter(most).chunk_indices(text)
    return [Chunk(start, start + len(part)) for start, part in found]
