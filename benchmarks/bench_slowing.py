"""Alarms of a crawl whose relevant pages arrive more slowly: live crawls of a local server.

Run: ``python benchmarks/bench_slowing.py`` (two minutes). The server is one host of pages with the
words of the synthetic web, four in five on the topic, each with links to the next few. For
`STEADY` fetches the server responds in `FAST` seconds. Then, for `SLOW` fetches, the server
responds more slowly, or fewer pages are on the topic. Then the server is as before. The script
prints the crawl's events with their fetches.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from focuscrawl.webs.synthetic import SyntheticWeb

ROOT = Path(__file__).resolve().parents[1]
TOPIC = "/Sports/Cycling"
FAST = 0.02  # seconds per response
STEADY, SLOW, AGAIN = 200, 150, 150  # fetches
PAGES = 900
LINKS = 4
ALONE = ("DOWNLOAD_DELAY=0", "AUTOTHROTTLE_ENABLED=0", "FOCUSCRAWL_LIMITS=0")
LOCAL = ("FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8", "FOCUSCRAWL_WARC=0", "LOG_LEVEL=ERROR")


class Trouble(NamedTuple):
    """A change between fetch `STEADY` and fetch `STEADY + SLOW`.

    Attributes
    ----------
    seconds : float
        Seconds per response during the change.
    on_topic : int
        On-topic pages of five during the change; four otherwise.
    """

    seconds: float
    on_topic: int


TROUBLES = {
    "nothing": Trouble(FAST, 4),
    "answers take twice as long": Trouble(2 * FAST, 4),
    "answers take five times as long": Trouble(5 * FAST, 4),
    "one page in five is on the topic": Trouble(FAST, 1),
}


def texts(topic: str) -> list[bytes]:
    """Return the bodies of the labelled pages of a topic, without their links."""
    web = SyntheticWeb()
    urls = [label.url for label in web.labels() if label.topic == topic]
    answers = [web.fetch(url) for url in urls]
    return [each.body.replace(b"<a ", b"<b ") for each in answers if each is not None]


class Troubled(ThreadingHTTPServer):
    """The host: page n links to the next few pages; the host counts its requests."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.trouble = trouble
        self.asked = 0
        on, off = cycle(texts(TOPIC)), cycle(texts("/Home/Cooking"))
        self.pages = []
        for n in range(PAGES):
            changed = STEADY <= n < STEADY + SLOW
            share = trouble.on_topic if changed else 4
            self.pages.append(next(on) if n % 5 < share else next(off))


class Answering(BaseHTTPRequestHandler):
    server: Troubled

    def do_GET(self) -> None:
        number = self.path.lstrip("/")
        if not number.isdigit() or int(number) >= PAGES:
            self.send_error(404)
            return
        n = int(number)
        slow = STEADY <= self.server.asked < STEADY + SLOW
        self.server.asked += 1
        time.sleep(self.server.trouble.seconds if slow else FAST)
        links = "".join(f'<a href="/{n + i}">{n + i}</a> ' for i in range(1, LINKS + 1))
        body = self.server.pages[n] + links.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(trouble: Trouble) -> Iterator[str]:
    """Serve the host during the ``with`` block; yield the URL of its first page."""
    with Troubled(trouble) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/0"
        finally:
            server.shutdown()
            thread.join()


def events(start: str, folder: Path) -> list[tuple[int, str, str]]:
    """Crawl breadth-first, in the order of page numbers; return the alarms with their fetches."""
    given = {
        "topic": TOPIC,
        "critic": "models/demo",
        "seeds": start,
        "strategy": "breadth-first",
        "budget": str(STEADY + SLOW + AGAIN),
        "crawl_dir": str(folder / "crawl"),
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "focused"]
    command += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
    command += [part for setting in (*ALONE, *LOCAL) for part in ("-s", setting)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    with closing(sqlite3.connect(folder / "crawl" / "crawl.db")) as store:
        kinds = "('slow', 'fast again', 'alarm', 'recovered')"
        rows = f"SELECT seq, kind, detail FROM events WHERE kind IN {kinds} ORDER BY id"
        return store.execute(rows).fetchall()


def main() -> None:
    for name, trouble in TROUBLES.items():
        print(f"{name}, fetches {STEADY + 1} to {STEADY + SLOW}:")
        with tempfile.TemporaryDirectory() as folder, served(trouble) as start:
            for seq, kind, detail in events(start, Path(folder)):
                print(f"  fetch {seq}: {kind}: {detail}")


if __name__ == "__main__":
    main()
