"""Extracts the main text, its tables and the metadata of pages in child processes with limits."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin

from parsel import Selector

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.page.documents import PDF
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import detect_language
from focuscrawl.page.parser_process import WorkerProcess, serve_requests
from focuscrawl.page.words import count_words

EXTRACTORS = ("trafilatura", "resiliparse")
VISIBLE = "visible text"  #: extractor name of a text that no library found
PYPDF = "pypdf"  #: extractor name of the text of a PDF file

LONGEST_EXTRACTION = 20.0  #: seconds of processor time for a page
MEMORY = 2 << 30  #: bytes of memory for a child process
# a new child process then frees the memory, which grows by some MB for each 1,000 pages
_PAGES_PER_PROCESS = 5_000
_PENDING_PER_PROCESS = 4  # pages submitted at once, for each process
_WARM_UP_PAGE = b"<p>" + b"The libraries load before the first page, not with the first page. " * 5

LONGEST_TEXT = 1_000_000  #: characters of a text; longer texts are cut
_LARGEST_PAGE = 4_000_000  # bytes of UTF-8; the rest of a page is ignored
_LONGEST_FIELD = 1_000  # characters of a field of metadata
_MIN_WORDS = 10  # a shorter main text is replaced by all visible text
_LICENSE = "a[rel~=license], link[rel~=license]"


@dataclass(frozen=True)
class PageText:
    """Main text and metadata of a page; fields without a value are empty or None.

    The constant `focuscrawl.collection.collection.COLUMNS` describes the fields. The field
    `extractor` names the library that found the text, or is `VISIBLE` if no library found a text.
    """

    text: str
    markdown: str
    title: str
    description: str
    author: str
    date: date | None
    language: str
    confidence: float
    canonical: str
    license: str
    kind: str
    extractor: str

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Create a `PageText` from fields that were read from JSON."""
        published = fields["date"]
        return cls(**fields | {"date": published and date.fromisoformat(published)})

    def map(self, change: Callable[[str], str]) -> PageText:
        """Return a copy of the `PageText` with `change` applied to every text field."""
        texts: dict[str, Any] = {
            name: change(value) for name, value in vars(self).items() if isinstance(value, str)
        }
        return replace(self, **texts)


def extract_text(
    body: bytes, url: str, *, encoding: str | None = None, extractor: str = EXTRACTORS[0]
) -> PageText:
    """Extract the main text of an HTML page.

    If the extraction library finds fewer than 10 words, the result is all visible text of the
    page.

    Parameters
    ----------
    encoding : str | None
        Encoding from ``Content-Type``.
    extractor : str
        One of `EXTRACTORS`; trafilatura always reads the metadata.

    Raises
    ------
    UserError
        The libraries are not installed.
    """
    with require_extra("text", "extracting text"):
        import lxml_html_clean  # noqa: F401, PLC0415 - required by trafilatura, see pyproject.toml
        from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415
        from trafilatura import bare_extraction, load_html  # noqa: PLC0415
        from trafilatura.metadata import extract_metadata  # noqa: PLC0415
        from trafilatura.xml import xmltotxt  # noqa: PLC0415
    html = to_utf8(body, encoding, _LARGEST_PAGE)[0].decode()
    tree = load_html(html)
    page = Selector(text=html) if tree is None else Selector(root=tree, type="html")
    declared = _attribute(page, "html", "lang") or _attribute(page, "html", "xml:lang")
    canonical, kind = _attribute(page, "link[rel=canonical]", "href"), _kind(page)
    license_url = _attribute(page, _LICENSE, "href")
    text = markdown = ""
    found: Any = None
    if extractor == "trafilatura":
        if tree is not None:
            unwrap_layout_tables(tree)
        found = bare_extraction(
            html if tree is None else tree,
            url=url,
            favor_recall=True,
            fast=True,
            include_comments=False,
            with_metadata=True,
            include_formatting=True,
            output_format="markdown",
        )
        if found is not None:
            markdown = xmltotxt(found.body, include_formatting=True)
            flatten_tables(found.body, partial(xmltotxt, include_formatting=False))
            text = xmltotxt(found.body, include_formatting=False)
    if found is None:
        found = extract_metadata(html, default_url=url)
        if extractor == "resiliparse":
            text = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
            markdown = extract_plain_text(html, main_content=True, alt_texts=False)
    used = extractor
    if count_words(text) < _MIN_WORDS:
        visible = extract_plain_text(html, main_content=False, alt_texts=False)
        if count_words(visible) > count_words(text):
            text, markdown, used = visible, visible, VISIBLE
    text, markdown = text[:LONGEST_TEXT].strip(), markdown[:LONGEST_TEXT].strip()
    language, confidence = detect_language(text, declared)
    return PageText(
        text=text,
        markdown=markdown,
        title=_clean_field(found.title),
        description=_clean_field(found.description),
        author=_clean_field(found.author),
        date=_parse_date(found.date),
        language=language,
        confidence=round(confidence, 4),
        canonical=_resolve(canonical, url),
        license=_resolve(license_url or _clean_field(found.license), url),
        kind=kind or _clean_field(found.pagetype),
        extractor=used,
    )


def _clean_field(value: object) -> str:
    return " ".join(value.split())[:_LONGEST_FIELD] if isinstance(value, str) else ""


def _parse_date(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _resolve(reference: str, url: str) -> str:
    """Resolve a reference that starts with a slash; return other references unchanged."""
    if not reference.startswith("/"):
        return reference
    try:
        return urljoin(url, reference)[:_LONGEST_FIELD]
    except ValueError:
        return ""


def _attribute(page: Selector, css: str, name: str) -> str:
    """Return an attribute of the first element that a CSS selector matches."""
    return _clean_field(page.css(css).attrib.get(name))


def _kind(page: Selector) -> str:
    for script in page.css('script[type="application/ld+json"]::text').getall():
        try:
            found = json.loads(script)
        except (ValueError, RecursionError):
            continue
        for each in _json_ld_types(found):
            return _clean_field(each)
    return _attribute(page, 'meta[property="og:type"]', "content")


def _json_ld_types(found: object) -> Iterator[str]:
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict):
        kind = found.get("@type")
        if isinstance(kind, list):
            kind = kind[0] if kind else None
        if isinstance(kind, str):
            yield kind
        elif isinstance(found.get("@graph"), list):
            yield from _json_ld_types(found["@graph"][:1])


def extract_pdf(body: bytes, url: str) -> PageText:
    """Return the text of a PDF file, in which each page is a paragraph.

    Raises
    ------
    UnreadableError
        The file is damaged or protected by a password.
    UserError
        The library is not installed.
    """
    with require_extra("pdf", "extracting the text of PDF files"):
        from focuscrawl.page.documents import pdf_text  # noqa: PLC0415
    found = pdf_text(body, url)
    text = "\n\n".join(filter(None, map(str.strip, found.pages)))[:LONGEST_TEXT]
    language, confidence = detect_language(text, "")
    return PageText(
        text=text,
        markdown=text,
        title=found.title,
        description="",
        author=found.author,
        date=found.date,
        language=language,
        confidence=round(confidence, 4),
        canonical="",
        license="",
        kind=PDF,
        extractor=PYPDF,
    )


class RawPage(NamedTuple):
    """An HTML or PDF response from which the text is to be extracted."""

    url: str
    body: bytes
    encoding: str | None
    pdf: bool = False


class ExtractorPool:
    """Extract the texts of many pages in parallel, in child processes.

    Parameters
    ----------
    longest : float
        Seconds of processor time for a page.
    memory : int
        Bytes of memory for a child process.
    niceness : int
        Niceness of the child processes, see nice(1).
    """

    def __init__(
        self,
        extractor: str = EXTRACTORS[0],
        processes: int = 1,
        *,
        longest: float = LONGEST_EXTRACTION,
        memory: int = MEMORY,
        niceness: int = 0,
    ) -> None:
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        limits = f"longest={longest!r}, memory={memory!r}, niceness={niceness!r}"
        self._workers = [_Worker(extractor, limits) for _ in range(processes)]
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(processes, "text")
        self._max_pending = _PENDING_PER_PROCESS * processes
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start a child process now, instead of when the first page is extracted."""
        with self._worker() as worker:
            worker.start()

    def extract(self, pages: Iterable[RawPage]) -> Iterator[PageText | None]:
        """Yield the text of each page; None for unreadable pages and pages over a limit.

        Raises
        ------
        UserError
            The extraction libraries are not installed.
        WorkerError
            A child process cannot start, or a library is incomplete.
        """
        pending = []
        for page in pages:
            pending.append(self._threads.submit(self.extract_page, page))
            if len(pending) >= self._max_pending:
                yield pending.pop(0).result()
        for each in pending:
            yield each.result()

    def extract_page(self, page: RawPage) -> PageText | None:
        """Return the text of one page; None if the page is unreadable or the pool is closed.

        Any thread may call `extract_page`. The call waits for an idle child process.
        """
        with self._worker() as worker:
            try:
                return None if self._closed else worker.extract(page)
            except WorkerError:
                if self._closed:  # `close` killed the process
                    return None
                raise

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """Kill the child processes, and wait for the threads that use the child processes."""
        self._closed = True
        for worker in self._workers:
            worker.kill()
        idle = [self._idle.get() for _ in self._workers]  # wait until no thread uses a worker
        for worker in idle:
            worker.stop()
            self._idle.put(worker)
        self._threads.shutdown(cancel_futures=True)


class _Worker(WorkerProcess):
    def __init__(self, extractor: str, limits: str) -> None:
        super().__init__("focuscrawl.text.extraction", limits, _PAGES_PER_PROCESS)
        self._extractor = extractor

    def extract(self, page: RawPage) -> PageText | None:
        request = {"url": page.url, "pdf": page.pdf}
        if not page.pdf:
            request |= {"encoding": page.encoding, "extractor": self._extractor}
        try:
            answer = json.loads(self.send(request, page.body).readline())
        except (OSError, ValueError):  # the child process has ended
            self.stop()
            return None
        if "user_error" in answer:
            raise UserError(answer["user_error"])
        if "import_error" in answer:
            raise WorkerError(f"text extraction failed to start: {answer['import_error']}")
        return None if answer["text"] is None else PageText.of(answer["text"])


def serve(*, longest: float, memory: int, niceness: int) -> None:
    """Run in a child process, and extract the texts of the pages on standard input."""
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    serve_requests(_extract_for_parent, longest, _warm_up)


def _warm_up() -> str:
    """Load the libraries; return which extra the user must install, or an empty text."""
    try:
        extract_text(_WARM_UP_PAGE, "http://a.example/")
    except UserError as error:
        return str(error)
    return ""


def _extract_for_parent(page: dict[str, Any], body: bytes) -> list[bytes]:
    answer: dict[str, Any] = {"text": None}
    try:
        extract = extract_pdf if page.pop("pdf") else extract_text
        answer["text"] = asdict(extract(body, **page))
    except UserError as error:
        answer = {"user_error": str(error)}
    except ImportError as error:  # a damaged installation, not a damaged page
        answer = {"import_error": f"{type(error).__name__}: {error}"}
    except Exception:  # the libraries fail on some pages, which then have no text
        answer = {"text": None}
    return [json.dumps(answer, default=str).encode() + b"\n"]


# -- tables -----------------------------------------------------------------------------------

_ROW_GROUPS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_OF_DATA = ("caption", "thead", "tfoot")
_BLOCKS = (
    *("p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote"),
    *("article", "section", "form", "hr"),
)
# in a cell of a layout table: data cells often contain one block, and seldom a long text
_MIN_BLOCKS, _MIN_CHARACTERS = 2, 500


def unwrap_layout_tables(tree: Any) -> None:
    """Replace layout tables (tables that only arrange text) in an lxml tree by block elements.

    A table is a layout table if its role is ``presentation``, or if the table has a single row or
    column. A table is also a layout table if a cell contains several blocks, another table or a
    long text. A table with headings or a caption is never a layout table.
    """
    for table in list(tree.iter("table")):
        groups = [table, *(each for each in table if each.tag in _ROW_GROUPS)]
        rows = [each for group in groups for each in group if each.tag == "tr"]
        cells = [[each for each in row if each.tag in _CELLS] for row in rows]
        if _is_layout(table, cells):
            for each in [*groups, *rows]:
                each.tag = "div"
            for each in (cell for row in cells for cell in row):
                each.tag = (
                    "p" if next(each.iterdescendants("table", *_BLOCKS), None) is None else "div"
                )


def _is_layout(table: Any, rows: list[list[Any]]) -> bool:
    if (table.get("role") or "").strip().lower() in {"presentation", "none"}:
        return True
    if any(each.tag in _OF_DATA for each in table):
        return False
    cells = [cell for row in rows for cell in row]
    if any(cell.tag == "th" for cell in cells):
        return False
    return (
        len(rows) <= 1
        or max(map(len, rows)) <= 1
        or any(next(cell.iterdescendants("table"), None) is not None for cell in cells)
        or any(len([*islice(cell.iter(*_BLOCKS), _MIN_BLOCKS)]) == _MIN_BLOCKS for cell in cells)
        or any(sum(map(len, cell.itertext())) >= _MIN_CHARACTERS for cell in cells)
    )


def flatten_tables(body: Any, to_text: Callable[[Any], str]) -> None:
    """Replace Markdown tables in an extracted text by one line per row, with tabs between cells.

    Parameters
    ----------
    body : lxml element
        Main text in the format of trafilatura.
    to_text : callable
        Returns the text of a cell, with the escapes and separators of a Markdown table.
    """
    for table in list(body.iter("table")):
        for row in list(table.iter("row")):
            cells = [_read_cell(to_text(cell)) for cell in row.iter("cell")]
            row.clear()
            row.tag, row.text = "p", "\t".join(cells).rstrip()
        table.tag = "div"


def _read_cell(text: str) -> str:
    plain = text.strip().removeprefix("|").removesuffix("|")
    return " ".join(plain.split()).replace("\\|", "|")
