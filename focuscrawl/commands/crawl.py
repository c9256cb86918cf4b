"""``scrapy crawl`` with help on crawl arguments, exit codes, and error messages of one line."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES
from twisted.internet.defer import Deferred

from focuscrawl.crawl_config import argument_help
from focuscrawl.engine.lean_settings import SanitizedRecord
from focuscrawl.engine.private import (
    CrawlCommand,
    has_failed_to_start,
    hide_setup_messages,
    is_not_settings_list,
    spider_names,
)
from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.files import as_user_error
from focuscrawl.foundation.urls import without_credentials
from focuscrawl.report.plain_text import one_line

if TYPE_CHECKING:
    from twisted.python.failure import Failure


logger = logging.getLogger(__name__)

#: exit codes by ``finish_reason``
_EXIT_CODES = {"error": 1, "start_error": 1, "store_error": 1, "seeds_unreachable": 3}


class Command(CrawlCommand):
    """Scrapy's ``crawl`` command, which reports user errors in one line.

    Attributes
    ----------
    program : str | None
        Start of the command line in messages; None: ``scrapy crawl SPIDER``.
    """

    program: ClassVar[str | None] = None

    def long_desc(self) -> str:
        """Return the first line of the ``--help`` text."""
        return "Crawl the Web for pages on a topic."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        super().add_options(parser)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = (
            f"Arguments of the spider `focused`:\n{argument_help()}\n\n"
            "All settings (-s NAME=VALUE) are in docs/reference/settings.md."
        )
        if self.program is not None:
            parser.usage = f"{self.program} [options]"

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the command line options; suppress Scrapy's log lines about its own start.

        The options ``-L`` and ``-s LOG_LEVEL`` restore Scrapy's log lines, except its list of
        settings.
        """
        super().process_options(args, opts)
        assert self.settings is not None
        logging.setLogRecordFactory(SanitizedRecord)
        # settings may contain passwords and must not be logged at any level
        logging.getLogger("scrapy.crawler").addFilter(is_not_settings_list)
        if (self.settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["cmdline"]:
            hide_setup_messages()

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider that the user named."""
        if not args:
            raise UsageError
        if len(args) > 1:
            self._fail(
                args[0],
                f"unknown argument {args[1]}: write arguments of the crawl as -a NAME=VALUE",
            )
            return
        process = self.crawler_process
        assert process is not None
        spiders = spider_names(process)
        if args[0] not in spiders:
            self._fail(args[0], f"no spider of this name. Spiders: {', '.join(spiders)}")
            return
        errors: list[BaseException] = []

        def keep(failure: Failure) -> None:
            errors.extend(filter(None, [failure.value]))

        crawler = process.create_crawler(args[0])
        if getattr(crawler.spidercls, "owns_process", False):
            from focuscrawl.engine.own_process import set_up_process  # noqa: PLC0415

            set_up_process(crawler)
        outcome = process.crawl(crawler, **opts.spargs)
        if isinstance(outcome, Deferred):
            outcome.addErrback(keep)
        process.start()
        if isinstance(outcome, asyncio.Task) and outcome.done() and not outcome.cancelled():
            errors += filter(None, [outcome.exception()])
        error = errors[0] if errors else None
        if isinstance(error, OSError):
            error = as_user_error(error) or error
        if isinstance(error, UserError):
            self._fail(args[0], str(error))
        elif isinstance(error, WorkerError):
            self._fail(args[0], str(error), 1)
        elif error is not None:
            raise error
        elif has_failed_to_start(process):
            self.exitcode = 1
        else:
            self.exitcode = _EXIT_CODES.get(crawler.stats.get_value("finish_reason"), 0)

    def _fail(self, spider: str, message: str, code: int = 2) -> None:
        message = one_line(without_credentials(message))
        program = self.program or f"scrapy crawl {spider}"
        print(f"{program}: {message}", file=sys.stderr)  # noqa: T201
        if self.settings is not None and self.settings.get("LOG_FILE"):
            logger.error("%s", message)  # users of a Scrapyd server see the log only
        self.exitcode = code
