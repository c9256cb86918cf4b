"""From nothing to a running crawl in the studio, and twenty judgements there, by a real browser.

Run: ``python benchmarks/studio_way.py wikipedia /Science/Biology/Birds --draws 3``. A person's
part is played by the labels of the recorded web: phrase (the topic's name) and three URLs of
`train` rows are typed, pages on the topic get ``g``, others ``b``, those without a label ``s``.

Clicks are of the mouse; keys are those that judge; what is typed into fields is not counted.
Seconds include all that the studio and its jobs do, and none that a person thinks. Precision and
recall of R > 1/2 are on up to 2,000 `test` rows that the crawl has not fetched: of the critic
that was trained from the page, and of the one that the crawl follows after the judgements.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright
from replays import WEBS, recording

from focuscrawl.critic.assessment import check_relevance
from focuscrawl.critic.critic_files import load_critic
from focuscrawl.report.status import open_store
from focuscrawl.store.history import History
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web
from studies.critics import phrase_of

LONG = 600_000  # milliseconds
JUDGEMENTS = 20
TESTED = 2000
FETCHES = 100


class Clicks:
    """Clicks with the mouse, counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def on(self, role: Literal["button", "link"], name: str) -> None:
        """Click what has a role and a name."""
        self.page.get_by_role(role, name=name).first.click(timeout=LONG)
        self.count += 1


def begin(page: Page, name: str, web: str, phrase: str, urls: list[str]) -> tuple[int, float]:
    """Go from the overview to a crawl that runs; return clicks and seconds."""
    clicks, start = Clicks(page), time.monotonic()
    clicks.on("link", "New topic")
    page.fill("#name", name)
    page.fill("#words", phrase)
    page.fill("#urls", "\n".join(urls))
    page.locator("summary").click()
    clicks.count += 1
    page.fill("#web", web)
    clicks.on("button", "Begin, and train its critic")
    clicks.on("link", "Crawl with it")
    page.fill("#budget", str(FETCHES))
    clicks.on("button", "Begin")
    page.wait_for_url("**/live", timeout=LONG)
    return clicks.count, time.monotonic() - start


def judge(page: Page, crawl: str, on_topic: dict[str, bool]) -> tuple[int, int, int, float]:
    """Judge pages of a crawl by keys; return how many were good, bad, unlabelled, and seconds."""
    page.goto(f"{page.url.split('/crawls/')[0]}/crawls/{crawl}/judge")
    start, said = time.monotonic(), {"g": 0, "b": 0, "s": 0}
    while said["g"] + said["b"] < JUDGEMENTS:
        article = page.locator("article")
        nothing = page.get_by_text("Every page worth asking about was judged")
        expect(article.or_(nothing)).to_be_visible(timeout=LONG)
        if nothing.is_visible():
            break
        url = article.get_attribute("data-url") or ""
        key = {True: "g", False: "b", None: "s"}[on_topic.get(url)]
        said[key] += 1
        page.keyboard.press(key)
        expect(page.locator(f'article[data-url="{url}"]')).to_have_count(0, timeout=LONG)
    expect(page.locator("#moved table")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("The crawl takes up what you said")).to_have_count(0, timeout=LONG)
    page.wait_for_timeout(3000)  # what was judged meanwhile is followed in a turn of its own
    expect(page.locator("#moved table")).to_be_visible(timeout=LONG)
    return said["g"], said["b"], said["s"], time.monotonic() - start


def main() -> None:
    """Print a row for each draw of the three pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("web")
    parser.add_argument("topic")
    parser.add_argument("--phrase")
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    labels = read_labels(WEBS / given.web / "labels.csv")
    web = open_web(str(recording(given.web)))
    resolved = web.resolve([label.url for label in labels])
    rows = [(url, label) for url, label in zip(resolved, labels, strict=True) if url is not None]
    on_topic = {url: lies_under(label.topic, [given.topic]) for url, label in rows}
    train = [url for url, label in rows if on_topic[url] and label.split == "train"]
    tests = [label._replace(url=url) for url, label in rows if label.split == "test"]
    print("draw  clicks  seconds  good/bad/skipped  seconds  precision  after  recall  after")
    with tempfile.TemporaryDirectory(dir=Path.home()) as scratch, sync_playwright() as started:
        root = Path(scratch)
        shutil.copyfile(recording(given.web), root / "web.warc")
        open_web(str(root / "web.warc"))  # its index is made once
        studio, address = serve(root)
        browser = started.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        try:
            for draw in range(given.draws):
                generator = np.random.default_rng(draw)
                urls = [str(url) for url in generator.choice(train, 3, replace=False)]
                page = browser.new_page()
                page.goto(address)
                name, phrase = f"draw-{draw}", given.phrase or phrase_of(given.topic)
                clicks, took = begin(page, name, "web.warc", phrase, urls)
                crawl = root / page.url.split("/crawls/")[1].removesuffix("/live")
                ended(root, crawl)
                fetched = names(crawl)
                good, bad, skipped, judging = judge(page, str(crawl.relative_to(root)), on_topic)
                asked = [label for label in tests if label.url not in fetched]
                chosen = generator.permutation(len(asked))[:TESTED]
                asked = [asked[i] for i in chosen.tolist()]
                last = sorted(crawl.glob("critic-*"), key=lambda each: int(each.name[7:]))[-1]
                measured = []
                for critic in (root / name / "critic-1", last):
                    report = check_relevance(
                        load_critic(str(critic), "/good"), [given.topic], asked, web
                    )
                    measured.append(report.classes[1])
                before, after = measured
                print(
                    f"{draw:4}  {clicks:6}  {took:7.1f}  {good:4}/{bad}/{skipped:<9}  "
                    f"{judging:7.1f}  {before.precision:9.2f}  {after.precision:5.2f}  "
                    f"{before.recall:6.2f}  {after.recall:5.2f}",
                    flush=True,
                )
                page.close()
        finally:
            browser.close()
            studio.send_signal(signal.SIGINT)
            studio.wait()


def serve(root: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a studio; return its process and its address."""
    command = [sys.executable, "-P", "-m", "focuscrawl", "studio", ".", "--port", "0"]
    studio = subprocess.Popen(
        [*command, "--no-browser"],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_STATE_HOME": str(root / ".state")},
    )
    assert studio.stdout is not None
    found = re.search(r"http://\S+", studio.stdout.readline())
    assert found is not None
    return studio, found[0]


def ended(root: Path, crawl: Path) -> None:
    """Wait until a crawl has fetched all that it was to."""
    while len(names(crawl)) < FETCHES:
        time.sleep(0.5)
        assert (root / ".studio").exists()
    time.sleep(2.0)  # it writes its summary


def names(crawl: Path) -> set[str]:
    """Return the URLs that a crawl has fetched."""
    store = open_store(crawl)
    try:
        return {fetch.url_text for fetch in History(store).first_fetches()}
    finally:
        store.close()


if __name__ == "__main__":
    main()
