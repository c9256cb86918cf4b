"""A person walks a site in the terminal, a recorded or a live one, and paths are saved."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from focuscrawl.paths.path_training import WebPages
from focuscrawl.paths.training_paths import Walk, read_paths
from focuscrawl.webs import open_web

from . import departments
from .forages import run_paths

if TYPE_CHECKING:
    from pathlib import Path

    from .departments import Departments


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Departments:
    return departments.make(tmp_path_factory.mktemp("departments"))


def test_a_person_records_paths(web: Departments, tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    keys = [
        "/people",
        "1",
        "m people",
        "1",
        "1",
        "g",
        "2",
        "g",
        "u",
        "u",
        "2",
        "g",
        "99",
        "?",
        "b",
        "2",
        "f",
    ]
    done = run_paths("record", web.doors[0], "--web", web.warc, "--out", out, keys="\n".join(keys))
    assert "there is no link 99" in done.output
    found = read_paths(out)
    assert [path.labels for path in found] == [
        (None, "people", None, "goal"),
        (None, "people", None, "goal"),
        (None, "people", "fail"),
    ]
    assert {path.pages[-1] for path in found[:2]} <= web.professors[web.doors[0]]
    run_paths("record", web.doors[1], "--web", web.warc, "--out", out, keys="1\nf\nq\n")
    assert len(read_paths(out)) == 4  # those before are still there


def test_a_page_of_the_live_web_is_visited_and_recorded(tmp_path: Path) -> None:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bodies = {
                "/": b"<title>door</title><a href=/old>people</a>",
                "/new": b"<title>people</title><a href=/ann>Ann</a>",
                "/ann": b"<title>Ann</title>",
            }
            body = bodies.get(self.path, b"")
            self.send_response(200 if body else 302)
            self.send_header("Content-Type", "text/html")
            self.send_header("Location", "/new")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        door = f"http://127.0.0.1:{server.server_address[1]}/"
        out = tmp_path / "live.jsonl"
        refused = run_paths("record", door, "--out", out, code=2)
        assert "--private 127.0.0.1 opens it" in refused.output
        done = run_paths("record", door, "--out", out, "--private", "127.0.0.1", keys="1\n1\ng\n")
        assert "1 path saved" in done.output
    finally:
        server.shutdown()
        server.server_close()
    (path,) = read_paths(out)
    assert path.pages == (door, f"{door}old", f"{door}ann")
    view = WebPages(open_web(str(tmp_path / "live.warc.gz"))).view(f"{door}old")
    assert view is not None
    assert (view.title, view.url) == ("people", f"{door}new")


def test_walks_can_be_labelled_and_end() -> None:
    walk = Walk.begin("d").follow("list").follow("ann").end(goal=True)
    assert walk.here == "list"  # ready for the next of them
    walk = walk.milestone("people").follow("bob").end(goal=True).back().follow("news")
    walk = walk.end(goal=False)
    assert [path.labels for path in walk.saved] == [
        (None, "people", "goal"),
        (None, "people", "goal"),
        (None, "fail"),
    ]
    assert replace(walk, saved=()) == Walk.begin("d")
    assert walk.back().back().here == "d"
