"""Crawls looked through, compared and taken home in a browser; one of them is hostile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .accessibility import assert_accessible
from .networks import explore, listening
from .studio import Watched, crawl, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl, and one of a page that tries everything."""
    path = tmp_path_factory.mktemp("studio")
    crawl(path, "best-first", 120)
    given = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8", "FOCUSCRAWL_WARC": 1}
    with listening(path / "connections", {"links": ["/evil"], "moves": {}}) as nets:
        front = nets.url("http://127.0.0.21:{port}/")
        explore(path / "crawls" / "evil", front, **given)
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a studio, with its token."""
    with serving(folder) as found:
        yield found


@pytest.fixture
def watched(address: str, browser: Browser) -> Iterator[Watched]:
    with tab(browser) as page:
        found = Watched(page, address)
        yield found
        found.check()


def path_of(link: Locator) -> str:
    """The address of a link, below the secret prefix of the studio."""
    return re.sub("^/~[^/]+", "", link.get_attribute("href") or "")


def test_pages_are_filtered_and_one_is_looked_at(watched: Watched) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    page = watched.page
    page.get_by_role("link", name="crawls/best-first", exact=True).click()
    page.get_by_role("navigation", name="crawl").get_by_role("link", name="Pages").click()
    rows = page.get_by_role("region", name="pages").locator("tbody tr")
    expect(rows).to_have_count(100)
    page.get_by_role("link", name="Next").press("Enter")
    expect(rows).to_have_count(20)
    page.get_by_role("link", name="Previous").press("Enter")
    expect(rows).to_have_count(100)
    page.get_by_label("Words in title or URL").fill("cycling")
    page.locator("summary", has_text="More filters").press("Enter")
    page.get_by_label("Relevance from").fill("0.9")
    expect(page.get_by_text(re.compile("searched rows"))).to_be_visible()
    expect(rows.first).to_contain_text(re.compile("cycling", re.IGNORECASE))
    page.goto(f"{watched.root[:-1]}{path_of(rows.first.get_by_role('link'))}")
    expect(page.get_by_role("region", name="text of the page")).to_be_visible()
    expect(page.get_by_text("of the topic").first).to_be_visible()
    expect(page.get_by_text("left the frontier")).to_be_visible()
    expect(page.get_by_role("region", name="links on the page", exact=True)).to_be_visible()
    page.get_by_role("link", name="Frontier").press("Enter")
    expect(page.locator("#kind")).to_have_value("queued")
    expect(page.locator("#rows")).to_contain_text("The table has")
    page.get_by_label("Part of the host name").fill("nobody.example")
    expect(page.locator("#rows")).to_contain_text("No rows match")


@pytest.mark.long
def test_hubs_hosts_and_two_crawls(watched: Watched, folder: Path) -> None:
    crawl(folder, "breadth-first", 120, "breadth-first")
    expect = pytest.importorskip("playwright.sync_api").expect
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/best-first/hubs")
    hubs = page.get_by_role("region", name="Hubs")
    expect(hubs.locator("tbody tr").first).to_be_visible()
    page.get_by_role("link", name="Hosts").press("Enter")
    page.get_by_role("link", name="Map of hosts").press("Enter")
    host = page.locator(".map .host").first
    expect(host).to_be_visible()
    host.focus()
    expect(page.locator(".map svg")).to_have_class("chosen")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="pages")).to_be_visible()
    page.get_by_role("link", name="Studio").press("Enter")
    page.get_by_role("link", name="Compare two crawls").press("Enter")
    page.get_by_label("First crawl").select_option("crawls/best-first")
    page.get_by_label("Second crawl").select_option("crawls/breadth-first")
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.locator(".curves polyline").first).to_be_visible()
    expect(page.get_by_role("heading", name="Only in crawls/breadth-first")).to_be_visible()
    both = page.get_by_role("region", name="In both")
    expect(both.locator("tbody tr").first).to_be_visible()
    assert_accessible(page)


@pytest.fixture(scope="module")
def read_only(folder: Path) -> Iterator[str]:
    """The address of a studio that shows everything and changes nothing."""
    with serving(folder, options=["--read-only"]) as found:
        yield found


def test_a_studio_for_reading_has_nothing_to_press(read_only: str, browser: Browser) -> None:
    """What filters a table is asked for with GET, and stays."""
    expect = pytest.importorskip("playwright.sync_api").expect
    changes = "[hx-post], form:not([method=get]), "
    changes += "button:not([popovertarget], form[method=get] button)"
    crawl = "crawls/crawls/best-first"
    pages = ["", "topics/new", "crawls/new", "corpora/new"]
    pages += [f"{crawl}/{part}" for part in ("live", "judge", "pages", "exports")]
    with tab(browser) as page:
        page.goto(read_only)
        root = page.url
        for path in pages:
            page.goto(root + path)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.locator(changes)).to_have_count(0)
        statuses = [
            page.evaluate(
                "path => fetch(path, { method: 'POST' }).then(r => r.status)", root + path
            )
            for path in (f"api/v1/{crawl}/pause", "api/v1/crawls", "parts/estimate")
        ]
    assert statuses == [403, 403, 403]


def test_a_hostile_page_is_text_everywhere(watched: Watched) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    page = watched.page
    for part in ("pages", "frontier", "hubs", "hosts", "exports"):
        page.goto(f"{watched.root}crawls/crawls/evil/{part}")
        expect(page.get_by_role("heading").first).to_be_visible()
    page.goto(f"{watched.root}crawls/crawls/evil/pages")
    page.get_by_role("link", name=re.compile("HYPERLINK")).press("Enter")
    expect(page.locator("#drawer h2").first).to_contain_text("HYPERLINK")
    expect(page.get_by_text("<script>").first).to_be_visible()
    page.get_by_role("link", name="studio page").press("Enter")
    expect(page.get_by_role("heading", name=re.compile("HYPERLINK"))).to_be_visible()
    expect(page.locator("#text-heading + div")).not_to_contain_text("Loading the text …")
    expect(page.locator("#why-heading + div")).to_contain_text("relevance")
    expect(page.get_by_text("<script>").first).to_be_visible()


@pytest.mark.long
def test_a_report_is_made_looked_at_and_downloaded(watched: Watched) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/evil/exports")
    expect(page.get_by_role("heading", name="Exported files")).to_have_count(0)
    page.get_by_role("button", name="Create report").press("Enter")
    rows = page.get_by_role("button", name="First rows of fetches.csv")
    expect(rows).to_be_visible()
    rows.press("Enter")
    expect(page.locator("#preview")).to_contain_text("HYPERLINK")
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download report").press("Enter")
    assert coming.value.suggested_filename == "report.zip"
    answer = page.request.get(
        f"{watched.root}api/v1/crawls/crawls/evil/exports/file?file=fetches.csv"
    )
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"].endswith("; sandbox")
