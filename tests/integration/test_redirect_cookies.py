"""Pages that redirect until a cookie is set, as consent pages and session checks do."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from .running import BICYCLES, QUICK, Kept, crawl

# by path: the cookie that it needs, the target of its redirect without the cookie, and the cookie
# that the redirect sets
GATES = {
    "/itself": ("a=1", "/itself", "a=1; Path=/"),
    "/check": ("a=2", "/checking", "a=2"),
    "/checking": ("never", "/check", ""),
    "/twice": ("b=4", "/first", "a=4"),
    "/first": ("never", "/second", ""),
    "/second": ("never", "/twice", "b=4"),
    "/home": ("never", "/inside", "a=5"),
    "/inside": ("a=5", "/home", ""),
    "/front": ("a=7", "/consent", ""),
    "/consent": ("never", "/front", "a=7; Path=/"),
    "/endless": ("never", "/endless", "a=6"),
    "/bare": ("never", "/bare", ""),
}


class Gates:
    """A server of these paths; `asked` are paths and cookies in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        gates = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                cookie = self.headers["Cookie"] or ""
                gates.asked.append((self.path, cookie))
                needed, target, given = GATES.get(self.path, ("", "", ""))
                if needed in cookie and self.path != "/robots.txt":
                    body = b"<title>A page</title>a bicycle " + self.path.encode()
                    self.send_response(200)
                    self.send_header("Set-Cookie", "tracked=1; Path=/")
                else:
                    body = b""
                    self.send_response(302 if target else 404)
                    self.send_header("Location", target)
                    if given:
                        self.send_header("Set-Cookie", given)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def gates() -> Iterator[Gates]:
    served = Gates()
    thread = Thread(target=served.server.serve_forever)
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def go(gates: Gates, folder: Path, *paths: str, **given: object) -> Kept:
    seeds = ",".join(f"{gates.origin}{path}" for path in paths)
    run = crawl(folder, **QUICK, **BICYCLES, **given, seeds=seeds, budget=0)
    return run.kept


def statuses(kept: Kept) -> dict[str, int]:
    return {
        "/" + url.split("/", 3)[3]: status
        for url, status in kept.query("SELECT url, status FROM pages")
    }


@pytest.mark.parametrize("enabled", [0, 1])
@pytest.mark.parametrize(
    ("seed", "page"),
    [
        *((path, path) for path in ("/itself", "/check", "/twice")),
        ("/home", "/inside"),
        ("/front", "/consent"),  # the second URL sets the cookie that the first URL needs
    ],
)
def test_a_page_behind_a_cookie_is_fetched(
    gates: Gates, tmp_path: Path, seed: str, page: str, enabled: int
) -> None:
    kept = go(gates, tmp_path / "crawl", seed, COOKIES_ENABLED=enabled)
    assert statuses(kept)[page] == 200
    assert len(gates.asked) <= 7  # with robots.txt


def test_pages_share_no_cookies(gates: Gates, tmp_path: Path) -> None:
    seeds = ("/1", "/itself", "/2", "/check", "/3", "/twice", "/4")
    kept = go(gates, tmp_path / "crawl", *seeds)
    assert statuses(kept) == dict.fromkeys(seeds, 200)
    plain = [cookies for path, cookies in gates.asked if path[1:].isdigit()]
    assert plain == [""] * 4
    assert ("/check", "") in gates.asked
    assert ("/check", "a=2") in gates.asked  # neither of "/itself" nor of a page


def test_a_loop_that_cookies_do_not_end_is_a_loop(gates: Gates, tmp_path: Path) -> None:
    kept = go(gates, tmp_path / "crawl", "/1", "/endless", "/bare")
    assert statuses(kept) == {"/1": 200, "/endless": 302, "/bare": 302}
    errors = kept.query("SELECT error FROM pages WHERE status = 302")
    assert all(error.startswith("redirect loop") for (error,) in errors)
    paths = [path for path, _ in gates.asked]
    assert (paths.count("/endless"), paths.count("/bare")) == (2, 1)


def test_redirects_without_cookies_cost_one_request(gates: Gates, tmp_path: Path) -> None:
    seeds = [f"/old?{number}" for number in range(8)]
    GATES.update({seed: ("never", f"/new/{seed[-1]}", "") for seed in seeds})
    kept = go(gates, tmp_path / "crawl", *seeds)
    assert sorted(statuses(kept).values()) == [200] * 8 + [302] * 8
    assert len(gates.asked) == 1 + 16
