"""``focuscrawl topic suggest --teacher``: servers that are slow, wrong, or not to be trusted."""

from __future__ import annotations

import json
import time
from contextlib import closing, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import pytest

from focuscrawl.errors import UserError
from focuscrawl.feedback.teacher import Teacher
from focuscrawl.foundation import api_client
from focuscrawl.topics import read_definition

from .model_server import Asked, Said, model_server, saying
from .teaching import KEY, always, by_word, refused, suggest

NO_VERDICTS = [
    saying("I think this page is good."),
    saying('{"verdict": "excellent"}'),
    saying('{"verdict": "good", "because": "it says so"}'),
    saying(None),
    saying([{"type": "text", "text": '{"verdict": "good"}'}]),
    Said(b"<html>maintenance</html>"),
    Said(b"[" * 100_000),
    Said(b'{"choices": []}'),
    Said(b"\xff\xfe"),
    saying("\x1b[31m" + "good" * 300_000),
    Said(b'{"error": {"message": "kept from the model by a filter"}}', 400),
]


def test_what_is_no_verdict_counts_for_nothing(folder: Path) -> None:
    n = len(NO_VERDICTS)

    def rambling(asked: Asked) -> Said:
        number = len(server.asked)
        return by_word(asked) if number == 1 else NO_VERDICTS[number - 2]

    with model_server(rambling) as server:
        done = suggest(folder, server, n + 1)
    assert f"{n} no verdict" in done.output
    assert "\x1b" not in done.output
    assert read_definition(folder / "topic.toml").judged_urls == {server.urls[0]}
    assert len((folder / "teacher.jsonl").read_text().splitlines()) == 1


def test_a_model_that_never_answers_as_asked_is_left(folder: Path) -> None:
    with model_server(always(saying("Hello! How can I help?"))) as server:
        line = refused(folder, server)
    assert "answers of tiny are not verdicts" in line
    assert len(server.asked) == 3
    assert not (folder / "topic.toml").exists()


def test_a_model_that_refuses_to_be_exact_is_asked_plainly(folder: Path) -> None:
    def reasoning(asked: Asked) -> Said:
        if "temperature" in asked.body:
            return Said(b'{"error": {"message": "temperature is not supported"}}', 400)
        return by_word(asked)

    with model_server(reasoning) as server:
        suggest(folder, server, 2)
    assert [sorted(asked.body) for asked in server.asked] == [
        ["messages", "model", "response_format", "temperature"],
        ["messages", "model"],
        ["messages", "model"],
    ]


def test_what_a_server_refuses_is_one_line(folder: Path) -> None:
    echo = json.dumps({"error": {"message": f"bad \x1b[1mkey\nBearer {KEY}"}}).encode()
    refusals = {
        (401, KEY): "denies access (401): check FOCUSCRAWL_TEACHER_KEY",
        (403, None): "denies access (403): set FOCUSCRAWL_TEACHER_KEY",
        (404, KEY): "has no model tiny, or is not an endpoint: bad [1mkey Bearer ...",
        (400, KEY): "refuses the question (400): bad [1mkey Bearer ...",
        (405, KEY): "refuses the question (405): bad [1mkey Bearer ...",
    }
    for (status, key), said in refusals.items():
        with model_server(always(Said(echo, status))) as server:
            line = refused(folder, server, key=key)
        assert said in line, line
        assert len(server.asked) == (2 if status == 400 else 1)
    with model_server(always(Said(b"", 429, {"Retry-After": "86400"}))) as server:
        assert "asks to wait 86,400 s: try again later" in refused(folder, server)
        gone = server.endpoint
    assert "cannot be reached" in refused(folder, gone)
    assert not (folder / "topic.toml").exists()
    assert not (folder / "teacher.jsonl").exists()


def test_the_key_follows_no_redirect(folder: Path) -> None:
    with model_server(by_word) as elsewhere:
        there = {"Location": f"{elsewhere.endpoint}/chat/completions"}
        for status in (301, 302, 307, 308):
            with model_server(always(Said(b"", status, there))) as server:
                assert f"redirects ({status})" in refused(folder, server, key=KEY)
    assert elsewhere.asked == []


def test_questions_keep_their_distance_and_a_busy_server_is_waited_for() -> None:
    times: list[float] = []

    def busy_once(asked: Asked) -> Said:
        times.append(time.monotonic())
        return Said(b"", 429, {"Retry-After": "1"}) if len(times) == 2 else by_word(asked)

    with (
        model_server(busy_once) as server,
        closing(Teacher(server.endpoint, "tiny", per_minute=240)) as teacher,
    ):
        for _ in range(3):
            assert teacher.ask([{"role": "user", "content": "?"}] * 2).tokens == 100
    assert len(times) == 4
    assert times[3] - times[0] >= 1.4  # a second, and the distance of the last question


def test_a_key_goes_in_clear_text_to_this_machine_only() -> None:
    for host in ("127.0.0.1:11434", "localhost:1234", "[::1]:80"):
        Teacher(f"http://{host}/v1", "tiny", key=KEY).close()
    Teacher("http://a.example/v1", "tiny").close()
    with pytest.raises(UserError, match="clear text"):
        Teacher("http://127.0.0.1.a.example/v1", "tiny", key=KEY)


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#: what is sent first, and then again and again
ENDLESS = {
    "continue": (CONTINUE, CONTINUE),
    "headers": (HEAD, b"X-Late: 1\r\n"),
    "body": (HEAD + b"Content-Length: 900000\r\n\r\n", b" "),
    "until the end": (HEAD + b"Connection: close\r\n\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_an_end_is_given_up(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "_MIN_WAIT", 0.01)
    first, then = ENDLESS[what]

    class Dripping(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(first)
                while not over.wait(0.05):  # each time long before a socket would be late
                    self.request.sendall(then)

    over = Event()
    with ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            late = pytest.raises(UserError, match=r"took longer than 0\.2 s: try again later")
            with closing(Teacher(endpoint, "m", timeout=0.2)) as asking, late:
                asking.ask([{"role": "user", "content": "good?"}])
        finally:
            over.set()
            server.shutdown()
            thread.join()
