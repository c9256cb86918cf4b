"""Callback and meta of the requests that are made for links out of the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl.engine.private import has_default_callback
from focuscrawl.engine.settings_table import CALLBACK, META
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_MAXSIZE = 10 * 1024 * 1024  # bytes; no page is longer


@dataclass(frozen=True)
class LinkRequests:
    """What a project has set for requests that its spider did not yield.

    Attributes
    ----------
    callback : None for what Scrapy calls when a request names nothing
    meta : beside what the crawl itself puts there
    visits : True if the spider takes every fetch for an item, errors included
    """

    callback: Callable[[Response], Any] | None
    meta: dict[str, Any]
    visits: bool

    @classmethod
    def of(cls, spider: Spider, settings: BaseSettings) -> Self:
        """Read ``FOCUSCRAWL_CALLBACK`` and ``FOCUSCRAWL_META``.

        Raises
        ------
        UserError
            The spider has no such method, or the meta is no dictionary.
        """
        meta = dict(META.of(settings))
        if not settings.getpriority("DOWNLOAD_MAXSIZE"):  # Scrapy's own: a gigabyte
            meta.setdefault("download_maxsize", _MAXSIZE)
        visits = bool(getattr(spider, "yields_visits", False))
        return cls(_callback(spider, CALLBACK.of(settings)), meta, visits)


def _callback(spider: Spider, name: str) -> Callable[[Response], Any] | None:
    if not name:
        return _nobody
    if name == CALLBACK.default:
        return None if has_default_callback(spider) else _nobody
    method: Callable[[Response], Any] | None = getattr(spider, name, None)
    if not callable(method):
        raise UserError(
            f"FOCUSCRAWL_CALLBACK={name}: spider {spider.name} has no such method; "
            "an empty value gives the pages to nobody"
        )
    return method


def _nobody(_: Response) -> tuple[()]:
    """Leave a page alone: it has been judged and recorded."""
    return ()
