"""The log once more, as JSON: a line a record, for programs that collect logs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later

from focuscrawl.engine.component import Component
from focuscrawl.engine.plain_log import plain
from focuscrawl.engine.private import is_no_list_of_settings
from focuscrawl.engine.settings_table import LOG_JSON
from focuscrawl.errors import UserError
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from io import TextIOWrapper

    from scrapy.crawler import Crawler

STANDARD_ERROR = "-"
#: what people are shown otherwise than in the log; only the JSON log has it
NOT_IN_LOG = logging.Logger("focuscrawl.shown")  # beside the tree of loggers


class JsonLog(Component):
    """Writes ``FOCUSCRAWL_LOG_JSON``: a file taken from the crawl's folder, or ``-``.

    Scrapy's own log stays as it is; ``LOG_ENABLED = False`` leaves the JSON alone. True or 1
    stands for ``log.jsonl``. The level is ``LOG_LEVEL``.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        name = LOG_JSON.of(crawler.settings)
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
        self._handler.addFilter(is_no_list_of_settings)
        for logger in (logging.root, NOT_IN_LOG):
            logger.addHandler(self._handler)

    def engine_stopped(self) -> None:
        """Write no more, once everybody has had their last word."""
        for logger in (logging.root, NOT_IN_LOG):
            call_later(0, logger.removeHandler, self._handler)


class _PlainFile(logging.FileHandler):
    """Writes a file, and follows no link there: the folder may be a stranger's."""

    def _open(self) -> TextIOWrapper:
        return open(  # type: ignore[return-value]  # text, whatever the mode
            self.baseFilename, self.mode, encoding=self.encoding, opener=open_plain
        )


class JsonFormatter(logging.Formatter):
    """Makes a record one line of JSON: at (UTC), level, logger, message, crawl, exception.

    What a record has in ``fields`` comes after these.

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
            "message": plain(record.getMessage()),
            "crawl": self._crawl,
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = plain(self.formatException(record.exc_info))
        return json.dumps(line | getattr(record, "fields", {}))
