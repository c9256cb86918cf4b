"""Milliseconds per page by stage of the loop, and their sum relative to a parse by lxml.

Run: ``python benchmarks/bench_stages.py [--strategy S] [--pages N] [uci] [wikipedia]``, or with
pytest. The benchmark drives a `Crawl` object without Scrapy and times its parts from outside.
`bench_page.py` breaks down the parse of a page. Times are those of the thread, which other
processes affect little; the store's thread is not on the loop, but needs a core, too.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections import defaultdict
from collections.abc import Callable
from operator import attrgetter
from time import sleep, thread_time
from typing import TYPE_CHECKING, Any

import lxml.html
import pytest
from lxml.etree import ParserError
from replays import available, critic, recording, seeds, topics

from focuscrawl.crawl import Crawl, CrawlConfig, Download, Fetch
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.page import read_content_type
from focuscrawl.store import writer

if TYPE_CHECKING:
    from focuscrawl.webs.web_protocol import Web

PAGES = 400
TOPICS = 4  # topics whose pages are fetched

#: attribute of the crawl, method, name of the stage
STAGES = (
    ("", "parse", "parse_page"),
    ("critic", "judge", "critic"),
    ("", "resolve", "resolve in the web"),
    ("urls", "add", "number URLs"),
    ("strategy", "expand", "strategy and evidence"),
    ("", "queue", "queue"),
    ("", "put", "record"),
)
#: stages within the apprentice's strategy and in its training thread
OF_APPRENTICE = (
    ("strategy._extractor", "extract", "- features"),
    ("strategy._apprentice", "expand", "- scores"),
    ("strategy", "observe", "note the outcome"),
    ("strategy", "adopt", "adopt a lesson"),
    ("strategy", "learn", "(training, other thread)"),
)


class Accounts:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)

    def charge(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def charged(*args: Any, **kwargs: Any) -> Any:
            start = thread_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.spent[stage] += thread_time() - start

        return charged


def crawl(web: str, topic: str, strategy: str, pages: int, accounts: Accounts) -> tuple[int, int]:
    """Crawl `pages` pages; return the number of HTML pages, and of their links."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_write", accounts.charge("(store, other thread)", writer._write))
        opened = open_crawl(
            CrawlConfig(
                topic=topic,
                seeds=str(seeds(web)),
                critic=str(critic(web)),
                strategy=strategy,
                budget=pages,
                web=str(recording(web)),
                crawl_dir=name,
                per_host=16,
            )
        )
        inside = OF_APPRENTICE if strategy == "apprentice" else ()
        for part, method, stage in (*STAGES, *inside):
            owner = attrgetter(part)(opened) if part else opened
            patch.setattr(owner, method, accounts.charge(stage, getattr(owner, method)))
        bare = accounts.charge("lxml.html alone", parse_bare)
        visit = accounts.charge("all", opened.visit)
        assert opened.web is not None
        html = 0
        while (fetch := take(opened)) is not None:
            fetched = ask(opened.web, fetch.url)
            came = opened.start_visit(fetch.id, fetched)
            if opened.parse(came) is not None:
                html += 1
                bare(fetched.body)
            visit(came, float(opened.fetched))
        links = opened.links
        opened.close("measured")
    return html, links


def take(opened: Crawl) -> Fetch | None:
    """Return the next URL to fetch, after a training if necessary."""
    while (
        (fetch := opened.next(float(opened.fetched))) is None
        and opened.is_waiting
        and not opened.stop_reason
    ):
        sleep(0.001)
    return fetch


def ask(web: Web, url: str) -> Download:
    answer = web.fetch(url)
    assert answer is not None
    headers = {name.lower(): value for name, value in answer.headers}
    media_type, encoding = read_content_type(headers.get("content-type"))
    return Download(answer.status, answer.body, media_type, encoding)


def parse_bare(body: bytes) -> None:
    with contextlib.suppress(ParserError, ValueError):  # nothing in it
        lxml.html.fromstring(body)


def report(web: str, strategy: str, pages: int) -> list[str]:
    accounts, html, links = Accounts(), 0, 0
    found = topics(web)
    for part in range(TOPICS):
        topic = found[part * len(found) // TOPICS]
        read, followed = crawl(web, topic, strategy, pages // TOPICS, accounts)
        html, links = html + read, links + followed
    spent = accounts.spent
    stages = [stage for _, _, stage in STAGES]
    # `visit` does not parse, so the rest of the visit is its time without all stages
    spent["rest of the visit"] = spent["all"] - sum(spent.get(stage, 0) for stage in stages[1:])
    spent["all"] += spent["parse_page"]
    bare = spent["lxml.html alone"]
    inside = [stage for _, _, stage in OF_APPRENTICE] if strategy == "apprentice" else []
    at = stages.index("strategy and evidence") + 1
    stages[at:at] = inside[:3]
    order = ["lxml.html alone", *stages, "rest of the visit", "all", *inside[3:]]
    order.append("(store, other thread)")
    return [
        f"{web}, {strategy}: {html} pages of {TOPICS} topics, {links / html:.0f} links each",
        *(
            f"  {name:<24}{1e3 * spent.get(name, 0) / html:8.3f} ms a page"
            f"{spent.get(name, 0) / bare:8.2f} x lxml.html"
            for name in order
        ),
    ]


@pytest.mark.parametrize("strategy", ["best-first", "apprentice"])
@pytest.mark.parametrize("web", ["uci", "wikipedia"])
def test_stages(web: str, strategy: str) -> None:
    if not available(web):
        pytest.skip(f"no recorded web {web}")
    print("\n" + "\n".join(report(web, strategy, PAGES)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the time per page by stage.")
    parser.add_argument("webs", nargs="*", default=["uci", "wikipedia"])
    parser.add_argument("--strategy", default="best-first")
    parser.add_argument("--pages", type=int, default=PAGES)
    options = parser.parse_args()
    for web in options.webs:
        print("\n".join(report(web, options.strategy, options.pages)), flush=True)


if __name__ == "__main__":
    main()
