"""Sends cookies set by redirects, as browsers do, but only within one chain of redirects."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http.cookies import CookieJar
from scrapy.http.request import NO_CALLBACK

from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import (
    ALL_REDIRECTS,
    ANSWERS,
    COOKIES,
    COOKIES_SENT,
    OWN_REQUEST,
    URL_ID,
    is_web_error,
    redirect_target,
)
from focuscrawl.errors import RequestCancelledError
from focuscrawl.foundation.urls import host, normalize

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_MAX_STEPS = 5  # redirects between two requests of a URL
_MAX_JARS = 200  # of targets whose request is not sent yet


class RedirectCookiesMiddleware(Component):
    """Fetches a page whose URL redirects to itself unless the client sends a certain cookie.

    A redirect that sets a cookie and leads to the same host is followed immediately, to see
    whether the chain of redirects leads back to its first URL. If the chain leads back to its
    first URL, this URL is requested once more with the cookie. Otherwise the redirect is recorded,
    and the request for its target gets the cookies of the chain. Cookies are not shared between
    pages, so a site cannot track the crawl. Replays do not use `RedirectCookiesMiddleware`.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        self._jars: OrderedDict[str, CookieJar] = OrderedDict()  # by target of a redirect

    def process_request(self, request: Request) -> None:
        """Add the cookies set by the redirects that led to the URL of the request."""
        jar = self._jars.pop(request.url, None) if URL_ID in request.meta else None
        if jar is not None:
            request.meta[COOKIES] = jar
            _add_cookies(request, jar)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return a request with cookies if redirects of a requested URL lead back to it."""
        wanted = request.meta.get(OWN_REQUEST) in (ANSWERS, ALL_REDIRECTS)  # by the spider
        if URL_ID not in request.meta or COOKIES_SENT in request.meta or wanted:
            return response
        target = redirect_target(response)
        if target is None:
            return response
        jar = request.meta.get(COOKIES) or CookieJar()
        jar.extract_cookies(response, request)
        sets_cookie = "Set-Cookie" in response.headers
        # the target is a URL whose redirect led here, so its page is recorded for this URL
        same_origin = _origin(target) == _origin(request.url)  # the request may hold cookies
        was_first = same_origin and self._crawl.redirects.leads_back(request.meta[URL_ID], target)
        if sets_cookie and (was_first or await self._leads_back(request.url, target, jar)):
            meta = {**request.meta, COOKIES_SENT: True, "dont_cache": True}
            url = target if was_first else request.url
            again = request.replace(url=url, meta=meta, dont_filter=True)
            _add_cookies(again, jar)
            if again.headers.get("Cookie") != request.headers.get("Cookie"):
                return again
        elif len(jar):
            self._jars[target] = jar
            if len(self._jars) > _MAX_JARS:
                self._jars.popitem(last=False)
        return response

    async def _leads_back(self, url: str, target: str | None, jar: CookieJar) -> bool:
        """Follow redirects on the host of a URL; return whether they lead back to the URL."""
        first = normalize(url)
        for _ in range(_MAX_STEPS):
            if target is None or target == first or _origin(target) != _origin(url):
                break
            target = await self._next_target(target, jar)
        return target == first

    async def _next_target(self, url: str, jar: CookieJar) -> str | None:
        """Return the target to which a URL redirects; None if it does not redirect."""
        meta = {"dont_redirect": True, "max_retry_times": 1, "dont_cache": True}
        request = Request(url, meta=meta, callback=NO_CALLBACK)
        _add_cookies(request, jar)
        try:
            response = await self._crawler.engine.download_async(request)
        except RequestCancelledError:
            raise
        except Exception as error:
            if isinstance(error, IgnoreRequest) or is_web_error(error):
                return None
            raise
        target = redirect_target(response)
        if target is not None:
            jar.extract_cookies(response, request)
        return target


def _origin(url: str) -> str:
    return f"{url.partition(':')[0]}://{host(url)}"


def _add_cookies(request: Request, jar: CookieJar) -> None:
    """Add the cookies of a jar to the cookies of a request; the jar has priority."""
    probe = Request(request.url)
    jar.add_cookie_header(probe)
    cookies = {}
    for header in (request.headers.get("Cookie"), probe.headers.get("Cookie")):
        for cookie in filter(None, (header or b"").split(b"; ")):
            cookies[cookie.partition(b"=")[0]] = cookie
    if cookies:
        request.headers["Cookie"] = b"; ".join(cookies.values())
