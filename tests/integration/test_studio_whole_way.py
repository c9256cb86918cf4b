"""From a phrase and three pages to a collection, in a browser, by keys and clicks only."""

from __future__ import annotations

import os
import re
import signal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs import open_web

from .ports import free_port
from .studio import MINUTE, start, tab

if TYPE_CHECKING:
    import subprocess

    from playwright.sync_api import Page

LONG = 5 * MINUTE
CYCLING = "/Sports/Cycling"
#: folder that pictures of the pages are written to, for docs/studio.md; empty: none are made
PICTURES = os.environ.get("FOCUSCRAWL_PICTURES", "")
LOOKS = {
    "light": ("light", 1100, 760),
    "dark": ("dark", 1100, 760),
    "narrow": ("light", 360, 760),
}


def serve(folder: Path, port: int) -> tuple[subprocess.Popen[str], str]:
    """Serve a folder; return the process and the address, with the token."""
    arguments = ["studio", ".", "--port", str(port), "--no-browser"]
    studio = start(*arguments, cwd=folder, stdout=-1)
    assert studio.stdout is not None
    with studio.stdout as said:
        found = re.search(r"http://\S+", said.readline())
    assert found is not None
    return studio, found[0]


def picture(page: Page, name: str) -> None:
    """Make the pictures of a page."""
    if not PICTURES:
        return
    from PIL import Image  # noqa: PLC0415 - only who makes pictures needs it

    size = page.viewport_size
    for look, (scheme, width, height) in LOOKS.items():
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)  # curves are drawn anew
        image = Image.open(BytesIO(page.screenshot())).convert("RGB")
        path = Path(PICTURES) / f"studio-{name}-{look}.png"
        image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    page.emulate_media(color_scheme="light")
    if size is not None:
        page.set_viewport_size(size)


def judge(page: Page, topics: dict[str, str]) -> None:
    """Judge the page that is shown, by a key, and wait until it is gone."""
    url = page.locator("article").get_attribute("data-url")
    assert url is not None
    page.keyboard.press("g" if topics.get(url) == CYCLING else "b")
    page.locator(f'article[data-url="{url}"]').wait_for(state="detached")


def test_the_whole_way(tmp_path: Path) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    expect.set_options(timeout=LONG)
    topics = {label.url: label.topic for label in open_web("demo:9").labels()}
    good = [url for url, topic in topics.items() if topic == CYCLING][:3]
    port = free_port()
    studio, address = serve(tmp_path, port)
    root = address.partition("?")[0]
    asked: list[str] = []
    wrong: list[str] = []
    try:
        with tab() as page:
            page.set_default_timeout(LONG)
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.goto(address)
            picture(page, "empty")

            # a topic, and its critic
            page.get_by_role("link", name="New topic").first.press("Enter")
            page.get_by_label("Name").fill("cycling")
            page.get_by_label("Phrases").fill("road cycling, peloton")
            page.get_by_label("Pages on the topic, one URL").fill("\n".join(good))
            picture(page, "new-topic")
            page.locator("summary").press("Enter")
            page.get_by_label("Recording").fill("demo:9")
            page.get_by_role("button", name="Begin, and train its critic").press("Enter")
            page.get_by_role("link", name="Crawl with it").wait_for()
            picture(page, "topic")
            page.get_by_role("link", name="Quality").first.press("Enter")
            page.locator("h1").wait_for()
            picture(page, "quality")
            page.go_back()

            # a crawl, more budget
            page.get_by_role("link", name="Crawl with it").press("Enter")
            page.get_by_label("Fetches, 0 for no limit").fill("60")
            picture(page, "new-crawl")
            page.get_by_role("button", name="Begin").press("Enter")
            page.wait_for_url("**/live")
            live = page.url
            state = page.locator("#state")
            expect(state).to_have_text("the budget of 60 fetches is spent")
            page.get_by_label("Fetches in all").fill("15000")
            page.keyboard.press("Enter")

            # pause; a second tab; the studio is killed, and begun anew
            page.get_by_role("button", name="Pause").press("Enter")
            other = page.context.new_page()
            other.goto(live)
            for shown in (page, other):
                expect(shown.locator("#state")).to_have_text("paused")
            other.close()
            studio.send_signal(signal.SIGKILL)
            studio.wait()
            expect(page.locator("#wrong")).to_be_visible()
            studio, again = serve(tmp_path, port)
            assert again == address
            expect(page.locator("#wrong")).to_be_hidden()
            expect(state).to_have_text("paused")
            page.get_by_role("button", name="Resume").press("Enter")
            expect(state).to_have_text("crawling")
            picture(page, "live")

            # ten judgements, which the crawl follows while it runs
            page.get_by_role("link", name="Judge").press("Enter")
            page.locator("article").wait_for()
            picture(page, "judge")
            for _ in range(10):
                judge(page, topics)
            expect(page.locator("#moved table tbody tr").first).to_be_visible()
            picture(page, "moved")
            page.get_by_role("link", name="Live").press("Enter")
            page.get_by_role("button", name="End").press("Enter")
            expect(state).to_have_text(re.compile("stopped by|spent"))

            # what there is of it, and home
            for name in ("Pages", "Frontier", "Hubs", "Hosts"):
                page.get_by_role("link", name=name, exact=True).press("Enter")
                page.locator("main table").first.wait_for()
                picture(page, name.lower())
            page.goto(live)
            page.locator("#latest a").first.press("Enter")
            page.locator("h1").wait_for()
            picture(page, "page")
            page.get_by_role("link", name="Take home").press("Enter")
            page.get_by_role("button", name="Make", exact=False).first.press("Enter")
            page.get_by_role("link", name=re.compile("^Download")).first.wait_for()
            picture(page, "take-home")
            with page.expect_download() as download:
                page.get_by_role("link", name=re.compile("^Download")).first.press("Enter")
            assert Path(download.value.path()).stat().st_size > 1000
            page.goto(root)
            picture(page, "overview")
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()
    assert not wrong
    assert all(url.startswith((root, "data:", "blob:")) for url in asked)
