"""Progress of a running crawl: a bar, lines, or JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from focuscrawl.crawl.stopping import Completeness
from focuscrawl.engine.component import Component
from focuscrawl.engine.lean_settings import sanitize
from focuscrawl.engine.private import is_not_settings_list
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_plain
from focuscrawl.report.outcomes import stop_reason
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.report.summary import Summary

if TYPE_CHECKING:
    from io import TextIOWrapper

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit


logger = logging.getLogger(__name__)

STANDARD_ERROR = "-"
#: for what people see elsewhere than in the log; only the JSON log has it
NOT_IN_LOG = logging.Logger("focuscrawl.shown")  # beside the tree of loggers
_NOW = 100  # fetches that make up the harvest rate "now"
_LINE_EVERY = 10.0  # seconds between two lines
_HAD_ENDED = (
    "This crawl had ended; nothing was fetched, and no feed was written. "
    "This is the summary of what it fetched before:"
)
_BAR = 4  # columns of the bar itself, at least


class JsonLog(Component):
    """Writes ``FOCUSCRAWL_LOG_JSON``: a file taken from the crawl's folder, or ``-``.

    Scrapy's own log stays as it is; ``LOG_ENABLED = False`` leaves the JSON alone. True or 1
    stands for ``log.jsonl``. The level is ``LOG_LEVEL``.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        name = self._crawl.config.log_json
        if name is None:
            raise NotConfigured
        folder = self._crawl.folder.path
        self._handler: logging.Handler
        if name == STANDARD_ERROR:
            self._handler = logging.StreamHandler(sys.stderr)
        else:
            try:
                self._handler = _PlainFile(folder / Path(name), encoding="utf-8")
            except OSError as error:
                raise UserError(
                    f"FOCUSCRAWL_LOG_JSON: {folder / Path(name)} cannot be written "
                    f"({error.strerror}): name another file"
                ) from None
        self._handler.setLevel(crawler.settings.get("LOG_LEVEL"))
        self._handler.setFormatter(JsonFormatter(str(folder)))
        self._handler.addFilter(is_not_settings_list)
        for logger in (logging.root, NOT_IN_LOG):
            logger.addHandler(self._handler)

    def engine_stopped(self) -> None:
        """Stop writing, after the last lines of other components."""
        for logger in (logging.root, NOT_IN_LOG):
            call_later(0, logger.removeHandler, self._handler)


class _PlainFile(logging.FileHandler):
    """Writes a file, and follows no link: the folder may be a stranger's."""

    def _open(self) -> TextIOWrapper:
        return open(  # type: ignore[return-value]  # text, whatever the mode
            self.baseFilename, self.mode, encoding=self.encoding, opener=open_plain
        )


class JsonFormatter(logging.Formatter):
    """Formats a record as a line of JSON: at (UTC), level, logger, message, crawl, exception.

    The ``fields`` of a record come after these.

    Parameters
    ----------
    crawl : the crawl's folder
    """

    def __init__(self, crawl: str) -> None:
        super().__init__()
        self._crawl = crawl

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "at": at,
            "level": record.levelname,
            "logger": record.name,
            "message": sanitize(record.getMessage()),
            "crawl": self._crawl,
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = sanitize(self.formatException(record.exc_info))
        return json.dumps(line | getattr(record, "fields", {}))


class Progress(Component):
    """Shows fetches, harvest rate now and overall, frontier, speed and time left; a summary last.

    ``FOCUSCRAWL_PROGRESS = False`` leaves the summary alone.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._shown = self._crawl.config.progress
        self._recent: deque[float] = deque(maxlen=_NOW)
        self._bar: tqdm[Any] | None = None
        self._bar_context = contextlib.ExitStack()
        self._started = time.monotonic()
        self._next_line = self._started + _LINE_EVERY
        self._fetched_before = self._crawl.fetched
        self._had_ended = bool(self._fetched_before) and self._crawl.stop_reason is not None
        self._spent_before = self._crawl.budget_spent

    def spider_opened(self) -> None:
        """Log what starts."""
        config = self._crawl.config
        verb = "resuming at fetch" if self._fetched_before else "crawling from"
        number = self._fetched_before or counted(len(self._crawl.frontier), "seed")
        logger.info(
            "%s %s: %s of %s on %s, kept in %s",
            verb,
            number,
            config.strategy,
            config.topic,
            config.web or "the live Web",
            config.crawl_dir,
        )
        if self._shown and sys.stderr.isatty():
            self._bar = tqdm(
                total=config.budget or None,
                initial=self._fetched_before,
                unit=" pages",
                dynamic_ncols=True,
                smoothing=0.05,
            )
            settings = self._crawler.settings
            if settings.getbool("LOG_ENABLED") and not settings.get("LOG_FILE"):
                self._bar_context.enter_context(logging_redirect_tqdm())
                # the handler that stands in for Scrapy's has no level of its own
                logging.root.handlers[-1].setLevel(settings.get("LOG_LEVEL"))

    def page_visited(self, visit: PageVisit) -> None:
        """Count one fetch."""
        self._recent.append(visit.relevance)
        stats = self._crawler.stats
        stats.inc_value("focuscrawl/fetched")
        if visit.failure is not None:
            stats.inc_value("focuscrawl/failed_on")
        stats.set_value("focuscrawl/harvest_rate", self._crawl.harvest_rate)
        stats.set_value("focuscrawl/frontier", len(self._crawl.frontier))
        stats.set_value("focuscrawl/priority_fidelity", self._crawl.priority_fidelity)
        now = time.monotonic()
        if self._bar is not None:
            self._bar.total = self._crawl.config.budget or None  # a person may give another
            self._bar.set_postfix_str(self._state_beside(self._bar), refresh=False)
            self._bar.update(self._crawl.fetched - self._bar.n)  # others may fetch, too
        elif self._shown and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            logger.info(self._line(now))

    def spider_closed(self) -> None:
        """Clear the bar."""
        if self._bar is not None:
            self._bar.close()
        self._bar_context.close()

    def engine_stopped(self) -> None:
        """Print the summary after the last lines of other components; in the log if it is a file.

        A crawl that had ended before this run has a line about that first.
        """
        store = self._crawl.store.reopened()
        try:
            summary, reason = Summary.of(store), stop_reason(store)
        except UserError as error:
            logger.error("no summary: %s", error)
            return
        finally:
            store.close()
        text = summary.text()
        if self._had_ended and self._crawl.budget_spent == self._spent_before:
            text = f"{_HAD_ENDED}\n{text}"
        settings = self._crawler.settings
        in_log = settings.get("LOG_FILE") or self._crawl.config.log_json == STANDARD_ERROR
        fields = {
            "reason": reason,
            "fetched": summary.fetched,
            "harvest_rate": summary.harvest_rate,
            "relevant": summary.relevant,
        }
        (logger if in_log else NOT_IN_LOG).info(
            "the crawl is over\n%s", text, extra={"fields": fields}
        )
        if not in_log:
            print(text, file=sys.stderr)  # noqa: T201

    @property
    def _harvest_now(self) -> float:
        return sum(self._recent) / len(self._recent)

    def _state_beside(self, bar: tqdm[Any]) -> str:
        """Return as much of the state as fits into the terminal's line."""
        # it is drawn a little later, with other numbers: none of them is wider
        look = {**bar.format_dict, "n": bar.total or bar.n, "rate": 9999.99}
        harvest = f"harvest {self._harvest_now:.2f}"
        frontier = f"frontier {len(self._crawl.frontier):,}"
        for state in (self._state(), self._state(alarm=False), f"{harvest}, {frontier}", harvest):
            line = bar.format_meter(**{**look, "ncols": 0, "postfix": state})
            if len(line) + _BAR <= (look["ncols"] or 0):
                return state
        return ""

    def _state(self, *, alarm: bool = True) -> str:
        state = (
            f"harvest {self._harvest_now:.2f} now, {self._crawl.harvest_rate:.2f} overall, "
            f"frontier {len(self._crawl.frontier):,}"
        )
        completeness = self._crawl.part(Completeness)
        if completeness is not None and completeness.latest is not None:
            state += f", {completeness.latest.short()}"
        stats = self._crawler.stats
        shown = stats.get_value("focuscrawl/alarm") or stats.get_value("focuscrawl/slow")
        return f"{state}, {one_line(shown, 60)}" if alarm and shown else state

    def _line(self, now: float) -> str:
        fetched, budget = self._crawl.fetched, self._crawl.config.budget
        speed = (fetched - self._fetched_before) / max(now - self._started, 1e-3)
        line = f"{fetched:,}"
        if budget:
            line += f"/{budget:,}"
        line += f" pages, {self._state()}, {speed:.1f} pages/s"
        if budget and speed:
            left = (budget - fetched) / speed
            line += f", {tqdm.format_interval(left)} left"
        return line
