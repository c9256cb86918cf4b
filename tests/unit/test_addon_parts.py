"""Arguments as settings, and requests on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.settings import Settings

from focuscrawl.engine.link_requests import LinkRequests
from focuscrawl.engine.request_file import RequestFile
from focuscrawl.engine.settings_table import ARGUMENTS, read_arguments
from focuscrawl.engine.spider_requests import redirected
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://a.example/"


class Reader(Spider):
    name = "reader"

    def parse_page(self, response: Any) -> None: ...

    def gone(self, failure: Any) -> None: ...


def test_settings_are_read_as_arguments_are_written() -> None:
    given = {
        "FOCUSCRAWL_TOPIC": ["/A", "/B/C"],
        "FOCUSCRAWL_BUDGET": 0,
        "FOCUSCRAWL_SEEDS": "",
        "FOCUSCRAWL_WEB": None,
        "FOCUSCRAWL_STRATEGY": "best-first",
    }
    unset = {name: setting.default for name, setting in ARGUMENTS.items()}
    assert read_arguments(Settings(given)) == {
        **unset,
        "topic": "/A,/B/C",
        "budget": 0,
        "strategy": "best-first",
    }


def kept(tmp_path: Path, *requests: Request) -> RequestFile:
    """Hold requests, and read them again as a resumed crawl does."""
    first = RequestFile(tmp_path, Reader())
    for request in requests:
        first.hold(request.url, request)
    again = RequestFile(tmp_path, Reader())
    again.load(lambda _: True)
    return again


def test_a_request_comes_back_as_it_was(tmp_path: Path) -> None:
    spider = Reader()
    made = Request(
        URL,
        callback=spider.parse_page,
        errback=spider.gone,
        headers={"X-Club": ["a", "b"]},
        cookies={"a": "1"},
        meta={"n": [1, None]},
        cb_kwargs={"x": "ü"},
        priority=3,
        dont_filter=True,
    )
    first = RequestFile(tmp_path, spider)
    first.hold(URL, made)
    again = RequestFile(tmp_path, spider)
    again.load(lambda _: True)
    back = again.pop(URL)
    assert back is not None
    assert back.to_dict(spider=spider) == made.to_dict(spider=spider)
    assert again.pop(URL) is None


def test_only_what_waits_is_kept(tmp_path: Path) -> None:
    file = RequestFile(tmp_path, Reader())
    file.hold(URL, Request(URL))
    file.hold(f"{URL}b", Request(f"{URL}b"))
    file.give(URL)
    again = RequestFile(tmp_path, Reader())
    assert again.load(lambda url: url != URL) == []
    assert again.given == {URL}
    assert again.pop(URL) is None
    assert again.pop(f"{URL}b") is not None


def test_what_was_fetched_for_somebody_else_is_still_owed(tmp_path: Path) -> None:
    file = RequestFile(tmp_path, Reader())
    file.hold(URL, Request(URL, meta={"a": 1}))
    again = RequestFile(tmp_path, Reader())
    (owed,) = again.load(lambda _: False)
    assert (owed.url, owed.meta) == (URL, {"a": 1})
    third = RequestFile(tmp_path, Reader())  # it was not given yet
    assert len(third.load(lambda _: False)) == 1
    third.give(URL)
    assert RequestFile(tmp_path, Reader()).load(lambda _: False) == []


def test_half_a_line_is_no_line(tmp_path: Path) -> None:
    kept(tmp_path, Request(URL))
    path = tmp_path / RequestFile.NAME
    path.write_text(path.read_text() + f'["{URL}b", {{"ur')
    again = RequestFile(tmp_path, Reader())
    again.load(lambda _: True)
    assert again.pop(URL) is not None
    assert again.pop(f"{URL}b") is None


@pytest.mark.parametrize(
    "request_",
    [Request(URL, callback=print), Request(URL, meta={"a": object()})],
)
def test_what_cannot_be_written_is_left_out_with_a_word(
    request_: Request, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert kept(tmp_path, request_).pop(URL) is None
    assert "not kept for a resumed crawl" in caplog.text


def test_a_strangers_file_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    line = [URL, {"url": URL, "_class": "evil.Request", "kind": "evil.Request", "callback": None}]
    (tmp_path / RequestFile.NAME).write_text(json.dumps(line) + "\n")
    file = RequestFile(tmp_path, Reader())
    file.load(lambda _: True)
    back = file.pop(URL)
    assert type(back) is Request


def test_kinds_of_requests_come_back(tmp_path: Path) -> None:
    made = FormRequest(URL, method="GET", formdata={"q": "a"})
    back = kept(tmp_path, made).pop(made.url)
    assert type(back) is FormRequest
    assert back.url == f"{URL}?q=a"


def test_pages_nobody_asked_for_go_to_parse_if_there_is_one() -> None:
    class Parsing(Spider):
        name = "parsing"

        def parse(self, response: Any) -> None: ...

    assert LinkRequests.of(Parsing(), Settings()).callback is None  # Scrapy calls parse
    nobody = LinkRequests.of(Reader(), Settings()).callback
    assert nobody is not None
    assert nobody(None) == ()  # type: ignore[arg-type]
    page = LinkRequests.of(Reader(), Settings({"FOCUSCRAWL_CALLBACK": "parse_page"})).callback
    assert getattr(page, "__name__", "") == "parse_page"
    with pytest.raises(UserError, match="no such method"):
        LinkRequests.of(Reader(), Settings({"FOCUSCRAWL_CALLBACK": "parse_pages"}))


def test_pages_are_bounded_unless_the_project_says_otherwise() -> None:
    assert LinkRequests.of(Reader(), Settings()).meta["download_maxsize"] == 10 * 1024 * 1024
    assert LinkRequests.of(Reader(), Settings({"DOWNLOAD_MAXSIZE": 5})).meta == {}
    given = Settings({"FOCUSCRAWL_META": '{"playwright": true, "download_maxsize": 7}'})
    assert LinkRequests.of(Reader(), given).meta == {"playwright": True, "download_maxsize": 7}


@pytest.mark.parametrize(
    ("to", "kept"),
    [
        ("http://a.example/new", {b"Authorization", b"Cookie"}),
        ("https://a.example/new", {b"Cookie"}),
        ("http://a.example:81/new", {b"Cookie"}),
        ("http://b.example/", set()),
    ],
)
def test_a_redirect_tells_no_other_server_what_one_was_told(to: str, kept: set[bytes]) -> None:
    secrets = {"Authorization": "Basic x", "Cookie": "a=b"}
    request = Request(URL, headers={"X": "y", **secrets}, cookies={"c": "d"}, meta={"mine": 1})
    moved = redirected(request, to)
    assert moved.url == to
    assert set(moved.headers) == {b"X"} | kept
    assert not moved.cookies
    assert moved.meta == {"mine": 1, "redirect_urls": [URL]}
    assert set(request.headers) == {b"X", b"Authorization", b"Cookie"}


def test_an_encrypted_request_tells_nothing_in_the_clear() -> None:
    request = Request("https://a.example/", headers={"Cookie": "a=b"})
    assert not redirected(request, URL).headers
