"""The error a user can cause, and others that are told apart."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right.

    The message is one line: it names the thing and says the way out. The commands
    print it behind the program's name and end with exit code 2.
    """


class RequestCancelledError(Exception):
    """A request was broken off because the crawl ends; its URL is for the next run."""


class WorkerError(Exception):
    """A process that this one needs cannot start, or lacks something of what is installed.

    No page is to blame, so nothing is kept of one. The message is one line with the cause; the
    commands print it like that of a `UserError`, and end with exit code 1.
    """
