"""The studio as people use it: a process, a browser, crawls beside it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from .running import TOPIC, as_options
from .studio import Watched, crawl, serving, start, tab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl of ten pages, and a topic of a hostile name."""
    path = tmp_path_factory.mktemp("studio")
    crawl(path, "cycling", 10)
    (path / HOSTILE).mkdir()
    (path / HOSTILE / "topic.toml").write_text(f'words = ["{HOSTILE}"]\n')
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a studio, with its token."""
    with serving(folder) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab of a real browser."""
    with tab(browser) as found:
        yield found


def ask(address: str, path: str, method: str = "GET") -> tuple[int, dict[str, object]]:
    """Ask the API as a script does."""
    root, _, token = address.partition("?token=")
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{root}api/v1{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_script_reads_a_crawl_and_nothing_outside(address: str) -> None:
    status, found = ask(address, "/crawls/crawls/cycling")
    assert status == 200
    assert found["fetched"] == 10
    assert isinstance(found["status"], dict)
    assert found["status"]["fetched"] == 10
    for path in ("/crawls/..%2Foutside", "/crawls/%2Fetc"):
        status, found = ask(address, path)
        assert (status, list(found)) == (400, ["error"])
    status, found = ask(address, "/crawls/crawls/cycling/stop", "POST")
    assert (status, found["error"]) == (400, "nobody crawls in crawls/cycling: nothing to stop")
    assert ask(address, "/nothing")[0] == 404


def test_every_answer_has_the_headers_and_needs_the_token(address: str) -> None:
    root = address.partition("?")[0]
    for path in ("", "assets/htmx.min.js", "api/v1/crawls", "parts/crawls"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(root + path)
        with refused.value as answer:
            assert answer.code == 401
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_pause_and_resume_by_keys_of_a_crawl_begun_on_the_command_line(
    folder: Path, address: str, page: Page
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    watched = Watched(page, address)
    assert page.url == watched.root

    def press(button: str) -> None:
        page.get_by_role("button", name=button).focus()
        page.keyboard.press("Enter")

    crawls = page.locator("#crawls")
    # a crawl at rest that is to wait when it runs: so that there is one that runs, and waits
    assert ask(address, "/crawls/crawls/cycling/pause", "POST")[0] == 202
    given = {"web": "demo", "topic": TOPIC, "strategy": "best-first", "budget": 20}
    running = start("crawl", *as_options(given | {"crawl_dir": "crawls/cycling"}), cwd=folder)
    try:
        expect(crawls.get_by_text("paused", exact=True)).to_be_visible()
        press("Resume crawls/cycling")
        assert running.wait(300) == 0
    finally:
        running.kill()
        running.wait()
    expect(crawls.get_by_role("cell", name="20", exact=True)).to_be_visible()
    expect(page.get_by_text(HOSTILE, exact=True)).to_be_visible()
    watched.check()


def test_a_crawl_is_begun_by_a_key_while_its_start_pages_are_asked_for(
    address: str, page: Page
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.goto(address)
    page.route("**/parts/estimate", hold)
    with page.expect_request("**/parts/estimate"):
        page.goto(f"{address.partition('?')[0]}crawls/new?web=demo")
    page.get_by_label("Fetches, 0 for no limit").fill("5")
    page.get_by_role("button", name="Begin").press("Enter")
    page.wait_for_url("**/crawls/first/live")
    assert held
