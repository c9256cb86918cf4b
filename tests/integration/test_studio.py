"""The studio as people use it: a process, a browser, crawls beside it."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.studio.access import Access
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import StudioContext
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.serving import make_application

from .accessibility import assert_accessible
from .running import TOPIC, as_options
from .serving import asked
from .studio import (
    NEW_CRAWL,
    PHONE,
    Client,
    Watched,
    assert_fits,
    crawl,
    expect,
    launch,
    serving,
    start,
    tab,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

HOSTILE = "<img src=x onerror=alert(1)>"
_FIELDS = ("url", "verdict", "class", "name", "words", "urls", "seeds", "topic", "critic", "of")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl of ten pages, and a topic of a hostile name."""
    path = tmp_path_factory.mktemp("studio")
    crawl(path, "cycling", 10)
    (path / "t").mkdir()
    (path / "t" / "topic.toml").write_text('words = ["cycling"]\nweb = "demo"\n')
    (path / HOSTILE).mkdir()
    (path / HOSTILE / "topic.toml").write_text(f'words = ["{HOSTILE}"]\n')
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a studio, with its token."""
    with serving(folder) as found:
        yield found


def test_a_script_reads_a_crawl_and_nothing_outside(address: str) -> None:
    client, at = Client(address), "/crawls/crawls/cycling"
    found = client.ask(at)
    assert found["fetched"] == found["status"]["fetched"] == 10
    headers = {"Authorization": f"Bearer {address.partition('?token=')[2]}"}
    root = f"{address.partition('?')[0]}api/v1"
    for path in ("/crawls/..%2Foutside", "/crawls/%2Fetc"):
        status, text = asked(root + path, None, headers)
        assert (status, [*json.loads(text)]) == (400, ["error"])
    assert client.refused(f"{at}/stop", {}) == (
        "crawls/cycling is not running, so it cannot be stopped"
    )
    assert asked(f"{root}/nothing", None, headers)[0] == 404


def test_nothing_that_no_text_has_is_taken(folder: Path, address: str) -> None:
    access = Access("x", frozenset(), "x")
    routes = make_application(
        StudioContext(StudioFolder(folder), Jobs(folder), False), access
    ).routes
    root, _, token = address.partition("/?token=")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def answer(path: str, body: bytes | None = None) -> int:
        return asked(root + path, body, headers)[0]

    names = {"crawls": "crawls/cycling", "topics": "t/topic.toml", "critics": "models/demo"}
    posts = 0
    for route in routes:
        path, methods = route.path, route.methods  # type: ignore[attr-defined]
        for kind, name in names.items():
            if f"/{kind}/{{" in path:
                path = path.replace("{name:path}", name)
        path = re.sub(r"\{[^}]*\}", "x", path)
        if "POST" not in methods:
            assert answer(f"{path}?q=a%00b") == HTTPStatus.BAD_REQUEST
            continue
        if path.endswith(("/pause", "/resume", "/stop", "/end", "/cancel")):
            continue  # they take no values
        posts += 1
        for hostile in ("a\0b", "\ud800", ["x\udfff"]):
            said = json.dumps(dict.fromkeys(_FIELDS, hostile)).encode()
            assert answer(path, said) == HTTPStatus.BAD_REQUEST, path
    assert posts > 15
    assert answer("/api/v1/crawls/crawls%00a") == HTTPStatus.BAD_REQUEST


def test_every_answer_has_the_headers_and_needs_the_token(address: str) -> None:
    root = address.partition("?")[0]
    for path in ("", "assets/htmx.min.js", "api/v1/crawls", "parts/crawls"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(root + path)
        with refused.value as answer:
            assert answer.code == 401
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_crawl_begun_on_the_command_line_is_resumed_by_keys_with_a_larger_budget(
    folder: Path, address: str, browser: Browser
) -> None:
    client, at = Client(address), "/crawls/crawls/cycling"
    # a crawl at rest that is to wait when it runs: so that there is one that runs, and waits
    client.ask(f"{at}/pause", {})
    with tab(browser) as page:
        watched = Watched(page, address)
        assert page.url == watched.root
        crawls = page.locator("#crawls")
        given = {"web": "demo", "topic": TOPIC, "strategy": "best-first", "budget": 20}
        running = start("crawl", *as_options(given | {"crawl_dir": "crawls/cycling"}), cwd=folder)
        try:
            expect(crawls.get_by_text("paused", exact=True)).to_be_visible()
            client.ask(f"{at}/budget", {"budget": "30"})
            button = page.get_by_role("button", name="Resume crawls/cycling")
            button.focus()
            page.keyboard.press("Enter")
            assert running.wait(300) == 0
        finally:
            running.kill()
            running.wait()
        expect(crawls.get_by_text("30 fetched", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name=HOSTILE, exact=True)).to_be_visible()
        watched.check()
    assert client.ask(at)["state"] == "the budget of 30 fetches is spent"


def test_crawls_are_begun_by_keys_while_their_start_pages_are_asked_for(
    folder: Path, address: str, browser: Browser
) -> None:
    """Back shows the form as it was left, which browsers of tests do not do by default."""
    kept = ["--disable-back-forward-cache"]
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    with closing(launch(browser.browser_type, ignore_default_args=kept)) as own, tab(own) as page:
        page.goto(address)
        page.context.route("**/parts/estimate", hold)
        page.goto(f"{address.partition('?')[0]}crawls/new")
        page.evaluate("() => { onpageshow = (event) => { document.title += event.persisted; }; }")
        assert_accessible(page)
        assert_fits(page, PHONE)
        page.get_by_label("Budget in fetches").fill("5")
        page.get_by_label("Start pages of the crawl").fill(NEW_CRAWL["seeds"])
        for _ in range(2):  # the second crawl has another name
            page.get_by_role("button", name="Start crawl").press("Enter")
            page.wait_for_url("**/live")
            page.evaluate("history.back()")
            expect(page).to_have_title(re.compile("true$"))
            expect(page.get_by_role("button", name="Start crawl")).to_be_enabled()
        expect(page.get_by_label("Budget in fetches")).to_have_value("5")
        expect(page.locator(".htmx-request")).to_have_count(0)
    assert held
    for name in ("Cycling", "Cycling-2"):
        assert (folder / "crawls" / name / "seeds.txt").is_file()
