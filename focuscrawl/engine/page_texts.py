"""Extracts the main text of pages in child processes while the crawl runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from datetime import date
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from focuscrawl.crawl.visit import Visit
from focuscrawl.errors import UserError, WorkerError
from focuscrawl.page.documents import PDF
from focuscrawl.report.plain_text import strip_controls
from focuscrawl.text import ExtractorPool
from focuscrawl.text.extraction import RawPage
from focuscrawl.text.text_store import TextStore

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.text import PageText


logger = logging.getLogger(__name__)

TOO_HARD, NOT_YET = "too hard to read", "not taken yet"
_TEXTS, _NO_TEXTS = "focuscrawl/texts", "focuscrawl/texts_too_hard"  # statistics
_MAX_QUEUED_SIZE = 100_000_000  # bytes of queued pages; beyond, the crawl waits for texts
_NICENESS = 10  # leaves about a tenth of a busy core to the extraction
_LOG_ABOVE = 10  # queued pages at the end of the crawl that are logged
_COPIED = (  # attributes of both `PageText` and `TextVisit`
    *("description", "author", "date", "language"),
    *("canonical", "license", "kind", "extractor"),
)


@dataclass(slots=True, kw_only=True)
class TextVisit(Visit):
    """A recorded fetch with its page's text; with ``FOCUSCRAWL_TEXT``, the Scrapy item of a fetch.

    The fields have the same meaning as the columns of an export (docs/how-to/export.md). The text
    fields are None for pages without text and for pages whose text is not extracted, such as
    off-topic pages.

    Attributes
    ----------
    text_error : str or None
        Reason why the text of a relevant page is missing.
    """

    text: str | None = None
    description: str | None = None
    author: str | None = None
    date: date | None = None
    language: str | None = None
    language_confidence: float | None = None
    canonical: str | None = None
    license: str | None = None
    kind: str | None = None
    hash: str | None = None
    extractor: str | None = None
    text_error: str | None = None

    @classmethod
    def of(
        cls, visit: Visit, found: PageText | str | None = None, *, markdown: bool = False
    ) -> TextVisit:
        """Return the item of a fetch; ``found`` is the text, or the reason why there is none."""
        item = cls(**{each.name: getattr(visit, each.name) for each in fields(Visit)})
        if isinstance(found, str):
            item.text_error = found
        elif found is not None:
            found = found.map(strip_controls)
            item.title = visit.title or found.title
            item.text = found.markdown if markdown else found.text
            item.hash = sha256(found.text.encode("utf-8", "surrogatepass")).hexdigest()
            item.language_confidence = found.confidence
            for name in _COPIED:
                setattr(item, name, getattr(found, name))
        return item


class PageTexts:
    """Extracts the texts of relevant pages in child processes, and stores them (`TextStore`).

    Pages whose text has to be extracted are queued like Scrapy items, so that
    ``SCRAPER_SLOT_MAX_ACTIVE_SIZE`` limits the size of the queue. A crawl stops only after the
    last texts have been extracted. The child processes have a lower priority than the crawl.

    Raises
    ------
    UserError
        Texts cannot be stored in the crawl's folder.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        config = crawl.config
        self._crawler = crawler
        self._crawl = crawl
        self._is_extracting = config.text
        if not self._is_extracting:
            return
        self._extractor_name, self._min_relevance = (
            config.text_extractor,
            config.text_min_relevance,
        )
        self._store = TextStore(self._crawl.folder.path)
        self._extractor = ExtractorPool(
            self._extractor_name, config.text_processes, niceness=_NICENESS
        )
        self._threads = ThreadPool(0, config.text_processes, "texts")
        self._waiting = 0
        self._logged = False
        crawler.signals.connect(self.open, signal=signals.engine_started)
        crawler.signals.connect(self.close, signal=signals.engine_stopped)

    def needs_text(self, visit: PageVisit) -> bool:
        """Tell whether a page's text is extracted by the rules of ``focuscrawl collect``."""
        return (
            self._is_extracting
            and visit.view is not None
            and visit.view.kind in ("", PDF)
            and visit.digest is not None
            and visit.duplicate_id is None
            and not visit.noindex
            and not visit.is_refetch
            and visit.relevance >= self._min_relevance
        )

    async def extract(self, visit: PageVisit) -> PageText | str:
        """Return the text of a fetched page, or the reason why there is no text.

        The parsed page is dropped before the extraction, because a parsed page needs several times
        the memory of the response body.
        """
        from twisted.internet import reactor  # noqa: PLC0415 - it is installed by now

        assert visit.digest is not None
        assert visit.view is not None
        download = visit.download
        page = RawPage(visit.url, download.body, download.encoding, pdf=visit.view.kind == PDF)
        visit.view, visit.link_rows, visit.newly_queued = None, [], []
        self._waiting += 1
        try:
            text = await maybe_deferred_to_future(
                deferToThreadPool(
                    reactor, self._threads, self._extract_or_load, visit.digest, page
                )
            )
        except (UserError, WorkerError) as error:
            if self._is_extracting:
                logger.error(
                    "text extraction stopped: %s; `focuscrawl collect` extracts the other texts",
                    error,
                )
                self._is_extracting = False
            return NOT_YET
        finally:
            self._waiting -= 1
        if text != NOT_YET:
            self._crawler.stats.inc_value(_NO_TEXTS if text == TOO_HARD else _TEXTS)
        if self._crawl.stop_reason is not None and self._waiting > _LOG_ABOVE and not self._logged:
            self._logged = True
            logger.info(
                "the crawl has stopped; extracting the text of %d more pages", self._waiting
            )
        return text

    def open(self) -> None:
        """Start the threads that extract texts; the threads stop when the reactor stops."""
        from twisted.internet import reactor  # noqa: PLC0415 - it is installed by now

        self._threads.start()
        during: Any = ("during", "shutdown")  # its types lack the second
        reactor.addSystemEventTrigger(*during, self.close)

    def cancel(self) -> None:
        """Stop the extraction; ``focuscrawl collect`` can extract the missing texts later."""
        if self._is_extracting:
            self._is_extracting = False
            self._extractor.close()

    def close(self) -> None:
        """Stop the child processes, and close the text store."""
        self.cancel()
        if self._threads.started:
            self._threads.stop()
        self._store.close()

    def _extract_or_load(self, digest: bytes, page: RawPage) -> PageText | str:
        try:
            text = self._store.get(digest, self._extractor_name)
        except KeyError:
            text = self._extractor.extract_page(page) if self._is_extracting else None
            if not self._is_extracting:
                return NOT_YET
            self._store.put(digest, self._extractor_name, text)
        return TOO_HARD if text is None else text


def prepare_texts(config: CrawlConfig, settings: BaseSettings) -> None:
    """If texts are to be extracted, check that this is possible, and allow a longer page queue.

    Raises
    ------
    UserError
        The extractor is not installed.
    WorkerError
        A child process cannot start.
    """
    if not config.text:
        return
    with ExtractorPool(config.text_extractor) as extractor:
        extractor.start()
    settings.set("SCRAPER_SLOT_MAX_ACTIVE_SIZE", _MAX_QUEUED_SIZE, priority="addon")
