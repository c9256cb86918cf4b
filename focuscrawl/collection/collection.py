"""Select the pages to export from a crawl, and extract their texts (`focuscrawl collect`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.collection.origin import Origin, find_answer, read_robots_signals
from focuscrawl.completeness.recall_estimate import TargetCounts
from focuscrawl.crawl.duplicates import MinHashIndex, sketch
from focuscrawl.crawl.page_source import open_page_webs
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import host, schemeless
from focuscrawl.foundation.user_input import NO_PROGRESS, Progress
from focuscrawl.page.documents import is_pdf
from focuscrawl.page.metadata import primary_subtag
from focuscrawl.page.words import PageWords, count_words, tokenize
from focuscrawl.report.plain_text import strip_controls
from focuscrawl.text import EXTRACTORS, ExtractorPool, PageText
from focuscrawl.text.extraction import RawPage
from focuscrawl.text.text_store import FILE, TextStore
from focuscrawl.webs import open_web
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


_DIGEST = 16  # bytes of a page's digest in the store
_MIN_WORDS = 10  # shorter texts count as boilerplate
# a line is boilerplate if at least 5 pages and a fifth of the pages of its host have the line
_BOILERPLATE_PAGES, _BOILERPLATE_SHARE = 5, 0.2
_FEW_PAGES, _MOST_OF_A_HOST = 10, 0.8  # pages, and share of pages, of a warning about hosts
_BATCH = 50  # pages read before their texts are extracted
_PAGES_PER_PROCESS = 200  # with fewer pages, starting another process takes longer than extracting

NOT_RECORDED = "not recorded, or changed since the fetch"
_UNREADABLE = "no text could be extracted"

#: column: Arrow type, and description for readers who have only the exported files
COLUMNS = {
    "url": ("string", "URL of the page"),
    "seq": ("int64", "number of the fetch in the crawl"),
    "fetched_at": ("timestamp", "time of the fetch, UTC"),
    "relevance": ("float64", "probability, given by the critic, that the page is on the topic"),
    "topic": ("string", "the critic's most probable class of the topic"),
    "verdict": ("string", "good or bad, as a person judged the page; empty: not judged"),
    "language": (
        "string",
        "ISO 639-1 code, detected from the text or else declared by the page; empty: unknown",
    ),
    "language_confidence": (
        "float64",
        "probability of the detected language; 0: the language is only declared by the page",
    ),
    "title": ("string", "title declared by the page"),
    "description": ("string", "description declared by the page"),
    "author": ("string", "author declared by the page"),
    "date": ("date", "date of publication or change declared by the page"),
    "license": (
        "string",
        "licence that the page links to; empty: the page names none and gives no permission",
    ),
    "robots": (
        "string",
        "directives of the page for robots and text mining; unknown: response not recorded",
    ),
    "kind": ("string", "type of the page by its JSON-LD or Open Graph"),
    "canonical": ("string", "canonical URL declared by the page"),
    "text": (
        "string",
        "main text, plain; in CSV with an apostrophe in front if a spreadsheet would compute it",
    ),
    "markdown": ("string", "main text with headings, lists and emphasis"),
    "words": (
        "int64",
        "number of words of the text, split at white space; estimated for scripts without spaces",
    ),
    "hash": ("string", "SHA-256 of the text in UTF-8, as in Parquet and JSON lines"),
    "extractor": ("string", "method that extracted the text"),
    "duplicates": ("list<string>", "URLs of pages with the same or nearly the same text"),
    "chunks": (
        "list<chunk>",
        "parts of the text as in Parquet and JSON lines: offsets of their first character (code "
        "point) and of their end",
    ),
}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class ExportOptions:
    """Options that select the pages of an export and extract their texts.

    Unless `near_duplicates` is set, only the most relevant page of a group of near-duplicates is
    exported.
    """

    min_relevance: float = 0.5
    languages: tuple[str, ...] = ()  # ISO 639-1 codes; empty: all languages
    extractor: str = EXTRACTORS[0]
    near_duplicates: bool = False


@dataclass
class ExportedPage:
    """A page of an export; docs/how-to/export.md describes the columns.

    Attributes
    ----------
    duplicates : list[str]
        URLs of pages with the same or nearly the same content.
    robots : list[str] | None
        Robots and text-mining directives (`read_robots_signals`); None: no recorded response.
    verdict : str
        ``good`` or ``bad``, as a person judged the page; empty: not judged.
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
    verdict: str = ""


@dataclass
class Collection:
    """The pages to export from a crawl, and their provenance.

    Attributes
    ----------
    skipped : Counter[str]
        Number of skipped pages by reason.
    fetched : int
        Number of the crawl's pages with enough relevance.
    webs : Sequence[Web]
        Webs with the recorded responses, searched in this order.
    """

    identity: dict[str, str]
    options: ExportOptions
    pages: list[ExportedPage]
    skipped: Counter[str]
    fetched: int
    webs: Sequence[Web] = ()
    origin: Origin = field(default_factory=Origin)

    def host_warning(self) -> str | None:
        """Return a sentence if more than 80 % of the pages are on one host, otherwise None."""
        if len(self.pages) < _FEW_PAGES:
            return None
        (name, count), *_ = Counter(host(page.url) for page in self.pages).most_common(1)
        if count <= _MOST_OF_A_HOST * len(self.pages):
            return None
        return f"{count:,} of {len(self.pages):,} pages are on the host {name}"

    def count_targets(self) -> TargetCounts | None:
        """Count the target pages of the crawl that are exported; None without target pages."""
        targets = self.origin.targets
        if not targets:
            return None
        urls = {schemeless(url) for page in self.pages for url in (page.url, *page.duplicates)}
        found = sum(schemeless(url) in urls for url in targets)
        return TargetCounts(len(targets), found, found)


def collect(
    store: CrawlStore,
    folder: Path,
    options: ExportOptions,
    *,
    web: str | None = None,
    processes: int = 2,
    progress: Progress = NO_PROGRESS,
    critic_progress: Progress = NO_PROGRESS,
) -> Collection:
    """Select the relevant pages of a crawl and extract their texts.

    Extracted texts are cached in the crawl's folder (`TextStore`), so another export of the same
    crawl extracts no text again. Only the most relevant page of each group of near-duplicates
    (`MinHashIndex`) is exported.

    Parameters
    ----------
    web : str | None
        Recorded web with pages that the crawl did not record.
    critic_progress : Progress
        Receives the progress of measuring the critic's quality.

    Raises
    ------
    UserError
        The pages are not recorded, or the text extractor is not installed.
    """
    identity = store.identity()
    rows = [*store.rows(_PAGES, (_DIGEST, options.min_relevance))]
    skipped: Counter[str] = Counter()
    progress.start(len(rows))
    pages = []
    webs = _open_webs(identity, folder, web)
    for row, text in _extract_texts(rows, webs, folder, options, processes):
        progress.advance()
        if isinstance(text, str):
            skipped[text] += 1
        else:
            pages.append(_exported_page(row, text))
    pages = _filter_languages(pages, options.languages, skipped)
    pages = _drop_boilerplate(pages, skipped)
    duplicates = _recorded_duplicates(store)
    for page in pages:
        page.duplicates = duplicates.get(page.url, [])
    if not options.near_duplicates:
        pages = _drop_near_duplicates(pages, skipped)
    origin = Origin.of(store, folder, webs, critic_progress)
    for page in pages:
        answer = find_answer(webs, page.url)
        page.robots = None if answer is None else read_robots_signals(answer)
        page.verdict = origin.verdicts.get(page.url, "")
    return Collection(identity, options, pages, skipped, len(rows), webs, origin)


def _open_webs(identity: dict[str, str], folder: Path, named: str | None) -> Sequence[Web]:
    """Open the webs with the pages; return none if the crawl has only cached texts."""
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


def _recorded_duplicates(store: CrawlStore) -> dict[str, list[str]]:
    """Return the URLs of the duplicates that the crawl found of each page, in fetch order."""
    rows = store.rows(
        "SELECT u.url, first.url FROM page p JOIN url u ON u.id = p.url "
        "JOIN url first ON first.id = p.duplicate_of ORDER BY p.seq"
    )
    found: dict[str, list[str]] = defaultdict(list)
    for url, first in rows:
        found[first].append(url)
    return found


def _extract_texts(
    rows: Sequence[sqlite3.Row],
    webs: Sequence[Web],
    folder: Path,
    options: ExportOptions,
    processes: int,
) -> Iterator[tuple[sqlite3.Row, PageText | str]]:
    """Yield each page with its text, or with the reason for a missing text."""
    most = min(processes, 1 + len(rows) // _PAGES_PER_PROCESS)
    with TextStore(folder) as texts, ExtractorPool(options.extractor, most) as extractor:
        batch: list[tuple[sqlite3.Row, RawPage]] = []

        def extract_batch() -> Iterator[tuple[sqlite3.Row, PageText | str]]:
            found = extractor.extract(page for _, page in batch)
            for (row, _), text in zip(batch, found, strict=True):
                texts.put(row["digest"], options.extractor, text)
                yield row, text if text is not None else _UNREADABLE
            batch.clear()

        for row in rows:
            try:
                text = texts.get(row["digest"], options.extractor)
            except KeyError:
                page = _read_page(webs, row["url"], row["digest"])
                if page is None:
                    yield row, NOT_RECORDED
                    continue
                batch.append((row, page))
                if len(batch) >= _BATCH:
                    yield from extract_batch()
            else:
                yield row, text if text is not None else _UNREADABLE
        yield from extract_batch()


def _read_page(webs: Sequence[Web], url: str, digest: bytes) -> RawPage | None:
    for web in webs:
        (known,) = web.resolve([url])
        answer = None if known is None else web.fetch(known)
        if answer is None or blake2b(answer.body, digest_size=_DIGEST).digest() != digest:
            continue
        page = HtmlAnswer.from_answer(answer, url)
        if page is not None:
            return RawPage(url, page.body, page.encoding)
        if 200 <= answer.status < 300 and not answer.too_large and is_pdf(answer.body):
            return RawPage(url, answer.body, None, pdf=True)
    return None


def _exported_page(row: sqlite3.Row, text: PageText) -> ExportedPage:
    fetched = datetime.fromisoformat(row["fetched_at"])
    text = text.map(_sanitize)
    return ExportedPage(
        seq=row["seq"],
        url=row["url"],
        fetched_at=fetched if fetched.tzinfo else fetched.replace(tzinfo=UTC),
        relevance=row["relevance"],
        topic=row["topic"] or "",
        title=row["title"] or text.title,
        content=text,
        hash=sha256(text.text.encode()).hexdigest(),
    )


def _filter_languages(
    pages: list[ExportedPage], languages: Sequence[str], skipped: Counter[str]
) -> list[ExportedPage]:
    if not languages:
        return pages
    wanted = {primary_subtag(code) for code in languages}
    kept = [page for page in pages if page.content.language in wanted]
    if len(kept) < len(pages):
        skipped["other or unknown language"] = len(pages) - len(kept)
    return kept


def _drop_boilerplate(pages: list[ExportedPage], skipped: Counter[str]) -> list[ExportedPage]:
    """Drop pages whose lines nearly all occur on many pages of the host."""
    line_counts: dict[str, Counter[str]] = defaultdict(Counter)
    n_pages: Counter[str] = Counter()
    for page in pages:
        name = host(page.url)
        n_pages[name] += 1
        line_counts[name].update(set(_lines(page)))
    kept = []
    for page in pages:
        name = host(page.url)
        limit = max(_BOILERPLATE_PAGES, _BOILERPLATE_SHARE * n_pages[name])
        own = (line for line in _lines(page) if line_counts[name][line] < limit)
        if sum(map(count_words, own)) >= _MIN_WORDS:
            kept.append(page)
    if len(kept) < len(pages):
        skipped["only boilerplate"] = len(pages) - len(kept)
    return kept


def _lines(page: ExportedPage) -> list[str]:
    return [line for each in page.content.text.splitlines() if (line := each.strip())]


def _drop_near_duplicates(pages: list[ExportedPage], skipped: Counter[str]) -> list[ExportedPage]:
    """Keep the most relevant page of each group of near-duplicates, with the others' URLs."""
    index = MinHashIndex()
    by_seq = {page.seq: page for page in pages}
    first_seq: dict[str, int] = {}  # by the hash of the text
    kept = []
    for page in sorted(pages, key=lambda each: (-each.relevance, each.seq)):
        first = first_seq.setdefault(page.hash, page.seq)
        if first == page.seq:
            words, _ = tokenize([page.content.text])
            data = sketch(PageWords(words))
            near = None if data is None else index.find_or_add(page.seq, data)
            first = page.seq if near is None else near[0]
            first_seq[page.hash] = first
        if first == page.seq:
            kept.append(page)
        else:
            by_seq[first].duplicates += [page.url, *page.duplicates]
    if len(kept) < len(pages):
        skipped["near-duplicate of another page"] = len(pages) - len(kept)
    return sorted(kept, key=lambda each: each.seq)


class Chunk(NamedTuple):
    """A part of a text, given by the offsets at which the part starts and ends."""

    start: int
    end: int


def to_row(page: ExportedPage, chunk: int = 0) -> dict[str, Any]:
    """Return a page, or a `chunk` of its text, as a row with the columns `COLUMNS`."""
    content = page.content
    row: dict[str, Any] = {
        "url": page.url,
        "seq": page.seq,
        "fetched_at": page.fetched_at,
        "relevance": page.relevance,
        "topic": page.topic,
        "verdict": page.verdict,
        "language": content.language,
        "language_confidence": content.confidence,
        "title": page.title,
        "description": content.description,
        "author": content.author,
        "date": content.date,
        "license": content.license,
        "robots": "unknown" if page.robots is None else ", ".join(page.robots),
        "kind": content.kind,
        "canonical": content.canonical,
        "text": content.text,
        "markdown": content.markdown,
        "words": round(count_words(content.text)),
        "hash": page.hash,
        "extractor": content.extractor,
        "duplicates": list(map(_sanitize, page.duplicates)),
    }
    row = {k: _sanitize(v) if isinstance(v, str) else v for k, v in row.items()}
    return {**row, "chunks": split_into_chunks(row["text"], chunk) if chunk else []}


def _sanitize(text: str) -> str:
    return _SURROGATE.sub("\ufffd", strip_controls(text))


def split_into_chunks(text: str, most: int) -> list[Chunk]:
    """Split a text at sentences and paragraphs into chunks of up to `most` characters."""
    with require_extra("text", "chunks of text"):
        from semantic_text_splitter import TextSplitter  # noqa: PLC0415
    found = TextSplitter(most).chunk_indices(text)
    return [Chunk(start, start + len(part)) for start, part in found]
