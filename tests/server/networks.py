"""An outer network to crawl, an inner one that nobody may reach, and a proxy; as `server` is run.

Every connection is a line in the log, whether anything is asked or not. ``outer``, ``inner`` and
``sixth`` listen at the same port: a name can lead to each of them in turn.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from .certificates import Authority

OUTER, INNER, PROXY = "127.0.0.21", "127.0.0.22", "127.0.0.23"
#: what a page and the head of an answer try on whoever shows them
ESCAPE = "&#27;[41m\x1b]0;owned\x07\x1b[31m"
SCRIPT = "<script>alert(1)</script>"
FORMULA = "=HYPERLINK(1)"
#: answers that no client can make sense of, and may quote in its complaint
BROKEN = {
    "/status": f"HTTP/1.1 {ESCAPE}\r\n\r\n".encode(),
    "/header": f"HTTP/1.1 200 OK\r\nX-{ESCAPE}: 1\r\nno header {ESCAPE}\r\n\r\n".encode(),
    "/length": f"HTTP/1.1 200 OK\r\nContent-Length: {ESCAPE}\r\n\r\n".encode(),
    "/coding": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{ESCAPE}\r\n".encode(),
}
EVIL = f'{FORMULA} {ESCAPE} \u202eevil {SCRIPT} "><img src=x onerror=alert(2)>'


class Listener(ThreadingHTTPServer):
    """One server; `links` are what its front page links to, `moves` where paths redirect to."""

    daemon_threads = True

    def __init__(self, name: str, address: str, port: int, log: IO[str]) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address, port), Handler)
        self.name = name
        self.links: list[str] = []
        self.moves: dict[str, str] = {}
        self._log = log

    def verify_request(self, request: object, client_address: object) -> bool:
        self.note("connected")
        return True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client hangs up."""

    def note(self, what: str) -> None:
        self._log.write(f"{self.name} {what}\n")
        self._log.flush()


class Handler(BaseHTTPRequestHandler):
    """Closes the connection after each answer, so that the next request looks its host up."""

    server: Listener

    def do_CONNECT(self) -> None:
        self.server.note(f"CONNECT {self.path}")
        self._reply(502, b"")

    def do_GET(self) -> None:
        self.server.note(f"{self.headers['Host']} {self.path} {self.headers['Authorization']}")
        path = "/robots-moved" if self._moves_robots() else self.path
        if path in self.server.moves:
            self._reply(302, b"", Location=self.server.moves[path])
        elif path == "/robots.txt":
            self._reply(404, b"")
        elif path in BROKEN:
            self.wfile.write(BROKEN[path])
        elif path == "/evil":
            self._evil()
        else:
            links = self.server.links if path == "/" else []
            anchors = "".join(f'<a href="{link}">link</a> ' for link in links)
            self._reply(200, f"<title>{path}</title>bicycle {path} {anchors}".encode())

    def _moves_robots(self) -> bool:
        return self.path == "/robots.txt" and self.headers["Host"].startswith("moved-robots")

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _evil(self) -> None:
        """Answer with a head and a body full of what must not be obeyed."""
        self.send_response(200, f"OK {ESCAPE}")
        self.send_header("Content-Type", f"text/html; charset={ESCAPE}")
        self.send_header("X-Evil", ESCAPE)
        self.end_headers()
        text = EVIL.replace("<", "&lt;")
        hrefs = (
            f"/next?{ESCAPE}&q=\u202e",
            f"/gone-{ESCAPE}",
            "/status",
            "/header",
            "/length",
            "/coding",
        )
        links = "".join(f'<a href="{href}">{text}</a> ' for href in hrefs)
        self.wfile.write(f"<title>{text}</title>bicycle {text} {links}".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


def main(log_path: str) -> None:
    """Serve until standard input is closed.

    The first line read says where pages link and redirect to, as JSON with ``{port}`` and
    ``{tls}`` in it; the first line printed, on which ports.
    """
    with Path(log_path).open("w", encoding="utf-8") as log:
        outer = Listener("outer", OUTER, 0, log)
        port = outer.server_port
        tls = Listener("tls", INNER, 0, log)
        with tempfile.TemporaryDirectory() as folder:
            context = Authority(Path(folder)).context(INNER, signed=False)
        tls.socket = context.wrap_socket(
            tls.socket, server_side=True, do_handshake_on_connect=False
        )
        listeners = [
            outer,
            tls,
            Listener("inner", INNER, port, log),
            Listener("sixth", "::1", port, log),
            Listener("proxy", PROXY, port, log),
        ]
        text = sys.stdin.readline().replace("{port}", str(port))
        said: dict[str, Any] = json.loads(text.replace("{tls}", str(tls.server_port)))
        outer.links, outer.moves = said["links"], said["moves"]
        for listener in listeners:
            threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        print(json.dumps({"port": port, "tls": tls.server_port}), flush=True)  # noqa: T201
        sys.stdin.read()
        for listener in listeners:
            listener.shutdown()
            listener.server_close()


if __name__ == "__main__":
    main(sys.argv[1])
