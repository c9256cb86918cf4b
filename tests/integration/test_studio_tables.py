"""Crawls in a browser: tables, pages, verdicts in rows, two persons; a crawl that is hostile."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from unit.studio_folders import write_job

from focuscrawl.topics import read_definition

from .accessibility import assert_accessible
from .networks import explore, listening
from .studio import PHONE, SCREEN, Client, Watched, assert_fits, crawl, expect, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AT = "/crawls/crawls/cycling"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl, and one of a page that tries everything."""
    path = tmp_path_factory.mktemp("tables")
    crawl(path, "cycling", 120)
    given = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8", "FOCUSCRAWL_WARC": 1}
    with listening(path / "connections", {"links": ["/evil"], "moves": {}}) as nets:
        front = nets.url("http://127.0.0.21:{port}/")
        explore(path / "crawls" / "evil", front, **given)
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a studio, with its token, that applies no judgements: a job seems to."""
    with (
        FileLock(write_job(folder, "follow", "crawls/cycling") / "lock"),
        serving(folder) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def opened(address: str, browser: Browser) -> Iterator[Watched]:
    """A tab for all tests, each of which goes to a page first."""
    with tab(browser) as page:
        yield Watched(page, address)


@pytest.fixture
def watched(opened: Watched) -> Iterator[Watched]:
    yield opened
    opened.check()


def numbers(page: Page, label: str) -> list[float]:
    """The numbers in a column of the table."""
    cells = page.locator(f'#rows td[data-label="{label}"]').all_text_contents()
    return [float(re.sub("[^0-9.]", "", text) or "inf") for text in cells]


def test_a_table_is_sorted_and_filtered_while_typing(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/pages")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(100)
    best = numbers(page, "relevance")
    assert best == sorted(best, reverse=True)
    page.get_by_role("link", name="Next").press("Enter")
    expect(rows).to_have_count(20)
    page.get_by_role("link", name="Previous").press("Enter")
    expect(rows).to_have_count(100)
    page.get_by_role("link", name="Relevance").press("Enter")
    expect(page.locator('th[aria-sort="ascending"]')).to_contain_text("Relevance")
    worst = numbers(page, "relevance")
    assert worst == sorted(worst)
    expect(page.get_by_role("link", name="Relevance")).to_be_focused()
    page.get_by_label("Words in title or URL").press_sequentially("cycling")
    expect(page.get_by_text(re.compile("searched rows"))).to_be_visible()
    expect(page.locator('th[aria-sort="ascending"]')).to_contain_text("Relevance")
    page.wait_for_url(re.compile("search=cycling&order=-relevance"))
    page.reload()
    expect(page.get_by_label("Words in title or URL")).to_have_value("cycling")
    texts = rows.all_text_contents()
    assert texts
    assert all("cycling" in text.lower() for text in texts)
    page.locator("summary", has_text="More filters").press("Enter")
    page.get_by_label("Relevance from").fill("0.9")
    page.wait_for_url(re.compile("least=0[.]9"))
    page.get_by_role("link", name="Frontier").press("Enter")
    expect(page.locator("#kind")).to_have_value("queued")
    expect(page.locator("#rows")).to_contain_text("The table has")
    page.get_by_label("Part of the host name").fill("nobody.example")
    expect(page.locator("#rows")).to_contain_text("No rows match")


def test_columns_are_chosen_and_stay_chosen(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/pages")
    score, host = (page.get_by_role("columnheader", name=name) for name in ("Score", "Host"))
    expect(host).to_be_hidden()
    page.locator("summary", has_text="Columns").press("Enter")
    page.get_by_role("checkbox", name="Host").press("Space")
    page.get_by_role("checkbox", name="Score").press("Space")
    page.reload()
    for _ in range(2):  # after the next rows are loaded, too
        expect(host).to_be_visible()
        expect(score).to_be_hidden()
        page.get_by_role("link", name="Fetch").press("Enter")
        expect(page.locator("th[aria-sort]")).to_contain_text("Fetch")
    page.evaluate("localStorage.clear()")


def test_rows_are_judged_alone_and_together(watched: Watched, folder: Path) -> None:
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/pages")
    path = folder / "crawls" / "cycling" / "topic.toml"
    first = page.locator("#rows tbody tr").first
    good, bad = (first.locator(f'[data-judge="{verdict}"]') for verdict in ("good", "bad"))
    good.press("Enter")
    expect(good).to_have_attribute("aria-pressed", "true")
    url = good.get_attribute("data-url")
    assert read_definition(path).good == (url,)
    bad.press("Enter")
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    bad.press("Enter")  # once more: no verdict
    expect(bad).to_have_attribute("aria-pressed", "false")
    assert read_definition(path).judged_urls == frozenset()
    boxes = page.locator("[data-pick]")
    for n in range(3):
        boxes.nth(n).press("Space")
    expect(page.get_by_text("3 pages selected")).to_be_visible()
    page.locator("#selected").get_by_role("button", name="Not good").press("Enter")
    expect(page.locator('[data-judge="bad"][aria-pressed="true"]')).to_have_count(3)
    assert len(read_definition(path).bad) == 3
    page.locator("h1").click()
    page.keyboard.press("u")
    expect(page.locator('[data-judge="bad"][aria-pressed="true"]')).to_have_count(0)
    assert read_definition(path).judged_urls == frozenset()
    assert_accessible(page)


def test_a_page_opens_in_a_drawer(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/pages")
    link = page.locator("#rows td.text a").first
    link.press("Enter")
    drawer = page.locator("#drawer")
    expect(drawer.locator("mark.on").first).to_be_visible()
    expect(drawer.get_by_text("Words that speak for the topic")).to_be_visible()
    expect(drawer.get_by_role("region", name="links on the page", exact=True)).to_be_visible()
    expect(drawer.get_by_text("left the frontier")).to_be_visible()
    assert page.url.endswith("/pages")
    assert_accessible(page)
    page.keyboard.press("g")
    expect(drawer.get_by_role("button", name="Good g", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    row = page.locator("#rows tbody tr").first
    expect(row.locator('[data-judge="good"]')).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("g")  # of a page that is not shown any more
    page.keyboard.press("u")
    expect(row.locator('[data-judge="good"]')).to_have_attribute("aria-pressed", "false")


def test_the_csv_file_has_the_filtered_rows(address: str) -> None:
    client = Client(address)
    rows = client.until(f"{AT}/pages?order=-score&kind=page", lambda said: not said["sorting"])
    text = client.page(f"/api/v1{AT}/pages.csv?order=-score&kind=page")
    found = [*csv.DictReader(StringIO(text))]
    first = [row["url"] for row in rows["rows"]]
    assert [row["url"] for row in found][: len(first)] == first
    assert all(row["kind"] == "page" for row in found)
    hosts = client.ask(f"{AT}/host-rows")["rows"]
    assert sum(row["fetches"] for row in hosts) == 120
    assert client.page(f"/api/v1{AT}/hosts.csv").count("\n") == len(hosts) + 1


def test_tables_of_hosts_and_hubs_are_sorted(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/hosts")
    page.get_by_role("link", name="Fetches").press("Enter")
    expect(page.locator("th[aria-sort]")).to_contain_text("Fetches")
    fetches = numbers(page, "fetches")
    assert fetches == sorted(fetches, reverse=True)
    assert_accessible(page)
    page.goto(f"{watched.root}crawls/crawls/cycling/hubs")
    hubs = page.get_by_role("region", name="Hubs")
    hubs.get_by_role("button", name="relevance").press("Enter")
    cells = hubs.locator('td[data-label="relevance"]').all_text_contents()
    assert cells == sorted(cells, reverse=True)
    page.get_by_label("Filter all tables").fill("no such page")
    expect(hubs.locator("tbody tr:visible")).to_have_count(0)
    assert_accessible(page)


def test_two_persons_judge_and_undo(
    watched: Watched, browser: Browser, folder: Path, address: str
) -> None:
    page = watched.page
    path = folder / "crawls" / "cycling" / "topic.toml"
    with tab(browser) as other:
        Watched(other, address)
        shown = []
        for each in (page, other):
            each.goto(f"{watched.root}crawls/crawls/cycling/judge")
            shown.append(each.locator("article").get_attribute("data-url"))
        assert len({*shown}) == 2
        for each, url, key in ((page, shown[0], "g"), (other, shown[1], "b")):
            each.keyboard.press(key)
            each.locator(f'article[data-url="{url}"]').wait_for(state="detached")
    known = read_definition(path)
    assert shown[0] in known.good
    assert shown[1] in known.bad
    # the list has both, can be searched, and changes a verdict
    page.reload()
    listed = page.locator("#judgements tbody tr")
    expect(listed).to_have_count(2)
    page.get_by_label("Verdict", exact=True).select_option("not good")
    expect(listed).to_have_count(1)
    listed.get_by_role("button", name="Good", exact=True).press("Enter")
    expect(listed).to_have_count(0)
    assert shown[1] in read_definition(path).good
    page.locator("h1").click()
    page.keyboard.press("u")
    expect(listed).to_have_count(1)
    page.keyboard.press("u")
    expect(page.locator(f'article[data-url="{shown[0]}"]')).to_be_visible()
    known = read_definition(path)
    assert (known.good, known.bad) == ((), (shown[1],))
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    assert_accessible(page)


def test_a_hostile_page_is_text_everywhere(watched: Watched) -> None:
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
def test_hubs_hosts_and_two_crawls(watched: Watched, folder: Path) -> None:
    crawl(folder, "breadth-first", 120, "breadth-first")
    page = watched.page
    page.goto(f"{watched.root}crawls/crawls/cycling/hubs")
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
    page.get_by_label("First crawl").select_option("crawls/cycling")
    page.get_by_label("Second crawl").select_option("crawls/breadth-first")
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.locator(".curves polyline").first).to_be_visible()
    expect(page.get_by_role("heading", name="Only in crawls/breadth-first")).to_be_visible()
    both = page.get_by_role("region", name="In both")
    expect(both.locator("tbody tr").first).to_be_visible()
    assert_accessible(page)


@pytest.mark.long
def test_a_report_is_made_looked_at_and_downloaded(watched: Watched) -> None:
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


def test_long_titles_and_small_screens_do_not_break_the_tables(
    watched: Watched, folder: Path
) -> None:
    page = watched.page
    with closing(sqlite3.connect(folder / "crawls/cycling/crawl.db")) as connection, connection:
        connection.execute("UPDATE page SET title = ? WHERE seq % 2", ("long title " * 200,))
        connection.execute("UPDATE page SET title = ? WHERE seq % 3 = 0", ("unbroken" * 250,))
    for part in ("pages", "frontier", "hosts", "hubs", "judge"):
        page.goto(f"{watched.root}crawls/crawls/cycling/{part}")
        page.locator("article" if part == "judge" else "main tbody tr").first.wait_for()
        for width, tallest in ((PHONE, 190), (SCREEN, 70)):
            assert_fits(page, width)
            heights = "rows => Math.max(0, ...rows.map(row => row.clientHeight))"
            assert page.locator("main tbody tr").evaluate_all(heights) <= tallest, part
