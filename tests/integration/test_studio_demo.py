"""From an empty folder to an exported demo crawl in a browser, and what leads on the way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .accessibility import assert_accessible
from .studio import PHONE, SCREEN, Watched, assert_fits, expect, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def start_demo(page: Page, folder: Path) -> None:
    """Start the demo crawl by one click, and read its page when the crawl has ended."""
    assert_accessible(page)
    page.get_by_role("button", name="Try it with the demo web").press("Enter")
    page.wait_for_url("**/live")
    assert (folder / "crawls" / "demo" / "crawl.db").is_file()
    expect(page.locator("#state")).to_have_text("the budget of 300 fetches is spent")
    expect(page.locator("#fetched")).to_have_text("300")
    expect(page.locator("#relevant")).to_have_text(re.compile(r"^[12]\d\d$"))
    expect(page.locator("#recall")).to_have_text(re.compile(r"^\d+ %$"))
    expect(page.locator("#go-on")).to_be_hidden()  # nothing is left of the budget
    # the harvest rate falls, because this small web has few relevant pages left
    expect(page.locator("#exhausted")).to_contain_text("Most of the relevant pages are fetched")
    expect(page.locator("#alarm")).to_be_hidden()
    latest = page.locator("#curve .u-series", has_text="last 100 fetches")
    expect(latest.locator(".u-value")).to_have_text(page.locator("#recent").inner_text())
    expect(page.locator("#latest tr")).to_have_count(10)
    assert_fits(page, PHONE, SCREEN)
    page.get_by_text("Technical details").press("Enter")
    expect(page.get_by_role("heading", name="Queued URLs by score")).to_be_visible()
    assert_accessible(page)


def open_drawers(page: Page) -> None:
    """Open the glossary by a word, and the activity by its button."""
    page.get_by_role("button", name="recall").press("Enter")
    glossary = page.locator("#glossary")
    expect(glossary).to_contain_text("The share of all reachable relevant pages")
    page.keyboard.press("Escape")
    expect(glossary).to_be_hidden()
    page.get_by_role("button", name="Activity").press("Enter")
    expect(page.locator("#activity").get_by_text("done")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")


def export(page: Page) -> None:
    """Export pages, and read the datasheet and the report."""
    page.get_by_role("link", name="Export", exact=True).last.press("Enter")
    chosen = page.locator("#chosen")
    expect(chosen.get_by_role("listitem")).to_have_count(5)
    everything = chosen.locator("strong").inner_text()
    page.get_by_label("Minimum relevance").fill("2")
    expect(chosen).to_contain_text("must be a number from 0 to 1")
    page.get_by_label("Minimum relevance").fill("1")
    expect(chosen.get_by_role("listitem")).to_have_count(5)
    expect(chosen.locator("strong")).not_to_have_text(everything)
    page.get_by_label("Languages").fill("en")
    page.get_by_label("Markdown").check()
    page.get_by_role("button", name="Export pages").press("Enter")
    sheet = page.get_by_role("link", name="Datasheet of collection")
    expect(sheet).to_be_visible()
    assert_accessible(page)
    assert_fits(page, PHONE, SCREEN)
    sheet.press("Enter")
    expect(page.get_by_role("heading", name="Datasheet")).to_be_visible()
    expect(page.get_by_text("found by a focused crawl").first).to_be_visible()
    assert_accessible(page)
    assert_fits(page, PHONE, SCREEN)
    page.go_back()
    page.get_by_role("link", name="Read the report").press("Enter")
    tables = page.get_by_text("Tables of hosts, pages")
    expect(tables).to_be_visible()
    assert_fits(page, PHONE, SCREEN)
    tables.press("Enter")
    expect(page.get_by_role("heading", name="Best hosts")).to_be_visible()
    expect(page.locator(".curves polyline").first).to_be_visible()
    assert_accessible(page)


def test_a_demo_crawl_by_one_click_is_exported(tmp_path: Path, browser: Browser) -> None:
    pytest.importorskip("trafilatura")
    with serving(tmp_path) as address, tab(browser) as page:
        watched = Watched(page, address)
        start_demo(page, tmp_path)
        open_drawers(page)
        export(page)
        # the first page knows what is done, and numbers of the crawl
        page.goto(watched.root)
        card = page.locator("#crawls .card")
        expect(card.locator(".spark")).to_be_visible()
        expect(card).to_contain_text("300 fetched")
        expect(page.get_by_role("link", name="Judge pages")).to_have_class("button main")
        assert_fits(page, PHONE)
        watched.check()
