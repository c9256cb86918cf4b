"""Site maps, feeds and PDF as pages: what they say, and what hostile ones cost."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.annotations import Link
from pypdf.generic import (
    DecodedStreamObject,
    DictionaryObject,
    EncodedStreamObject,
    NameObject,
)

from focuscrawl.page import ParseLimitError, ParserProcess
from focuscrawl.page.documents import (
    FEED,
    MAX_PDF_PAGES,
    PDF,
    SITE_MAP,
    SITE_MAP_INDEX,
    UnreadableError,
    decompress,
    parse_document,
    site_maps_in_robots,
    url_list_kind,
)
from focuscrawl.page.parse import MAX_LINKS

URL = "http://a.example/map.xml"
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def site_map(*entries: str, head: str = "") -> bytes:
    inside = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'<?xml version="1.0"?>{head}<urlset {_NAMESPACE}>{inside}</urlset>'.encode()


def feed(items: str, head: str = "") -> bytes:
    text = f'<?xml version="1.0"?>{head}<rss version="2.0"><channel><title>News</title>{items}'
    return f"{text}</channel></rss>".encode()


def laughs() -> str:
    """Entities of entities: the last one is a hundred billion times three letters long."""
    each = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    return f'<!DOCTYPE x [<!ENTITY l0 "lol">{each}]>'


def pdf(texts: Sequence[str], target: str = "") -> bytes:
    writer = PdfWriter()
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(name) for key, name in names.items()})
    for text in texts:
        page = writer.add_blank_page(200, 200)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if target:
        writer.add_annotation(0, Link(rect=(0, 0, 9, 9), url=target))
    writer.add_metadata({"/Title": "A  paper"})
    return written(writer)


def written(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def apart() -> Iterator[ParserProcess]:
    parser = ParserProcess()
    yield parser
    parser.close()


def test_a_site_map_is_a_page_of_links_the_latest_first_in_words_of_their_urls() -> None:
    body = site_map(
        "<loc> /old-news.html </loc><lastmod>2020-01-01</lastmod>",
        "<loc>http://a.example/undated?a=1&amp;b=2</loc>",
        "<loc>/New%20Wheels/</loc><lastmod>2024-05-01T10:00:00+02:00</lastmod>",
        "<loc>mailto:x@a.example</loc>",
    )
    view = parse_document(gzip.compress(body, mtime=0), URL, SITE_MAP)
    assert (view.kind, view.title) == (SITE_MAP, "site map of a.example")
    assert view.links.urls == [
        "http://a.example/New%20Wheels/",
        "http://a.example/old-news.html",
        "http://a.example/undated?a=1&b=2",
    ]
    assert view.links.anchors == ["New Wheels", "old news html", "undated a 1 b 2"]
    assert view.tokens[view.token_leaf.tolist().index(1) :][:2] == ["new", "wheels"]
    assert view.links.left.tolist() == view.links.right.tolist() == [1, 2, 3]


def test_the_words_of_a_url_in_a_site_map_keep_their_marks() -> None:
    body = site_map(
        "<loc>/ve%CC%81lo_%E0%A4%B9%E0%A4%BF%E0%A4%A8%E0%A5%8D%E0%A4%A6%E0%A5%80-1</loc>"
    )
    view = parse_document(body, URL, SITE_MAP)
    assert view.tokens[-3:] == ["vélo", "हिन्दी", "1"]


def test_an_index_is_told_from_a_site_map() -> None:
    body = site_map().replace(b"urlset", b"sitemapindex")
    body = body.replace(b"></", b"><sitemap><loc>/1.xml.gz</loc></sitemap></")
    assert url_list_kind(body) == SITE_MAP
    assert parse_document(body, URL, SITE_MAP).kind == SITE_MAP_INDEX


PLAIN = "<urlset><url><loc>http://a.example/é</loc></url></urlset>"
BOM = b"\xef\xbb\xbf"
NEWS = "<rss><channel><item><title>x</title><link>http://a.example/é</link></item></channel></rss>"
WARNING = "<br />\n<b>Warning</b>:  no x in <b>/x.php</b> on line <b>3</b><br />\n"


def declare(encoding: str, xml: str = PLAIN) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>\n{xml}'


@pytest.mark.parametrize("xml", [PLAIN, NEWS], ids=["site map", "feed"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda xml: b"\n" + BOM + declare("utf-8", xml).encode(), id="line, mark"),
        pytest.param(lambda xml: BOM + BOM + declare("utf-8", xml).encode(), id="two marks"),
        pytest.param(lambda xml: declare("utf-16", xml).encode(), id="UTF-8 declared as UTF-16"),
        pytest.param(lambda xml: declare("utf-16", xml).encode("utf-16"), id="UTF-16"),
        pytest.param(lambda xml: declare("utf-8", xml).encode("utf-16"), id="UTF-16 as UTF-8"),
        pytest.param(lambda xml: declare("utf-16", xml).encode("utf-16-le"), id="no mark, LE"),
        pytest.param(lambda xml: xml.encode("utf-16-be"), id="no mark, BE"),
        pytest.param(lambda xml: declare("latin-1", xml).encode("latin-1"), id="latin-1"),
        pytest.param(lambda xml: declare("utf8mb4", xml).encode(), id="unknown encoding"),
        pytest.param(lambda xml: f"Notice: x\n{declare('utf-8', xml)}".encode(), id="text"),
        pytest.param(lambda xml: (WARNING + declare("utf-8", xml)).encode(), id="warning"),
        pytest.param(lambda xml: (WARNING + xml).encode(), id="warning, no declaration"),
        pytest.param(
            lambda xml: f"<table><tr>x</table>{declare('utf-8', xml)}".encode(), id="table"
        ),
        pytest.param(lambda xml: f"<!--{'<rss> ' * 50_000}-->{xml}".encode(), id="long comment"),
        pytest.param(lambda xml: gzip.compress(f"<!--{'x' * 9999}-->{xml}".encode()), id="gzip"),
        pytest.param(lambda xml: f"<!DOCTYPE x [<!ENTITY y '>'>]>{xml}".encode(), id="doctype"),
    ],
)  # fmt: skip
def test_lists_are_read_whatever_comes_before_them(
    write: Callable[[str], bytes], xml: str
) -> None:
    kind = url_list_kind(write(xml))
    assert kind == (SITE_MAP if xml is PLAIN else FEED)
    assert parse_document(write(xml), URL, kind).links.urls == ["http://a.example/%C3%A9"]


@pytest.mark.parametrize(
    "xml",
    [
        "<URLSET><URL><LOC>/?a=1&amp;b=2</LOC></URL></URLSET>",
        "<urlset><Url><Loc>/?a=1&amp;b=2</Loc></Url></urlset>",
        "<s:urlset xmlns:s='x'><s:url><s:loc>/?a=1&amp;b=2</s:loc></s:url></s:urlset>",
        "<s:urlset><s:url><s:loc>/?a=1&amp;b=2</s:loc></s:url></s:urlset>",
        "<urlset><url><loc>/?a=1&b=2</loc></url></urlset>",
        "<urlset><url><loc><![CDATA[/?a=1&b=2]]></loc></url></urlset>",
        "<urlset><url><loc>/?a=1&amp;b=2</loc><v:url>/video</v:url></url></urlset>",
        "<urlset><url>/?a=1&amp;b=2</url></urlset>",
        "<urlset><url><loc>/?a=1&amp;b=2</loc></url><url><loc>/cut-o",
    ],
)
def test_xml_of_site_maps_may_have_errors(xml: str) -> None:
    assert url_list_kind(xml.encode()) == SITE_MAP
    assert parse_document(xml.encode(), URL, SITE_MAP).links.urls == ["http://a.example/?a=1&b=2"]


@pytest.mark.parametrize(
    "body",
    [
        b"http://a.example/1\nhttps://b.example/2\n",
        BOM + b"\r\nhttp://a.example/1 \r\n\r\nhttps://b.example/2",
        "http://a.example/1\nhttps://b.example/2".encode("utf-16"),
        gzip.compress(b"http://a.example/1\nnot a URL\n/3\nhttps://b.example/2\n", mtime=0),
    ],
)
def test_a_site_map_may_be_plain_text(body: bytes) -> None:
    assert url_list_kind(body) == SITE_MAP
    found = parse_document(body, URL, SITE_MAP)
    assert found.links.urls == ["http://a.example/1", "https://b.example/2"]


def test_gzip_files_with_several_members_are_read_whole() -> None:
    body = site_map("<loc>/1</loc>", "<loc>/2</loc>")
    packed = gzip.compress(body[:70]) + gzip.compress(body[70:]) + b"\0\0trailing"
    assert decompress(packed) == body


@pytest.mark.parametrize("entries", [20, 2000])
@pytest.mark.parametrize("damage", ["cut", "changed", "checksum"])
def test_gzip_files_are_read_up_to_damage(entries: int, damage: str) -> None:
    """The URLs before the damage are found. Changed bytes may first unpack to another text."""
    urls = [f"http://a.example/{i * i}" for i in range(entries)]
    body = site_map(*(f"<loc>{url}</loc>" for url in urls))
    packed = gzip.compress(body)
    end = len(packed) * 9 // 10
    rest = {"cut": b"", "changed": b"\xff" * 99, "checksum": packed[end:-8] + b"\0" * 8}
    found = parse_document(packed[:end] + rest[damage], URL, SITE_MAP).links.urls
    assert len(found) >= (entries if damage == "checksum" else 0.7 * entries)
    assert len({*found}.difference(urls)) <= (damage == "changed")


def test_lists_of_the_conformance_suite_are_read(conformance_dir: Path) -> None:
    expected = {"xmlSitemap.gz": 5, "sitemap.txt.gz": 5, "sitemap.index.xml": 15, "feed.rss": 3}
    found = {}
    for folder in ("sitemaps", "feeds"):
        for file in filter(Path.is_file, (conformance_dir / folder).rglob("*")):
            kind = url_list_kind(file.read_bytes())
            assert kind is not None, file
            found[file.name] = len(parse_document(file.read_bytes(), URL, kind).links)
    assert found.items() >= expected.items()
    assert min(found.values()) > 0


def test_site_maps_are_named_anywhere_in_robots_txt() -> None:
    text = "Sitemap: /1.xml # all\nUser-agent: *\n disallow: /x\r\n SITEMAP : https://b.example/2.xml\n"
    text += "Sitemap:\nSitemap: ftp://a.example/3.xml\n# Sitemap: /4.xml"
    assert [*site_maps_in_robots(text, "http://a.example/robots.txt")] == [
        "http://a.example/1.xml",
        "https://b.example/2.xml",
    ]


def test_a_feed_is_a_page_of_links_with_their_titles() -> None:
    items = "<item><title>Old</title><link>/1</link><pubDate>Mon, 01 Jan 2024 10:00 GMT</pubDate>"
    items += "</item><item><title>A  new one</title><link>http://b.example/2</link>"
    items += "<pubDate>Tue, 02 Jan 2024 10:00 GMT</pubDate></item><item><title>No</title></item>"
    view = parse_document(feed(items), URL, FEED)
    assert (view.kind, view.title) == (FEED, "News")
    assert view.links.urls == ["http://b.example/2", "http://a.example/1"]
    assert view.links.anchors == ["A new one", "Old"]
    assert view.tokens == ["news", "a", "new", "one", "old"]


def test_a_pdf_is_a_page_of_its_text_and_links(apart: ParserProcess) -> None:
    view = apart.parse_document(pdf(["Road cycling", "and more"], "../b.html"), URL, PDF)
    assert (view.kind, view.title) == (PDF, "A paper")
    assert view.tokens == ["a", "paper", "road", "cycling", "and", "more"]
    assert view.links.urls == ["http://a.example/b.html"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (site_map(), SITE_MAP),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>", FEED),
        (b"<?xml version='1.0'?><rdf:RDF xmlns:rdf='x'>", FEED),
        (gzip.compress(site_map(), mtime=0), SITE_MAP),
        (b"<html><p>about feed and urlset</p>", None),
        (b"<!-- <rdf:RDF xmlns='x'> --><html><p>jazz", None),
        (
            b"<!doctype html><script>x = '<rss version>'</script><svg><?xml version='1'?><rss >",
            None,
        ),
        (b"<head><script>x = '<feed >'</script><?xml version='1'?><rss >", None),
        (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x' 'y'><html><feed >", None),
        (b"<p>about the element <rss version></p>", None),
        (b"<svg><title><urlset></title>", None),
        (b"<r:RDF xmlns:r='x'>", FEED),
        (b"http://a.example/1 and more text", None),
        (b"http://a.example/1<br>", None),
        (b"\x1f\x8bnothing", None),
        (b"", None),
    ],
)
def test_lists_are_told_by_how_they_begin(body: bytes, kind: str | None) -> None:
    assert url_list_kind(body) == kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (site_map(), SITE_MAP),
        (gzip.compress(site_map("<loc>/a</loc>"), mtime=0)[:30], SITE_MAP),
        (feed(""), FEED),
        (b"%PDF-1.7 and then nothing", PDF),
        (pdf(["x"])[:-200], PDF),
        (pdf(["x"]).replace(b"/Pages", b"/Gone."), PDF),
    ],
)
def test_what_is_empty_or_broken_cannot_be_read(
    body: bytes, kind: str, apart: ParserProcess
) -> None:
    try:
        view = apart.parse_document(body, URL, kind)
    except UnreadableError:
        return
    assert kind == PDF  # its reader mends some
    assert not view.links.urls


def test_a_locked_pdf_cannot_be_read(apart: ParserProcess) -> None:
    writer = PdfWriter()
    writer.add_blank_page(9, 9)
    writer.encrypt("secret", algorithm="RC4-128")
    with pytest.raises(UnreadableError):
        apart.parse_document(written(writer), URL, PDF)


@pytest.mark.parametrize("kind", [SITE_MAP, FEED])
def test_entities_are_not_spelled_out(kind: str, apart: ParserProcess) -> None:
    if kind == SITE_MAP:
        body = site_map("<loc>/&l11;</loc>", "<loc>/ok</loc>", head=laughs())
        with pytest.raises(UnreadableError):
            apart.parse_document(body, URL, kind)
        return
    items = "<item><title>&l11;</title><link>/ok</link></item>"
    view = apart.parse_document(feed(items, head=laughs()), URL, kind)
    assert "http://a.example/ok" in view.links.urls
    assert "lol" not in "".join(view.links.urls + view.links.anchors)


@pytest.mark.parametrize("kind", [SITE_MAP, FEED])
def test_no_entity_reads_a_file(kind: str, apart: ParserProcess) -> None:
    head = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]>'
    if kind == SITE_MAP:
        body = site_map("<loc>/x</loc>", "<loc>/&f;</loc>", head=head)
    else:
        body = feed("<item><title>t &f;</title><link>/x</link></item>", head=head)
    with open("/etc/hostname", encoding="utf-8") as file:  # noqa: PTH123 - as the entity names it
        name = file.read().strip()
    view = apart.parse_document(body, URL, kind)
    assert name not in "".join(view.links.urls + view.links.anchors)


def test_of_a_packed_site_map_so_much_is_unpacked_as_one_may_have(apart: ParserProcess) -> None:
    one = b"<url><loc>http://a.example/%09d</loc></url>"
    entries = b"".join(one % i for i in range(60_000))
    bomb = gzip.compress(site_map()[:-9] + entries + b" " * 100_000_000, mtime=0)
    assert len(bomb) < 1_000_000
    view = apart.parse_document(bomb, URL, SITE_MAP)
    assert (len(view.links), view.links_cut) == (MAX_LINKS, 50_000 - MAX_LINKS)


def test_of_a_thousand_pages_of_pdf_the_first_are_read(apart: ParserProcess) -> None:
    writer = PdfWriter()
    for _ in range(1000):
        writer.add_blank_page(9, 9)
    assert apart.parse_document(written(writer), URL, PDF).n_leaves == MAX_PDF_PAGES + 1


def test_a_pdf_that_unpacks_to_gigabytes_is_given_up(apart: ParserProcess) -> None:
    """And what reads the next one is there."""
    part, times = b"(x) Tj " * (1 << 17), 1024
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)  # may be repeated
    checksum = reduce(lambda so_far, _: zlib.adler32(part, so_far), range(times), 1)
    stream = EncodedStreamObject()
    stream._data = b"\x78\x9c" + block * times + b"\x03\x00" + checksum.to_bytes(4, "big")
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    writer = PdfWriter()
    page = writer.add_blank_page(9, 9)
    page[NameObject("/Contents")] = writer._add_object(stream)
    body = written(writer)
    assert len(body) < 10_000_000
    try:
        tokens = apart.parse_document(body, URL, PDF).tokens
    except (UnreadableError, ParseLimitError):
        tokens = []
    assert len(tokens) <= 2
    assert apart.parse_document(pdf(["next"]), URL, PDF).tokens == ["a", "paper", "next"]
