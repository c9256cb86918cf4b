"""Pages that are too much to be read as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from focuscrawl.foundation.urls import MAX_URL_LENGTH
from focuscrawl.page import PageView, ParseCost, ParseLimitError, parse_page
from focuscrawl.page.parse import MAX_HEADINGS, MAX_LINKS, MAX_SIZE, MAX_TOKENS

from .shelves import Shelf, open_crawl, run

URL = "http://a.example/"


def test_of_a_page_without_end_the_beginning_is_read() -> None:
    body = b"<title>Long</title><p>first " + "Straße ".encode() * (MAX_SIZE // 8) + b" last"
    page = parse_page(body, URL)
    assert page.title == "Long"
    assert page.tokens[:3] == ["long", "first", "straße"]
    assert "last" not in page.tokens
    assert set(page.tokens[2:]) == {"straße"}
    assert len(page.tokens) == len(page.token_leaf) == MAX_TOKENS


def test_no_character_is_cut_in_two() -> None:
    page = parse_page(b"<p>" + "Straße ".encode() * 9 + "ß".encode() * MAX_SIZE, URL)
    assert page.tokens == ["straße"] * 9  # and one word too long for a token


def test_links_beyond_the_limit_are_counted_only() -> None:
    anchors = "".join(f"<a href={n}><img alt=pic{n}></a>" for n in range(MAX_LINKS + 7))
    page = parse_page(anchors.encode(), URL)
    assert (len(page.links), page.links_cut) == (MAX_LINKS, 7)
    assert page.links.anchors[-1] == f"pic{MAX_LINKS - 1}"
    assert len(page.links.left) == len(page.links.nofollow) == MAX_LINKS


def test_the_crawl_says_how_many_links_it_dropped(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", *["/one"] * (MAX_LINKS + 7))
    crawl = open_crawl(tmp_path, web, "/")
    (visit,) = run(crawl)
    crawl.close("frontier_empty")
    assert (visit.links, visit.dropped) == (MAX_LINKS + 7, MAX_LINKS + 7)


def test_of_a_long_title_the_beginning_is_kept_and_all_of_it_is_read() -> None:
    page = parse_page(b"<title>" + b"jazz " * 200_000 + b"</title>", URL)
    assert page.title == ("jazz " * 200).rstrip()  # 999 characters: it ends in no space
    assert page.tokens == ["jazz"] * MAX_TOKENS


def page_from(base: str, count: int) -> PageView:
    """Return a page with short references from a base."""
    anchors = "".join(f"<a href=x{n}>y</a>" for n in range(count))
    return parse_page(f"<base href='http://b.example/{base}/'>{anchors}".encode(), URL)


def test_a_base_that_is_longer_than_a_url_may_be_is_none() -> None:
    assert page_from("b" * MAX_URL_LENGTH, 1).links.urls == [f"{URL}x0"]
    assert page_from("ü" * 1000, 1).links.urls == [f"{URL}x0"]
    assert page_from("b" * 1000, 1).links.urls[0].startswith("http://b.example")


def test_urls_together_are_no_longer_than_a_page_may_be() -> None:
    page = page_from("b/" * 1000, MAX_LINKS)
    assert MAX_SIZE * 0.99 < sum(map(len, page.links.urls)) <= MAX_SIZE
    assert len(page.links) + page.links_cut == MAX_LINKS
    assert len(page.links.anchors) == len(page.links.left) == len(page.links)


def test_urls_that_are_too_long_lead_nowhere() -> None:
    links = f"<a href='/{'a' * MAX_URL_LENGTH}'>a</a><a href='/{'ü' * 1000}'>b</a><a href=/c>c</a>"
    canonical = f"<link rel=canonical href='/{'c' * MAX_URL_LENGTH}'>"
    page = parse_page(f"{canonical}{links}".encode(), URL)
    assert page.links.urls == [f"{URL}c"]
    assert page.links.anchors == ["c"]
    assert page.canonical is None


def test_texts_that_many_links_lie_around_are_bounded_together() -> None:
    """Each of 1,000 links in one another has all of the text inside."""
    nest = "<a href=x><div>" * 1000 + "word " * 400 + "</div></a>" * 1000
    page = parse_page(nest.encode() * 10, URL)
    assert len(page.links) == MAX_LINKS
    assert page.links.anchors[0] == ("word " * 200).rstrip()
    assert MAX_SIZE * 0.99 < sum(map(len, page.links.anchors)) <= MAX_SIZE


def test_a_text_around_which_links_lie_is_read_once() -> None:
    """A million characters in each of 1,000 links would take an hour."""
    nest = "<a href=x><div>" * 1000 + "word " * 200_000 + "<b>end</b>"
    page = parse_page(nest.encode(), URL)
    assert set(page.links.anchors) == {("word " * 200).rstrip()}


def test_a_caption_that_links_share_is_bounded() -> None:
    nest = "<a href=x><div>" * 30 + f"<img alt='{'word ' * 200_000}'>"
    assert set(parse_page(nest.encode(), URL).links.anchors) == {("word " * 200).rstrip()}


def test_headings_beyond_the_limit_are_left_out() -> None:
    page = parse_page(b"<h1>a</h1>" * (MAX_HEADINGS + 7), URL)
    assert len(page.headings) == len(page.heading_leaf) == MAX_HEADINGS


def test_a_refresh_of_many_digits_is_read_once() -> None:
    """Tried in every way, they would take years."""
    digits = "1" * 1_000_000
    page = parse_page(f"<meta http-equiv=refresh content='{digits}x'>".encode(), URL)
    assert page.refresh is None
    page = parse_page(f"<meta http-equiv=refresh content='{digits}; url=/x'>".encode(), URL)
    assert (page.refresh, page.refresh_delay) == (f"{URL}x", float("inf"))


def test_of_many_refreshes_the_first_are_looked_at() -> None:
    """Each is looked for in the elements around it, of which there may be 2,000."""
    nest = b"<noscript>" + b"<i>" * 2000
    refreshes = b"<meta http-equiv=refresh content='5; url=/x'>" * 40_000
    assert parse_page(nest + refreshes, URL).refresh is None


def test_a_long_page_is_decoded_as_a_whole_one_is() -> None:
    """The end of what is read of it may be in the middle of a character."""
    for n in range(4):
        body = b"a" * n + "日本語のページ".encode() * MAX_SIZE
        assert parse_page(body[: 3 * MAX_SIZE], URL).encoding == "utf-8"


@pytest.mark.parametrize(
    "content", ["&lt;i>" * 12_000, "<p " + " ".join(f"a{n}" for n in range(12_000)) + ">"]
)
def test_the_content_of_frames_is_bounded_as_pages_are(content: str) -> None:
    page = f'<iframe srcdoc="{content}">'.encode()
    with pytest.raises(ParseLimitError):
        parse_page(page, URL, max_cost=ParseCost.SMALL)
    assert len(page) < 80_000


def test_few_frames_are_read() -> None:
    page = parse_page(b'<iframe srcdoc="<a href=/x>y</a>"></iframe>' * 100, URL)
    assert page.links.urls == [f"{URL}x"] * 16
