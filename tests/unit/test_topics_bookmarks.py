"""Bookmarks as pages of a topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.topics import read_bookmarks

if TYPE_CHECKING:
    from focuscrawl.topics import Bookmark

NAMES = st.text("abcdefgh-", min_size=1, max_size=6)
BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><H1>Menu</H1>
<DL><p>
  <DT><H3 ADD_DATE="1">Sea</H3>
  <DL><p>
    <DT><A HREF="HTTPS://Knots.example" ADD_DATE="2">Knots &amp; more</A>
    <DT><H3>Boats/large</H3>
    <DL><p><DT><A HREF="http://boats.example/a#b">Boats</A></DL><p>
    <DT><A HREF="javascript:alert(1)">run</A>
  </DL><p>
  <DT><A HREF="http://news.example/">News</A>
  <DT><A HREF="https://knots.example/">again</A>
</DL>"""


def test_bookmarks_are_read_with_their_folders(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.html"
    path.write_text(BOOKMARKS)

    def folders(found: list[Bookmark]) -> dict[str, str]:
        return {each.url: each.folder for each in found}

    everything = {
        "https://knots.example/": "Sea",
        "http://boats.example/a": "Sea/Boats-large",
        "http://news.example/": "",
    }
    assert folders(read_bookmarks(path)) == everything
    assert read_bookmarks(path)[0].title == "Knots & more"
    assert set(folders(read_bookmarks(path, "Sea"))) == {*everything} - {"http://news.example/"}
    with pytest.raises(UserError, match=r"has no folder Air\. Folders: Boats-large, Sea"):
        read_bookmarks(path, "Air")
    path.write_text("<p>nothing")
    with pytest.raises(UserError, match="no bookmark"):
        read_bookmarks(path)


FOLDERS: st.SearchStrategy[list[Any]] = st.recursive(
    st.just([]), lambda inner: st.lists(st.none() | st.tuples(NAMES, inner), max_size=4)
)


@settings(max_examples=60, deadline=None)
@given(menu=FOLDERS)
def test_bookmarks_lie_where_a_browser_has_them(
    tmp_path_factory: pytest.TempPathFactory, menu: list[Any]
) -> None:
    """Pages and folders, in any order and depth, in the tags that Firefox and Chrome write."""
    expected: list[tuple[str, str]] = []

    def export(entries: list[Any], inside: list[str]) -> str:
        lines = []
        for entry in entries:
            if entry is None:
                expected.append((f"http://h.example/{len(expected)}", "/".join(inside)))
                lines.append(f'<DT><A HREF="{expected[-1][0]}" ICON="data:,">t</A><DD>more<HR>')
            else:
                name, inner = entry
                lines.append(f'<DT><H3 ADD_DATE="1">{name}</H3>\n{export(inner, [*inside, name])}')
        return "<DL><p>\n" + "\n".join(lines) + "\n</DL><p>"

    path = tmp_path_factory.mktemp("bookmarks") / "b.html"
    path.write_text(f"<H1>Menu</H1>\n{export([*menu, None], [])}")
    assert [(each.url, each.folder) for each in read_bookmarks(path)] == expected


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.sampled_from("<>/dlah3DT=\"' \n"), max_size=80))
def test_no_bookmarks_file_is_too_broken(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("broken") / "b.html"
    path.write_text(text + '<a href="http://a.example/">x</a>')
    try:
        urls = [each.url for each in read_bookmarks(path)]
    except UserError:
        return
    assert all(url.startswith("http") for url in urls)


@pytest.mark.parametrize(
    "before",
    [
        "<!--" * 200_000 + "-->",
        "<!-- -->" * 200_000,
        "<dl>" * 2000,
        "<h3>name</h3><dl>" * 2000,
        "<h3>" * 2000,
        "<b>" * 10_000,
    ],
    ids=["open", "closed", "folders", "named folders", "names", "deep"],
)
def test_bookmarks_of_strangers_cost_little(tmp_path: Path, before: str) -> None:
    link = '<a href="http://host.example/">' + "title " * 10_000 + "</a>"
    links = "".join(f'<a href="http://host.example/{i}">x</a>' for i in range(5000))
    (tmp_path / "bookmarks.html").write_text(before + link + links)
    found = read_bookmarks(tmp_path / "bookmarks.html")
    assert [found[0].url, len(found)] == ["http://host.example/", 5001]
    assert len(found[0].title) <= 1000
    assert len(found[-1].folder) < 2000


def test_bookmarks_in_another_encoding_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.html"
    for encoding in ("latin-1", "utf-16"):
        path.write_bytes(
            '<DT><H3>Räder</H3><DL><DT><A HREF="http://a.example/">a</A></DL>'.encode(encoding)
        )
        with pytest.raises(UserError, match="not UTF-8 text"):
            read_bookmarks(path)
