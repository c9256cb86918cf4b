"""What is remembered of the dates in site maps, and what it is good for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import XmlResponse
from scrapy.spiders import SitemapSpider

from focuscrawl.engine import spider_requests
from focuscrawl.engine.spider_requests import SitemapDates
from focuscrawl.page.documents import parse_w3c_date

HOST = "http://host.example"
OLD, NEW, LATEST = "2020-05-01", "2024-05-01T10:00:00Z", "2025"


def site_map(kind: str = "url", /, **dates: str | None) -> XmlResponse:
    """Return a site map of pages, or of site maps, by their paths."""
    rows = "".join(
        f"<{kind}><loc> {HOST}/{path} </loc>{f'<lastmod> {at} </lastmod>' if at else ''}</{kind}>"
        for path, at in dates.items()
    )
    root = {"url": "urlset", "sitemap": "sitemapindex"}[kind]
    return XmlResponse(f"{HOST}/sitemap.xml", body=f"<{root}>{rows}</{root}>".encode())


def order(spider: SitemapSpider, *maps: XmlResponse) -> list[str]:
    """Return the paths that a spider asks for, in the order they are queued."""
    dates = SitemapDates(spider)
    asked = [request for each in maps for request in spider._parse_sitemap(each)]
    return [request.url.rpartition("/")[2] for request in dates.newest_first(asked)]


class Mapped(SitemapSpider):
    name = "mapped"

    def parse(self, response: Any) -> None: ...


def test_the_newest_comes_first_and_what_has_no_date_last() -> None:
    given = {"a": None, "b": OLD, "c": "soon", "d": LATEST, "e": NEW, "f": OLD}
    assert order(Mapped(), site_map(**given)) == ["d", "e", "b", "f", "a", "c"]


def test_the_newest_site_map_of_an_index_comes_first() -> None:
    assert order(Mapped(), site_map("sitemap", a=OLD, b=LATEST, c=NEW)) == ["b", "c", "a"]


def test_a_filter_of_the_spider_s_own_goes_on_filtering() -> None:
    class Filtering(Mapped):
        def sitemap_filter(self, entries: Any) -> Iterator[dict[str, Any]]:
            for entry in entries:
                if entry["loc"].endswith("b"):
                    yield {"loc": f"{entry['loc']}#b", "lastmod": LATEST}
                elif not entry["loc"].endswith("c"):
                    yield entry

    spider = Filtering()
    assert order(spider, site_map(a=NEW, b=OLD, c=LATEST, d=OLD)) == ["b#b", "a", "d"]


def test_a_url_is_known_however_it_is_written() -> None:
    dates = SitemapDates(spider := Mapped())
    xml = f"<urlset><url><loc>HTTP://Host.Example/ü</loc><lastmod>{NEW}</lastmod></url></urlset>"
    (request,) = spider._parse_sitemap(XmlResponse(f"{HOST}/sitemap.xml", body=xml.encode()))
    other = Request(f"{HOST}/other")
    assert dates.newest_first([other, request]) == [request, other]


def test_no_more_dates_are_kept_than_a_site_map_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spider_requests, "MAX_DATES", 2)
    assert order(Mapped(), site_map(a=LATEST, b=OLD, c=NEW)) == ["c", "b", "a"]


def test_other_spiders_are_left_as_they_are() -> None:
    dates = SitemapDates(Spider(name="other"))
    requests = [Request(f"{HOST}/{path}") for path in "ba"]
    assert dates.newest_first(requests) == requests
    assert SitemapDates(None).newest_first(requests) == requests


@pytest.mark.parametrize(
    ("text", "as_"),
    [
        ("1970", "1970-01-01T00:00:00+00:00"),
        ("1970-02", "1970-02-01T00:00Z"),
        ("1970-01-02", "1970-01-02T00:00:00+00:00"),
        ("1970-01-01T02:00+02:00", "1970-01-01T00:00:00"),
        ("2024-05-01T10:00:00.25Z", "2024-05-01T12:00:00.250000+02:00"),
    ],
)
def test_dates_of_site_maps(text: str, as_: str) -> None:
    assert parse_w3c_date(text) == parse_w3c_date(as_) is not None


@pytest.mark.parametrize("text", ["", "None", "yesterday", "01.05.2024", "2024-13", "0000", "-1"])
def test_what_is_no_date(text: str) -> None:
    assert parse_w3c_date(text) is None
