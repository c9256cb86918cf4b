"""One lenient parse of a page."""

from __future__ import annotations

from focuscrawl.page.view import PageView


def parse_page(body: bytes, url: str, *, encoding: str | None = None) -> PageView:
    """Parse `body`."""
    raise NotImplementedError
