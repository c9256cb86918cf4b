"""Log records without control characters and passwords, whatever page or URL they quote."""

from __future__ import annotations

import logging
from typing import Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import without_credentials
from focuscrawl.report.plain_text import printable

_TRACEBACKS = logging.Formatter()


class PlainRecord(logging.LogRecord):
    """A record whose text and traceback a terminal can be shown, without URLs' credentials.

    All loggers of a process make such records after
    ``logging.setLogRecordFactory(PlainRecord)``, whatever their handlers are.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            error = self.exc_info[1]
            # formatters take the text that is there instead of making their own
            self.exc_text = plain(
                str(error)  # what the user has to put right: no way through our code helps
                if isinstance(error, UserError)
                else _TRACEBACKS.formatException(self.exc_info)
            )

    def getMessage(self) -> str:  # noqa: N802 - the base class's name
        """Return the message, made plain."""
        return plain(super().getMessage())


def plain(text: str) -> str:
    """Return `text` without what a terminal obeys and without URLs' credentials."""
    return without_credentials(printable(text))
