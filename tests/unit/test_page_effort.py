"""How much work a page is, before it is parsed."""

from __future__ import annotations

import pytest
from server.bad.hard import KINDS, SIZES

from focuscrawl.page import ParseCost, ParseLimitError, parse_page
from focuscrawl.page.parse import estimate_cost, parse_selector

MANY = ("attributes", "attributes-quoted", "tags-unclosed")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_parsed_at_once_or_in_a_thread_is_bounded(kind: str) -> None:
    found = {size: estimate_cost(KINDS[kind](length)) for size, length in SIZES.items()}
    # nothing else takes a time that grows faster than the page
    assert found["medium"] == (ParseCost.UNBOUNDED if kind in MANY else ParseCost.LARGE)
    if kind in MANY:
        assert found["large"] == ParseCost.UNBOUNDED


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>word</p>" * 1000, ParseCost.SMALL),
        ("<p>" + "word " * 2000, ParseCost.SMALL),
        ("<b>" * 9000, ParseCost.LARGE),
        ("<p " + " ".join(f"a{n}" for n in range(5000)) + ">", ParseCost.LARGE),
        ("<p>some words</p>" * 5000, ParseCost.LARGE),
        ("<p>some words and then some more</p>" * 10_000, ParseCost.LARGE),
        ("<p>" + "word " * 300_000, ParseCost.LARGE),
        ("<img alt='" + "word " * 300_000 + "'>", ParseCost.LARGE),
        ("<p>a <a href='/' title='a > b'>b</a></p>" * 10_000, ParseCost.LARGE),
        ("<b>" * 101_000, ParseCost.UNBOUNDED),
        ("<p " + " ".join(f"a{n:04}" for n in range(9999)) + ">", ParseCost.LARGE),
        ("<p " + " ".join(f"{n:x}" for n in range(4096, 50_000)) + ">", ParseCost.UNBOUNDED),
    ],
    ids=range(12),
)
def test_only_what_may_take_long_is_taken_for_hard(html: str, expected: ParseCost) -> None:
    assert estimate_cost(html.encode()) == expected


def hidden(value: str, count: int = 30_000) -> bytes:
    """Return a tag with many attributes, whose values make it look like many tags."""
    return b"<p" + b"".join(f" a{n}{value}".encode() for n in range(count)) + b">x</p>"


@pytest.mark.parametrize(
    "value",
    ["=''", "='>'", '=">"', "='<b>'", "\n=\n'>'", "='<b c=\"'", "=x", "/", '"=">"', "='\">\"'"],
)
def test_attributes_are_counted_whatever_is_in_them(value: str) -> None:
    assert estimate_cost(hidden(value) + b" " * 300_000) == ParseCost.UNBOUNDED


@pytest.mark.parametrize(
    "value",
    ['=">"', "='>'", '\n=\n">"', '="\'>"', "='\"=\"a>'", '=">' + "a" * 990 + '>"'],
    ids=range(6),
)
@pytest.mark.parametrize("between", [20, 130, 150])
def test_few_values_hide_no_attributes(value: str, between: int) -> None:
    attributes = [f"a{n}{'' if n % between else value}" for n in range(11_000)]
    body = f"<p {' '.join(attributes)}>x</p>".encode()
    assert estimate_cost(body) > ParseCost.SMALL
    assert estimate_cost(body + b"<p>" * 80_000) == ParseCost.UNBOUNDED


def test_what_takes_less_need_not_be_looked_for() -> None:
    assert estimate_cost(b"<p>", ParseCost.LARGE) == ParseCost.LARGE
    assert estimate_cost(b"<b>" * 101_000, ParseCost.LARGE) == ParseCost.UNBOUNDED


def test_a_page_is_not_parsed_where_it_may_take_too_long() -> None:
    body = b"<title>Much</title>" + b"<b>" * 9000
    with pytest.raises(ParseLimitError):
        parse_page(body, "http://a.example/", max_cost=ParseCost.SMALL)
    assert parse_page(body, "http://a.example/", max_cost=ParseCost.LARGE).title == "Much"


def test_a_selector_is_of_the_tree_that_is_parsed_or_of_none() -> None:
    page = parse_selector("<!-- x --><h1>Räder</h1><wbr>".encode("latin-1"), "latin-1")
    assert page.css("h1::text").getall() == ["Räder"]
    assert page.xpath("//comment() | //wbr").getall() == []
    assert parse_selector(b" ").css("*::text").getall() == []
    with pytest.raises(ParseLimitError):
        parse_selector(b"<b>" * 101_000)
