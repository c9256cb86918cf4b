"""Exceptions: errors that the user can correct, cancelled requests, failed child processes."""

from __future__ import annotations


class UserError(Exception):
    """An error that the user can correct.

    The message of the exception is one line that says what is wrong and what to do. Commands print
    the message of the exception after the program's name, and exit with code 2.
    """


class RequestCancelledError(Exception):
    """A request was cancelled because the crawl stops; the next run fetches the URL."""


class WorkerError(Exception):
    """A child process cannot start, or a library that it needs is incomplete.

    Pages do not cause the exception, so no page is recorded as failed. The message of the
    exception is one line with the cause. Commands print the message of the exception like a
    `UserError`, and exit with code 1.
    """
