"""Pages that scripts make, crawled by a real browser, and the same site without scripts."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Event, Thread
from urllib.parse import urljoin

import psutil
import pytest

from focuscrawl.engine.browser import _MAX_REQUESTS

from .running import BICYCLES, QUICK, Run, crawl, start
from .small_site import Answers, Site, serve

HTML, SCRIPT, JSON = "text/html", "text/javascript", "application/json"
WORDS = "a bicycle has two wheels and a chain that the rider turns with both feet " * 3
OFF_TOPIC = "taxes are due in the spring of the year and forms are sent by post " * 3
#: by page, its text and where it leads
PAGES = {
    "/": (WORDS, ["/wheels", "/taxes", "/plain", "/chinese"]),
    "/wheels": (WORDS + "spokes", ["/chains", "/"]),
    "/taxes": (OFF_TOPIC, ["/forms"]),
    "/chains": (WORDS + "oil", []),
    "/forms": (OFF_TOPIC + "more", []),
}
_PLAIN = f"<title>Plain</title><p>{WORDS} without scripts</p><script src=/app.js></script>"
# fewer than 30 words by spaces
_CHINESE = (
    f"<meta charset=utf-8><p>{'自行车是一种由人力驱动的交通工具，通常有两个轮子。' * 3}"
    "<script src=/app.js></script>"
)
UNRENDERED = {"/plain": _PLAIN, "/chinese": _CHINESE}
_SHELL = "<title>A site</title><div id=app>Loading</div><script src=/app.js></script>"
_APP = """
fetch("/data" + location.pathname + ".json").then(r => r.json()).then(page => {
  document.getElementById("app").innerHTML = "<p>" + page.text + "</p>" +
    page.links.map(link => "<a href=" + link + ">" + link.slice(1) + "</a>").join(" ");
});
"""
# What a page may try to reach a network that the crawler stands in; then it is like the others.
_TRAP = """
const inner = "INNER";
const tries = [
  () => fetch(inner + "/fetch", {mode: "no-cors"})
    .finally(() => { location.href = inner + "/elsewhere"; }),
  () => fetch(inner + "/post", {method: "POST", mode: "no-cors", body: "x"}),
  () => { new Image().src = inner + "/image"; },
  () => { new WebSocket(inner.replace("http", "ws") + "/socket"); },
  () => { new EventSource(inner + "/events"); },
  () => navigator.sendBeacon(inner + "/beacon", "x"),
  () => { for (const tag of ["iframe", "script", "embed"]) {
    const each = document.createElement(tag);
    each.src = inner + "/" + tag;
    document.body.append(each);
  } },
  () => { for (const rel of ["preconnect", "prefetch", "prerender", "stylesheet"]) {
    const each = document.createElement("link");
    each.rel = rel;
    each.href = inner + "/" + rel;
    document.head.append(each);
  } },
  () => { window.open(inner + "/open"); },
  () => { new Worker(URL.createObjectURL(new Blob([`fetch("${inner}/worker")`]))); },
  () => { new RTCPeerConnection({iceServers: [{urls: inner.replace("http://", "stun:")}]})
            .createDataChannel("x"); },
];
for (const each of tries) { try { const came = each(); came && came.catch(() => {}); } catch {} }
document.getElementById("app").innerHTML = "<p>WORDS</p>";
"""
_ENDLESS = "<title>Endless</title><div id=app></div><script>while (true) {}</script>"


def static(_: str) -> Answers:
    """Return the site with the links and texts in its pages."""
    pages = {
        path: f"<title>A site</title><div id=app><p>{text}</p>{' '.join(map(_link, links))}</div>"
        for path, (text, links) in PAGES.items()
    }
    return {path: (HTML, page.encode()) for path, page in (pages | UNRENDERED).items()}


def _link(path: str) -> str:
    return f"<a href={path}>{path[1:]}</a>"


def scripted(_: str) -> Answers:
    """Return the site with the links and texts made by a script."""
    pages = {path: (HTML, _SHELL.encode()) for path in PAGES}
    data = {
        f"/data{path}.json": (JSON, json.dumps({"text": text, "links": links}).encode())
        for path, (text, links) in PAGES.items()
    }
    others = {path: (HTML, page.encode()) for path, page in UNRENDERED.items()}
    return pages | data | others | {"/app.js": (SCRIPT, _APP.encode())}


@pytest.fixture(scope="module")
def chromium() -> None:
    """Skip where there is no browser, but not where it counts."""
    if shutil.which("chromium") is None:
        missing = "Chromium is not installed (on Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)


@dataclass(frozen=True)
class Crawled:
    """What became of a site."""

    run: Run
    site: Site

    @property
    def judged(self) -> dict[str, float]:
        """R of each page, by path."""
        rows = self.run.kept.query("SELECT url, relevance FROM pages")
        return {url.removeprefix(self.site.origin): relevance for url, relevance in rows}

    @property
    def rendered(self) -> list[str]:
        """What is told of the pages that were rendered."""
        rows = self.run.kept.query("SELECT detail FROM events WHERE kind = 'rendered'")
        return [detail.removeprefix(self.site.origin) for (detail,) in rows]


def go(
    site: Site,
    folder: Path,
    *seeds: str,
    browser: int = 1,
    budget: int = 50,
    opened: str = "127.0.0.1",
    seconds: int = 60,
    delay: float = 0,
    weighed: Weighed | None = None,
) -> Crawled:
    given = QUICK | {
        "DOWNLOAD_TIMEOUT": seconds,
        "DOWNLOAD_DELAY": delay,
        "DOWNLOAD_DELAY_JITTER": 0,
        "FOCUSCRAWL_BROWSER": browser,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": opened,
        "FOCUSCRAWL_NEAR_DUPLICATES": 0,
    }
    started = ",".join(urljoin(site.origin, seed) for seed in seeds or ("/",))
    with (
        start(folder, **given, **BICYCLES, seeds=started, budget=budget) as running,
        weighed.watching(running.pid) if weighed else nullcontext(),
    ):
        run = running.end()
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    return Crawled(run, site)


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with serve(static) as site:
        yield go(site, tmp_path_factory.mktemp("static") / "crawl", browser=0)


@pytest.fixture(scope="module")
def made(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with serve(scripted) as site:
        yield go(site, tmp_path_factory.mktemp("scripted") / "crawl")


def test_a_browser_that_cannot_start_is_an_error_and_no_page_is_judged_without_it(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with serve(scripted) as site:
        given = QUICK | BICYCLES | {"FOCUSCRAWL_BROWSER": broken, "seeds": f"{site.origin}/"}
        run = crawl(tmp_path / "crawl", code=1, **given, budget=5)
    assert "WorkerError: the browser cannot start: " in run.stderr
    assert run.kept.stop_reasons == ["error"]
    assert run.kept.query("SELECT count(*) FROM pages") == [(0,)]
    assert run.kept.query("SELECT count(*) FROM events WHERE kind = 'rendered'") == [(0,)]


def test_a_site_made_by_scripts_is_crawled_like_its_static_twin(
    made: Crawled, twin: Crawled
) -> None:
    assert made.judged == twin.judged
    assert len(twin.judged) == len(PAGES) + len(UNRENDERED)
    order = "SELECT url, depth, links FROM pages ORDER BY seq"
    kept = [(url.removeprefix(made.site.origin), *row) for url, *row in made.run.kept.query(order)]
    assert kept == [
        (url.removeprefix(twin.site.origin), *row) for url, *row in twin.run.kept.query(order)
    ]


def test_only_pages_that_need_it_are_rendered(made: Crawled, twin: Crawled) -> None:
    assert sorted(each.partition(": ")[0] for each in made.rendered) == sorted(PAGES)
    assert all(": more, 1 to " in each for each in made.rendered)
    assert twin.rendered == []


def test_a_page_is_asked_for_once_and_a_script_once_for_all(made: Crawled) -> None:
    asked = made.site.asked
    assert sorted(asked) == sorted([*made.site.answers, "/robots.txt"])


def test_each_rendering_counts_against_the_budget(made: Crawled, tmp_path: Path) -> None:
    cut = go(made.site, tmp_path / "crawl", budget=5)
    assert len(cut.judged) + len(cut.rendered) == 5
    assert cut.run.kept.stop_reasons == ["budget"]
    more = go(made.site, tmp_path / "crawl", budget=7)  # an earlier run is counted, too
    assert len(more.judged) + len(more.rendered) == 7


@pytest.mark.parametrize("opened", ["127.0.0.1", "127.0.0.0/8"])
def test_a_browser_reaches_what_the_crawl_may_and_nothing_by_itself(
    opened: str, chromium: None, tmp_path: Path
) -> None:
    with serve(lambda _: {}, "127.0.0.2") as inner:
        trap = _TRAP.replace("INNER", inner.origin).replace("WORDS", WORDS)
        shell = _SHELL.replace("/app.js", "/trap.js").encode()
        pages = {"/trap": (HTML, shell), "/trap.js": (SCRIPT, trap.encode())}
        with serve(lambda _: pages) as site:
            crawled = go(site, tmp_path / "crawl", "/trap", opened=opened)
        asked = set(inner.asked)
    assert crawled.judged["/trap"] == 0.9  # all of it ran
    if opened == "127.0.0.1":
        assert not asked
        return
    assert asked & {"/fetch", "/script", "/worker"}  # the network may lose some on their way
    # the crawl follows the frame as a link; the rest is what a page may load
    assert asked <= {"/robots.txt", "/fetch", "/script", "/worker", "/iframe"}


@dataclass(frozen=True)
class Lots:
    """A crawl of hosts that have much to ask for: their sites, and what was told of each."""

    greedy: Site
    leading_on: Site
    short: Site
    judged: dict[str, float]
    rendered: list[str]


@pytest.fixture(scope="module")
def lots(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Lots:
    def scripted_page(title: str, script: str) -> bytes:
        return f"<title>{title}</title><div id=app></div><script>{script}</script>".encode()

    many = "for (let i = 0; i < 500; i++) fetch('/data?' + i).catch(() => {});"
    chains = "for (let i = 0; i < 10; i++) fetch(i + '/0').catch(() => {});"
    short = "<title>Short</title>a bicycle<script>let x = 1;</script>"
    pages = {f"/{n}": (HTML, f"{short}{n}".encode()) for n in range(5)}
    with (
        serve(lambda _: {"/": (HTML, scripted_page("Greedy", many))}, "127.0.0.2") as greedy,
        serve(lambda _: {"/": (HTML, scripted_page("Leads on", chains))}, "127.0.0.3") as leading,
        serve(lambda _: pages, "127.0.0.4") as plain,
    ):
        leading.moves.update({f"/{n}/{m}": f"/{n}/{m + 1}" for n in range(10) for m in range(50)})
        seeds = [f"{site.origin}/" for site in (greedy, leading)]
        seeds += [f"{plain.origin}{path}" for path in pages]
        crawled = go(
            plain, tmp_path_factory.mktemp("lots") / "crawl", *seeds, opened="127.0.0.0/8"
        )
    return Lots(greedy, leading, plain, crawled.judged, crawled.rendered)


def test_a_host_whose_scripts_add_nothing_is_let_be(lots: Lots) -> None:
    rendered = [each.partition(": ")[2] for each in lots.rendered if each.startswith("/")]
    assert rendered == 3 * ["no more, 3 to 3 words"]
    assert [lots.judged[f"/{n}"] for n in range(5)] == 5 * [0.9]


def test_a_page_has_so_many_requests(lots: Lots) -> None:
    asked = [path for path in lots.greedy.asked if path.startswith("/data")]
    # what the network loses on its way counts, and is not asked for again
    assert _MAX_REQUESTS - 5 < len(asked) <= _MAX_REQUESTS


def test_redirects_of_a_page_are_among_its_requests(lots: Lots) -> None:
    asked = [path for path in lots.leading_on.asked if path not in ("/", "/robots.txt")]
    assert 10 < len(asked) <= _MAX_REQUESTS


def test_a_script_without_an_end_is_given_up(chromium: None, tmp_path: Path) -> None:
    with serve(lambda _: {"/endless": (HTML, _ENDLESS.encode())}) as site:
        crawled = go(site, tmp_path / "crawl", "/endless", seconds=5)
    assert crawled.judged == {"/endless": 0.1}
    assert [each.partition(",")[0] for each in crawled.rendered] == ["/endless: no more"]


def test_a_redirect_waits_for_the_host_that_it_leads_to(chromium: None, tmp_path: Path) -> None:
    delay = 0.4
    with ExitStack() as stack:
        victim = stack.enter_context(serve(lambda _: {}))
        others = [stack.enter_context(serve(lambda _: {})) for _ in range(6)]
        for number, other in enumerate(others):
            other.moves["/go"] = f"{victim.origin}/data?{number}"
        script = "".join(f"fetch('{each.origin}/go').catch(() => {{}});" for each in others)
        page = f"<title>Leads on</title><div id=app></div><script>{script}</script>"
        site = stack.enter_context(serve(lambda _: {"/": (HTML, page.encode())}))
        go(site, tmp_path / "crawl", delay=delay)
    assert victim.asked[0] == "/robots.txt"
    assert sorted(victim.asked[1:]) == [f"/data?{number}" for number in range(6)]
    assert median(b - a for a, b in pairwise(victim.times)) > 0.9 * delay


#: what a page tries, and what it says of it when it could not
_GREEDY = {
    "windows": """
        let n = 0;
        for (let i = 0; i < 20; i++) {
          if (open("about:blank")) n++;
          link.target = form.target = "window" + i;
          link.click();
          form.submit();
        }
        said = n + " windows";
    """,
    "buffers": """
        const kept = [];
        try { while (kept.length < 300) kept.push(new Uint8Array(16 << 20).fill(7)); }
        catch { said = "no more"; }
    """,
}
_SHOWS = "<p id=said></p><a id=link href=about:blank rel=noopener></a><form id=form></form>"


def test_a_page_has_one_window_and_so_much_memory(chromium: None, tmp_path: Path) -> None:
    pages = {}
    for what, tries in _GREEDY.items():
        script = f"{tries}; document.getElementById('said').append('a bicycle ', said)"
        page = f"<title>{what}</title>{_SHOWS}<script>let said = 'nothing'; {script}</script>"
        pages[f"/{what}"] = (HTML, page.encode())
    browser = Weighed()
    with serve(lambda _: pages) as site:
        crawled = go(site, tmp_path / "crawl", *pages, weighed=browser)
    assert len(crawled.rendered) == len(pages)
    assert 0 < browser.processes <= 14  # a browser has ten or so
    assert browser.memory < 2_500_000_000


class Weighed:
    """What the browser of a crawl held.

    Attributes
    ----------
    processes : the most that there were at once
    memory : bytes, the most that they held together
    """

    def __init__(self) -> None:
        self.processes = self.memory = 0

    @contextmanager
    def watching(self, pid: int) -> Iterator[None]:
        """Watch the browser of a process in a thread."""
        done = Event()
        thread = Thread(target=self._watch, args=(psutil.Process(pid), done))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _watch(self, crawl: psutil.Process, done: Event) -> None:
        with suppress(psutil.NoSuchProcess):  # it has ended
            while not done.wait(0.05):
                held = [*map(_memory, crawl.children(recursive=True))]
                held = [memory for memory in held if memory]
                self.processes = max(self.processes, len(held))
                self.memory = max(self.memory, sum(held))


def _memory(process: psutil.Process) -> int:
    """Return the bytes that a process of a browser holds."""
    with suppress(psutil.Error):
        if process.name() == "chromium":
            return process.memory_info().rss
    return 0
