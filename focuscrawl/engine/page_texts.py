"""Extraction of the main text of pages while the crawl runs, beside the event loop."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from focuscrawl.crawl.visit import Visit
from focuscrawl.errors import UserError, WorkerError
from focuscrawl.page.documents import PDF
from focuscrawl.report.plain_text import without_controls
from focuscrawl.text import ExtractorPool
from focuscrawl.text.extraction import RawPage
from focuscrawl.text.text_store import TextStore

if TYPE_CHECKING:
    from datetime import date

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.text import PageText


logger = logging.getLogger(__name__)

TOO_HARD, NOT_YET = "too hard to read", "not taken yet"
_TEXTS, _NO_TEXTS = "focuscrawl/texts", "focuscrawl/texts_too_hard"  # statistics
_AHEAD = 100_000_000  # bytes of pages that wait for their texts; then the crawl waits
_NICENESS = 10  # a tenth of a core that the crawl wants, too: texts get done
_MANY = 10  # pages that wait at the end and are worth a line in the log
_COPIED = (  # attributes of `PageText` that `TextVisit` has, too
    *("description", "author", "date", "language"),
    *("canonical", "license", "kind", "extractor"),
)


@dataclass(slots=True, kw_only=True)
class TextVisit(Visit):
    """A recorded fetch, and the text of its page: Scrapy's item with ``FOCUSCRAWL_TEXT``.

    The names are those of an exported corpus (docs/how-to/export.md). All are None where no text
    was wanted, as for pages off the topic, or where there is none.

    Attributes
    ----------
    text_error : why there is no text though it was wanted
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
        """Return a fetch with what was found on its page.

        Parameters
        ----------
        found : the text, or why there is none; None: none was wanted
        markdown : write headings, lists and emphasis as Markdown
        """
        item = cls(**{each.name: getattr(visit, each.name) for each in fields(Visit)})
        if isinstance(found, str):
            item.text_error = found
        elif found is not None:
            found = found.map(without_controls)
            item.title = visit.title or found.title
            item.text = found.markdown if markdown else found.text
            item.hash = sha256(found.text.encode("utf-8", "surrogatepass")).hexdigest()
            item.language_confidence = found.confidence
            for name in _COPIED:
                setattr(item, name, getattr(found, name))
        return item


class PageTexts:
    """Extracts the text of relevant pages in other processes, and stores it (`TextStore`).

    Pages wait for their text as Scrapy's items, so that ``SCRAPER_SLOT_MAX_ACTIVE_SIZE`` bounds
    how far the crawl gets ahead; a crawl that is over waits for the last texts. The processes
    have a lower priority than the crawl.

    Raises
    ------
    UserError
        Texts cannot be stored in the crawl's folder.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        config = crawl.config
        self._crawler = crawler
        self._crawl = crawl
        self._taking = config.text
        if not self._taking:
            return
        self._name, self._least = config.text_extractor, config.text_min_relevance
        self._store = TextStore(self._crawl.folder.path)
        self._extractor = ExtractorPool(self._name, config.text_processes, niceness=_NICENESS)
        self._threads = ThreadPool(0, config.text_processes, "texts")
        self._waiting = 0
        self._logged = False
        crawler.signals.connect(self.open, signal=signals.engine_started)
        crawler.signals.connect(self.close, signal=signals.engine_stopped)

    def needs_text(self, visit: PageVisit) -> bool:
        """Tell whether a recorded fetch is to have a text: whether collect would take it."""
        return (
            self._taking
            and visit.view is not None
            and visit.view.kind in ("", PDF)
            and visit.digest is not None
            and visit.duplicate_id is None
            and not visit.noindex
            and not visit.is_refetch
            and visit.relevance >= self._least
        )

    async def extract(self, visit: PageVisit) -> PageText | str:
        """Return the text of a recorded fetch that is wanted, or why there is none.

        The parsed page is dropped meanwhile: it takes several times the memory of its bytes.
        """
        from twisted.internet import reactor  # noqa: PLC0415 - it is installed by now

        assert visit.digest is not None
        assert visit.view is not None
        sent = visit.download
        page = RawPage(visit.url, sent.body, sent.encoding, pdf=visit.view.kind == PDF)
        visit.view, visit.link_rows, visit.newly_queued = None, [], []
        self._waiting += 1
        try:
            text = await maybe_deferred_to_future(
                deferToThreadPool(reactor, self._threads, self._take, visit.digest, page)
            )
        except (UserError, WorkerError) as error:
            if self._taking:
                logger.error("no more texts are taken, focuscrawl collect can: %s", error)
                self._taking = False
            return NOT_YET
        finally:
            self._waiting -= 1
        if text != NOT_YET:
            self._crawler.stats.inc_value(_NO_TEXTS if text == TOO_HARD else _TEXTS)
        if self._crawl.stop_reason is not None and self._waiting > _MANY and not self._logged:
            self._logged = True
            logger.info("the crawl is over, the text of %d pages is to be taken", self._waiting)
        return text

    def open(self) -> None:
        """Start the threads, and stop them even if the reactor stops at once."""
        from twisted.internet import reactor  # noqa: PLC0415 - it is installed by now

        self._threads.start()
        during: Any = ("during", "shutdown")  # its types lack the second
        reactor.addSystemEventTrigger(*during, self.close)

    def cancel(self) -> None:
        """Stop taking texts: the crawl has to end. `focuscrawl collect` takes the others."""
        if self._taking:
            self._taking = False
            self._extractor.close()

    def close(self) -> None:
        """Stop the processes; every page has its text by now, or is given up."""
        self.cancel()
        if self._threads.started:
            self._threads.stop()
        self._store.close()

    def _take(self, digest: bytes, page: RawPage) -> PageText | str:
        try:
            text = self._store.get(digest, self._name)
        except KeyError:
            text = self._extractor.extract_page(page) if self._taking else None
            if not self._taking:
                return NOT_YET
            self._store.put(digest, self._name, text)
        return TOO_HARD if text is None else text


def prepare_texts(config: CrawlConfig, settings: BaseSettings) -> None:
    """Check that texts can be taken, if they are wanted, and let more pages wait for them.

    Raises
    ------
    UserError
        The extractor is not installed.
    WorkerError
        A process that takes texts cannot start.
    """
    if not config.text:
        return
    with ExtractorPool(config.text_extractor) as extractor:
        extractor.start()
    settings.set("SCRAPER_SLOT_MAX_ACTIVE_SIZE", _AHEAD, priority="addon")
