"""From a phrase and three pages to a collection, in a browser, by keys and clicks only."""

from __future__ import annotations

import json
import os
import re
import signal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs.synthetic import SyntheticWeb

from .accessibility import assert_accessible
from .ports import free_port
from .studio import expect, served, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CYCLING = "/Sports/Cycling"
#: folder that pictures of the pages are written to, for the docs; empty: none are made
PICTURES = os.environ.get("STUDIO_PICTURES", "")
#: of the topic; a machine that makes pictures may not have the letters of every script
NAME = "cycling" if PICTURES else "été-自転車"
LOOKS = {
    "light": ("light", 1280, 860),
    "dark": ("dark", 1280, 860),
    "narrow": ("light", 390, 844),
}


def picture(page: Page, name: str, at: str = "") -> None:
    """Hold a page against what accessibility asks, and make its pictures, `at` an element."""
    assert_accessible(page)
    if not PICTURES:
        return
    from PIL import Image  # noqa: PLC0415 - only who makes pictures needs it

    size = page.viewport_size
    for look, (scheme, width, height) in LOOKS.items():
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)  # curves are drawn anew
        if at:
            page.locator(at).scroll_into_view_if_needed()
        image = Image.open(BytesIO(page.screenshot())).convert("RGB")
        path = Path(PICTURES) / f"{name}-{look}.png"
        image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    page.emulate_media(color_scheme="light")
    if size is not None:
        page.set_viewport_size(size)


def judge(page: Page, topics: dict[str, str]) -> None:
    """Judge the page that is shown, by a key, and wait until it is gone."""
    url = page.locator("article").get_attribute("data-url")
    assert url is not None
    page.keyboard.press("g" if topics.get(url) == CYCLING else "b")
    page.locator(f'article[data-url="{url}"]').wait_for(state="detached")


class Way:
    """A person on the way, by keys and clicks.

    Parameters
    ----------
    page : the tab
    good : pages on the topic
    """

    def __init__(self, page: Page, good: list[str]) -> None:
        self.page, self.good = page, good
        self.state = page.locator("#state")
        self.live = ""

    def link(self, name: str) -> None:
        """Follow a link, and wait for the scripts of the page it leads to."""
        with self.page.expect_navigation(wait_until="load"):
            self.page.get_by_role("link", name=name, exact=True).first.press("Enter")

    def button(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name).first.press("Enter")

    def train_a_critic(self) -> None:
        """Begin a topic from a phrase and three pages."""
        page = self.page
        picture(page, "empty")
        self.link("New topic")
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Phrases").fill("road cycling, peloton")
        page.get_by_label("Pages on the topic, one URL").fill("\n".join(self.good))
        picture(page, "new-topic")
        page.locator("summary").press("Enter")
        page.get_by_label("Recording").fill("demo:9")
        self.button("Create and train")
        page.get_by_role("link", name="Crawl with this critic").wait_for()
        picture(page, "topic")
        if PICTURES:
            self.link("Quality")
            page.get_by_role("row", name=re.compile("^precision")).wait_for()
            picture(page, "quality")
            page.go_back()

    def begin_a_crawl(self) -> None:
        """Crawl sixty pages, and many more."""
        page = self.page
        self.link("Crawl with this critic")
        page.get_by_label("Budget in fetches").fill("60")
        estimate = page.locator("#estimate")
        expect(estimate).to_contain_text("3 of 3")
        expect(estimate).to_contain_text("for 60 fetches")
        picture(page, "new-crawl")
        picture(page, "start-pages", at="#start")
        self.button("Start crawl")
        page.wait_for_url("**/live")
        self.live = page.url
        expect(self.state).to_have_text("the budget of 60 fetches is spent")
        expect(page.locator("#fetched")).to_have_text("60")
        expect(page.locator("#latest tr")).to_have_count(10)
        expect(page.locator("#curve canvas")).to_be_visible()
        page.get_by_text("Continue the crawl with a larger budget").press("Enter")
        page.get_by_label("Budget in fetches").fill("15000")
        page.keyboard.press("Enter")

    def pause_in_two_tabs(self) -> None:
        """Pause the crawl, and see it in another tab, too."""
        self.button("Pause")
        other = self.page.context.new_page()
        other.goto(self.live)
        for shown in (self.page, other):
            expect(shown.locator("#state")).to_have_text("paused")
        other.close()

    def resume(self) -> None:
        """Let the crawl go on, which the studio has outlived."""
        expect(self.page.locator("#wrong")).to_be_hidden()
        expect(self.state).to_have_text("paused")
        self.button("Resume")
        expect(self.state).to_have_text("crawling")
        picture(self.page, "live")

    def judge(self, topics: dict[str, str]) -> None:
        """Judge ten pages, which the crawl follows while it runs, and end it."""
        page = self.page
        self.link("Judge")
        page.locator("article").wait_for()
        picture(page, "judge")
        for _ in range(10):
            judge(page, topics)
        expect(page.locator("#moved table tbody tr").first).to_be_visible()
        page.locator("#moved").scroll_into_view_if_needed()
        picture(page, "moved")
        self.link("Live")
        self.button("Stop")
        expect(self.state).to_have_text(re.compile("stopped|spent"))

    def look_around(self) -> None:
        """Look at what there is of the crawl."""
        for name in ("Pages", "Frontier", "Hubs", "Hosts") if PICTURES else ():
            self.link(name)
            self.page.locator("main table").first.wait_for()
            picture(self.page, name.lower())
        self.page.goto(self.live)
        self.page.locator("#latest a").first.press("Enter")
        self.page.locator("h1").wait_for()
        expect(self.page.get_by_text("Loading the reasons")).to_have_count(0)
        picture(self.page, "page")

    def export(self) -> Path:
        """Make a collection, and return the file that is downloaded."""
        page = self.page
        self.link("Export")
        page.get_by_label("JSON lines").check()
        page.get_by_label("Minimum relevance").fill("0.95")
        self.button("Export pages")
        download = page.get_by_role("link", name=re.compile(r"^Download collection.*\.jsonl$"))
        download.wait_for()
        expect(page.get_by_text("The studio is creating the export")).to_have_count(0)
        picture(page, "export")
        with page.expect_download() as downloaded:
            download.press("Enter")
        return Path(downloaded.value.path())

    def read(self) -> None:
        """Read the datasheet and the report, and open the drawers."""
        page = self.page
        page.get_by_role("link", name="Datasheet of").press("Enter")
        page.get_by_role("heading", name="Datasheet").wait_for()
        picture(page, "datasheet")
        with page.expect_download() as downloaded:
            page.get_by_role("link", name="Download").press("Enter")
        assert "persons judged 10 pages" in Path(downloaded.value.path()).read_text()
        page.go_back()
        page.get_by_role("link", name="Read the report").press("Enter")
        page.locator(".curves polyline").first.wait_for()
        picture(page, "report")
        self.button("Glossary")
        picture(page, "glossary")
        page.keyboard.press("Escape")


@pytest.mark.long
def test_the_whole_way(tmp_path: Path, browser: Browser) -> None:
    pytest.importorskip("trafilatura")
    topics = {label.url: label.topic for label in SyntheticWeb(scale=9).labels()}
    good = [url for url, topic in topics.items() if topic == CYCLING][:3]
    port = free_port()
    studio, address = served(tmp_path, port)
    root = address.partition("?")[0]
    asked: list[str] = []
    wrong: list[str] = []
    try:
        with tab(browser) as page:
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.goto(address)
            way = Way(page, good)
            way.train_a_critic()
            way.begin_a_crawl()
            way.pause_in_two_tabs()
            studio.send_signal(signal.SIGKILL)
            studio.wait()
            expect(page.locator("#wrong")).to_be_visible()
            way.button("Resume")
            expect(page.locator("#message")).to_contain_text("The studio does not answer")
            studio, again = served(tmp_path, port)
            assert again == address
            expect(page.locator("#message")).to_be_hidden()
            way.resume()
            way.judge(topics)
            way.look_around()
            rows = [json.loads(line) for line in way.export().read_text().splitlines()]
            way.read()
            page.goto(root)
            expect(page.get_by_text("in 1 crawl")).to_be_visible()
            picture(page, "overview")
            way.button("Activity")
            picture(page, "activity")
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()
    assert len(rows) > 20
    assert all(row["text"] for row in rows)
    assert not wrong
    assert all(url.startswith((root, "data:", "blob:")) for url in asked)
