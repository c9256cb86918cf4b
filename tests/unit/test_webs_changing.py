"""Webs that change: their versions, and conditional requests to them."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.page import parse_page
from focuscrawl.webs import open_web
from focuscrawl.webs.changing_web import NEVER, ChangingWeb, PageTimelines
from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.web_protocol import Answer, is_not_modified

from .archives import fetched
from .shelves import Shelf, at

VERSIONS = 5


def headers(answer: Answer) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers}


@pytest.fixture(scope="module")
def demo() -> SyntheticWeb:
    return SyntheticWeb(1 / 3)


def test_pages_come_change_move_and_go(demo: SyntheticWeb) -> None:
    """About as many as the rule says; what is there is served, what moved is redirected to."""
    total = len(demo)
    sizes, changed, gone, moved = [], [], 0, 0
    before: dict[str, str] = {}
    for version in range(1, VERSIONS + 1):
        web = ChangingWeb(demo, version)
        sizes.append(len([*web.urls()]))
        etags = {}
        for url in [*demo.urls()][:400]:
            answer = web.fetch(url)
            if answer is None:
                assert web.resolve([url]) == [None]
                assert PageTimelines(0).of(url).added > version
                continue
            assert web.resolve([url]) == [url]
            if answer.status == 301:
                moved += 1
                target = headers(answer)["location"]
                assert web.resolve([target]) == [target]
                there = fetched(web, target)
                assert there.url == target
                assert there.status in (200, 404)
            elif answer.status == 404:
                gone += 1
            elif "etag" in headers(answer):
                etags[url] = headers(answer)["etag"]
        both = etags.keys() & before.keys()
        changed.append(sum(etags[url] != before[url] for url in both) / max(len(both), 1))
        before = etags
    assert 0.7 * total < sizes[0] < 0.8 * total
    assert sizes == sorted(sizes)
    assert moved > 0 < gone
    assert all(0.1 < share < 0.3 for share in changed[1:])
    assert changed[-1] < 1.0


def test_what_changed_says_so_and_nothing_else_does(demo: SyntheticWeb) -> None:
    """ETag and Last-Modified change with the body, and the body with links or edits."""
    webs = [ChangingWeb(demo, version) for version in range(1, VERSIONS + 1)]
    for url in [*demo.urls()][:150]:
        answers = [web.fetch(url) for web in webs]
        pages = [a for a in answers if a is not None and a.status == 200 and "etag" in headers(a)]
        dates = [parsedate_to_datetime(headers(page)["last-modified"]) for page in pages]
        assert dates == sorted(dates)
        for i in range(1, len(pages)):
            earlier, later = pages[i - 1], pages[i]
            same = earlier.body == later.body
            assert same == (headers(earlier)["etag"] == headers(later)["etag"])
            if same:
                assert dates[i] == dates[i - 1]
                asked = headers(earlier)
                assert is_not_modified(later, asked["etag"], None)
                assert is_not_modified(later, None, asked["last-modified"])
            else:
                assert not is_not_modified(later, headers(earlier)["etag"], None)


def test_a_link_comes_with_the_edit_after_its_page() -> None:
    shelf = Shelf()
    names = [f"/p{i}" for i in range(60)]
    shelf.page("/", "all of them", *names)
    for name in names:
        shelf.page(name, f"page {name}")
    shown: set[str] = set()
    # the front page is there from the first version on, and edited often, in this state
    state = next(s for s in range(99) if len(PageTimelines(s).of(at("/")).edits(6)) > 3)
    lives = PageTimelines(state)
    for version in range(lives.of(at("/")).added, 7):
        web = ChangingWeb(shelf, version, state)
        answer = fetched(web, at("/"))
        before, shown = shown, set(parse_page(answer.body, answer.url).links.urls)
        edited = lives.of(at("/")).edits(version)[-1]
        added = {at(name) for name in names if lives.of(at(name)).added <= edited}
        assert before <= shown == added
        assert b"all of them" in answer.body


def test_the_same_version_is_the_same_and_states_differ(demo: SyntheticWeb) -> None:
    urls = [*demo.urls()][:50]

    def bodies(state: int) -> list[bytes | None]:
        web = ChangingWeb(demo, 3, state)
        answers = [web.fetch(url) for url in urls]
        return [None if answer is None else answer.body for answer in answers]

    assert bodies(0) == bodies(0) != bodies(1)
    fingerprints = {
        ChangingWeb(demo, v, s).fingerprint for v, s in ((1, 0), (2, 0), (1, 1), (1, 0))
    }
    assert len(fingerprints) == 3


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1 << 30), st.text(max_size=20), st.integers(1, 30))
def test_lives_are_in_order(state: int, path: str, version: int) -> None:
    life = PageTimelines(state).of(f"http://h.example/{path}")
    assert 1 <= life.added < life.removed < NEVER
    assert life.added < life.moved
    edits = life.edits(version)
    assert edits[0] == life.added
    assert edits == sorted(set(edits))
    assert set(edits) <= set(life.edits(version + 1))
    assert PageTimelines(state).of(f"https://h.example/{path}") == life


def test_what_is_no_page_is_left_as_it_is() -> None:
    shelf = Shelf()
    shelf.put("/x.txt", "plain", content_type="text/plain")
    shelf.put("/gone", "no", status=410)
    shelf.put("/empty", "")
    web = ChangingWeb(shelf, 9)
    for path in ("/x.txt", "/gone", "/empty"):
        plain = fetched(shelf, at(path))
        life = PageTimelines(0).of(at(path))
        if life.added <= 9 < min(life.removed, life.moved):
            assert web.fetch(at(path)) == plain
    assert web.fetch(at("/never")) is None
    assert web.resolve([at("/never"), at("/moved-here/never")]) == [None, None]


def test_names_of_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = open_web("demo@3,7")
    assert isinstance(web, ChangingWeb)
    assert (web.name, web.version) == ("demo@3", 3)
    assert web.fingerprint == ChangingWeb(SyntheticWeb(), 3, 7).fingerprint
    with pytest.raises(UserError, match="the first version is"):
        open_web("demo@0")
    with pytest.raises(UserError, match="there is no recorded web nothing"):
        open_web("nothing@2")
    monkeypatch.chdir(tmp_path)
    Path("odd@2").write_text("")
    with pytest.raises(UserError, match="is empty"):  # a file of that name comes first
        open_web("odd@2")


@pytest.mark.parametrize(
    ("etag", "modified", "none_match", "since", "expected"),
    [
        ('"a"', None, '"a"', None, True),
        ('W/"a"', None, '"b", "a"', None, True),
        ('"a"', None, '"b"', None, False),
        ('"a"', None, "*", None, True),
        (None, "Mon, 06 Jan 2025 00:00:00 GMT", '"a"', "Mon, 06 Jan 2025 00:00:00 GMT", False),
        (None, "Mon, 06 Jan 2025 00:00:00 GMT", None, "Mon, 06 Jan 2025 00:00:00 GMT", True),
        (None, "Mon, 06 Jan 2025 00:00:00 GMT", None, "Sun, 05 Jan 2025 00:00:00 GMT", False),
        (None, "yesterday", None, "Sun, 05 Jan 2025 00:00:00 GMT", False),
        (None, "Mon, 06 Jan 2025 00:00:00 -0000", None, "Mon, 06 Jan 2025 00:00:00 GMT", False),
        ('"a"', None, None, None, False),
    ],
)
def test_not_modified(
    etag: str | None,
    modified: str | None,
    none_match: str | None,
    since: str | None,
    expected: bool,
) -> None:
    fields = [(n, v) for n, v in (("ETag", etag), ("Last-Modified", modified)) if v is not None]
    for status, answer in ((200, expected), (404, False)):
        found = Answer("http://h.example/", status, fields, b"x")
        assert is_not_modified(found, none_match, since) is answer
