from __future__ import annotations

import gzip
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Taxonomy, prune, read_dmoz

HEAD = (
    "<?xml version='1.0' encoding='UTF-8' ?>\n"
    '<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns:d="http://purl.org/dc/elements/1.0/"'
    ' xmlns="http://dmoz.org/rdf">\n'
)
# what XML can hold at all
TEXT = st.characters(
    codec="utf-8", exclude_categories=["Cc", "Cs", "Z"], exclude_characters="\ufffe\uffff"
)
NAMES = st.text(TEXT.filter(lambda c: c != "/"), min_size=1, max_size=8)
TOPICS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
URLS = st.text(TEXT, min_size=1, max_size=15).map("http://x.org/{}".format)


def record(topic: str, urls: list[str]) -> str:
    """One topic as Dmoz writes it: its links, then the page of each."""
    name = f"Top{topic}"
    links = "".join(f"  <link r:resource={quoteattr(url)}></link>\n" for url in urls)
    pages = "".join(
        f"<ExternalPage about={quoteattr(url)}>\n  <d:Title>a &amp; b</d:Title>\n"
        f"  <d:Description>what &lt;it&gt; is</d:Description>\n"
        f"  <topic>{escape(name)}</topic>\n</ExternalPage>\n"
        for url in urls
    )
    return f"<Topic r:id={quoteattr(name)}>\n  <catid>7</catid>\n{links}</Topic>\n{pages}"


def read(folder: Path, body: str | bytes, **options: int) -> Taxonomy:
    path = folder / "content.rdf.u8"
    raw = body.encode() if isinstance(body, str) else body
    path.write_bytes(HEAD.encode() + raw + b"</RDF>\n")
    return read_dmoz(path, **options)


def contents(tree: Taxonomy) -> dict[str, list[str]]:
    return {topic: tree.examples(topic) for topic in tree.topics if tree.examples(topic)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dmoz")


@given(
    examples=st.dictionaries(
        TOPICS, st.lists(URLS, max_size=5, unique=True), min_size=1, max_size=6
    )
)
def test_round_trip(folder: Path, examples: dict[str, list[str]]) -> None:
    tree = read(folder, "".join(record(topic, urls) for topic, urls in examples.items()))
    assert contents(tree) == {topic: urls for topic, urls in examples.items() if urls}
    assert all(topic in tree for topic in examples)
    assert tree.sampling is None


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "content.rdf.u8.gz"
    path.write_bytes(gzip.compress((HEAD + record("/A", ["http://a/"]) + "</RDF>").encode()))
    assert contents(read_dmoz(path)) == {"/A": ["http://a/"]}
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(UserError, match="damaged gzip"):
        read_dmoz(path)


def test_links_without_pages_and_pages_without_links(folder: Path) -> None:
    tree = read(
        folder,
        '<Topic r:id="Top"><d:Title>Top</d:Title></Topic>\n'
        "<Topic r:id='Top/A'><link1 r:resource='http://best/'/><link r:resource=\"http://l/\"/></Topic>"
        '<ExternalPage about="http://old/"><d:Title>as before 2003</d:Title></ExternalPage>'
        '<ExternalPage about="http://b/"><priority>1</priority><topic>Top/B</topic></ExternalPage>'
        '<ExternalPage about="http://p/"><topic>Top/A</topic></ExternalPage>'
        '<Topic catid="3" r:id="Top/A/Empty"></Topic>',
    )
    assert contents(tree) == {
        "/A": ["http://best/", "http://l/", "http://p/"],
        "/B": ["http://b/"],
    }
    assert tree.topics == ("/", "/A", "/A/Empty", "/B")


def test_only_web_pages_are_examples(folder: Path) -> None:
    tree = read(
        folder,
        '<Topic r:id="Top/A"><link r:resource="HTTPS://a/"/><link r:resource="ftp://b/"/>'
        '<link r:resource="news:c"/><pdf r:resource="http://d/"/><rss r:resource="http://e/"/></Topic>'
        '<ExternalPage about="http://d/"><topic>Top/A</topic></ExternalPage>'
        '<ExternalPage about="http://f/"><topic>Top/A</topic></ExternalPage>',
    )
    assert contents(tree) == {"/A": ["HTTPS://a/", "http://f/"]}


@pytest.mark.parametrize(
    ("written", "url"),
    [
        (b"http://a/?x=1&amp;y=2", "http://a/?x=1&y=2"),
        (b"http://a/?x=1&copy=2&y", "http://a/?x=1&copy=2&y"),
        (b"http://a/&nbsp;&foo;&#;&#x;", "http://a/&nbsp;&foo;&#;&#x;"),
        (b"http://a/&#65;&#x42;&#9999999;", "http://a/AB&#9999999;"),
        (b"http://a/b\x0b\x00c&#0;&#xD800;d", "http://a/bcd"),
        ("http://a/é".encode(), "http://a/é"),
        ("http://a/é".encode("latin-1"), "http://a/é"),
    ],
)
def test_characters_as_they_are_found(folder: Path, written: bytes, url: str) -> None:
    tree = read(folder, b'<Topic r:id="Top/A"><link r:resource="' + written + b'"/></Topic>')
    assert contents(tree) == {"/A": [url]}


CLOSING = [b"</d:Title>", b"</Topic>", b"</ExternalPage>", b"</RDF>", b"]]>"]
OPENING = [b"<b>", b"<!--", b"<![CDATA[", b"<Topic", b"<topic>", b'<link r:resource="']
MARKS = [b'"', b"'", b"<", b">", b"&", b"<ExternalPage about='"]
SCRAPS = st.binary(min_size=1, max_size=20) | st.sampled_from(CLOSING + OPENING + MARKS)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(scrap=SCRAPS, at=st.floats(0, 1, exclude_max=True), over=st.booleans())
@example(scrap=b"<ExternalPage about='", at=0.99, over=False)
@example(scrap=b"<T", at=0.0, over=True)
def test_damage_stays_in_its_record(folder: Path, scrap: bytes, at: float, over: bool) -> None:
    names = ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
    examples = {f"/{n}": [f"http://{n}.org/1", f"http://{n}.org/2"] for n in names}
    records = [record(topic, urls).encode() for topic, urls in examples.items()]
    place = int(at * len(records[1]))
    # the scrap is written into the record, or over a part of it
    after = place + len(scrap) if over else place
    records[1] = records[1][:place] + scrap + records[1][after:]
    tree = read(folder, b"".join(records))
    for topic in ("/aaaaaaaa", "/cccccccc"):
        assert tree.examples(topic) == examples[topic]
    others = {url for topic in tree.topics for url in tree.examples(topic)}
    assert sum(url in others for url in examples["/bbbbbbbb"]) >= 1


@pytest.mark.parametrize("lost", ["<link", "<topic"])
def test_tags_across_the_blocks_the_file_is_read_in(folder: Path, lost: str) -> None:
    examples = {f"/t{n}": [f"http://x/{n}"] for n in range(3)}
    # an example comes as a link and as a page: with one gone nothing makes up for the other
    records = [record(t, urls).replace(lost, "<lost") for t, urls in examples.items()]
    for into in range(len(records[1])):  # a block, a megabyte, ends at every byte of the second
        before = (1 << 20) - len(HEAD) - len(records[0]) - into
        body = records[0] + " " * before + records[1] + records[2]
        assert contents(read(folder, body)) == examples


def test_a_page_whose_tag_is_lost_leaves_the_one_before_in_its_topic(folder: Path) -> None:
    tree = read(
        folder,
        '<ExternalPage about="http://a/"><topic>Top/A</topic></ExternalPage>'
        'ExternalPage about="http://b/"><topic>Top/B</topic></ExternalPage>',
    )
    assert contents(tree) == {"/A": ["http://a/"]}


@pytest.mark.parametrize(
    "damage", ["<" + "x" * (3 << 20), record("/x" * 8000, ["http://x/"])], ids=["long", "deep"]
)
def test_a_long_stretch_without_a_tag_or_a_topic_below_all_depths_is_skipped(
    folder: Path, damage: str
) -> None:
    body = record("/A", ["http://a/"]) + damage + record("/B", ["http://b/"])
    assert contents(read(folder, body)) == {"/A": ["http://a/"], "/B": ["http://b/"]}


@given(most=st.integers(1, 9), seed=st.integers(0, 3), turns=st.permutations(range(40)))
def test_a_topic_in_pieces_gives_the_sample_of_the_whole(
    folder: Path, most: int, seed: int, turns: list[int]
) -> None:
    urls = {topic: [f"http://{topic[1]}/{n}" for n in range(20)] for topic in ("/A", "/B")}
    entries = [(topic, url) for topic in urls for url in urls[topic]]
    pieces = "".join(record(*(entries[t][0], [entries[t][1]])) for t in turns)
    held = read(folder, pieces, max_examples=most, random_state=seed)
    whole = prune(Taxonomy(urls), 1, most, seed)
    assert {t: sorted(u) for t, u in contents(held).items()} == contents(whole)
    assert held.sampling == (most, seed)


def test_what_is_not_dmoz(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("url,topic\n")
    with pytest.raises(UserError, match=r"has no Dmoz topics; give a file content\.rdf\.u8"):
        read_dmoz(path)
