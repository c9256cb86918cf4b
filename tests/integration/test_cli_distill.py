"""``focuscrawl distill`` on crawls of the demo web, and a crawl that distils while it runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import lxml.html
import pandas as pd
import pytest

from focuscrawl.store import CrawlStore, StoreWriter, VisitRecord
from focuscrawl.store.schema import FETCHED, QUEUED, LinkRow, NewUrl, PageRow

from .running import refused
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result

RUDE = "<script>alert('hub')</script> \x1b[31m\u202enom"


def run(*arguments: object) -> Result:
    return focuscrawl("distill", *arguments)


def stored(folder: Path, urls: list[str], links: list[tuple[int, int]], *dead: int) -> Path:
    """Keep a crawl that fetched all `urls` but the last; all relevant but the `dead`."""
    hosts = sorted({url.split("/")[2] for url in urls})
    folder.mkdir()
    store = CrawlStore.create(folder / "crawl.db", {"topic": "/Tea"})
    writer = StoreWriter(store)
    states = [FETCHED] * (len(urls) - 1) + [QUEUED]
    rows = [
        NewUrl(i, url, hosts.index(url.split("/")[2]), 0, None, None, state)
        for i, (url, state) in enumerate(zip(urls, states, strict=True))
    ]
    writer.put(VisitRecord(hosts=list(enumerate(hosts)), urls=rows))
    for i in range(len(urls) - 1):
        page = PageRow(
            seq=i + 1,
            url=i,
            status=200,
            relevance=0.01 if i in dead else 0.9,
            topic="/Tea",
            score=None,
            fetched_at="2026-01-01T00:00:00",
            content_type="text/html",
            size=1,
            title=RUDE if i == 0 else f"page {i}",
            digest=bytes([i]),
        )
        found = [
            LinkRow(100 * i + j, i, v, "", 0, 0.5, 0) for j, (u, v) in enumerate(links) if u == i
        ]
        writer.put(VisitRecord(page=page, links=found))
    writer.close()
    store.close()
    return folder


@pytest.fixture
def teas(tmp_path: Path) -> Path:
    """Page 0 links to authorities 2 and 3, page 1 to one of them, page 4 to what is dead."""
    urls = [f"http://h{i}.org/{i}" for i in range(6)] + ["http://h0.org/again", "http://h7.org/"]
    links = [(0, 2), (0, 3), (0, 7), (1, 2), (4, 5), (0, 6), (6, 0)]
    return stored(tmp_path / "teas", urls, links, 5)


def test_lists(teas: Path) -> None:
    result = run(teas)
    facts, hubs, authorities, sites = result.stdout.split("\n\n")
    assert "links within a host do not count" in facts
    assert [line.split()[:5] for line in hubs.splitlines()[2::2]] == [
        ["1.", "0.851", "0.90", "2/3", "0/0"],
        ["2.", "0.526", "0.90", "1/1", "0/0"],
    ]
    assert "http://h0.org/0" in hubs.splitlines()[3]
    assert [line.split()[0] for line in authorities.splitlines()[3::2]] == [
        "http://h2.org/2",
        "http://h3.org/3",
    ]
    # two relevant pages of two are more than one of one; the site without any is left out
    rows = [line.split() for line in sites.splitlines()[2:]]
    assert rows[0] == ["1.", "2", "2", "0.34", "0", "h0.org"]
    assert {row[-1] for row in rows} == {"h0.org", "h1.org", "h2.org", "h3.org", "h4.org"}


def test_rules_of_sites(teas: Path) -> None:
    none = run(teas, "--sites", "none")
    assert "none: all links count" in none.output
    assert "http://h0.org/again" in none.output
    domain = run(teas, "--sites", "domain", "--top", "1")
    assert domain.output.count("http://") == 2


def test_a_crawl_of_one_host_drops_the_rule_and_says_so(tmp_path: Path) -> None:
    urls = [f"http://h.org/{i}" for i in range(4)]
    folder = stored(tmp_path / "one", urls, [(0, 1), (0, 2), (1, 3)])
    chosen = run(folder)
    assert "none: all links count, because every link stays on its host" in chosen.output
    for rule, named in (("host", "its host"), ("domain", "its registered domain")):
        line = mistaken("distill", folder, "--sites", rule)
        assert named in line
        assert "--sites none" in line


def test_redirects_and_duplicates_are_seen_through(teas: Path) -> None:
    """What 4 links to, 5, redirects to 3, which repeats 2: so 4 is a hub."""
    with closing(sqlite3.connect(teas / "crawl.db")) as store, store:
        store.execute("UPDATE page SET status = 301, digest = NULL WHERE url = 5")
        store.execute("UPDATE url SET referrer = 5 WHERE id = 3")
        store.execute("UPDATE page SET duplicate_of = 2, relevance = 0 WHERE url = 3")
    assert "http://h4.org/4" in run(teas).stdout.split("\n\n")[1]


def test_page_is_escaped_and_needs_nothing_else(teas: Path, tmp_path: Path) -> None:
    out = tmp_path / "hubs.html"
    result = run(teas, "--html", out)
    assert str(out) in result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    text = out.read_text("utf-8")
    assert "\u202e" not in text
    page = lxml.html.document_fromstring(text)
    assert not page.xpath("//script | //img | //link | //*[@src] | //*[@onclick]")
    assert page.xpath("count(//table)") == 3
    assert "<script>alert('hub')</script>" in str(page.xpath("string(//table)"))
    policy = page.xpath("string(//meta[@http-equiv='Content-Security-Policy']/@content)")
    assert "default-src 'none'" in str(policy)


def test_csv_has_every_page_with_a_score(teas: Path, tmp_path: Path) -> None:
    run(teas, "--top", "1", "--csv", tmp_path / "hubs.csv")
    table = pd.read_csv(tmp_path / "hubs.csv")
    assert list(table["url"]) == [f"http://h{i}.org/{i}" for i in (0, 1, 2, 3)]
    assert list(table["hub"] > 0) == [True, True, False, False]
    assert list(table["relevant_out"]) == [2, 1, 0, 0]
    assert list(table["site"]) == ["h0.org", "h1.org", "h2.org", "h3.org"]


def test_no_cell_of_the_csv_is_a_formula(teas: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(teas / "crawl.db")) as database, database:
        database.execute("UPDATE page SET title = '=1+1;=2+2' WHERE seq = 1")
        database.execute("UPDATE page SET title = char(65309) || '1+1' WHERE seq = 2")
    run(teas, "--csv", tmp_path / "hubs.csv")
    titles = list(pd.read_csv(tmp_path / "hubs.csv")["title"])
    assert titles[:2] == ["'=1+1;'=2+2", "'\uff1d1+1"]


def test_mistakes(teas: Path, tmp_path: Path) -> None:
    dead = stored(tmp_path / "dead", [f"http://h{i}.org/" for i in range(3)], [(0, 1)], 1)
    empty = stored(tmp_path / "empty", ["http://h.org/"], [])
    mistakes: list[tuple[list[str | Path], str]] = [
        ([tmp_path / "nothing"], "contains no crawl"),
        ([dead], "use --sites none"),
        ([dead, "--sites", "none"], "crawl with a larger budget"),
        ([empty], "crawl with a larger budget"),
        ([teas, "--csv", tmp_path / "no" / "x.csv"], "--csv"),
        ([teas, "--html", tmp_path], "--html"),
    ]
    for arguments, named in mistakes:
        assert named in mistaken("distill", *arguments)
    for option in (("--top", "0"), ("--sites", "page")):
        focuscrawl("distill", teas, *option, code=2)


def test_an_unknown_rule_is_refused(demo: dict[str, str], tmp_path: Path) -> None:
    line = refused(tmp_path / "crawl", FOCUSCRAWL_DISTILL_SITES="page", **demo)
    assert "FOCUSCRAWL_DISTILL_SITES must be one of auto, host, domain, none" in line
    assert not (tmp_path / "crawl").exists()
