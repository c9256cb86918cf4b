"""What came of a fetch, in a word: all but a page and a duplicate cost a fetch for nothing."""

from __future__ import annotations

from focuscrawl.crawl.visit import NOT_MODIFIED

PAGE = "page"
DUPLICATE = "duplicate"
REDIRECT = "redirect"
NO_HTML = "no HTML"
UNCHANGED = "not modified"


def outcome(status: int, error: str | None, duplicate: bool) -> str:
    """Name what came of a fetch.

    Parameters
    ----------
    status : HTTP status; 0 where none was received
    error : the store's reason for no status, or for no judgement
    duplicate : the page was here already

    Returns
    -------
    ``page`` and ``not modified`` (the only ones with a relevance; the latter was asked for only
    if it had changed), ``duplicate``, ``redirect``, ``no HTML``,
    ``HTTP <status>``, or the cause when no answer came or a redirect leads nowhere.
    """
    if duplicate:
        return DUPLICATE
    redirect = 300 <= status < 400
    if status == 0 or (redirect and error is not None):
        return (error or "no answer").partition(":")[0].strip()
    if status == NOT_MODIFIED:
        return UNCHANGED
    if redirect:
        return REDIRECT
    if not 200 <= status < 300:
        return f"HTTP {status}"
    return PAGE if error is None else NO_HTML


def is_error(name: str) -> bool:
    """Tell whether an outcome is a failure of the server, the network or the link."""
    return name not in (PAGE, DUPLICATE, REDIRECT, NO_HTML, UNCHANGED)
