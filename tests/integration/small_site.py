"""A site of a few answers, served by this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

#: media type and body by path
Answers = dict[str, tuple[str, bytes]]


class Site:
    """A server on loopback.

    Attributes
    ----------
    origin : ``http://127.0.0.1:port``
    asked : the paths that it was asked for, in their order
    headers : of these requests
    times : when, in seconds
    moves : where paths are redirected to
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.asked: list[str] = []
        self.headers: list[str] = []
        self.times: list[float] = []
        self.moves: dict[str, str] = {}
        self.answers: Mapping[str, tuple[str, bytes]] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            # clients may reuse a connection, and HTTP/1.0 closes it under the next request
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.headers.append(str(self.headers))
                site.times.append(time.monotonic())
                media_type, body = site.answers.get(self.path, ("text/html", b""))
                if self.path in site.moves:
                    self.send_response(302)
                    self.send_header("Location", site.moves[self.path])
                else:
                    self.send_response(200 if self.path in site.answers else 404)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # a browser opens dozens of connections at once

            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing when a client hangs up."""

        self.server = Server((address, 0), Handler)
        self.origin = f"http://{address}:{self.server.server_port}"


@contextmanager
def serve(answers: Callable[[str], Answers], address: str = "127.0.0.1") -> Iterator[Site]:
    """Serve what `answers` says for an origin, until the end of the block."""
    site = Site(address)
    site.answers = answers(site.origin)
    thread = Thread(target=site.server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join()
        site.server.server_close()
