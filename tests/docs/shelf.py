"""What a reader has from other pages: critics, a crawl, a recording; a web of cyclists."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

from .printed_commands import ROOT
from .reader import BUDGET, IN_PLACE, type_commands

_QUICK = """
from focuscrawl.settings import *
DOWNLOAD_DELAY = RETRY_TIMES = 0
AUTOTHROTTLE_ENABLED = False
FOCUSCRAWL_PRIVATE_ADDRESSES = "127.0.0.0/8"
FOCUSCRAWL_BUDGET = 25
"""
# what scrapy-playwright is for a crawl: a handler that looks at the meta of a request
_BROWSER = """
from types import SimpleNamespace

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler


class ScrapyPlaywrightDownloadHandler(HTTP11DownloadHandler):
    config = SimpleNamespace(launch_options={"executable_path": "/bin/false"})

    async def download_request(self, request):
        response = await super().download_request(request)
        if not request.meta.get("playwright"):
            return response
        return response.replace(body=response.body + b"<p>made by a script")
"""
_PAGE = "<title>{1} {0}</title><p>{2}. <p>{3}"
_LINK = "<a href='{0}{1}'>{2} {1}</a> "
_OTHERS = "bcdefgh"  # last letters of the paths of pages on something else
_WORDS = {
    "Cycling": "road cycling bicycle racing peloton sprint saddle wheel gears climb stage rider",
    "Cooking": "soup bread butter oven flour recipe onion pepper garlic salt kitchen dough",
}
_LENGTH = 60  # words of a page


def fill_shelf(folder: Path, origin: str) -> None:
    """Put all of it into a folder; live pages are those of `origin`."""
    shutil.copytree(ROOT / "models", folder / "models")
    shutil.copytree(ROOT / "studies", folder / "studies")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = quick\n")
    (folder / "quick.py").write_text(_QUICK)
    browser = folder / IN_PLACE / "scrapy_playwright"
    browser.mkdir(parents=True)
    (browser / "__init__.py").touch()
    (browser / "handler.py").write_text(_BROWSER)
    (folder / "urls.txt").write_text("".join(f"{origin}/{n}\n" for n in range(3)))
    (folder / "seeds.txt").write_text(f"{origin}/\n")
    found = [{"link": f"{origin}/{n}", "title": "Road cycling"} for n in range(3)]
    (folder / "answers.json").write_text(json.dumps({"results": found}))
    _record(folder)
    type_commands(
        folder,
        "focuscrawl critic train --words 'road cycling, bicycle, peloton' --out models/words\n"
        "cp -r models/words models/cycling\n"
        "scrapy crawl focused -a web=demo -a topic=/Sports/Cycling -a seeds=models/demo/seeds.csv"
        f" -a budget={BUDGET} -a crawl_dir=crawls/first\n"
        "cp -r crawls/first crawls/cycling\n",
    )


def _record(folder: Path) -> None:
    """Record the labelled pages of the synthetic web, with their table of labels."""
    web, at = SyntheticWeb(), datetime(2026, 1, 1, tzinfo=UTC)
    labels = [label for label in web.labels() if label.topic.startswith(("/Science", "/Comp"))]
    with WarcRecorder(folder / "pages.warc.gz") as recorder:
        for label in labels:
            answer = web.fetch(label.url)
            assert answer is not None
            recorder.record(
                request_method="GET",
                url=label.url,
                request_headers=[],
                request_body=b"",
                status=answer.status,
                reason="OK",
                response_headers=answer.headers,
                body_raw=answer.body,
                ip=None,
                at=at,
            )
    (folder / "pages.warc").write_bytes(gzip.decompress((folder / "pages.warc.gz").read_bytes()))
    rows = "".join(f"{label.url},{label.topic}\n" for label in labels)
    split = [
        f"{label.url},{label.topic},{'test' if n % 3 else 'train'}\n"
        for n, label in enumerate(labels)
    ]
    (folder / "labels.csv").write_text("url,topic,split\n" + "".join(split))
    (folder / "seeds.csv").write_text(f"url,topic\n{rows}")


class _Cyclists(BaseHTTPRequestHandler):
    """Answers with a page on cycling that links to one more, and to several on cooking."""

    protocol_version = "HTTP/1.1"  # a kept HTTP/1.0 connection closes under the next request

    def do_GET(self) -> None:
        topic = "Cooking" if self.path[-1] in _OTHERS else "Cycling"
        words = random.Random(self.path).choices(_WORDS[topic].split(), k=_LENGTH)
        links = [_LINK.format(self.path, each, "Cooking") for each in _OTHERS]
        links.append(_LINK.format(self.path, "a", "Cycling"))
        text, anchors = " ".join(words), "".join(links)
        body = _PAGE.format(self.path, topic, text, anchors).encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def cyclists() -> Iterator[str]:
    """Serve pages on cycling on loopback; give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Cyclists) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
