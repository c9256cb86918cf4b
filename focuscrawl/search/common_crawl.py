"""Search for URLs in the index of Common Crawl, which lists the pages of billions of URLs.

The index does not contain the words of pages. The source finds pages of given hosts whose URLs
contain words of the topic. The interface is the CDX server of pywb, see
https://index.commoncrawl.org/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from focuscrawl.errors import UserError
from focuscrawl.foundation.api_client import ApiClient
from focuscrawl.page.words import tokenize
from focuscrawl.search.candidates import Candidate
from focuscrawl.search.searxng import read_rate
from focuscrawl.search.seed_source import SearchAnswer, SeedSource, variable_name

_NAME = "common-crawl"
_URL, _KEY = variable_name(_NAME, "url"), variable_name(_NAME, "key")
_INDEX = "https://index.commoncrawl.org"
_PER_MINUTE = 20.0
_NOT_FOUND = 404  # the index answers so if no URL matches
_COLLECTION = re.compile(r"[\w-]{1,80}", re.ASCII)
_HOST = re.compile(r"[\w.-]{1,253}(:\d+)?")


class CommonCrawl(SeedSource):
    """Pages of given hosts, found by words in their URLs, in the index of Common Crawl.

    Parameters
    ----------
    argument : str
        Hosts, separated by commas; their subdomains are searched, too.
    settings : mapping of str to str
        ``url`` of the index, if not that of Common Crawl; ``collection`` such as
        ``CC-MAIN-2025-43``, by default the latest; ``per_minute``, the maximum number of requests.
    """

    def __init__(self, argument: str, settings: Mapping[str, str], agent: str) -> None:
        self._hosts = [each.strip() for each in argument.split(",") if each.strip()]
        if not self._hosts or not all(map(_HOST.fullmatch, self._hosts)):
            raise UserError(
                f"{_NAME} needs hosts to search: write {_NAME}:example.org,example.net"
            )
        self._collection = settings.get("collection", "")
        self._client = ApiClient(
            settings.get("url", _INDEX),
            settings.get("key"),
            named=_URL,
            key_variable=_KEY,
            per_minute=read_rate(_NAME, settings, _PER_MINUTE),
            max_answer=10_000_000,
            agent=agent,
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def plan_queries(self, phrases: Sequence[str], tuples: Sequence[str]) -> list[str]:
        """Return one query with all words, because a request to the index takes seconds."""
        del tuples
        words, _ = tokenize(list(phrases))
        return [" ".join(dict.fromkeys(words))]

    def search(self, query: str, n: int) -> SearchAnswer:
        """Return up to `n` URLs of each host, those with the most words of the query first."""
        words = query.split()
        pattern = "|".join(map(re.escape, words))
        found: dict[str, int] = {}
        for host in self._hosts:
            asked = [
                ("url", f"*.{host}"),
                ("output", "json"),
                ("fl", "url"),
                ("filter", "=status:200"),
                ("filter", "mime:html"),
                ("filter", f"~url:(?i).*({pattern}).*"),
                ("limit", str(10 * n)),  # a URL may have several captures
            ]
            urls = self._ask(f"/{self._latest()}-index?{urlencode(asked)}")
            scored = {url: sum(word in url.lower() for word in words) for url in urls}
            found |= dict(sorted(scored.items(), key=lambda each: -each[1])[:n])
        best = sorted(found, key=lambda url: -found[url])
        return SearchAnswer([Candidate(url, "", "") for url in best])

    def _latest(self) -> str:
        """Return the name of the collection to search; ask the index for the latest."""
        if not self._collection:
            answer = self._client.request("GET", "/collinfo.json")
            match _parse(answer.body) if answer.status == 200 else None:
                case [{"id": str(name)}, *_]:
                    self._collection = name
                case _:
                    raise UserError(
                        f"{self._client.endpoint}/collinfo.json is no list of collections "
                        f"({answer.status}): set {_URL} to the URL of an index"
                    )
        if not _COLLECTION.fullmatch(self._collection):
            raise UserError(f"{_NAME}: {self._collection!r:.80} is no name of a collection")
        return self._collection

    def _ask(self, path: str) -> list[str]:
        answer = self._client.request("GET", path)
        if answer.status == _NOT_FOUND:
            return []
        lines = [_parse(line) for line in answer.body.splitlines() if line.strip()]
        urls = [str(each["url"]) for each in lines if isinstance(each, dict) and "url" in each]
        if answer.status != 200 or (lines and not urls):
            raise UserError(
                f"{self._client.endpoint} answers {answer.status} and no lines of an index: "
                f"check {_URL} and the collection {self._collection}"
            )
        return urls


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
