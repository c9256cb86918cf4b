"""Pages grown from a grammar, whose leaves, links and words are known by construction."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page import parse_page

WORD = re.compile(r"[^\W_]+")
BASE = "http://site.example/"


@dataclass
class Expected:
    """Writes markup and keeps count of what it should be read as."""

    markup: str = ""
    leaves: list[str] = field(default_factory=list)
    links: list[tuple[str, int, int]] = field(default_factory=list)
    pending: str = ""  # text since the last tag: comments do not part it

    def tag(self, markup: str) -> None:
        if self.pending.strip():
            self.leaves.append(self.pending)
        self.pending = ""
        self.markup += markup


@dataclass
class Text:
    text: str

    def write(self, page: Expected) -> bool:
        page.pending += self.text
        page.markup += html.escape(self.text)
        return bool(self.text.strip())


@dataclass
class Verbatim:
    markup: str
    is_leaf: bool

    def write(self, page: Expected) -> bool:
        page.tag(self.markup)
        if self.is_leaf:
            page.leaves.append("")
        return True


class Comment:
    def write(self, page: Expected) -> bool:
        page.markup += "<!-- <a href=no>no</a> -->"
        return False


@dataclass
class Element:
    tag: str
    children: list[Node]

    def write(self, page: Expected) -> bool:
        at = None
        page.tag("")
        first = len(page.leaves)
        if self.tag == "a":
            at = len(page.links)
            page.links.append((f"{BASE}{at}", 0, 0))
            page.tag(f"<a href={at}>")
        else:
            page.tag(f"<{self.tag} class=x>")
        filled = [child.write(page) for child in self.children]
        page.tag(f"</{self.tag}>")
        if not any(filled) or (at is not None and len(page.leaves) == first):
            page.leaves.append("")
        if at is not None:
            page.links[at] = (page.links[at][0], first, len(page.leaves) - 1)
        return True


Node = Text | Verbatim | Comment | Element

texts = st.builds(Text, st.text(st.sampled_from("abZ09é日.<&>'\"_ \n"), max_size=12))
verbatim = st.sampled_from(
    [
        *(Verbatim(m, True) for m in ("<br>", "<hr>", "<img src=i alt=''>", "<input name=n>")),
        *(Verbatim(f"<{tag}>x<b>y</b></{tag}>", False) for tag in ("script", "style", "template")),
        Verbatim("<meta name=x content=y>", False),
    ]
)
plain = st.recursive(
    st.one_of(texts, texts, verbatim, st.just(Comment())),
    lambda nodes: st.builds(
        Element, st.sampled_from(["div", "span", "b", "section"]), st.lists(nodes, max_size=4)
    ),
    max_leaves=8,
)
links = st.builds(Element, st.just("a"), st.lists(plain, max_size=3))
pages = st.lists(
    st.one_of(plain, links, st.builds(Element, st.just("div"), st.lists(st.one_of(plain, links)))),
    max_size=8,
)


@settings(max_examples=200)
@given(pages, st.one_of(st.none(), st.text(st.sampled_from("aT <&\n"), max_size=9)))
def test_leaves_links_and_words(nodes: list[Node], title: str | None) -> None:
    page = Expected()
    if title is not None:
        page.tag(f"<title>{html.escape(title)}</title>")
        page.leaves.append(title)
    page.tag("<body><i>body</i>")
    page.leaves.append("body")
    for node in nodes:
        node.write(page)
    page.tag("</body>")

    view = parse_page(page.markup.encode(), BASE)

    assert view.title == " ".join((title or "").split())
    assert view.n_leaves == len(page.leaves)
    words = [
        (word.lower(), at) for at, leaf in enumerate(page.leaves) for word in WORD.findall(leaf)
    ]
    assert list(zip(view.tokens, view.token_leaf.tolist(), strict=True)) == words
    found = view.links
    assert (
        list(zip(found.urls, found.left.tolist(), found.right.tolist(), strict=True)) == page.links
    )
    assert found.anchors == [
        " ".join(" ".join(page.leaves[left : right + 1]).split()) for _, left, right in page.links
    ]
