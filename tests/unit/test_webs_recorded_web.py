"""Replay of small recordings that are written here, with warcio."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.errors import UserError
from focuscrawl.webs import recorded_web, warc_index

from .archives import HTML, Recording, fetched

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(params=["web.warc", "web.warc.gz"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    recording = Recording(tmp_path / request.param)
    yield recording
    recording.file.close()


def test_serves_what_was_recorded_in_its_order(recording: Recording) -> None:
    recording.add("http://b.example/", b"<p>first", headers=[*HTML, ("Set-Cookie", "a=1")])
    recording.add("http://a.example/x?b=1&a=2", b"gone", status="404 Not Found")
    web = recording.open()
    assert web.name == "web"
    assert len(web) == 2
    assert list(web.urls()) == ["http://b.example/", "http://a.example/x?b=1&a=2"]
    assert web.statuses.tolist() == [200, 404]
    assert web.hosts == {"b.example": 1, "a.example": 1}
    answer = fetched(web, "http://b.example/")
    assert (answer.url, answer.status, answer.body) == ("http://b.example/", 200, b"<p>first")
    assert answer.headers == [("Content-Type", "text/html"), ("Set-Cookie", "a=1")]
    missing = fetched(web, "http://a.example/x?b=1&a=2")
    assert (missing.status, missing.body) == (404, b"gone")


def test_schemes_are_one_and_all_else_is_exact(recording: Recording) -> None:
    recording.add("HTTPS://A.example:443/Dir/../Page#part", b"page")
    web = recording.open()
    assert web.resolve(
        [
            "https://a.example/Page",
            "http://a.example/Page",
            "http://a.example/page",
            "http://a.example/Page/",
            "http://a.example/Page?",
            "http://a.example/",
            "http://a.example:8080/Page",
            "http://robots.example/robots.txt",
        ]
    ) == ["https://a.example/Page", "https://a.example/Page", *[None] * 6]
    assert web.fetch("http://a.example/Page") == web.fetch("https://a.example/Page") is not None
    assert web.fetch("http://a.example/page") is None
    assert web.resolve([]) == []


@pytest.mark.parametrize(
    ("statuses", "served"),
    [
        (["200 OK", "200 OK"], 0),
        (["301 Moved", "200 OK"], 1),
        (["404 Not Found", "302 Found"], 1),
        (["500 Error", "404 Not Found", "404 Not Found"], 1),
        (["204 No Content", "200 OK"], 1),
    ],
)
def test_one_answer_a_url(recording: Recording, statuses: list[str], served: int) -> None:
    for i, status in enumerate(statuses):
        recording.add(f"{'http' if i % 2 else 'https'}://a.example/", b"%d" % i, status=status)
    web = recording.open()
    assert len(web) == 1
    url = web.resolve(["http://a.example/"])[0]
    assert url == ("http://a.example/" if served % 2 else "https://a.example/")
    answer = fetched(web, "https://a.example/")
    assert answer.body == b"%d" % served


def test_a_redirect_is_served_but_not_one_to_itself(recording: Recording) -> None:
    recording.add("http://a.example/old", status="301 Moved", headers=[("Location", "/new")])
    recording.add(
        "http://a.example/", status="301 Moved", headers=[("Location", "//a.example/#top")]
    )
    recording.add(
        "http://b.example/", status="301 Moved", headers=[("Location", "https://b.example/")]
    )
    web = recording.open()
    assert list(web.urls()) == ["http://a.example/old"]
    answer = fetched(web, "http://a.example/old")
    assert (answer.status, answer.headers) == (301, [("Location", "/new")])


def test_what_is_no_answer_is_left_out(recording: Recording) -> None:
    page = recording.add("http://a.example/", b"page")
    recording.add("http://a.example/", b"", status="GET / HTTP/1.1", kind="request")
    recording.add("http://a.example/m", b"a: b", status=None, kind="metadata")
    recording.add("http://a.example/304", status="304 Not Modified")
    recording.add("ftp://a.example/", b"listing", status=None, kind="resource")
    recording.add("dns:a.example", b"1.2.3.4", status=None, kind="resource")
    recording.add("http://a.example/", kind="revisit", status=None, about={"WARC-Refers-To": page})
    web = recording.open()
    assert list(web.urls()) == ["http://a.example/"]
    assert web.records == 7


def test_a_resource_record_is_a_page(recording: Recording) -> None:
    recording.add(
        "http://a.example/f", b"text", status=None, kind="resource", content_type="text/plain"
    )
    answer = fetched(recording.open(), "http://a.example/f")
    assert (answer.status, answer.body) == (200, b"text")
    assert answer.headers == [("Content-Type", "text/plain")]


DIGEST = {"WARC-Payload-Digest": "sha1:MFXNJE4N2VCJ4GV5SHXCGO7GTWZHLIDA"}
DATED = {
    "WARC-Refers-To-Target-URI": "http://a.example/first",
    "WARC-Refers-To-Date": "2020-01-01T00:00:00Z",
}


@pytest.mark.parametrize("named", [None, DATED, DIGEST], ids=["by id", "by date", "by digest"])
def test_a_revisit_has_its_own_head_and_the_first_body(
    recording: Recording, named: dict[str, str] | None
) -> None:
    about = {"WARC-Date": "2020-01-01T00:00:00Z"} | DIGEST
    packed = gzip.compress(b"the body")
    page = recording.add(
        "http://a.example/first",
        packed,
        headers=[("X-Visit", "1"), ("Content-Encoding", "gzip")],
        about=about,
    )
    named = named or {"WARC-Refers-To": page}
    for name, visit, status in (("again", "2", "200 OK"), ("unchanged", "3", "304 Not Modified")):
        url, headers = f"http://a.example/{name}", [("X-Visit", visit)]
        recording.add(url, status=status, headers=headers, kind="revisit", about=named)
    recording.add(
        "http://a.example/lost", kind="revisit", about={"WARC-Refers-To": "<urn:uuid:no>"}
    )
    web = recording.open()
    assert len(web) == 3
    again = fetched(web, "http://a.example/again")
    assert (again.status, again.headers, again.body) == (200, [("X-Visit", "2")], b"the body")
    unchanged = fetched(web, "http://a.example/unchanged")
    assert (unchanged.status, unchanged.body) == (200, b"the body")
    assert unchanged.headers == [("X-Visit", "1")]


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    def write(name: str, urls: list[str], body: bytes = b"same") -> str:
        recording = Recording(tmp_path / name)
        for url in urls:
            recording.add(url, body)
        return recording.open().fingerprint

    one, two = "http://a.example/1", "http://a.example/2"
    first = write("one.warc", [one, two])
    assert write("packed.warc.gz", [one, two]) == first
    assert write("turned.warc", [two, one]) == first
    assert write("fewer.warc", [one]) != first
    assert write("other.warc", [one, two], b"else") != first


def test_keys_that_collide_are_told_apart(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few_keys(texts: list[str]) -> Any:
        return keys_of(texts) % 3

    keys_of = warc_index.url_keys
    monkeypatch.setattr(warc_index, "url_keys", few_keys)
    urls = [f"http://a.example/{i}" for i in range(20)]
    for url in urls[::2]:
        recording.add(url, url.encode())
    web = recording.open()
    assert web.resolve(urls) == [u if i % 2 == 0 else None for i, u in enumerate(urls)]
    for url in urls[::2]:
        answer = fetched(web, url)
        assert answer.body == url.encode()


def test_resolving_forgets_and_still_knows(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_web, "_MAX_CACHED", 5)
    urls = [f"http://a.example/{i}" for i in range(12)]
    for url in urls[::3]:
        recording.add(url, b"page")
    web = recording.open()
    expected = [u if i % 3 == 0 else None for i, u in enumerate(urls)]
    assert web.resolve(urls) == expected
    for start in range(10):
        assert web.resolve(urls[start : start + 3] * 2) == expected[start : start + 3] * 2
    assert web.resolve(urls) == expected


def test_a_file_changed_under_it_is_not_served(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "web.warc")
    recording.add("http://a.example/", b"page")
    web = recording.open()
    data = recording.path.read_bytes()
    recording.path.write_bytes(data.replace(b"http://a.example/", b"http://b.example/"))
    with pytest.raises(UserError, match="changed"):
        web.fetch("http://a.example/")
    recording.path.write_bytes(data[:-6])
    with pytest.raises(UserError, match="changed"):
        web.fetch("http://a.example/")


def test_a_cut_is_said_at_every_opening(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    recording.add("http://a.example/1", b"page")
    recording.file.flush()
    whole = recording.file.tell()
    recording.add("http://a.example/2", b"page")
    recording.file.close()
    recording.path.write_bytes(recording.path.read_bytes()[:-20])
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            web = recording.open()
        assert web.truncated_at == whole
        assert web.records == 1
        (message,) = caplog.messages
        assert f"byte {whole}" in message
        assert "1 complete record" in message
