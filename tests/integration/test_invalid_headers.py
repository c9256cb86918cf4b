"""Responses with header fields that no standard allows: the field is skipped, the page is read."""

from __future__ import annotations

from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from .running import BICYCLES, QUICK, Kept, crawl

BODY = b"<title>A page</title>a bicycle"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
HTML = b"Content-Type: text/html\r\n"
#: header fields and body by path
RESPONSES = {
    "/space": (HTML + b"X-Powered-By : PHP/5.2\r\n", BODY),
    "/type": (b"Content-Type\t: text/html\r\n", BODY),
    "/length": (HTML + b"Content-Length : %d\r\n" % len(BODY), BODY + b"not of the page"),
    "/warning": (b"PHP Warning:  foreach() in /x.php on line 3\r\n" + HTML, BODY),
    "/folded": (b"PHP Notice: of\r\n several\r\n\tlines: x\r\n" + HTML, BODY),
    "/first-folded": (b" continues: nothing\r\n" + HTML, BODY),
    "/last": (HTML + b"No colon\r\n", BODY),
    "/status": (b"HTTP/1.1 200 OK\r\n" + HTML, BODY),
    "/nameless": (b": value\r\n" + HTML, BODY),
    "/accent": ("Größe: 7\r\n".encode() + HTML, BODY),
    "/signs": (b"X(y)[z]: 7\r\n@: 1\r\nX\0Y: 2\r\n" + HTML, BODY),
    "/newlines": (b"PHP Warning: x\nNo colon\n" + HTML, BODY),
    "/identity": (HTML + b"Transfer-Encoding: identity\r\n", BODY),
    "/identity-chunked": (HTML + b"Transfer-Encoding: identity, Chunked\r\n", CHUNKED),
    "/chunked-twice": (HTML + b"Transfer-Encoding: chunked\r\n" * 2, CHUNKED),
    "/chunked-space": (HTML + b"Transfer-Encoding : chunked\r\n", CHUNKED),
    "/unknown": (HTML + b"Transfer-Encoding: utf-8\r\n", BODY),
    "/early": (HTML, BODY),
    "/forbidden": (HTML, BODY),
}
LINKS = b"".join(b"<a href=%s>bicycle</a>" % path.encode() for path in RESPONSES)
ROBOTS = b"Transfer-Encoding: identity\r\nA robots file: x\r\n"


class Server(StreamRequestHandler):
    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        fields, body = {
            "/": (HTML, BODY + LINKS),
            "/robots.txt": (ROBOTS, b"User-agent: *\nDisallow: /forbidden"),
            **RESPONSES,
        }[path]
        early = b"HTTP/1.1 103 Early Hints\r\nNo colon\r\n\r\n" if path == "/early" else b""
        end = b"\n" if path == "/newlines" else b"\r\n"
        self.wfile.write(early + b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + fields + end + body)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    with ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        origin = f"http://127.0.0.1:{server.server_address[1]}"
        folder: Path = tmp_path_factory.mktemp("headers") / "crawl"
        try:
            run = crawl(folder, **QUICK, **BICYCLES, seeds=f"{origin}/", budget=0)
        finally:
            server.shutdown()
            thread.join()
    return run.kept


@pytest.mark.parametrize("path", [path for path in RESPONSES if path != "/forbidden"])
def test_an_invalid_field_does_not_lose_the_page(kept: Kept, path: str) -> None:
    columns = "status, content_type, title, bytes, error"
    rows = kept.query(f"SELECT {columns} FROM pages WHERE url LIKE '%{path}'")
    # pages after the first are duplicates of it
    assert rows == [(200, "text/html", "A page", len(BODY), None)]


def test_an_invalid_field_does_not_lose_robots_txt(kept: Kept) -> None:
    assert len(kept.urls) == len(RESPONSES)  # the front page, and all but one
    assert not any(url.endswith("/forbidden") for url in kept.urls)
