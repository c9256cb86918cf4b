"""Arguments as settings, and requests on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.settings import Settings

from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.engine.spider_requests import LinkRequestSettings, RequestFile, redirected_request
from focuscrawl.errors import UserError

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
    config = read_config(Settings(given))
    assert (config.topic, config.budget, config.strategy) == ("/A,/B/C", 0, "best-first")
    assert config.seeds is None


def read(tmp_path: Path, trusted: dict[str, Any] | None = None) -> RequestFile:
    """Read the file as a resumed crawl does, in a project that sets `trusted` by itself."""
    file = RequestFile(tmp_path, Reader(), trusted)
    file.load(lambda _: True)
    return file


def kept(tmp_path: Path, *requests: Request) -> RequestFile:
    """Hold requests, and read them again."""
    tmp_path.mkdir(exist_ok=True)
    first = RequestFile(tmp_path, Reader())
    for request in requests:
        first.add(request.url, request)
    return read(tmp_path)


def theirs(
    tmp_path: Path, url: str, said: dict[str, Any], trusted: dict[str, Any] | None = None
) -> RequestFile:
    """Read a line of a stranger's."""
    (tmp_path / RequestFile.NAME).write_text(json.dumps([url, said]) + "\n")
    return read(tmp_path, trusted)


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
    first.add(URL, made)
    again = RequestFile(tmp_path, spider)
    again.load(lambda _: True)
    back = again.pop(URL)
    assert back is not None
    assert back.to_dict(spider=spider) == made.to_dict(spider=spider)
    assert again.pop(URL) is None


def test_only_what_waits_is_kept(tmp_path: Path) -> None:
    file = RequestFile(tmp_path, Reader())
    file.add(URL, Request(URL))
    file.add(f"{URL}b", Request(f"{URL}b"))
    file.mark_fetched(URL)
    again = RequestFile(tmp_path, Reader())
    assert again.load(lambda url: url != URL) == []
    assert again.fetched == {URL}
    assert again.pop(URL) is None
    assert again.pop(f"{URL}b") is not None


def test_what_was_fetched_for_somebody_else_is_still_owed(tmp_path: Path) -> None:
    file = RequestFile(tmp_path, Reader())
    file.add(URL, Request(URL, meta={"a": 1}))
    again = RequestFile(tmp_path, Reader())
    (owed,) = again.load(lambda _: False)
    assert (owed.url, owed.meta) == (URL, {"a": 1})
    third = RequestFile(tmp_path, Reader())  # it was not given yet
    assert len(third.load(lambda _: False)) == 1
    third.mark_fetched(URL)
    assert RequestFile(tmp_path, Reader()).load(lambda _: False) == []


def test_half_a_line_is_no_line(tmp_path: Path) -> None:
    kept(tmp_path, Request(URL))
    path = tmp_path / RequestFile.NAME
    path.write_text(path.read_text() + f'["{URL}b", {{"ur')
    again = read(tmp_path)
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
    assert "not stored for a resumed crawl" in caplog.text


def test_a_strangers_file_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    said = {"url": URL, "_class": "evil.Request", "kind": "evil.Request", "callback": None}
    assert type(theirs(tmp_path, URL, said).pop(URL)) is Request


@pytest.mark.parametrize(
    "meta",
    [
        {"proxy": "http://evil.example:3128"},
        {"_auth_proxy": "http://evil.example", "n": 1},
        {"bindaddress": ["10.0.0.1", 0]},
        {"ftp_user": "me", "ftp_password": "x"},
        {"dont_obey_robotstxt": True},
        {"download_maxsize": 0},
        {"playwright": True, "playwright_context_kwargs": {"proxy": {"server": "evil.example"}}},
        {"impersonate_args": {"proxies": {"http": "evil.example"}}},
    ],
    ids=str,
)
def test_a_strangers_file_does_not_say_by_what_way_a_request_goes(
    meta: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = theirs(tmp_path, URL, {"url": URL, "meta": meta})
    assert file.pop(URL) is None
    assert f"a stored request may not set meta key {next(iter(meta))}: set" in caplog.text
    caplog.clear()
    assert kept(tmp_path / "own", Request(URL, meta=meta)).pop(URL) is None  # known early
    assert "is not stored for a resumed crawl: a stored request may not set" in caplog.text
    back = theirs(tmp_path, URL, {"url": URL, "meta": {**meta, "n": 2}}, trusted=meta).pop(URL)
    assert back is not None
    assert back.meta == {**meta, "n": 2}


def test_politeness_and_method_are_not_the_file_s(tmp_path: Path) -> None:
    meta = {"download_slot": "x", "download_timeout": 1e9, "focuscrawl_url": 5, "mine": [1]}
    back = theirs(tmp_path, URL, {"url": URL, "meta": meta, "method": "DELETE"}).pop(URL)
    assert back is not None
    assert (back.meta, back.method) == ({"mine": [1]}, "GET")


def test_a_strangers_line_is_about_a_web_page(tmp_path: Path) -> None:
    """Also of what was fetched and not for the spider, which is asked for at once."""
    for url in ("file:///etc/passwd", "ftp://a.example/"):
        assert theirs(tmp_path, url, {"url": url}).load(lambda _: False) == []
    assert len(theirs(tmp_path, URL, {"url": URL}).load(lambda _: False)) == 1


@pytest.mark.parametrize(
    "said",
    [
        *(
            {"url": url}
            for url in ("file:///etc/passwd", "ftp://a.example/", "http://b.example/", 7)
        ),
        {},
        {"url": URL, "kind": []},
        {"url": URL, "meta": 5},
        {"url": URL, "meta": [["proxy", "http://evil.example"]]},
        {"url": URL, "meta": {"handle_httpstatus_list": 5}},
        {"url": URL, "headers": []},
        {"url": URL, "encoding": "none"},
        {"url": URL, "priority": "high"},
        {"url": URL, "callback": "nowhere"},
        {"url": URL, "cb_kwargs": 5},
    ],
    ids=str,
)
def test_what_is_no_request_or_about_another_url_is_left_out(
    said: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert theirs(tmp_path, URL, said).pop(URL) is None
    assert "cannot restore the stored request for" in caplog.text


def test_kinds_of_requests_come_back(tmp_path: Path) -> None:
    made = FormRequest(URL, method="GET", formdata={"q": "a"})
    back = kept(tmp_path, made).pop(made.url)
    assert type(back) is FormRequest
    assert back.url == f"{URL}?q=a"


def test_pages_nobody_asked_for_go_to_parse_if_there_is_one() -> None:
    class Parsing(Spider):
        name = "parsing"

        def parse(self, response: Any) -> None: ...

    assert LinkRequestSettings.of(Parsing(), CrawlConfig()).callback is None  # Scrapy calls parse
    nobody = LinkRequestSettings.of(Reader(), CrawlConfig()).callback
    assert nobody is not None
    assert nobody(None) == ()  # type: ignore[arg-type]
    page = LinkRequestSettings.of(Reader(), CrawlConfig(callback="parse_page")).callback
    assert getattr(page, "__name__", "") == "parse_page"
    with pytest.raises(UserError, match="has no method"):
        LinkRequestSettings.of(Reader(), CrawlConfig(callback="parse_pages"))


def test_pages_are_bounded_unless_the_project_says_otherwise() -> None:
    assert read_config(Settings()).meta == {"download_maxsize": 10 * 1024 * 1024}
    assert read_config(Settings({"DOWNLOAD_MAXSIZE": 5})).meta == {}
    given = Settings({"FOCUSCRAWL_META": '{"playwright": true, "download_maxsize": 7}'})
    assert read_config(given).meta == {"playwright": True, "download_maxsize": 7}


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
    moved = redirected_request(request, to)
    assert moved.url == to
    assert set(moved.headers) == {b"X"} | kept
    assert not moved.cookies
    assert moved.meta == {"mine": 1, "redirect_urls": [URL]}
    assert set(request.headers) == {b"X", b"Authorization", b"Cookie"}


def test_an_encrypted_request_tells_nothing_in_the_clear() -> None:
    request = Request("https://a.example/", headers={"Cookie": "a=b"})
    assert not redirected_request(request, URL).headers
