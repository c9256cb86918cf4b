"""The requests of a project's spider on disk, so that a resumed crawl has their callbacks."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from scrapy import FormRequest, Request
from scrapy.http import JsonRequest
from scrapy.utils.request import request_from_dict

from focuscrawl.engine.kept_meta import kept_meta
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.plain_files import open_plain
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy import Spider

logger = logging.getLogger(__name__)

_KINDS = {kind.__name__: kind for kind in (Request, FormRequest, JsonRequest)}
#: what a file may say of a request: not its class, which would be imported; its method is GET,
#: and a body it has not
_SAID = (
    "url", "callback", "errback", "headers", "cookies", "meta", "encoding", "priority",
    "dont_filter", "flags", "cb_kwargs",
)  # fmt: skip
_HANDLED = "handle_httpstatus_list"


class RequestFile:
    """Lines of JSON in the crawl's folder: what is held for a URL, and what has been given.

    Nothing is unpickled. A request whose callback is no method of the spider, or whose meta is
    not plain, or says by what way it goes, is not kept: its page goes where pages go that nobody
    asked for.

    Parameters
    ----------
    folder : of the crawl
    spider : whose requests they are
    trusted : meta that its project sets by itself, see `kept_meta`

    Attributes
    ----------
    given : URLs that were fetched for the spider
    """

    NAME = "requests.jsonl"

    def __init__(
        self, folder: Path, spider: Spider, trusted: Mapping[str, Any] | None = None
    ) -> None:
        self._path = folder / self.NAME
        self._spider = spider
        self._trusted = trusted or {}
        self._kept: dict[str, dict[str, Any]] = {}
        self.given: set[str] = set()
        self._warned = False

    def load(self, waits: Callable[[str], bool]) -> list[Request]:
        """Read what an earlier run left; drop requests for pages that were given.

        The last line may be half a line, if the run was killed.

        Parameters
        ----------
        waits : whether a URL is yet to be fetched

        Returns
        -------
        Requests for pages that were fetched, and not for the spider
        """
        if not self._path.exists():
            return []
        with open(self._path, encoding="utf-8", errors="replace", opener=open_plain) as file:
            lines = file.read().splitlines()
        for line in lines:
            try:
                url, request = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(url, str) and request is None:
                self.given.add(url)
            elif isinstance(url, str) and isinstance(request, dict):
                self._kept[url] = request
        waiting = {url for url in self._kept if waits(url)}
        self._kept = {
            url: kept
            for url, kept in self._kept.items()
            if url in waiting or url not in self.given
        }
        lines = [json.dumps([url, None]) for url in sorted(self.given)]
        lines += [json.dumps(each) for each in self._kept.items()]
        write_whole(self._path, "".join(f"{line}\n" for line in lines))
        late = [self.pop(url) for url in [*self._kept] if url not in waiting]
        return [request for request in late if request is not None]

    def hold(self, url: str, request: Request) -> None:
        """Keep a request that waits for its URL's turn."""
        try:
            said = request.to_dict(spider=self._spider)
            kind = type(request).__name__
            if _KINDS.get(kind) is not type(request):
                raise TypeError(kind)
            headers = {
                name.decode("latin-1"): [value.decode("latin-1") for value in values]
                for name, values in request.headers.items()
            }
            kept = {name: said[name] for name in _SAID}
            kept["meta"] = kept_meta(request.meta, self._trusted)
            self._append([url, {**kept, "headers": headers, "kind": kind}])
        except (TypeError, ValueError) as error:
            if not self._warned:
                self._warned = True
                logger.warning("%s is not kept for a resumed crawl: %s", request, error)

    def give(self, url: str) -> None:
        """Note that a URL is being fetched for the spider."""
        if url not in self.given:
            self.given.add(url)
            self._append([url, None])

    def pop(self, url: str) -> Request | None:
        """Return the request that an earlier run held for a URL; None if there was none."""
        kept = self._kept.pop(url, None)
        if kept is None:
            return None
        try:
            kind = _KINDS.get(kept.get("kind", ""), Request)
            said = {name: kept[name] for name in _SAID if name in kept}
            said["meta"] = kept_meta(kept.get("meta", {}), self._trusted)
            if normalize(said["url"]) != url:
                raise ValueError(f"its line is about {said['url']}")
            if not all(isinstance(each, int) for each in said["meta"].get(_HANDLED, ())):
                raise ValueError(f"{_HANDLED} is no list of statuses")
            said["headers"] = {
                name.encode("latin-1"): [value.encode("latin-1") for value in values]
                for name, values in kept.get("headers", {}).items()
            }
            plain = request_from_dict(said, spider=self._spider)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            logger.warning("cannot ask for %s as before: %s", url, error)
            return None
        return plain.replace(cls=kind)

    def _append(self, line: list[Any]) -> None:
        text = json.dumps(line)  # before the file is touched
        with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
            file.write(f"{text}\n")
