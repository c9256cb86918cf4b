"""A live crawl of what no page links to: site maps, feeds, other languages; and of PDF."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from focuscrawl.text.text_store import FILE

from .running import BICYCLES, QUICK, Run, crawl
from .small_site import Answers, Site, serve
from .typed import focuscrawl

HTML, XML = "text/html", "application/xml"
WORDS = "What a bicycle is made of, and how it stays upright when somebody rides it"


def paper() -> bytes:
    """Return a PDF on the topic, which says of itself what it is called and by whom."""
    writer = PdfWriter()
    page = writer.add_blank_page(200, 200)
    kinds = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(k): NameObject(v) for k, v in kinds.items()})
    fonts = DictionaryObject({NameObject("/F1"): font})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 10 100 Td ({WORDS}) Tj ET".encode())
    page[NameObject("/Contents")] = writer._add_object(stream)
    said = {"/Title": "Of the bicycle", "/Author": "A. Rider", "/CreationDate": "D:20200102030405"}
    writer.add_metadata(said)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def answers(origin: str) -> Answers:
    """Return a site whose home is relevant, and links to a PDF alone."""
    index = f"<sitemapindex><sitemap><loc>{origin}/map.xml.gz</loc></sitemap></sitemapindex>"
    mapped = f"<urlset><url><loc>{origin}/mapped</loc></url></urlset>"
    fed = f"<rss><channel><item><title>x</title><link>{origin}/fed</link></item></channel></rss>"
    head = "<link rel=alternate type=application/rss+xml href=/feed>"
    head += "<link rel=alternate hreflang=de href=/german>"
    home = f"<head>{head}</head>bicycle <a href=/paper.pdf>a paper</a>"
    home += " <a href=/copy.pdf>once more</a>"
    return {
        "/robots.txt": ("text/plain", f"Sitemap: {origin}/index.xml\n".encode()),
        "/": (HTML, home.encode()),
        "/index.xml": (XML, index.encode()),
        "/map.xml.gz": ("application/gzip", gzip.compress(mapped.encode())),
        "/feed": ("application/rss+xml", fed.encode()),
        "/paper.pdf": ("application/pdf", paper()),
        "/copy.pdf": ("application/pdf", paper()),
        **{f"/{name}": (HTML, name.encode()) for name in ("mapped", "fed", "german")},
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve(answers) as site:
        yield site


@pytest.fixture(scope="module")
def crawled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("discovery") / "crawl"
    given = {f"FOCUSCRAWL_{name}": 1 for name in ("PDF", "TEXT", "WARC")}
    return crawl(
        folder,
        *("-O", str(folder.with_name("items.jsonl"))),
        **QUICK,
        **given,
        **BICYCLES,
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
    sql = "SELECT title, relevance, error FROM pages WHERE url LIKE '%.pdf' AND relevance > 0"
    assert crawled.kept.query(sql) == [("Of the bicycle", 0.9, None)]


def test_the_text_of_a_pdf_is_taken_home_while_crawling_or_later(
    crawled: Run, tmp_path: Path
) -> None:
    folder = crawled.kept.folder
    items = map(json.loads, folder.with_name("items.jsonl").read_text().splitlines())
    (item,) = (item for item in items if item["text"] and item["url"].endswith(".pdf"))
    (folder / FILE).unlink()  # so it is read again
    out = tmp_path / "pages.jsonl"
    focuscrawl("collect", folder, "--out", out, "--processes", 1)
    rows = map(json.loads, out.read_text().splitlines())
    (row,) = (row for row in rows if row["kind"] == "PDF")
    for found in (item, row):
        assert " ".join(found["text"].split()) == WORDS
        said = [found[name] for name in ("title", "author", "date", "extractor")]
        assert said == ["Of the bicycle", "A. Rider", "2020-01-02", "pypdf"]
    (same,) = row["duplicates"]  # the crawl has found that it is
    assert {url.rpartition("/")[2] for url in (row["url"], same)} == {"paper.pdf", "copy.pdf"}
