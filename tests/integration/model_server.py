"""A server that answers chats as OpenAI-compatible ones do, with what a test has it say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .loopback import LoopbackServer, QuietHandler


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

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name in http.server
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                asked = Asked(self.path, self.headers["Authorization"], body)
                served.asked.append(asked)
                said = served.answer(asked)
                self.answer(said.status, said.body, said.headers)

        self._server = LoopbackServer(Handler)

    @property
    def endpoint(self) -> str:
        """What to give with ``--teacher``."""
        return f"{self._server.url}/v1"

    @property
    def urls(self) -> list[str]:
        """The pages asked about."""
        return [each.url for each in self.asked]


@contextmanager
def model_server(answer: Callable[[Asked], Said]) -> Iterator[ModelServer]:
    """Serve a model until the end of the block."""
    server = ModelServer(answer)
    with server._server.serving():
        yield server
