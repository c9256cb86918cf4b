"""Shows the progress of a crawl as a bar, as log lines, or as JSON, and prints the summary."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections import deque
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from focuscrawl.completeness.stop_rules import RECALL_RULE_STUDY
from focuscrawl.crawl.stopping import Completeness
from focuscrawl.engine.component import Component
from focuscrawl.engine.lean_settings import sanitize
from focuscrawl.engine.private import is_not_settings_list
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow
from focuscrawl.report.outcomes import stop_reason
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.report.summary import Summary

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit


logger = logging.getLogger(__name__)

STANDARD_ERROR = "-"
#: logger of messages that only the JSON log contains, because people see them elsewhere
JSON_ONLY_LOGGER = logging.Logger("focuscrawl.shown")  # not a child of the root logger
_RECENT_FETCHES = 100  # fetches that make up the harvest rate "now"
_LINE_INTERVAL = 10.0  # seconds between two lines
_NOTHING_FETCHED = (
    "The crawl had stopped before; this run fetched nothing and wrote no feed. "
    "Summary of the earlier fetches:"
)
_MIN_BAR_WIDTH = 4  # columns of the bar itself, at least


class JsonLog(Component):
    """Writes the log as JSON lines to the file ``FOCUSCRAWL_LOG_JSON``.

    A relative file name of the log is relative to the crawl's folder; ``-`` means standard error,
    and True or 1 means ``log.jsonl``. The level is ``LOG_LEVEL``. Scrapy's own log is written as
    well, unless ``LOG_ENABLED = False``.
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
                self._handler = _RegularFileHandler(folder / Path(name), encoding="utf-8")
            except OSError as error:
                raise UserError(
                    f"FOCUSCRAWL_LOG_JSON: {folder / Path(name)} cannot be written "
                    f"({error.strerror}): name another file"
                ) from None
        self._handler.setLevel(crawler.settings.get("LOG_LEVEL"))
        self._handler.setFormatter(JsonFormatter(str(folder)))
        self._handler.addFilter(is_not_settings_list)
        for logger in (logging.root, JSON_ONLY_LOGGER):
            logger.addHandler(self._handler)

    def engine_stopped(self) -> None:
        """Remove the log handler after other components have logged their last lines."""
        for logger in (logging.root, JSON_ONLY_LOGGER):
            call_later(0, logger.removeHandler, self._handler)


class _RegularFileHandler(logging.FileHandler):
    """Writes a log file, but never through a symbolic link: the crawl may be from a stranger."""

    def _open(self) -> TextIOWrapper:
        return open(  # type: ignore[return-value]  # text, whatever the mode
            self.baseFilename, self.mode, encoding=self.encoding, opener=open_nofollow
        )


class JsonFormatter(logging.Formatter):
    """Formats a log record as a line of JSON.

    Each line has the fields ``at`` (UTC), ``level``, ``logger``, ``message``, ``crawl`` and
    ``exception``, and the fields in the log record's attribute ``fields``.

    Parameters
    ----------
    crawl : str
        Folder of the crawl.
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
    """Shows fetches, harvest rate, frontier size, speed and remaining time; prints the summary.

    With the setting ``FOCUSCRAWL_PROGRESS = False``, only the summary is printed.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._enabled = self._crawl.config.progress
        self._recent: deque[float] = deque(maxlen=_RECENT_FETCHES)
        self._bar: tqdm[Any] | None = None
        self._bar_context = contextlib.ExitStack()
        self._started = time.monotonic()
        self._next_line = self._started + _LINE_INTERVAL
        self._fetched_before = self._crawl.fetched
        self._was_finished = bool(self._fetched_before) and self._crawl.stop_reason is not None
        self._spent_before = self._crawl.budget_spent

    def spider_opened(self) -> None:
        """Log topic, strategy and folder of the crawl, and start the progress bar."""
        config = self._crawl.config
        start = pluralize(len(self._crawl.frontier), "start page")
        logger.info(
            "%s %s on %s: %s, strategy %s, %s. Saving to %s",
            "Resuming" if self._fetched_before else "Crawling",
            config.topic,
            f"the web {config.web}" if config.web else "the live Web",
            f"{self._fetched_before:,} pages fetched" if self._fetched_before else start,
            config.strategy,
            f"budget {pluralize(config.budget, 'fetch')}" if config.budget else "no budget",
            config.crawl_dir,
        )
        if config.stop.recall is not None:
            logger.info("%s%s", RECALL_RULE_STUDY[0].upper(), RECALL_RULE_STUDY[1:])
        if self._enabled and sys.stderr.isatty():
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
                # the handler that replaces Scrapy's has no level
                logging.root.handlers[-1].setLevel(settings.get("LOG_LEVEL"))

    def page_visited(self, visit: PageVisit) -> None:
        """Update Scrapy's statistics and the progress bar after a fetch."""
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
            self._bar.total = self._crawl.config.budget or None  # `focuscrawl extend` changes it
            self._bar.set_postfix_str(self._fit_progress(self._bar), refresh=False)
            self._bar.update(self._crawl.fetched - self._bar.n)  # not every fetch sends the signal
        elif self._enabled and now >= self._next_line:
            self._next_line = now + _LINE_INTERVAL
            logger.info(self._progress_line(now))

    def spider_closed(self) -> None:
        """Close the progress bar."""
        if self._bar is not None:
            self._bar.close()
        self._bar_context.close()

    def engine_stopped(self) -> None:
        """Print the summary; also log the summary if the log is a file or JSON on stderr."""
        store = self._crawl.store.reopen()
        try:
            summary, reason = Summary.of(store), stop_reason(store)
        except UserError as error:
            logger.error("The summary cannot be created: %s", error)
            return
        finally:
            store.close()
        text = summary.text()
        if self._was_finished and self._crawl.budget_spent == self._spent_before:
            text = f"{_NOTHING_FETCHED}\n{text}"
        settings = self._crawler.settings
        in_log = settings.get("LOG_FILE") or self._crawl.config.log_json == STANDARD_ERROR
        fields = {
            "reason": reason,
            "fetched": summary.fetched,
            "harvest_rate": summary.harvest_rate,
            "relevant": summary.relevant,
        }
        (logger if in_log else JSON_ONLY_LOGGER).info(
            "The crawl has stopped\n%s", text, extra={"fields": fields}
        )
        if not in_log:
            print(text, file=sys.stderr)  # noqa: T201

    @property
    def _harvest_now(self) -> float:
        return sum(self._recent) / len(self._recent)

    def _fit_progress(self, bar: tqdm[Any]) -> str:
        """Return as much of the progress as fits in a line of the terminal."""
        # tqdm draws the bar later, with other numbers that are not wider than these
        look = {**bar.format_dict, "n": bar.total or bar.n, "rate": 9999.99}
        harvest = f"harvest {self._harvest_now:.2f}"
        frontier = f"frontier {len(self._crawl.frontier):,}"
        for state in (
            self._describe_progress(),
            self._describe_progress(alarm=False),
            f"{harvest}, {frontier}",
            harvest,
        ):
            line = bar.format_meter(**{**look, "ncols": 0, "postfix": state})
            if len(line) + _MIN_BAR_WIDTH <= (look["ncols"] or 0):
                return state
        return ""

    def _describe_progress(self, *, alarm: bool = True) -> str:
        state = (
            f"harvest {self._harvest_now:.2f} now, {self._crawl.harvest_rate:.2f} overall, "
            f"frontier {len(self._crawl.frontier):,}"
        )
        completeness = self._crawl.part(Completeness)
        if completeness is not None:
            for each in (completeness.found, completeness.latest):
                state += "" if each is None else f", {each.short()}"
        stats = self._crawler.stats
        shown = stats.get_value("focuscrawl/alarm") or stats.get_value("focuscrawl/slow")
        return f"{state}, {one_line(shown, 60)}" if alarm and shown else state

    def _progress_line(self, now: float) -> str:
        fetched, budget = self._crawl.fetched, self._crawl.config.budget
        speed = (fetched - self._fetched_before) / max(now - self._started, 1e-3)
        line = f"{fetched:,}"
        if budget:
            line += f"/{budget:,}"
        line += f" pages, {self._describe_progress()}, {speed:.1f} pages/s"
        if budget and speed:
            left = (budget - fetched) / speed
            line += f", {tqdm.format_interval(left)} left"
        return line
