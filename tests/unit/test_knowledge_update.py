"""Crawls taken into the knowledge of a topic, and what is known then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.errors import UserError
from focuscrawl.knowledge import (
    CrawlRecord,
    FetchRecord,
    Keywords,
    Knowledge,
    UpdateCounts,
    add_crawl,
)
from focuscrawl.knowledge import update as limits

if TYPE_CHECKING:
    from focuscrawl.knowledge.knowledge import PageRecord


def fetch(
    url: str, relevance: float = 0.9, content: bytes | None = b"1", **more: Any
) -> FetchRecord:
    usual: dict[str, Any] = {
        "status": 200,
        "etag": None,
        "last_modified": None,
        "day": 0.0,
        "texts": (),
        "anchors": (),
        "hub": 0.0,
        "authority": 0.0,
    }
    return FetchRecord(url=url, relevance=relevance, content=content, **{**usual, **more})


def crawl(number: int, *fetches: FetchRecord, **more: Any) -> CrawlRecord:
    usual: dict[str, Any] = {
        "topic": "/Boats",
        "critic": "c1",
        "critic_name": "models/boats",
        "replay": True,
        "learned_at": "2026-01-01T00:00:00",
    }
    return CrawlRecord(
        id=f"n{number}", name=f"crawl {number}", fetches=fetches, **{**usual, **more}
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "boats.db"


def page_in(path: Path, url: str) -> PageRecord:
    with closing(Knowledge(path)) as known:
        page = known.page(url)
    assert page is not None
    return page


def test_what_becomes_of_pages(path: Path) -> None:
    """New, changed, unchanged, asked in vain; redirects and duplicates are fetches in vain."""
    a, b, c, d = (f"http://h.example/{name}" for name in "abcd")
    first = add_crawl(path, crawl(1, *(fetch(url, etag='"x"') for url in (a, b, c))))
    assert first == UpdateCounts(fetches=3, relevant=3, new=3)
    second = add_crawl(
        path,
        crawl(
            2,
            fetch(a, content=b"2"),
            fetch(b),
            fetch(c, 0.9, None, status=304),
            fetch(d, 0.0, None, status=301),
        ),
    )
    assert second == UpdateCounts(fetches=4, relevant=3, new=0, changed=1, unchanged=2)
    pages = {url: page_in(path, url) for url in (a, b, c, d)}
    found = {url: (each.accesses, each.changes, each.changed) for url, each in pages.items()}
    assert found == {a: (1, 1, 2.0), b: (1, 0, None), c: (1, 0, None), d: (0, 0, None)}
    assert pages[d].relevance == 0.0
    assert (pages[c].relevance, pages[c].etag) == (0.9, '"x"')


def test_a_page_that_fails_is_given_up_in_the_end(path: Path) -> None:
    url = "http://h.example/"
    add_crawl(path, crawl(1, fetch(url)))
    for number, relevance in ((1, 0.9), (2, 0.9), (3, 0.0), (4, 0.0)):
        gone = fetch(url, 0.0, None, status=404)
        assert add_crawl(path, crawl(number + 1, gone)).failed == 1
        page = page_in(path, url)
        assert (page.failures, page.relevance) == (number, relevance)
    with closing(Knowledge(path)) as known:
        assert known.visit_values(100.0, 0.1)[0] == 0.0
    add_crawl(path, crawl(9, fetch(url, content=b"back")))
    page = page_in(path, url)
    assert (page.relevance, page.failures) == (0.9, 0)


@pytest.mark.parametrize(("replay", "spent"), [(True, 2.0), (False, 7.0)])
def test_time_is_counted_in_crawls_or_in_days(path: Path, replay: bool, spent: float) -> None:
    for number, day in ((1, 3.0), (2, 5.0), (3, 10.0)):
        add_crawl(path, crawl(number, fetch("http://h.example/", day=day), replay=replay))
    assert page_in(path, "http://h.example/").span == spent


def test_seeds_are_hubs_and_authorities_at_once(path: Path) -> None:
    scores = {"both": (0.5, 0.5), "hub": (1.0, 0.0), "authority": (0.0, 0.9), "none": (0.0, 0.0)}
    fetches = [
        fetch(f"http://h.example/{name}", hub=hub, authority=authority)
        for name, (hub, authority) in scores.items()
    ]
    add_crawl(path, crawl(1, *fetches, fetch("http://h.example/dull", 0.1)))
    with closing(Knowledge(path)) as known:
        assert [url.rpartition("/")[2] for url in known.seeds()] == [*scores]


def test_keywords_tell_relevant_pages_from_others(path: Path) -> None:
    good = [fetch(f"http://h.example/{i}", texts=("The reef knot",)) for i in range(8)]
    bad = [fetch(f"http://i.example/{i}", 0.1, texts=("The income tax",)) for i in range(8)]
    add_crawl(path, crawl(1, *good, *bad))
    with closing(Knowledge(path)) as known:
        keywords = known.keywords
    assert {*[*keywords.weights][:2]} == {"reef", "knot"}
    assert not {"the", "tax", "income"} & {*keywords.weights}
    said = keywords.similarity(["reef knot", "tax", "", "a reef in the sea"])
    assert said[0] > said[3] > said[1] == said[2] == 0.0
    assert said.max() <= 1.0


def test_keywords_weigh_against_the_language_that_they_are_in(path: Path) -> None:
    texts = ("Der Palstek und die anderen Knoten", "Wie man den Palstek mit einer Hand macht")
    good = [fetch(f"http://h.example/{i}", texts=texts) for i in range(8)]
    add_crawl(path, crawl(1, *good))
    with closing(Knowledge(path)) as known:
        weights = known.keywords.weights
    assert {"palstek", "knoten"} <= set(list(weights)[:3])
    everyday = [weights.get(word, 0.0) for word in ("der", "und", "die", "mit", "wie")]
    assert max(everyday) < 0.6 * weights["palstek"]


def test_before_anything_is_known_the_topics_name_gives_the_keywords() -> None:
    said = Keywords.from_topics(["/Sports/Rock_Climbing"]).similarity(["Rock climbing", "sports"])
    assert said[0] == pytest.approx(1.0)
    assert said[1] == 0.0
    assert (Keywords({}).similarity(["anything"]) == 0.0).all()


def test_urls_are_predicted_by_themselves_or_by_their_like(path: Path) -> None:
    boats = [
        fetch(f"http://h.example/boats/sail{i}", anchors=("sailing boats",)) for i in range(20)
    ]
    taxes = [
        fetch(f"http://h.example/taxes/form{i}", 0.0, anchors=("tax forms",)) for i in range(20)
    ]
    add_crawl(path, crawl(1, *boats, *taxes))
    with closing(Knowledge(path)) as known:
        urls = [
            "https://h.example/boats/sail3",
            "http://h.example/taxes/form3",
            "http://h.example/boats/sail99",
            "http://h.example/taxes/form99",
            "http://other.example/x",
        ]
        anchors = ["", "", "sailing", "tax", "unheard of"]
        said = known.predict(urls, anchors)
        assert np.isnan(known.relevance(urls)).tolist() == [False, False, True, True, True]
        alone = [known.predict([u], [a])[0] for u, a in zip(urls, anchors, strict=True)]
    assert said[:2] == pytest.approx([0.9, 0.0])
    assert said[2] > 0.7 > said[4] > 0.2 > said[3]
    assert said.tolist() == alone


def test_everything_but_the_pages_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EXEMPLARS", 5)
    monkeypatch.setattr(limits, "MAX_WORDS", 4)
    monkeypatch.setattr(limits, "MAX_QUEUED", 3)
    fetches = [fetch(f"http://h.example/{i}", texts=(f"boat w{i}x",)) for i in range(30)]
    waiting = [(f"http://h.example/later{i}", i / 10) for i in range(8)]
    add_crawl(path, crawl(1, *fetches, queued=waiting))
    add_crawl(path, crawl(2, fetch("http://h.example/later7")))
    with closing(sqlite3.connect(path)) as file:
        counts = [
            file.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("page", "exemplar", "word", "waiting")
        ]
        assert file.execute("SELECT relevant FROM word WHERE word = 'boat'").fetchone() == (30,)
    assert counts == [31, 5, 4, 2]


def test_the_same_crawls_make_the_same_knowledge(tmp_path: Path) -> None:
    fetches = [
        fetch(f"http://h.example/{i}", texts=("a boat",), anchors=("boats",)) for i in range(20)
    ]
    for name in ("one", "two"):
        add_crawl(tmp_path / name, crawl(1, *fetches))
        add_crawl(tmp_path / name, crawl(2, *fetches[:5], queued=[("http://h.example/w", 0.5)]))
    dumps = []
    for name in ("one", "two"):
        with closing(sqlite3.connect(tmp_path / name)) as file:
            dumps.append([*file.iterdump()])
    assert dumps[0] == dumps[1]


def test_refused_crawls_leave_the_file_as_it_was(path: Path) -> None:
    add_crawl(path, crawl(1, fetch("http://h.example/")))
    before = path.read_bytes()

    def breaks() -> Any:
        yield fetch("http://h.example/new")
        raise ZeroDivisionError

    for other, named in (
        (crawl(2, topic="/Knots"), "/Knots"),
        (crawl(2, critic="c2"), "critic"),
        (crawl(2, replay=False), "days"),
        (crawl(1), "already"),
    ):
        with pytest.raises(UserError, match=named) as error:
            add_crawl(path, other)
        assert "\n" not in str(error.value)
    with pytest.raises(ZeroDivisionError):
        add_crawl(path, CrawlRecord(**{**vars(crawl(3)), "fetches": breaks()}))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
