"""A crawl begun, watched, given another budget and ended in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .studio import MINUTE, serving, tab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder."""
    return tmp_path_factory.mktemp("studio")


@pytest.fixture
def page() -> Iterator[Page]:
    """A tab of a real browser."""
    with tab() as found:
        yield found


def test_a_crawl_is_begun_watched_and_given_more(folder: Path, page: Page) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with serving(folder) as address:
        root = address.partition("?")[0]
        page.goto(address, timeout=MINUTE)
        with page.expect_navigation(wait_until="load"):
            page.get_by_role("link", name="New crawl").first.click()
        page.get_by_label("Name").fill("cycling")
        page.get_by_label("Fetches, 0 for no limit").fill("30")
        page.get_by_text("More", exact=True).click()
        page.get_by_label("Recorded web").fill("demo:9")
        expect(page.locator("#estimate")).to_contain_text("recorded web", timeout=MINUTE)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_url(f"{root}crawls/crawls/cycling/live", timeout=MINUTE)
        state = page.locator("#state")
        expect(state).to_have_text("the budget of 30 fetches is spent", timeout=MINUTE)
        expect(page.locator("#fetched")).to_have_text("30")
        expect(page.locator("#latest tr")).to_have_count(25)
        expect(page.locator("#curve canvas")).to_be_visible()

        page.get_by_label("Fetches in all").fill("45")
        page.keyboard.press("Enter")
        expect(state).to_have_text("the budget of 45 fetches is spent", timeout=MINUTE)
        expect(page.locator("#of-budget")).to_have_text(" of 45")
        assert not wrong

        page.get_by_label("Fetches in all").fill("0")  # no limit; and another tab
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=MINUTE)
        page.get_by_role("button", name="Pause").click()
        other = page.context.new_page()
        other.goto(page.url, timeout=MINUTE)
        for shown in (page, other):
            expect(shown.locator("#state")).to_have_text("paused", timeout=MINUTE)
        other.get_by_role("button", name="End").click()
        expect(state).to_contain_text("stopped by `focuscrawl stop`", timeout=MINUTE)
        other.close()
