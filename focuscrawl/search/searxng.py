"""Search with an instance of SearXNG, a meta search engine that anyone can host.

The JSON format is described at https://docs.searxng.org/dev/search_api.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from focuscrawl.errors import UserError
from focuscrawl.foundation.api_client import ApiClient
from focuscrawl.search.candidates import Candidate
from focuscrawl.search.seed_source import SearchAnswer, SeedSource, settings_file, variable_name

if TYPE_CHECKING:
    from focuscrawl.foundation.api_client import ApiAnswer

_NAME = "searxng"
_URL, _KEY = variable_name(_NAME, "url"), variable_name(_NAME, "key")
_OWN_SETTINGS = ("url", "key", "per_minute")
_PER_MINUTE = 30.0
_MAX_PAGES = 5  # of results
_MAX_FAILED = 3  # search engines named
_FORMATS = "add json to search.formats in settings.yml of the instance, or name another instance"


class SearXNG(SeedSource):
    """Results of an instance of SearXNG.

    Parameters
    ----------
    argument : str
        Not used.
    settings : mapping of str to str
        ``url`` of the instance; ``key``, sent as bearer token; ``per_minute``, the maximum number
        of requests. Other settings are parameters of each request, such as ``language``.
    """

    def __init__(self, argument: str, settings: Mapping[str, str], agent: str) -> None:
        if argument:
            raise UserError(f"{_NAME}:{argument}: set {_URL} to the URL of the instance instead")
        if "url" not in settings:
            raise UserError(
                f"{_NAME} needs the URL of an instance: set {_URL}, or url under [{_NAME}] in "
                f"{settings_file()}"
            )
        self._client = ApiClient(
            settings["url"].rstrip("/").removesuffix("/search"),
            settings.get("key"),
            named=_URL,
            key_variable=_KEY,
            per_minute=read_rate(_NAME, settings, _PER_MINUTE),
            max_answer=10_000_000,
            agent=agent,
        )
        self._parameters = {k: v for k, v in settings.items() if k not in _OWN_SETTINGS}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def search(self, query: str, n: int) -> SearchAnswer:
        """Return the first `n` results, from as many pages of results as necessary."""
        found: dict[str, Candidate] = {}
        failed: dict[str, str] = {}
        for page in range(1, 1 + _MAX_PAGES):
            asked = {**self._parameters, "q": query, "format": "json", "pageno": str(page)}
            content = self._read(self._client.request("GET", f"/search?{urlencode(asked)}"))
            failed |= _read_failed(content.get("unresponsive_engines"))
            new = [each for each in _read_results(content) if each.url not in found]
            found |= {each.url: each for each in new}
            if len(found) >= n or not new:
                break
        shown = [f"{engine} ({why})" for engine, why in failed.items()][:_MAX_FAILED]
        problem = f"these search engines failed: {', '.join(shown)}" if shown else ""
        return SearchAnswer([*found.values()][:n], problem)

    def _read(self, answer: ApiAnswer) -> dict[str, Any]:
        """Return the JSON object of a response; raise `UserError` for any other response."""
        at, status, text = (
            self._client.endpoint,
            answer.status,
            answer.body.decode(errors="replace"),
        )
        is_html = "html" in answer.content_type.lower() or text.lstrip()[:1] == "<"
        if is_html and "captcha" in text.lower():
            raise UserError(
                f"{at} answers with a captcha ({status}), because it takes the crawler for an "
                "abuser: try again later, or name another instance"
            )
        if status in (401, 403):
            raise UserError(
                f"{at} denies access ({status}): {_FORMATS}; or "
                + (f"check {_KEY}" if self._client.has_key else f"set {_KEY} to its key")
            )
        if 300 <= status < 400:
            raise UserError(f"{at} redirects ({status}): set {_URL} to the final address")
        content = _parse(text)
        if status != 200:
            reason = content.get("error", "") if content else ""
            detail = f": {self._client.describe(reason)}" if reason else ""
            raise UserError(
                f"{at} answers {status}{detail}: set {_URL} to the URL of an instance of SearXNG"
            )
        if content is None:
            what = "a page of HTML" if is_html else "no JSON object"
            raise UserError(f"{at} answers with {what} instead of JSON: {_FORMATS}")
        return content


def read_rate(name: str, settings: Mapping[str, str], default: float) -> float:
    """Return the maximum number of requests per minute in the settings of a source."""
    try:
        rate = float(settings.get("per_minute", default))
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        raise UserError(
            f"{variable_name(name, 'per_minute')} must be a number above 0, not "
            f"{settings['per_minute']!r:.80}"
        )
    return rate


def _parse(text: str) -> dict[str, Any] | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _read_results(content: Mapping[str, Any]) -> list[Candidate]:
    results = content.get("results")
    candidates = []
    for each in results if isinstance(results, list) else []:
        if isinstance(each, dict) and isinstance(each.get("url"), str):
            title, description = (str(each.get(name) or "") for name in ("title", "content"))
            candidates.append(Candidate(each["url"], title, description))
    return candidates


def _read_failed(engines: object) -> dict[str, str]:
    """Return the search engines that did not answer the instance, each with the reason."""
    failed = {}
    for each in engines if isinstance(engines, list) else []:
        match each:
            case [str(engine), str(reason), *_]:
                failed[engine[:40]] = reason[:80]
    return failed
