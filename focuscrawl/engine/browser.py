"""Rendering pages that need scripts, by a browser that has no network of its own.

Chromium, by scrapy-playwright. The crawl makes each request of a page, as polite as any other,
subject to robots.txt and to the addresses that it may connect to. What bypasses that (sockets,
look-ups) meets a proxy and names that do not exist.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import tempfile
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.http.request import NO_CALLBACK

from focuscrawl.crawl.visit import RENDERED
from focuscrawl.engine.visits import redirect_target
from focuscrawl.errors import RequestCancelledError, UserError, WorkerError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from playwright.async_api import Page, Route
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.engine.page_parsing import PageParsing
    from focuscrawl.page import PageView


logger = logging.getLogger(__name__)

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_RESTLESS = 2 / 3  # of the time that a page has, in which it may make requests
_MOST_REQUESTS = 60  # of a page
_MOST_BYTES = 10 * 1024 * 1024  # of a page when its scripts have run; and of all scripts kept
_LOADED = ("script", "xhr", "fetch")
_NOT_PASSED_ON = ("content-encoding", "content-length", "transfer-encoding", "set-cookie")
# a text that is too long is left where it is
_READ = """most => {
    const html = document.documentElement.outerHTML;
    return html.length > most ? null : html;
}"""
_NOWHERE = "http://127.0.0.1:1"
_ARGUMENTS = (
    *(f"--proxy-server={_NOWHERE}", "--proxy-bypass-list=<-loopback>"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--dns-prefetch-disable"),
    *("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-webrtc"),
    *("--disable-background-networking", "--disable-component-update", "--no-pings"),
    *("--js-flags=--max-old-space-size=256", "--disable-gpu", "--renderer-process-limit=4"),
)
# What a page may not do by itself: open windows, navigate, load frames, which may have processes
# of their own. Its scripts and their requests are as in any other page.
_POLICY = "sandbox allow-scripts allow-same-origin; frame-src 'none'; object-src 'none'"
_MEMORY = 1024 * 1024  # KiB that a process of the browser may write to: buffers have no bound
_START = """#!/bin/sh
ulimit -d {memory}
exec {program} "$@"
"""
_FEW = 30  # words outside of the title: so few are no main text
_IN_VAIN = 3  # pages of a host that scripts add nothing to; no other one is rendered then
_AT_ONCE = 2  # pages that are open in the browser
_GAINED, _SAME = "more", "no more"


def configure_browser(settings: BaseSettings, executable: str) -> None:
    """Set the browser that scrapy-playwright starts, when one is needed.

    Parameters
    ----------
    executable : path of it; 1: an installed one

    Raises
    ------
    UserError
        There is none, or scrapy-playwright is not installed.
    """
    with needs("browser", "FOCUSCRAWL_BROWSER"):
        import scrapy_playwright.handler  # noqa: F401, PLC0415
    found = executable
    if executable == "1":
        found = next(filter(None, map(shutil.which, _NAMES)), "")
    if not found:
        raise UserError(
            f"FOCUSCRAWL_BROWSER: there is none of {', '.join(_NAMES)}: install one (on Debian: "
            "apt-get install chromium), or name the path of it"
        )
    if not (Path(found).is_file() and os.access(found, os.X_OK)):
        raise UserError(f"FOCUSCRAWL_BROWSER: {found} is no program: name the path of a browser")
    launch = {
        "executable_path": found,
        "args": [*_ARGUMENTS],
        "ignore_default_args": ["--disable-popup-blocking"],
        "chromium_sandbox": os.geteuid() != 0,  # it refuses to run as root
    }
    logging.getLogger("scrapy-playwright").setLevel(logging.ERROR)
    for name, value in {
        "PLAYWRIGHT_LAUNCH_OPTIONS": launch,
        "PLAYWRIGHT_BROWSER_TYPE": "chromium",
        "PLAYWRIGHT_BROWSER_PROVIDER": None,
        "PLAYWRIGHT_CDP_URL": None,  # of a browser with a network
        "PLAYWRIGHT_CONNECT_URL": None,
    }.items():
        settings.set(name, value, priority="cmdline")  # whoever says otherwise


class Browser:
    """Runs the scripts of pages; to be created before the engine starts.

    The browser is started with the first page.
    """

    def __init__(self, crawler: Crawler) -> None:
        from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler  # noqa: PLC0415

        self._crawler = crawler
        self._seconds = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")  # for all of a page
        self._handler = ScrapyPlaywrightDownloadHandler(crawler)
        self._folder = tempfile.TemporaryDirectory(prefix="focuscrawl-browser-")
        self._bound_memory(self._handler.config.launch_options)
        self._kept: OrderedDict[str, Response] = OrderedDict()  # scripts, which pages share
        self._size = 0
        self._pages = 0
        self._works = False

    def _bound_memory(self, launch: dict[str, Any]) -> None:
        # of the browser and all processes that it starts
        start = Path(self._folder.name) / "chromium"
        program = shlex.quote(launch["executable_path"])
        start.write_text(_START.format(memory=_MEMORY, program=program), encoding="utf-8")
        start.chmod(0o700)
        launch["executable_path"] = str(start)

    async def render_page(self, visit: PageVisit) -> bytes | None:
        """Return a page after its scripts have run, in UTF-8; None if that failed.

        Raises
        ------
        WorkerError
            The browser cannot start.
        """
        self._pages += 1
        request = Request(
            visit.url,
            meta={
                "playwright": True,
                "playwright_include_page": True,
                "playwright_context": f"page {self._pages}",  # none knows of another
                "playwright_context_kwargs": {
                    "service_workers": "block",
                    "accept_downloads": False,
                    "user_agent": self._crawler.settings["USER_AGENT"],
                },
                "playwright_page_init_callback": _Routes(self, visit).install,
                "playwright_page_goto_kwargs": {"wait_until": "commit"},
            },
            callback=NO_CALLBACK,
        )
        try:
            return await asyncio.wait_for(self._run(request), self._seconds)
        except Exception as error:  # a page can make a browser fail in any way
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            if "playwright_page" not in request.meta and not self._works:
                raise WorkerError(f"the browser cannot start: {why}") from None
            logger.debug("%s was not rendered: %s", visit.url, why)
            return None
        finally:
            page = request.meta.get("playwright_page")
            if page is not None:
                with suppress(Exception):  # it may be gone
                    await asyncio.wait_for(page.context.close(), self._seconds)

    async def _run(self, request: Request) -> bytes | None:
        from playwright.async_api import TimeoutError as LateError  # noqa: PLC0415

        await self._handler.download_request(request)
        page: Page = request.meta["playwright_page"]
        self._works = True
        longest = self._seconds * _RESTLESS * 1000  # requests to a host are a second apart
        with suppress(LateError):
            await page.wait_for_load_state("networkidle", timeout=longest)
        html: str | None = await page.evaluate(_READ, _MOST_BYTES)
        return None if html is None else html.encode("utf-8", "replace")

    async def close(self) -> None:
        """Stop the browser."""
        await self._handler.close()
        self._folder.cleanup()

    async def fetch(self, url: str, kind: str, accept: str) -> Response:
        """Fetch what a page requests by the crawl, a redirect as it is; a script once."""
        known = self._kept.get(url)
        if known is not None:
            self._kept.move_to_end(url)
            return known
        request = Request(
            url,
            headers={"Accept": accept} if accept else None,
            meta={"download_slot": host(url), "dont_retry": True, "dont_redirect": True},
            callback=NO_CALLBACK,
        )
        assert self._crawler.engine is not None
        response = await self._crawler.engine.download_async(request)
        self._crawler.stats.inc_value("focuscrawl/rendering_requests")
        if kind == "script" and response.status == 200:
            self._keep(url, response)
        return response

    def _keep(self, url: str, response: Response) -> None:
        self._kept[url] = response
        self._size += len(response.body)
        while self._size > _MOST_BYTES:
            _, forgotten = self._kept.popitem(last=False)
            self._size -= len(forgotten.body)


class _Routes:
    """Answers the requests of one page."""

    def __init__(self, browser: Browser, visit: PageVisit) -> None:
        self._browser = browser
        self._visit = visit
        self._served = False
        self._left = _MOST_REQUESTS

    async def install(self, page: Page, _: Request) -> None:
        """Intercept all requests of the page, and of those that it opens."""
        await page.context.route("**", self._answer)
        await page.route("**", self._answer)  # before scrapy-playwright's own

    async def _answer(self, route: Route) -> None:
        with suppress(Exception):  # the page may be gone by now
            if not await self._fulfil(route):
                await route.abort("aborted")

    async def _fulfil(self, route: Route) -> bool:
        asked = route.request
        if asked.is_navigation_request():
            if self._served or asked.frame.parent_frame is not None:
                return False
            self._served = True
            sent = self._visit.download
            kind = sent.content_type or "text/html"
            charset = f"; charset={sent.encoding}" if sent.encoding else ""
            headers = {"content-type": f"{kind}{charset}", "content-security-policy": _POLICY}
            await route.fulfill(status=200, body=sent.body, headers=headers)
            return True
        url = normalize(asked.url)
        if asked.method != "GET" or asked.resource_type not in _LOADED or url is None:
            return False
        try:
            response = await self._follow(
                url, asked.resource_type, asked.headers.get("accept", "")
            )
        except Exception:  # refused, forbidden, not found: to the page it is all the same
            return False
        if response is None:
            return False
        headers = {
            name.decode("latin-1"): b", ".join(values).decode("latin-1")
            for name, values in response.headers.items()
            if name.decode("latin-1").lower() not in _NOT_PASSED_ON
        }
        await route.fulfill(status=response.status, headers=headers, body=response.body)
        return True

    async def _follow(self, url: str, kind: str, accept: str) -> Response | None:
        # each redirect is a request of its own, with the delay of its host
        while self._left > 0:
            self._left -= 1
            response = await self._browser.fetch(url, kind, accept)
            target = redirect_target(response)
            if target is None:
                return response
            url = target
        return None


class Rendering:
    """Runs the scripts of pages that have no text without them, in a browser.

    Each time counts against the budget like a fetch. Its outcome is an event, from which a resumed
    crawl learns for which hosts it is of use.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl, parsing: PageParsing) -> None:
        self._crawler = crawler
        self._crawl = crawl
        self._parsing = parsing
        self._browser = Browser(crawler) if crawl.config.browser else None
        self._few_at_once = asyncio.Semaphore(_AT_ONCE)
        self._in_vain: Counter[str] = Counter()
        self._of_use: set[str] = set()
        self._under_way: set[asyncio.Task[bytes | None]] = set()
        self._given_up = False
        if self._browser is not None:
            for event in History(self._crawl.store).events(RENDERED):
                url, _, outcome = event.detail.rpartition(": ")
                self._learn(host(url), gained=outcome.startswith(_GAINED))
            crawler.signals.connect(self.close, signal=signals.engine_stopped)

    async def render(self, visit: PageVisit) -> None:
        """Set the visit's page to what it is after its scripts have run, if it needs that.

        Raises
        ------
        RequestCancelledError
            The crawl ends; the URL is queued again.
        WorkerError
            The browser cannot start; the crawl is halted, the URL queued again.
        """
        if self._browser is None or not self._is_needed(visit):
            return
        async with self._few_at_once:
            if self._crawl.is_budget_exhausted or not self._is_needed(visit):
                return
            self._crawl.count_refetch(200)
            task = asyncio.ensure_future(self._browser.render_page(visit))
            self._under_way.add(task)
            try:
                body = await task
            except asyncio.CancelledError:
                if not self._given_up:
                    raise
                self._crawl.requeue(visit.url_id, time.monotonic())
                raise RequestCancelledError("the crawl ends") from None
            except WorkerError:
                self._crawl.halt(visit.url_id, time.monotonic())
                raise
            finally:
                self._under_way.discard(task)
        await self._take(visit, body)

    def cancel(self) -> None:
        """Cancel what is in the browser: the crawl has to end."""
        self._given_up = True
        for task in self._under_way:
            task.cancel()

    async def close(self) -> None:
        """Stop the browser."""
        if self._browser is not None:
            await self._browser.close()

    def _is_needed(self, visit: PageVisit) -> bool:
        view = visit.view
        if view is None or view.kind or visit.is_refetch or not view.scripts:
            return False
        if _words(view) >= _FEW or self._given_up:
            return False
        own = host(visit.url)
        return own in self._of_use or self._in_vain[own] < _IN_VAIN

    async def _take(self, visit: PageVisit, body: bytes | None) -> None:
        # only if there is more on it than there was
        plain, sent = visit.view, visit.download
        assert plain is not None
        gained = False
        if body is not None:
            visit.download = replace(sent, body=body, content_type="text/html", encoding="utf-8")
            await self._parsing.parse(visit)
            gained = visit.error is None and visit.view is not None and _more(visit.view, plain)
        if not gained:
            visit.view, visit.download, visit.error = plain, sent, None
        self._learn(host(visit.url), gained=gained)
        assert visit.view is not None
        outcome = f"{_GAINED if gained else _SAME}, {_words(plain)} to {_words(visit.view)} words"
        visit.events.append((RENDERED, f"{visit.url}: {outcome}"))
        self._crawler.stats.inc_value("focuscrawl/rendered")

    def _learn(self, name: str, *, gained: bool) -> None:
        if gained:
            self._of_use.add(name)
        else:
            self._in_vain[name] += 1


def _words(view: PageView) -> int:
    """Return the number of words of a page without its title."""
    if not view.title:
        return len(view.tokens)
    return int((view.token_leaf > 0).sum())


def _more(view: PageView, plain: PageView) -> bool:
    return _words(view) > _words(plain) or len(view.links) > len(plain.links)
