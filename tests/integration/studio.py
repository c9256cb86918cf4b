"""A studio in a process of its own, and a tab of a real browser."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from focuscrawl.webs.synthetic import SyntheticWeb

from . import warm
from .running import TOPIC, as_options

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType, Page
    from playwright.sync_api import expect as expect  # noqa: PLC0414 - for the tests
else:

    def expect(shown: object) -> object:
        """Import the assertions of Playwright when they are used."""
        return pytest.importorskip("playwright.sync_api").expect(shown)


#: a crawl of the demo web, as the form or a script says it
NEW_CRAWL = {
    "critic": "models/demo",
    "topic": "/Sports/Cycling",
    "web": "demo",
    "strategy": "best-first",
    "seeds": "\n".join(SyntheticWeb().seeds("/Sports/Cycling")),
}
_LONG = 600.0  # seconds after which something hangs
_PATIENCE = 300_000  # milliseconds: a loaded machine is slow
_playwright = ExitStack()
PHONE, SCREEN = 390, 1280  # pixels across
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def start(*arguments: str, cwd: Path, stdout: int = 1, forks: bool = True) -> warm.WarmProcess:
    """Run ``focuscrawl`` in a folder."""
    environment = os.environ | {"XDG_STATE_HOME": str(cwd / ".state")}  # where tokens are kept
    return warm.WarmProcess(
        [*arguments],
        cwd=cwd,
        env=environment,
        stdout=stdout,
        stderr=2,
        program="focuscrawl",
        forks=forks,
    )


def served(
    folder: Path, port: int, *options: str, forks: bool = True
) -> tuple[warm.WarmProcess, str]:
    """Start to serve a folder; return the process and the address, with its token."""
    arguments = ["studio", ".", "--port", str(port), "--no-browser", *options]
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as said:
        studio = start(*arguments, cwd=folder, stdout=writing, forks=forks)
        os.close(writing)
        found = re.search(r"https?://\S+", said.readline())
    assert found is not None
    return studio, found[0]


@contextmanager
def serving(
    folder: Path, port: int = 0, options: Sequence[str] = (), *, forks: bool = True
) -> Iterator[str]:
    """Serve a folder; give the address, with its token; `forks`: see `warm.WarmProcess`."""
    studio, address = served(folder, port, *options, forks=forks)
    try:
        yield address
    finally:
        studio.send_signal(signal.SIGINT)
        code = studio.wait()
    assert code == 0


def launch(chromium: BrowserType, **options: Any) -> Browser:
    """Start a real browser."""
    with tempfile.TemporaryDirectory() as folder:
        return chromium.launch(
            executable_path=_start_script(Path(folder)), args=_FLAGS, timeout=_PATIENCE, **options
        )


def _start_script(folder: Path) -> Path:
    """Write the script by which crawls start a browser, too."""
    from focuscrawl.engine.browser import START_SCRIPT  # noqa: PLC0415 - slow to import

    path = folder / "chromium"
    program = shlex.quote(_program())
    path.write_text(START_SCRIPT.format(memory="unlimited", program=program), encoding="utf-8")
    path.chmod(0o700)
    return path


def _program() -> str:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    return program


@cache
def open_browser() -> Browser:
    """Start a real browser, which runs until `close_browser`; or skip."""
    playwright = pytest.importorskip("playwright.sync_api")
    _program()  # skips before anything starts
    started = _playwright.enter_context(playwright.sync_playwright())
    playwright.expect.set_options(timeout=_PATIENCE)
    browser = launch(started.chromium)
    _playwright.callback(browser.close)
    return browser


def close_browser() -> None:
    """End the browser, if it runs."""
    _playwright.close()
    open_browser.cache_clear()


@contextmanager
def tab(browser: Browser, *, insecure: bool = False) -> Iterator[Page]:
    """Give a tab of its own, which takes any certificate if `insecure`."""
    context = browser.new_context(ignore_https_errors=insecure)
    context.set_default_timeout(_PATIENCE)
    try:
        yield context.new_page()
    finally:
        context.close()


class Watched:
    """A tab that has opened a studio, and what it must never do."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.root = address.partition("?")[0]
        self.wrong: list[str] = []
        self._asked: list[str] = []
        page.on("console", lambda said: self.wrong.append(said.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        page.on("request", lambda request: self._asked.append(request.url))
        page.goto(address)

    def check(self) -> None:
        """Assert that nothing was wrong, and that no other server was asked."""
        assert not self.wrong
        assert all(url.startswith((self.root, "data:", "blob:")) for url in self._asked)


def assert_fits(page: Page, *widths: int) -> None:
    """Assert that a page is as wide as a window of each width in turn, and not long."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        across, down = page.evaluate(size)
        assert across <= width, page.url
        assert down <= 3000, page.url


def crawl(cwd: Path, name: str, budget: int, strategy: str = "best-first") -> None:
    """Crawl the synthetic web, into the folder ``crawls/NAME``."""
    given = {"web": "demo", "topic": TOPIC, "strategy": strategy, "budget": budget}
    line = ["crawl", *as_options(given | {"crawl_dir": f"crawls/{name}"})]
    done = warm.run(line, cwd=cwd, env=os.environ, program="focuscrawl")
    assert done.returncode == 0, done.stderr


class RefusedError(Exception):
    """What a studio says when it does not do what it was asked."""


class Client:
    """A script that uses the API of a studio."""

    def __init__(self, address: str) -> None:
        self.base, _, self._token = address.partition("/?token=")

    def page(self, path: str, data: dict[str, Any] | None = None) -> str:
        """Return what is at an address; with `data` it is posted."""
        headers = {"Authorization": f"Bearer {self._token}"}
        headers["Content-Type"] = "application/json"
        body = None if data is None else json.dumps(data).encode()
        try:
            with urlopen(Request(self.base + path, body, headers)) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            raise RefusedError(json.load(error)["error"]) from error

    def ask(self, path: str, data: dict[str, Any] | None = None) -> Any:
        """The same, of the API."""
        return json.loads(self.page(f"/api/v1{path}", data))

    def refused(self, path: str, data: dict[str, Any]) -> str:
        """Post what is refused; return why."""
        with pytest.raises(RefusedError) as refused:
            self.ask(path, data)
        return str(refused.value)

    def until(
        self, path: str, done: Callable[[Any], bool], data: dict[str, Any] | None = None
    ) -> Any:
        """Ask again and again; with `data`, which is posted."""
        end = time.monotonic() + _LONG
        while not done(said := self.ask(path, data)):
            assert time.monotonic() < end, said
            time.sleep(0.2)
        return said
