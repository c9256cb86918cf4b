"""The one error a user can cause."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right.

    The message is one line: it names the thing and says the way out. The commands
    print it behind the program's name and end with exit code 2.
    """


class GivenUpError(Exception):
    """A request was broken off because the crawl ends; its URL is for the next run."""
