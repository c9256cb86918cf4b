"""A live crawl of what no page links to: site maps, feeds, other languages; and of PDF."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pytest
from pypdf import PdfWriter

from .running import Run, crawl
from .small_site import Answers, Site, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML, XML = "text/html", "application/xml"


def answers(origin: str) -> Answers:
    """Return a site whose home is relevant, and links to a PDF alone."""
    index = f"<sitemapindex><sitemap><loc>{origin}/map.xml.gz</loc></sitemap></sitemapindex>"
    mapped = f"<urlset><url><loc>{origin}/mapped</loc></url></urlset>"
    fed = f"<rss><channel><item><title>x</title><link>{origin}/fed</link></item></channel></rss>"
    head = "<link rel=alternate type=application/rss+xml href=/feed>"
    head += "<link rel=alternate hreflang=de href=/german>"
    home = f"<head>{head}</head>bicycle <a href=/paper.pdf>a paper</a>"
    writer = PdfWriter()
    writer.add_blank_page(9, 9)
    writer.add_metadata({"/Title": "Of the bicycle"})
    paper = io.BytesIO()
    writer.write(paper)
    return {
        "/robots.txt": ("text/plain", f"Sitemap: {origin}/index.xml\n".encode()),
        "/": (HTML, home.encode()),
        "/index.xml": (XML, index.encode()),
        "/map.xml.gz": ("application/gzip", gzip.compress(mapped.encode())),
        "/feed": ("application/rss+xml", fed.encode()),
        "/paper.pdf": ("application/pdf", paper.getvalue()),
        **{f"/{name}": (HTML, name.encode()) for name in ("mapped", "fed", "german")},
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve(answers) as site:
        yield site


@pytest.fixture(scope="module")
def crawled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = {
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": 0,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.1",
        "FOCUSCRAWL_PDF": 1,
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    folder = tmp_path_factory.mktemp("discovery") / "crawl"
    return crawl(
        folder,
        *options,
        topic="bicycle",
        critic="server.critic:judge",
        strategy="best-first",
        seeds=f"{site.origin}/",
        discover="sitemaps,feeds,hreflang",
        budget=100,
    )


def test_what_no_page_links_to_is_fetched(crawled: Run, site: Site) -> None:
    assert (crawled.returncode, crawled.kept.stop_reasons) == (0, ["frontier_empty"])
    assert "Traceback" not in crawled.stderr
    expected = site.answers.keys() - {"/robots.txt"}
    assert {url.removeprefix(site.origin) for url in crawled.kept.urls} == expected
    assert sorted(site.asked) == sorted(site.answers)  # each once


def test_lists_are_fetches_of_no_relevance(crawled: Run) -> None:
    sql = "SELECT error, relevance, links FROM pages WHERE error IS NOT NULL ORDER BY error"
    lists = [("feed", 0.0, 1), ("site map", 0.0, 1), ("site map index", 0.0, 1)]
    assert crawled.kept.query(sql) == lists
    assert "3 site maps or feeds" in crawled.stderr  # the summary counts them


def test_a_pdf_is_judged_by_its_text(crawled: Run) -> None:
    sql = "SELECT title, relevance, error FROM pages WHERE url LIKE '%.pdf'"
    assert crawled.kept.query(sql) == [("Of the bicycle", 0.9, None)]
