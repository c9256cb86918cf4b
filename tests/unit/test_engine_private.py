"""Only `focuscrawl.engine.private` goes beyond the documented interfaces of Scrapy and Twisted."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
import scrapy

import focuscrawl
from focuscrawl.engine import private

ROOT = Path(focuscrawl.__file__).parent
PRIVATE = Path(private.__file__)
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != PRIVATE)

#: what Scrapy's and Twisted's documentation names, of the modules that we import from
DOCUMENTED = {
    "scrapy": {"FormRequest", "Request", "Spider", "signals"},
    "scrapy.core.downloader.handlers.http11": {"HTTP11DownloadHandler"},
    "scrapy.core.scheduler": {"BaseScheduler", "Scheduler"},
    "scrapy.crawler": {"Crawler"},
    "scrapy.downloadermiddlewares.httpcompression": {"HttpCompressionMiddleware"},
    "scrapy.exceptions": {
        "CannotResolveHostError",
        "CloseSpider",
        "DontCloseSpider",
        "DownloadCancelledError",
        "DownloadConnectionRefusedError",
        "DownloadFailedError",
        "DownloadTimeoutError",
        "DropItem",
        "IgnoreRequest",
        "NotConfigured",
        "NotSupported",
        "ResponseDataLossError",
        "StopDownload",
        "UsageError",
    },
    "scrapy.extensions.feedexport": {"FileFeedStorage"},  # by the setting FEED_STORAGES_BASE
    "scrapy.exporters": {"BaseItemExporter", "CsvItemExporter", "XmlItemExporter"},
    "scrapy.http": {"Headers", "JsonRequest", "Response"},
    "scrapy.http.cookies": {"CookieJar"},
    "scrapy.http.request": {"NO_CALLBACK"},
    "scrapy.item": {"Field"},
    "scrapy.logformatter": {"LogFormatter", "LogFormatterResult"},
    "scrapy.statscollectors": {"StatsCollector"},
    "scrapy.robotstxt": {"ProtegoRobotParser", "RobotParser"},  # by ROBOTSTXT_PARSER
    "scrapy.spiders": {"SitemapSpider"},
    "scrapy.settings": {"SETTINGS_PRIORITIES", "BaseSettings", "Settings"},
    "scrapy.utils.asyncio": {"call_later"},
    "scrapy.utils.defer": {"deferred_from_coro", "maybe_deferred_to_future"},
    "scrapy.utils.httpobj": {"urlparse_cached"},
    "scrapy.utils.misc": {"build_from_crawler", "load_object"},
    "scrapy.utils.project": {"get_project_settings"},
    "scrapy.utils.request": {"request_from_dict"},
    "twisted.internet": {"reactor"},
    "twisted.internet.defer": {"CancelledError", "Deferred", "DeferredLock"},
    "twisted.internet.error": {"ConnectionClosed"},
    "twisted.internet.threads": {"deferToThread", "deferToThreadPool"},
    "twisted.python.failure": {"Failure"},
    "twisted.python.threadpool": {"ThreadPool"},
    "twisted.web.client": {"ResponseFailed"},
}
#: what it names of objects of theirs that hold much else, by what we call these
MEMBERS = {
    "engine": {"download_async", "needs_backout", "pause", "scheduler", "unpause"},
    "process": {"crawl", "create_crawler", "start"},
    "crawler_process": {"crawl", "create_crawler", "start"},
}
#: assignments to attributes of other people's objects, by module
ASSIGNED = {
    "spiders/focused.py": {"spider.store"},  # where Scrapy has put an argument
    "engine/page_parsing.py": {"visit.error", "visit.view"},  # ours
    "engine/page_texts.py": {  # ours
        *("visit.link_rows", "visit.newly_queued", "visit.view"),
        *("item.text_error", "item.title", "item.text", "item.hash", "item.language_confidence"),
    },
    "engine/browser.py": {"visit.download", "visit.error", "visit.view"},  # ours
    "engine/visits.py": {"visit.excluded"},
    "commands/anywhere.py": {"Command.program"},
    "commands/crawl.py": {"parser.usage", "parser.epilog", "parser.formatter_class"},  # argparse's
    "extensions/progress.py": {"self._bar.total"},  # tqdm's, of a bar that grows
    "engine/spider_requests.py": {"spider.sitemap_filter"},  # documented, and to be overridden
    "engine/open_pages.py": {"page.finishing", "visit.requested"},
    # the priority of a request is documented, and to be set
    "downloadermiddlewares/focus.py": {
        "request.priority",
        "visit.requested",
        "visit.follows_redirect",
    },
}


def findings(source: str, module: str = "") -> Iterator[str]:
    """Yield what in `source` is no documented use of Scrapy or Twisted.

    - An import of a name that `DOCUMENTED` does not list.
    - In a module that imports anything of theirs: an attribute with a leading underscore of
      anything but ``self`` and ``cls``; of these, too, in a class derived from one of theirs,
      unless the class itself assigns or defines it.
    - There: an attribute of an engine or a process that `MEMBERS` does not list.
    - There: an assignment to an attribute of anything but ``self`` and ``cls``.
    """
    tree = ast.parse(source)
    imported = [*_imported(tree)]
    for path, name in imported:
        if path == name != "scrapy":
            yield f"import {path}"
        elif _is_theirs(path) and path != name and name not in DOCUMENTED.get(path, ()):
            yield f"{path}.{name}"
    theirs = {name for _, name in imported}
    if theirs:
        yield from _attributes(tree, theirs, ASSIGNED.get(module, frozenset()))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of what is theirs, or is called like it in our own module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_theirs(alias.name):
                    yield alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if _is_theirs(module) or module == "focuscrawl.engine.private":
                for alias in node.names:
                    yield module, alias.name


def _attributes(tree: ast.Module, theirs: set[str], assigned: Collection[str]) -> Iterator[str]:
    own_names = {
        id(inner): _own_names(node, theirs)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner, name = ast.unparse(node.value), node.attr
        if name.startswith("_") and not name.startswith("__"):
            own = own_names.get(id(node), frozenset())
            if owner not in ("self", "cls") or (own is not None and name not in own):
                yield f"{owner}.{name}"
        allowed = MEMBERS.get(owner.rpartition(".")[2])
        if allowed is not None and name not in allowed:
            yield f"{owner}.{name}"
        stored = isinstance(node.ctx, ast.Store) and owner not in ("self", "cls")
        if stored and f"{owner}.{name}" not in assigned:
            yield f"{owner}.{name} = ..."


def _is_theirs(module: str) -> bool:
    return module.partition(".")[0] in ("scrapy", "twisted")


def _own_names(kind: ast.ClassDef, theirs: set[str]) -> frozenset[str] | None:
    """Return the private names that a class gives itself; None: all it has are its own."""
    bases = {ast.unparse(base).partition(".")[0] for base in kind.bases}
    if not bases & theirs:
        return None
    stored = (node for node in ast.walk(kind) if isinstance(node, ast.Attribute))
    return frozenset(
        [node.attr for node in stored if isinstance(node.ctx, ast.Store)]
        + [
            node.name
            for node in kind.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_private_is_used(path: Path) -> None:
    module = path.relative_to(ROOT).as_posix()
    assert [*findings(path.read_text(encoding="utf-8"), module)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from scrapy.utils.log import failure_to_exc_info", "scrapy.utils.log."),
        ("import twisted.web._newclient", "import twisted.web._newclient"),
        ("import scrapy\nprint(crawler._spider)", "crawler._spider"),
        ("import scrapy\nself.crawler.engine.downloader", "self.crawler.engine.downloader"),
        ("import scrapy\nhandler.close = None", "handler.close = ..."),
        ("import scrapy\nclass A(scrapy.Spider):\n  def f(self): self._parse", "self._parse"),
        ("import scrapy\nclass A(scrapy.Spider):\n  def f(self): self._x = 1", None),
        ("import scrapy\nclass A:\n  def f(self): self._crawler", None),
        ("from scrapy import Request\nawait crawler.engine.download_async(r)", None),
        ("x._y = 1", None),
    ],
)
def test_the_rule_finds_what_it_should(source: str, found: str | None) -> None:
    told = [*findings(source)]
    assert told == [] if found is None else any(each.startswith(found) for each in told)


def test_every_private_use_says_what_it_uses_and_until_when() -> None:
    functions = [
        function
        for name, function in inspect.getmembers(private, inspect.isfunction)
        if function.__module__ == private.__name__ and not name.startswith("_")
    ]
    assert len(functions) >= 14
    for function in functions:
        said = inspect.getdoc(function) or ""
        expected = r"^The function uses .*^The function is needed until "
        assert re.search(expected, said, re.MULTILINE | re.DOTALL), function


def test_versions_tested_are_those_that_are_run() -> None:
    ranges = set(re.findall(r"Scrapy (2\.\d+) to (2\.\d+)", PRIVATE.read_text(encoding="utf-8")))
    project = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    newest = (ROOT.parent / "locks" / "dev.txt").read_text(encoding="utf-8")
    oldest = re.findall(r'"scrapy>=(\d+\.\d+)', project)
    pinned = re.findall(r"^scrapy==(\d+\.\d+)", newest, re.MULTILINE)
    assert ranges == {(oldest[0], pinned[0])}
    assert scrapy.__version__.startswith((f"{oldest[0]}.", f"{pinned[0]}."))


def test_the_reactor_is_nobodys_choice_yet() -> None:
    code = "import focuscrawl.engine.private, sys"
    code += "; sys.exit('twisted.internet.reactor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


UNDER_WAY = """
import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from focuscrawl.engine.private import is_closing, is_paused, is_idle, slot_delay


class Two(scrapy.Spider):
    name = "two"
    custom_settings = {"LOG_ENABLED": False, "DOWNLOAD_DELAY": 0.01}

    @classmethod
    def from_crawler(cls, crawler):
        spider = super().from_crawler(crawler)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        crawler.signals.connect(spider.leaves_scheduler, signals.request_left_downloader)
        return spider

    async def start(self):
        tell(self, "start")
        yield scrapy.Request("data:,one", meta={"download_slot": "here"})

    def leaves_scheduler(self):
        tell(self, "downloaded")

    def parse(self, response):
        tell(self, "callback")
        yield {"item": 1}

    def idle(self):
        tell(self, "idle")
        print("slot", slot_delay(self.crawler, "here"), slot_delay(self.crawler, "there"))
        self.crawler.engine.pause()
        print("paused", is_paused(self.crawler), is_closing(self.crawler))
        self.crawler.engine.unpause()


def tell(spider, when):
    print(when, is_idle(spider.crawler))


process = AsyncCrawlerProcess()
crawler = process.create_crawler(Two)
process.crawl(crawler)
process.start()
print("closed", is_idle(crawler))
"""


def test_what_the_engine_is_asked(tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(UNDER_WAY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.stdout.splitlines() == [
        "start True",
        "downloaded False",
        "callback False",
        "idle True",
        "slot 0.01 None",
        "paused True False",
        "closed True",
    ], done.stderr
