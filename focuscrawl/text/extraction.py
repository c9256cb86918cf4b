"""The main text of a page and its metadata, extracted in a process that can be killed."""

from __future__ import annotations

import json
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urljoin

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.extras import needs
from focuscrawl.page.documents import PDF
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import tell
from focuscrawl.page.parser_process import Server, serve_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


EXTRACTORS = ("trafilatura", "resiliparse")
VISIBLE = "visible text"  #: extractor of a text where these found nothing
PYPDF = "pypdf"  #: extractor of the texts of PDF

LONGEST_EXTRACTION = 20.0  #: seconds of processor time for a page
MEMORY = 2 << 30  #: bytes that a process may have
_MOST_PAGES = 500  # pages; after so many a new process starts, with little memory
_AHEAD = 4  # pages under way or waiting, for each process
_WARMING = b"<p>" + b"What a library loads first is no work of the first page. " * 5

LONGEST_TEXT = 1_000_000  #: characters of a text; what is longer is cut
_MOST = 4_000_000  # bytes, as UTF-8, of a page that are looked at
_FIELD = 1_000  # characters of a field of metadata
_FEW = 10  # words: less is no text
_LICENSE = "a[rel~=license], link[rel~=license]"


@dataclass(frozen=True)
class PageText:
    """What is taken home of a page.

    Attributes
    ----------
    text, markdown : main text without and with headings, lists and emphasis; empty: none found
    title, description, author : as the page declares; empty: it does not
    date : it was published, or changed; None: unknown
    language : code of ISO 639-1 by the words of `text`, else as the page declares; empty: unknown
    confidence : probability of the language by the words; 0 if only the page declares it
    canonical : URL that it names as its own; empty: none
    license : URL or name of a licence that it links to as such; empty: none
    kind : type of its JSON-LD or Open Graph, as Article; empty: none
    extractor : library that found the text, or `VISIBLE`
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
        """Return the text of which these are the fields, as in JSON."""
        published = fields["date"]
        return cls(**fields | {"date": published and date.fromisoformat(published)})

    def map(self, change: Callable[[str], str]) -> PageText:
        """Return the same with every text changed."""
        texts: dict[str, Any] = {
            name: change(value) for name, value in vars(self).items() if isinstance(value, str)
        }
        return replace(self, **texts)


def extract_text(
    body: bytes, url: str, *, encoding: str | None = None, extractor: str = EXTRACTORS[0]
) -> PageText:
    """Take the main text out of an HTML page.

    Where the library finds nothing, which is no proof that there is nothing, all visible text of
    the page is taken.

    Parameters
    ----------
    body, url, encoding : of the page; the encoding as ``Content-Type`` has it
    extractor : one of `EXTRACTORS`; metadata is read by trafilatura either way

    Raises
    ------
    UserError
        The libraries are not installed.
    """
    with needs("text", "taking text home"):
        import lxml_html_clean  # noqa: F401, PLC0415 - in vain without it, see pyproject.toml
        from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415
        from resiliparse.parse.html import HTMLTree  # noqa: PLC0415
        from trafilatura import bare_extraction  # noqa: PLC0415
        from trafilatura.metadata import extract_metadata  # noqa: PLC0415
        from trafilatura.xml import xmltotxt  # noqa: PLC0415
    html = to_utf8(body, encoding, _MOST)[0].decode()
    text = markdown = ""
    found: Any = None
    if extractor == "trafilatura":
        found = bare_extraction(
            html,
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
            text = xmltotxt(found.body, include_formatting=False)
    if found is None:
        found = extract_metadata(html, default_url=url)
        if extractor == "resiliparse":
            text = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
            markdown = extract_plain_text(html, main_content=True, alt_texts=False)
    used = extractor
    if len(text.split()) < _FEW:
        visible = extract_plain_text(html, main_content=False, alt_texts=False)
        if len(visible.split()) > len(text.split()):
            text, markdown, used = visible, visible, VISIBLE
    text, markdown = text[:LONGEST_TEXT].strip(), markdown[:LONGEST_TEXT].strip()
    tree = HTMLTree.parse(html)
    root = tree.document.query_selector("html") if tree.document is not None else None
    declared = "" if root is None else root.getattr("lang") or ""
    language, confidence = tell(text, declared)
    return PageText(
        text=text,
        markdown=markdown,
        title=_field(found.title),
        description=_field(found.description),
        author=_field(found.author),
        date=_date(found.date),
        language=language,
        confidence=round(confidence, 4),
        canonical=_resolved(_attribute(tree, "link[rel=canonical]", "href"), url),
        license=_resolved(_attribute(tree, _LICENSE, "href") or _field(found.license), url),
        kind=_kind(tree) or _field(found.pagetype),
        extractor=used,
    )


def _field(value: object) -> str:
    return " ".join(value.split())[:_FIELD] if isinstance(value, str) else ""


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _resolved(reference: str, url: str) -> str:
    """Return where a reference from the root or of another host leads; others as they are."""
    if not reference.startswith("/"):
        return reference
    try:
        return urljoin(url, reference)[:_FIELD]
    except ValueError:
        return ""


def _attribute(tree: Any, selector: str, name: str) -> str:
    element = tree.document.query_selector(selector)
    return "" if element is None else _field(element.getattr(name))


def _kind(tree: Any) -> str:
    for script in tree.document.query_selector_all('script[type="application/ld+json"]'):
        try:
            found = json.loads(script.text[:_MOST])
        except (ValueError, RecursionError):
            continue
        for each in _types(found):
            return _field(each)
    return _attribute(tree, 'meta[property="og:type"]', "content")


def _types(found: object) -> Iterator[str]:
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict):
        kind = found.get("@type")
        if isinstance(kind, list):
            kind = kind[0] if kind else None
        if isinstance(kind, str):
            yield kind
        elif isinstance(found.get("@graph"), list):
            yield from _types(found["@graph"][:1])


def extract_pdf(body: bytes, url: str) -> PageText:
    """Take the text out of a PDF, its pages as paragraphs.

    Raises
    ------
    UnreadableError
        It is damaged, or locked with a password.
    UserError
        The library is not installed.
    """
    with needs("pdf", "taking the text of PDF home"):
        from focuscrawl.page.documents import pdf_text  # noqa: PLC0415
    found = pdf_text(body, url)
    text = "\n\n".join(filter(None, map(str.strip, found.pages)))[:LONGEST_TEXT]
    language, confidence = tell(text, "")
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
    """A page as it came: HTML, with the encoding that its Content-Type has, or PDF."""

    url: str
    body: bytes
    encoding: str | None
    pdf: bool = False


class ExtractorPool:
    """Extracts texts of many pages at once; see `extract_text`.

    Parameters
    ----------
    extractor : one of `EXTRACTORS`
    processes : how many
    longest : seconds of processor time for a page
    memory : bytes that a process may have
    niceness : lower priority of the processes, see nice(1)
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
        self._ahead = _AHEAD * processes
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start a process, which is done with the first page otherwise; errors as `extract`."""
        with self._worker() as worker:
            worker.start()

    def extract(self, pages: Iterable[RawPage]) -> Iterator[PageText | None]:
        """Yield the texts of pages in their order; None: it took too long, or too much memory.

        Raises
        ------
        UserError
            What extracts texts is not installed.
        WorkerError
            A process cannot start, or lacks something that pages need.
        """
        waiting = []
        for page in pages:
            waiting.append(self._threads.submit(self.extract_page, page))
            if len(waiting) >= self._ahead:
                yield waiting.pop(0).result()
        for each in waiting:
            yield each.result()

    def extract_page(self, page: RawPage) -> PageText | None:
        """Return the text of a page, when a process has time for it; see `extract`.

        Any thread may ask. None, too, if this is closed meanwhile.
        """
        with self._worker() as worker:
            try:
                return None if self._closed else worker.extract(page)
            except WorkerError:
                if self._closed:  # then it was killed
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
        """Kill the processes, whatever they are doing."""
        self._closed = True
        for worker in self._workers:
            worker.kill()
        idle = [self._idle.get() for _ in self._workers]  # no thread is at one any more
        for worker in idle:
            worker.end()
            self._idle.put(worker)
        self._threads.shutdown(cancel_futures=True)


class _Worker(Server):
    def __init__(self, extractor: str, limits: str) -> None:
        super().__init__("focuscrawl.text.extraction", limits, _MOST_PAGES)
        self._extractor = extractor

    def extract(self, page: RawPage) -> PageText | None:
        asked = {"url": page.url, "pdf": page.pdf}
        if not page.pdf:
            asked |= {"encoding": page.encoding, "extractor": self._extractor}
        try:
            answer = json.loads(self.ask(asked, page.body).readline())
        except (OSError, ValueError):  # it has ended
            self.end()
            return None
        if "refused" in answer:
            raise UserError(answer["refused"])
        if "lacking" in answer:
            raise WorkerError(f"no text can be taken: {answer['lacking']}")
        return None if answer["text"] is None else PageText.of(answer["text"])


def serve(*, longest: float, memory: int, niceness: int) -> None:
    """Extract texts of pages from standard input; see `ExtractorPool`."""
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    serve_pages(_answer, longest, _warm_up)


def _warm_up() -> str:
    """Load the libraries; return what the user has to install, or an empty text."""
    try:
        extract_text(_WARMING, "http://a.example/")
    except UserError as error:
        return str(error)
    return ""


def _answer(page: dict[str, Any], body: bytes) -> list[bytes]:
    answer: dict[str, Any] = {"text": None}
    try:
        extract = extract_pdf if page.pop("pdf") else extract_text
        answer["text"] = asdict(extract(body, **page))
    except UserError as error:
        answer = {"refused": str(error)}
    except ImportError as error:  # no page's fault, whichever it came up with
        answer = {"lacking": f"{type(error).__name__}: {error}"}
    except Exception:  # a page that no library can read is a page without text
        answer = {"text": None}
    return [json.dumps(answer, default=str).encode() + b"\n"]
