"""Renders pages that need JavaScript, in a browser without network access.

The package scrapy-playwright runs the browser Chromium. The crawl, not the browser, sends the
requests of a page's scripts, with the same delays, robots.txt rules and address checks as other
requests. The browser itself cannot connect to a server or resolve a host name, because its proxy
is unreachable and its resolver knows no names.
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

import numpy as np
from scrapy import Request, signals
from scrapy.http.request import NO_CALLBACK

from focuscrawl.crawl.visit import RENDERED
from focuscrawl.engine.visits import redirect_target
from focuscrawl.errors import RequestCancelledError, UserError, WorkerError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.page.words import count_words
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

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_REQUEST_TIME_SHARE = 2 / 3  # share of a page's time in which its scripts may send requests
_MAX_REQUESTS = 60  # of a page
_MAX_BYTES = 10 * 1024 * 1024  # of a rendered page, and of all cached scripts
_ALLOWED_TYPES = ("script", "xhr", "fetch")
_DROPPED_HEADERS = ("content-encoding", "content-length", "transfer-encoding", "set-cookie")
# returns null for a long page, so that its text is not copied
_READ = """most => {
    const html = document.documentElement.outerHTML;
    return html.length > most ? null : html;
}"""
_DEAD_PROXY = "http://127.0.0.1:1"
_ARGUMENTS = (
    *(f"--proxy-server={_DEAD_PROXY}", "--proxy-bypass-list=<-loopback>"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--dns-prefetch-disable"),
    *("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-webrtc"),
    *("--disable-background-networking", "--disable-component-update", "--no-pings"),
    *("--js-flags=--max-old-space-size=256", "--disable-gpu", "--renderer-process-limit=4"),
)
# A page may run scripts and send requests, but not open windows, navigate or load frames, which
# can start further processes.
_POLICY = "sandbox allow-scripts allow-same-origin; frame-src 'none'; object-src 'none'"
_MEMORY = 1024 * 1024  # KiB of data of a browser process; scripts can allocate without limit
#: Script that starts a browser, with the fields ``program`` and ``memory`` (KiB). Each page has a
#: window, for whose address bar Chromium would render two more pages. The last
#: --disable-features counts, so Playwright's own one is extended.
START_SCRIPT = """#!/bin/sh
ulimit -d {memory}
for argument do
  shift
  case $argument in
    --disable-features=*) argument=$argument,WebUIOmniboxPopup,WebUIOmniboxAimPopup ;;
  esac
  set -- "$@" "$argument"
done
exec {program} "$@"
"""
_MIN_WORDS = 30  # outside of the title; a page with fewer words is rendered
_MAX_USELESS = 3  # renderings of a host's pages without further text; then its pages are skipped
_MAX_OPEN_PAGES = 2  # in the browser at the same time
_MORE_TEXT, _NO_MORE_TEXT = "more", "no more"


def configure_browser(settings: BaseSettings, executable: str) -> None:
    """Configure the browser that scrapy-playwright starts when the first page is rendered.

    Parameters
    ----------
    executable : str
        Path of the browser; ``1`` for an installed Chromium.

    Raises
    ------
    UserError
        The browser or scrapy-playwright is not installed.
    """
    with require_extra("browser", "FOCUSCRAWL_BROWSER"):
        import scrapy_playwright.handler  # noqa: F401, PLC0415
    found = executable
    if executable == "1":
        found = next(filter(None, map(shutil.which, _PROGRAMS)), "")
    if not found:
        raise UserError(
            "FOCUSCRAWL_BROWSER: no browser found: install Chromium (on Debian: apt-get install "
            "chromium), or set the path of an executable; searched for "
            f"{', '.join(_PROGRAMS)}"
        )
    if not (Path(found).is_file() and os.access(found, os.X_OK)):
        raise UserError(
            f"FOCUSCRAWL_BROWSER: {found} is not an executable file: set the path of a browser"
        )
    launch = {
        "executable_path": found,
        "args": [*_ARGUMENTS],
        "ignore_default_args": ["--disable-popup-blocking"],
        "chromium_sandbox": os.geteuid() != 0,  # the sandbox does not run as root
    }
    logging.getLogger("scrapy-playwright").setLevel(logging.ERROR)
    for name, value in {
        "PLAYWRIGHT_LAUNCH_OPTIONS": launch,
        "PLAYWRIGHT_BROWSER_TYPE": "chromium",
        "PLAYWRIGHT_BROWSER_PROVIDER": None,
        "PLAYWRIGHT_CDP_URL": None,  # a browser with network access
        "PLAYWRIGHT_CONNECT_URL": None,
    }.items():
        settings.set(name, value, priority="cmdline")  # overrides the project's settings


class Browser:
    """Renders pages in a browser, which starts when the first page is rendered.

    Create the `Browser` before the Scrapy engine starts.
    """

    def __init__(self, crawler: Crawler) -> None:
        from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler  # noqa: PLC0415

        self._crawler = crawler
        self._seconds = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")  # for each page
        self._handler = ScrapyPlaywrightDownloadHandler(crawler)
        self._folder = tempfile.TemporaryDirectory(prefix="focuscrawl-browser-")
        self._write_start_script(self._handler.config.launch_options)
        self._scripts: OrderedDict[str, Response] = OrderedDict()  # cache; pages share scripts
        self._size = 0
        self._pages = 0
        self._has_started = False

    def _write_start_script(self, launch: dict[str, Any]) -> None:
        # a start script also limits the memory of the child processes
        start = Path(self._folder.name) / "chromium"
        program = shlex.quote(launch["executable_path"])
        start.write_text(START_SCRIPT.format(memory=_MEMORY, program=program), encoding="utf-8")
        start.chmod(0o700)
        launch["executable_path"] = str(start)

    async def render_page(self, visit: PageVisit) -> bytes | None:
        """Return the rendered page as UTF-8, or None if rendering failed.

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
                "playwright_context": f"page {self._pages}",  # isolates the pages
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
        except Exception as error:  # pages can make the browser fail in many ways
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            if "playwright_page" not in request.meta and not self._has_started:
                raise WorkerError(f"the browser cannot start: {why}") from None
            logger.debug("%s was not rendered: %s", visit.url, why)
            return None
        finally:
            page = request.meta.get("playwright_page")
            if page is not None:
                with suppress(Exception):  # the page may be closed
                    await asyncio.wait_for(page.context.close(), self._seconds)

    async def _run(self, request: Request) -> bytes | None:
        from playwright.async_api import TimeoutError as LateError  # noqa: PLC0415

        await self._handler.download_request(request)
        page: Page = request.meta["playwright_page"]
        self._has_started = True
        longest = self._seconds * _REQUEST_TIME_SHARE * 1000
        with suppress(LateError):
            await page.wait_for_load_state("networkidle", timeout=longest)
        html: str | None = await page.evaluate(_READ, _MAX_BYTES)
        return None if html is None else html.encode("utf-8", "replace")

    async def close(self) -> None:
        """Stop the browser."""
        await self._handler.close()
        self._folder.cleanup()

    async def fetch(self, url: str, kind: str, accept: str) -> Response:
        """Fetch a URL that a script requests, without following redirects; cache script files."""
        known = self._scripts.get(url)
        if known is not None:
            self._scripts.move_to_end(url)
            return known
        request = Request(
            url,
            headers={"Accept": accept} if accept else None,
            meta={"dont_retry": True, "dont_redirect": True},
            callback=NO_CALLBACK,
        )
        assert self._crawler.engine is not None
        response = await self._crawler.engine.download_async(request)
        self._crawler.stats.inc_value("focuscrawl/rendering_requests")
        if kind == "script" and response.status == 200:
            self._cache_script(url, response)
        return response

    def _cache_script(self, url: str, response: Response) -> None:
        self._scripts[url] = response
        self._size += len(response.body)
        while self._size > _MAX_BYTES:
            _, forgotten = self._scripts.popitem(last=False)
            self._size -= len(forgotten.body)


class _Routes:
    """Answers the requests of one page."""

    def __init__(self, browser: Browser, visit: PageVisit) -> None:
        self._browser = browser
        self._visit = visit
        self._served = False
        self._left = _MAX_REQUESTS

    async def install(self, page: Page, _: Request) -> None:
        """Intercept all requests of a page in the browser, and of its pop-ups."""
        await page.context.route("**", self._answer)
        await page.route("**", self._answer)  # before scrapy-playwright's own

    async def _answer(self, route: Route) -> None:
        with suppress(Exception):  # the page may be closed
            if not await self._fulfil(route):
                await route.abort("aborted")

    async def _fulfil(self, route: Route) -> bool:
        request = route.request
        if request.is_navigation_request():
            if self._served or request.frame.parent_frame is not None:
                return False
            self._served = True
            download = self._visit.download
            kind = download.content_type or "text/html"
            charset = f"; charset={download.encoding}" if download.encoding else ""
            headers = {"content-type": f"{kind}{charset}", "content-security-policy": _POLICY}
            await route.fulfill(status=200, body=download.body, headers=headers)
            return True
        url, kind = normalize(request.url), request.resource_type
        if request.method != "GET" or kind not in _ALLOWED_TYPES or url is None:
            return False
        try:
            response = await self._follow(url, kind, request.headers.get("accept", ""))
        except Exception:  # refused, forbidden, not found
            return False
        if response is None:
            return False
        headers = {
            name.decode("latin-1"): b", ".join(values).decode("latin-1")
            for name, values in response.headers.items()
            if name.decode("latin-1").lower() not in _DROPPED_HEADERS
        }
        await route.fulfill(status=response.status, headers=headers, body=response.body)
        return True

    async def _follow(self, url: str, kind: str, accept: str) -> Response | None:
        # each redirect is a separate request, with the delay of its host
        while self._left > 0:
            self._left -= 1
            response = await self._browser.fetch(url, kind, accept)
            target = redirect_target(response)
            if target is None:
                return response
            url = target
        return None


class Rendering:
    """Renders the fetched pages that have scripts and hardly any text, in a browser.

    Each rendering counts against the budget like a fetch. The outcome of each rendering is
    recorded as an event, so that a resumed crawl knows on which hosts rendered pages gain text.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl, parsing: PageParsing) -> None:
        self._crawler = crawler
        self._crawl = crawl
        self._parsing = parsing
        self._browser = Browser(crawler) if crawl.config.browser else None
        self._page_slots = asyncio.Semaphore(_MAX_OPEN_PAGES)
        self._useless_renderings: Counter[str] = Counter()
        self._useful_hosts: set[str] = set()
        self._tasks: set[asyncio.Task[bytes | None]] = set()
        self._cancelled = False
        if self._browser is not None:
            for event in History(self._crawl.store).events(RENDERED):
                url, _, outcome = event.detail.rpartition(": ")
                self._count_outcome(host(url), gained=outcome.startswith(_MORE_TEXT))
            crawler.signals.connect(self.close, signal=signals.engine_stopped)

    async def render(self, visit: PageVisit) -> None:
        """Replace the fetched page by the rendered page, if the fetched page needs rendering.

        Raises
        ------
        RequestCancelledError
            The crawl stops, and the URL is queued again.
        WorkerError
            The browser cannot start. The crawl is halted, and the URL is queued again.
        """
        if self._browser is None or not self._is_needed(visit):
            return
        async with self._page_slots:
            if self._crawl.is_budget_exhausted or not self._is_needed(visit):
                return
            self._crawl.count_refetch(200)
            task = asyncio.ensure_future(self._browser.render_page(visit))
            self._tasks.add(task)
            try:
                body = await task
            except asyncio.CancelledError:
                if not self._cancelled:
                    raise
                self._crawl.requeue(visit.url_id, time.monotonic())
                raise RequestCancelledError("the crawl ends") from None
            except WorkerError:
                self._crawl.halt(visit.url_id, time.monotonic())
                raise
            finally:
                self._tasks.discard(task)
        await self._use_rendering(visit, body)

    def cancel(self) -> None:
        """Cancel the rendering of all pages, because the crawl has to stop."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Stop the browser."""
        if self._browser is not None:
            await self._browser.close()

    def _is_needed(self, visit: PageVisit) -> bool:
        view = visit.view
        if view is None or view.kind or visit.is_refetch or not view.scripts:
            return False
        if _words(view) >= _MIN_WORDS or self._cancelled:
            return False
        page_host = host(visit.url)
        return (
            page_host in self._useful_hosts or self._useless_renderings[page_host] < _MAX_USELESS
        )

    async def _use_rendering(self, visit: PageVisit, body: bytes | None) -> None:
        # keep the original page unless the rendered page has more words or links
        plain, download = visit.view, visit.download
        assert plain is not None
        gained = False
        if body is not None:
            visit.download = replace(
                download, body=body, content_type="text/html", encoding="utf-8"
            )
            await self._parsing.parse(visit)
            gained = (
                visit.error is None and visit.view is not None and _has_more(visit.view, plain)
            )
        if not gained:
            visit.view, visit.download, visit.error = plain, download, None
        self._count_outcome(host(visit.url), gained=gained)
        assert visit.view is not None
        outcome = _MORE_TEXT if gained else _NO_MORE_TEXT
        outcome += f", {_words(plain)} to {_words(visit.view)} words"
        visit.events.append((RENDERED, f"{visit.url}: {outcome}"))
        self._crawler.stats.inc_value("focuscrawl/rendered")

    def _count_outcome(self, name: str, *, gained: bool) -> None:
        if gained:
            self._useful_hosts.add(name)
        else:
            self._useless_renderings[name] += 1


def _words(view: PageView) -> int:
    """Return the number of words of a page without its title."""
    first = int(np.searchsorted(view.token_leaf, int(bool(view.title))))
    return round(count_words(" ".join(view.tokens[first:])))


def _has_more(view: PageView, plain: PageView) -> bool:
    return _words(view) > _words(plain) or len(view.links) > len(plain.links)
