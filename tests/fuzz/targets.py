"""What must hold for any bytes at all; see `fuzz.__main__` for the search."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from itertools import islice
from pathlib import Path

from unit.test_page_robust import LABELS, check

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, normalize, resolve
from focuscrawl.page import ParseCost, ParseLimitError, parse_page
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.taxonomy import read_dmoz
from focuscrawl.topics.bookmarks import read_bookmarks
from focuscrawl.topics.definition import read_definition, write_definition
from focuscrawl.webs import RecordedWeb
from focuscrawl.webs.warc_reading import WarcScan, read_record
from focuscrawl.webs.web_protocol import read_page

from .costs import Limit

_SOME = 50  # rows and pages that are looked at


def page(data: bytes) -> None:
    """Any bytes are a page, in any encoding they claim."""
    label = LABELS[data[0] % len(LABELS)] if data else None
    url = "http://site.example/a/b"
    with suppress(ParseLimitError):  # it is parsed where it can be ended
        check(parse_page(data[1:], url, encoding=label, max_cost=ParseCost.LARGE))


def urls(data: bytes) -> None:
    """What comes out of any text is a web address as the crawler compares them, or nothing."""
    base, _, reference = data.decode("utf-8", "surrogateescape").partition("\n")
    for url in (normalize(base), *resolve(base, [reference, base, ""])):
        if url is None:
            continue
        assert normalize(url) == url
        assert url.startswith(("http://", "https://"))
        assert host(url)
        assert "@" not in url.split("/")[2]
        assert "#" not in url
        assert url.isascii()
        assert url.isprintable()
        assert " " not in url


def warc(data: bytes) -> None:
    """Any bytes are a recording, or refused; a record that was found is found again."""
    try:
        scan = WarcScan(Path("fuzzed.warc"), BytesIO(data))
        records = list(scan)
    except UserError:
        return
    assert scan.records == len(records)
    assert scan.end <= len(data)
    for record in records:
        framed = data[record.offset : record.offset + record.length]
        again = read_record(framed, record.offset)
        assert again is not None
        assert (again.target, again.block) == (record.target, record.block)


def dmoz(data: bytes) -> None:
    """Any bytes are a topic tree, or refused."""
    with tempfile.NamedTemporaryFile(suffix=".rdf.u8") as file:
        file.write(data)
        file.flush()
        try:
            taxonomy = read_dmoz(file.name)
        except UserError:
            return
    for topic in taxonomy.topics:
        assert not {"Cc", "Cs"} & set(map(unicodedata.category, topic))
        for url in taxonomy.examples(topic):
            assert url.startswith(("http://", "https://"))


def recording(data: bytes) -> None:
    """Any bytes are a recording that is read from end to end, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FOCUSCRAWL_CACHE"] = folder
        path = Path(folder) / "web.warc"
        path.write_bytes(data)
        try:
            web = RecordedWeb(path)
        except UserError:
            return
        for url in islice(web.urls(), _SOME):
            read_page(web, url)


def toml(data: bytes) -> None:
    """Any bytes are the definition of a topic, or refused."""
    with _file("topic.toml", data) as path:
        try:
            definition = read_definition(path)
        except UserError:
            return
        write_definition(definition, path)
        assert read_definition(path) == definition


def bookmarks(data: bytes) -> None:
    """Any bytes are bookmarks, or refused."""
    with _file("bookmarks.html", data) as path:
        try:
            found = read_bookmarks(path)
        except UserError:
            return
    for each in found:
        assert normalize(each.url) == each.url


def store(data: bytes) -> None:
    """Any bytes are the store of a crawl that can be looked at, or refused."""
    with _file("crawl.db", data) as path:
        try:
            with closing(CrawlStore.open(path, read_only=True)) as opened:
                history = History(opened)
                history.events("start", "stop")
                for rows in (history.fetches(), history.answers(), history.urls()):
                    for _ in islice(rows, _SOME):
                        pass
        except UserError:
            return


@contextmanager
def _file(name: str, data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


TARGETS: dict[str, Callable[[bytes], None]] = {
    "page": page,
    "urls": urls,
    "warc": warc,
    "dmoz": dmoz,
    "toml": toml,
    "bookmarks": bookmarks,
    "store": store,
}
#: what is searched for costs, and what a byte may cost there
COSTS: dict[str, tuple[Callable[[bytes], None], Limit]] = {
    "page": (page, Limit(microseconds=10, memory=1000)),
    "urls": (urls, Limit(microseconds=5, memory=100)),
    # packed bytes stand for a thousand others
    "warc": (recording, Limit(microseconds=30, memory=100)),
    "dmoz": (dmoz, Limit(microseconds=10, memory=500)),
    "toml": (toml, Limit(microseconds=50, memory=2000)),
    "bookmarks": (bookmarks, Limit(microseconds=10, memory=1000)),
    "store": (store, Limit(microseconds=10, memory=500)),
}
