"""What `read_page` takes for a page of a web, and what not."""

from __future__ import annotations

import pickle
from hashlib import blake2b

import pytest

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.webs import Answer, read_page
from focuscrawl.webs.web_protocol import HtmlAnswer

from .archives import fetched
from .shelves import Shelf, at


def test_a_page_is_read_in_its_encoding() -> None:
    body = "<p>Stra\xdfe <a href=x>hin</a>".encode("latin-1")
    headers = [("Content-Type", "text/html; charset=latin-1")]
    answer = HtmlAnswer.from_answer(Answer(at("/"), 200, headers, body))
    assert answer is not None
    page = answer.parse()
    assert page is not None
    assert "straße" in page.tokens
    assert page.links.urls == [at("/x")]


def test_only_the_page_that_was_meant() -> None:
    web = Shelf()
    web.page("/", "jazz")
    answer = fetched(web, at("/"))
    body = answer.body
    assert read_page(web, at("/"), digest=Duplicates.digest(body)) is not None
    assert read_page(web, at("/"), digest=blake2b(body, digest_size=8).digest()) is not None
    assert read_page(web, at("/"), digest=Duplicates.digest(b"another")) is None
    assert read_page(web, at("/nowhere")) is None


@pytest.mark.parametrize(
    ("status", "content_type", "body", "is_page"),
    [
        (200, "text/html", "<p>x", True),
        (203, "text/html", "<p>x", True),
        (200, "", "<html><p>x", True),
        (200, "text/plain", "<p>x", False),
        (200, "text/html", "%PDF-1.4", False),
        (301, "text/html", "<a href=/>moved</a>", False),
        (404, "text/html", "<p>gone", False),
    ],
)
def test_what_is_a_page(status: int, content_type: str, body: str, is_page: bool) -> None:
    web = Shelf()
    web.put("/", body, status, content_type=content_type)
    assert (read_page(web, at("/")) is not None) == is_page


def test_a_page_has_the_url_it_was_asked_by() -> None:
    class Secure(Shelf):
        def resolve(self, urls):  # type: ignore[no-untyped-def]
            return super().resolve([url.replace("https:", "http:") for url in urls])

    web = Secure()
    web.page("/", "jazz", "b")
    url = at("/").replace("http:", "https:")
    page = read_page(web, url)
    assert page is not None
    assert page.url == url
    assert page.links.urls == [f"{url}b"]


def test_an_answer_goes_to_another_process_before_it_is_parsed() -> None:
    web = Shelf()
    web.page("/", "jazz")
    found = HtmlAnswer.from_answer(fetched(web, at("/")))
    assert found is not None
    here = found.parse()
    assert here is not None
    assert pickle.loads(pickle.dumps(found)).parse().tokens == here.tokens
    assert HtmlAnswer.from_answer(None) is None


def test_the_first_of_repeated_fields_counts() -> None:
    answer = Answer(at("/"), 200, [("Content-Type", "text/html"), ("content-type", "x/y")], b"")
    assert answer.header("content-type") == "text/html"
    assert answer.header("location") is None
