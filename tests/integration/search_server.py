"""A search engine for tests: it answers as SearXNG and as the index of Common Crawl do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from .loopback import LoopbackServer, QuietHandler

COLLECTION = "CC-MAIN-2025-43"
_PER_PAGE = 10
_TEXT = 300  # characters of a result's text


class Asked(NamedTuple):
    """A request, as the server got it."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


class Said(NamedTuple):
    """What the server answers."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {"Content-Type": "application/json"}


def results(*found: tuple[str, str, str], failed: tuple[tuple[str, str], ...] = ()) -> Said:
    """Return results, each (URL, title, text), as SearXNG writes them."""
    body: dict[str, Any] = {
        "query": "",
        "number_of_results": 0,
        "results": [
            {
                "url": url,
                "title": title,
                "content": text,
                "engine": "brave",
                "template": "default.html",
                "parsed_url": [*urlsplit(url)],
                "img_src": "",
                "thumbnail": "",
                "priority": "",
                "engines": ["brave"],
                "positions": [number],
                "score": 1.0 / number,
                "category": "general",
                "publishedDate": None,
            }
            for number, (url, title, text) in enumerate(found, 1)
        ],
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [list(each) for each in failed],
    }
    return Said(json.dumps(body).encode())


class SearchServer:
    """Listens on loopback, and searches pages, each (title, text) by its URL.

    Attributes
    ----------
    asked : requests so far, in the order they came
    answer : what answers instead, if it returns something
    """

    def __init__(self, pages: Mapping[str, tuple[str, str]]) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], Said | None] = lambda _: None
        self._pages = {
            url: (title, text, set(re.findall(r"\w+", f"{title} {text}".lower())))
            for url, (title, text) in pages.items()
        }
        served = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name in http.server
                at = urlsplit(self.path)
                asked = Asked(at.path, parse_qs(at.query), dict(self.headers))
                served.asked.append(asked)
                said = served.answer(asked) or served.search(asked)
                self.answer(said.status, said.body, said.headers)

        self._server = LoopbackServer(Handler)

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._server.url

    @property
    def queries(self) -> list[str]:
        """The queries that were asked, of SearXNG."""
        return [each.query["q"][0] for each in self.asked if "q" in each.query]

    def search(self, asked: Asked) -> Said:
        """Answer a request."""
        if asked.path == "/search":
            return self._search_words(asked)
        if asked.path == "/collinfo.json":
            return Said(json.dumps([{"id": COLLECTION, "name": "October 2025"}]).encode())
        if asked.path == f"/{COLLECTION}-index":
            return self._search_index(asked)
        return Said(b"<html><title>Not found</title></html>", 404, {"Content-Type": "text/html"})

    def _search_words(self, asked: Asked) -> Said:
        if asked.query.get("format") != ["json"]:
            return Said(b"<!doctype html>", 200, {"Content-Type": "text/html"})
        words = set(re.findall(r"\w+", asked.query["q"][0].lower()))
        fits = {url: len(words & page[2]) for url, page in self._pages.items()}
        best = sorted((url for url in fits if fits[url] > 0), key=lambda url: -fits[url])
        start = _PER_PAGE * (int(asked.query.get("pageno", ["1"])[0]) - 1)
        found = best[start : start + _PER_PAGE]
        return results(*((u, self._pages[u][0], self._pages[u][1][:_TEXT]) for u in found))

    def _search_index(self, asked: Asked) -> Said:
        host = asked.query["url"][0].removeprefix("*.")
        (pattern,) = (f[1:] for f in asked.query["filter"] if f.startswith("~"))
        wanted = re.compile(pattern.removeprefix("url:"))
        urls = [
            url
            for url in self._pages
            if (urlsplit(url).netloc == host or urlsplit(url).netloc.endswith(f".{host}"))
            and wanted.fullmatch(url)
        ]
        if not urls:
            body = json.dumps({"message": f"No Captures found for: {asked.query['url'][0]}"})
            return Said(body.encode(), 404)
        lines = [json.dumps({"url": url}) for url in urls[: int(asked.query["limit"][0])]]
        return Said(("\n".join(lines) + "\n").encode(), headers={"Content-Type": "text/x-ndjson"})


@contextmanager
def search_server(pages: Mapping[str, tuple[str, str]] | None = None) -> Iterator[SearchServer]:
    """Serve a search engine until the end of the block."""
    server = SearchServer(pages or {})
    with server._server.serving():
        yield server
