"""A server that answers chats as OpenAI-compatible ones do, with what a test has it say."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Asked(NamedTuple):
    """A request, as the server got it."""

    path: str
    key: str | None
    body: dict[str, Any]

    @property
    def told(self) -> str:
        """The message of the system."""
        return str(self.body["messages"][0]["content"])

    @property
    def data(self) -> str:
        """The message of the user."""
        return str(self.body["messages"][1]["content"])

    @property
    def url(self) -> str:
        """The page asked about."""
        return self.data.partition("\nURL: ")[2].partition("\n")[0]


class Said(NamedTuple):
    """What the server answers."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


def saying(content: object, tokens: object = 100) -> Said:
    """Return the answer of a model that says `content`."""
    message = {"role": "assistant", "content": content}
    body = {"choices": [{"message": message}], "usage": {"total_tokens": tokens}}
    return Said(json.dumps(body).encode())


def verdict(word: str) -> Said:
    """Return the answer of a model that does as it is told."""
    return saying(json.dumps({"verdict": word}))


class ModelServer:
    """Listens on loopback; `answer` is called with every request.

    Attributes
    ----------
    asked : requests so far, in the order they came
    """

    def __init__(self, answer: Callable[[Asked], Said]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                asked = Asked(self.path, self.headers["Authorization"], body)
                served.asked.append(asked)
                said = served.answer(asked)
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)

            def log_message(self, *said: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def endpoint(self) -> str:
        """What to give with ``--teacher``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def urls(self) -> list[str]:
        """The pages asked about."""
        return [each.url for each in self.asked]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Serve until the end of the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


@contextmanager
def model_server(answer: Callable[[Asked], Said]) -> Iterator[ModelServer]:
    """Serve a model until the end of the block."""
    server = ModelServer(answer)
    with server.listening():
        yield server
