"""What came of a fetch, in a word: all but a page and a duplicate cost a fetch for nothing."""

from __future__ import annotations

from focuscrawl.crawl.visit import META_REFRESH, NOT_MODIFIED
from focuscrawl.page.documents import LISTS

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
    if it had changed), ``duplicate``, ``redirect``, ``no HTML``, ``site map``,
    ``site map index``, ``feed``, ``HTTP <status>``, or the cause when no answer came or a
    redirect, of a page that refreshes to another, too, leads nowhere.
    """
    if duplicate:
        return DUPLICATE
    cause = (error or "").partition(":")[0].strip()
    if status == 0 or (cause and 200 <= status < 400):
        return REDIRECT if cause == META_REFRESH else cause or "no answer"
    if status == NOT_MODIFIED:
        return UNCHANGED
    if 300 <= status < 400:
        return REDIRECT
    return PAGE if 200 <= status < 300 else f"HTTP {status}"


def is_error(name: str) -> bool:
    """Tell whether an outcome is a failure of the server, the network or the link."""
    return name not in (PAGE, DUPLICATE, REDIRECT, NO_HTML, UNCHANGED, *LISTS)
