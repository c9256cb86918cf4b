"""A live crawl of a hub that gains links while it is crawled."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from .running import BICYCLES, QUICK, crawl

HUB, STILL, PAGES = "127.0.0.2", "127.0.0.3", "127.0.0.4"
LATER = 1.5  # seconds after its first fetch the hub has gained two links
SETTINGS = QUICK | {
    "DOWNLOAD_DELAY": 0.1,
    "DOWNLOAD_DELAY_JITTER": 0,
    "FOCUSCRAWL_DISTILL": 10,
    "FOCUSCRAWL_REVISIT_HUBS": 1,
    "STATS_DUMP": 1,
}


class Handler(BaseHTTPRequestHandler):
    """Two hubs that link to pages of a third host, in a chain; one of them grows."""

    protocol_version = "HTTP/1.1"
    #: If-None-Match of each request, and when the first came, by address and path
    asked: ClassVar = defaultdict[str, list[str | None]](list)
    first: ClassVar[dict[str, float]] = {}
    pages = ""

    def do_GET(self) -> None:
        address, now = str(self.connection.getsockname()[0]), time.monotonic()
        place = f"{address}{self.path}"
        self.first.setdefault(place, now)
        condition = self.headers["If-None-Match"]
        if self.path == "/robots.txt":
            return self._answer(404, b"", "")
        self.asked[place].append(condition)
        grown = address == HUB and now - self.first[place] > LATER
        tag = f'"{address}-{grown}"'
        if self.path == "/" and condition == tag:
            return self._answer(304, b"", tag)
        if self.path == "/":
            numbers = [*range(1, 4), *((90, 91) if grown else ())]
        else:
            number = int(self.path.rpartition("/")[2])
            numbers = [number + 3] if number < 60 else []
        links = "".join(f"<li><a href={self.pages}/page/{n}>bicycle {n}</a>" for n in numbers)
        body = f"<title>bicycle</title><h1>bicycle {place}</h1><ul>{links}</ul>"
        return self._answer(200, body.encode(), tag if self.path == "/" else "")

    def _answer(self, status: int, body: bytes, tag: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if tag:
            self.send_header("ETag", tag)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """Serve the three hosts; gives their origins."""
    Handler.asked.clear()
    Handler.first.clear()
    servers = [ThreadingHTTPServer((address, 0), Handler) for address in (HUB, STILL, PAGES)]
    addresses = [(str(server.server_address[0]), server.server_port) for server in servers]
    origins = {address: f"http://{address}:{port}" for address, port in addresses}
    Handler.pages = origins[PAGES]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield origins
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def test_new_links_of_a_hub_are_followed(tmp_path: Path) -> None:
    items, folder = tmp_path / "items.jsonl", tmp_path / "crawl"
    with serving() as origins:
        hub, still = f"{origins[HUB]}/", f"{origins[STILL]}/"
        given = {**SETTINGS, **BICYCLES, "strategy": "breadth-first", "seeds": f"{hub},{still}"}
        # the first run ends before the hub has grown
        crawl(folder, "-o", str(items), **given, budget=6)
        time.sleep(LATER)
        done = crawl(folder, "-o", str(items), **given, budget=45)
        asked = {place: [*visits] for place, visits in Handler.asked.items()}
    assert "Traceback" not in done.stderr
    kept = done.kept
    assert len(kept.urls) == len(set(kept.urls))
    revisits = kept.query("SELECT url, status, links FROM revisits ORDER BY seq")
    assert (hub, 200, 2) in revisits
    assert (still, 304, 0) in revisits
    # asked for only if it has changed, by the validator it had last
    tags = asked[f"{HUB}/"]
    assert tags[:3] == [None, f'"{HUB}-False"', f'"{HUB}-True"'][: len(tags)]
    assert set(asked[f"{STILL}/"]) == {None, f'"{STILL}-False"'}
    # the new links came after what was there, with the strategy's scores
    for number in (90, 91):
        page = f"{origins[PAGES]}/page/{number}"
        assert page in kept.urls
        of_page = f"SELECT score, referrer FROM pages WHERE url = '{page}'"
        assert kept.query(of_page)[0][1] == hub
    assert kept.query(f"SELECT count(*) FROM links WHERE source = '{hub}'") == [(5,)]
    # every fetch is paid for, a 304 with a tenth
    not_modified = sum(status == 304 for _, status, _ in revisits)
    paid = len(kept.urls) + len(revisits) - int(not_modified * 0.9)
    assert paid == 45
    # an item a page, whatever is fetched again
    lines = items.read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["url"] for line in lines) == sorted(kept.urls)
    assert f"'focuscrawl/hubs_not_modified': {not_modified}" in done.stderr
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("fetched ")]
    assert (
        f"; {len(revisits)} hubs fetched again: 2 new links, {not_modified} not modified" in told
    )
    events = kept.query("SELECT detail FROM events WHERE kind = 'revisited' ORDER BY id")
    assert (f"{hub}: 2 new links",) in events
