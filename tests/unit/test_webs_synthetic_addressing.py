"""What the synthetic web answers besides its pages: copies, redirects, dead ends, traps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import urljoin
from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page import parse_page
from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.synthetic.layout import (
    FIRST_HUB,
    AddressKind,
    Host,
    Page,
    page_url,
    parse_url,
)

if TYPE_CHECKING:
    from focuscrawl.webs.web_protocol import Answer

WEB = SyntheticWeb()
ANSWERS = (
    "b4a318c85c36c4f7e2912519c0e29927"  # of several addresses a host; if it changes, raise VERSION
)
PLACES = WEB._places


def ask(url: str) -> Answer:
    known = WEB.resolve([url])[0]
    assert known is not None, url
    answer = WEB.fetch(known)
    assert answer is not None
    assert answer.url == known
    return answer


def header(answer: Answer, name: str) -> str:
    return dict(answer.headers)[name]


def hosts(which: Callable[[Host], bool]) -> Iterator[Host]:
    return filter(which, map(PLACES.host, range(PLACES.hosts)))


def article(host: Host) -> Page:
    return PLACES.page_at(host, host.size - 1)


def root(host: Host) -> str:
    return f"{host.scheme}://{host.name}"


def swapped(url: str) -> str:
    scheme, rest = url.split(":", 1)
    return f"{'http' if scheme == 'https' else 'https'}:{rest}"


@pytest.fixture
def any_host() -> Host:
    return PLACES.host(17)


def test_http_and_https_are_one() -> None:
    urls = list(WEB.urls())
    assert {url.partition(":")[0] for url in urls} == {"http", "https"}
    assert WEB.resolve([swapped(url) for url in urls]) == urls


def test_each_kind_of_address_answers_what_it_did() -> None:
    digest = blake2b(digest_size=16)
    for host in hosts(bool):
        url, last = page_url(article(host)), host.size - 1
        asked = [url, f"{url}?print=1", f"{url}?sid=0123abcd", f"{root(host)}/index.html"]
        names = ("past/2009/{}.html", "files/{}.pdf", "images/{}.gif", "go/{}", "old/{}.html")
        asked += [f"{root(host)}/{name.format(last)}" for name in names]
        asked += [f"{root(host)}/robots.txt", f"{root(host)}/calendar/?month=24292"]
        for known in WEB.resolve(asked):
            digest.update(repr(None if known is None else WEB.fetch(known)).encode())
    assert digest.hexdigest() == ANSWERS


def test_copies_have_the_content_and_name_the_original() -> None:
    page = page_url(article(next(hosts(lambda host: not host.sessions))))
    copy = ask(f"{page}?print=1")
    assert (copy.status, copy.body) == (200, ask(page).body)
    assert parse_page(copy.body, copy.url).canonical == page
    session = page_url(article(next(hosts(lambda host: host.sessions))))
    assert ask(f"{session}?sid=00000000").body == ask(session).body
    assert parse_page(ask(session).body, session).canonical is None
    assert WEB.resolve([f"{page}?sid=00000000", f"{session}?sid=0"]) == [None, None]


def test_redirects_lead_to_the_page_in_one_two_or_three_steps(any_host: Host) -> None:
    page = article(any_host)
    hub = PLACES.hub(any_host, 0)
    for start, statuses, end in (
        (f"{root(any_host)}/old/{page.index}.html", [301, 302, 200], page_url(page)),
        (f"{root(any_host)}/go/{page.index}", [302, 200], page_url(page)),
        (page_url(hub).rstrip("/"), [301, 200], page_url(hub)),
    ):
        url, seen = start, []
        while True:
            answer = ask(url)
            seen.append(answer.status)
            if answer.status == 200:
                break
            url = urljoin(url, header(answer, "Location"))
        assert seen == statuses
        assert url == end


@given(st.integers(0, 10**17))
@settings(max_examples=25, deadline=None)
def test_the_calendar_has_no_end(month: int) -> None:
    host = next(hosts(lambda host: host.calendar))
    url = f"{root(host)}/calendar/?month={month}"
    links = parse_page(ask(url).body, url).links.urls
    assert f"{root(host)}/calendar/?month={month + 1}" in links
    assert WEB.resolve(links) == links
    assert not any("/calendar/" in page for page in WEB.urls())


def test_robots_txt_forbids_pages_that_exist() -> None:
    forbidden = [url for url in WEB.urls() if "/members/" in url]
    assert len(forbidden) > 10
    assert not {label.url for label in WEB.labels()} & set(forbidden)
    for url in forbidden:
        robots = RobotFileParser()
        site = "/".join(url.split("/")[:3])
        robots.parse(ask(f"{site}/robots.txt").body.decode().splitlines())
        assert not robots.can_fetch("any", url)
        assert robots.can_fetch("any", f"{site}/")
        assert ask(url).status == 200
    without = next(hosts(lambda host: not host.members))
    assert ask(f"{root(without)}/robots.txt").status == 404


def test_pages_are_sent_in_the_encoding_they_declare() -> None:
    for host in hosts(bool):
        answer = ask(page_url(article(host)))
        text = answer.body.decode(host.encoding)
        assert ("charset" in header(answer, "Content-Type")) == (host.declared == "header")
        assert ("<meta charset" in text) == (host.declared == "meta")


def test_near_misses_are_not_known() -> None:
    host = PLACES.host(0)
    page = page_url(article(host))
    hub = page_url(PLACES.hub(host, 0))
    unknown = [
        page.replace(f"{host.size - 1}.html", f"{host.size - 2}.html"),
        page.replace(".html", ".htm"),
        page + "?print=2",
        page + "?",
        page.replace(f"-{host.number}.", f"-{host.number + 1}."),
        page.replace(f"-{host.number}.", "-60."),
        page.replace(".demo.example", ".demo.example:81"),
        hub + "?print=1",
        hub + "index.html",
        f"{root(host)}/go/{FIRST_HUB}",
        f"{root(host)}/go/{host.size}",
        f"{root(host)}/go/0{host.size - 1}",
        f"{root(host)}/robots.txt?x",
        f"{root(host)}/past/1999/{host.size - 1}.html",
        f"{root(host)}/past/2009/{host.size}.html",
        "ftp://larder-0.demo.example/",
        "",
    ]
    assert WEB.resolve(unknown) == [None] * len(unknown)


@given(st.integers(0, len(WEB) - 1), st.text(max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_url_with_more_behind_it_is_the_page_or_nothing(number: int, tail: str) -> None:
    page = PLACES.page(number)
    address = parse_url(page_url(page) + tail, PLACES)
    if address and not tail:
        assert address.kind is AddressKind.PAGE
        assert (address.host, address.number) == (page.host, page.index)
    if address:
        assert WEB.fetch(address.url) is not None
