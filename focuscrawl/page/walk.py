"""The element tree of a page, and the one walk over it: leaves, links and metadata."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterator


# libxml2 stops, with all that follows unread, at an element more than this deep.
_DEPTH_LIMIT = 2048
# What of a page that is nested deeper is kept: links, metadata, and what cannot be nested.
_NESTING_TAG = re.compile(
    rb"</?(?!(?:a|area|base|br|frame|hr|iframe|img|input|link|meta|noframes|script|style"
    rb"|textarea|title)[\s/>])[a-z][^<>]*>",
    re.IGNORECASE,
)
# Parts two texts without being a leaf.
_SEPARATOR = b"<base>"

LINK_ATTRIBUTE = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}

# Programs and what only programs show. `noscript` is not among them: we run no scripts, so
# its content is what the page has for us.
_HIDDEN = frozenset({"script", "style", "template"})
_SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript"})  # not data
_METADATA = frozenset({"base", "link", "meta"})
# What holds the page or describes it is no leaf, even when there is nothing in it.
_NON_LEAVES = _HIDDEN | _METADATA | {"body", "head", "html", "noframes", "title"}

# What was one kind of link is three now: paid ones and those that readers of a page write, too.
_NOFOLLOW = frozenset({"nofollow", "sponsored", "ugc"})

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MAX_HEADING_TEXTS = 16  # texts of a heading that are looked at: one left open may hold the page
_MAX_HEADING_LENGTH = 300

_SPECIAL = _NON_LEAVES | _HEADINGS | LINK_ATTRIBUTE.keys()  # what is more than a place for text

_MAX_TITLE_LENGTH = 1000
# An anchor left open may run to the end of the page: no more than this of it is looked at.
_MAX_ANCHOR_LEAVES = 64
_MAX_ANCHOR_LENGTH = 1000
# What several headings share, or several captions, is read for each: so much of it, at most.
_MAX_SHARED_LENGTH = 10_000  # characters, white space included


class _Parsers(threading.local):
    """A parser for each thread: in lxml, threads that share one wait for each other."""

    def __init__(self) -> None:
        # Comments and processing instructions are no leaves, so they need not be nodes. An index
        # of ids would cost a fifth of the parse, and is not used.
        self.parser = etree.HTMLParser(
            encoding="utf-8",
            recover=True,
            huge_tree=True,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )


_parsers = _Parsers()


def parse_tree(utf8: bytes) -> etree._Element | None:
    """Parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it

    Returns
    -------
    The root element, None if the page holds nothing.

    Notes
    -----
    A page nested deeper than libxml2 reads (2,048 elements) is read flat: its links and texts
    are kept, the elements around them are not.
    """
    root = _parse(utf8)
    if root is not None and _is_truncated(root):
        root = _parse(_NESTING_TAG.sub(_SEPARATOR, utf8))
    return root


def _parse(utf8: bytes) -> etree._Element | None:
    try:
        root = etree.fromstring(utf8, _parsers.parser)
    except etree.ParseError:  # nothing but white space
        return None
    if root is not None:  # nothing but comments
        # what follows ``</html>`` becomes a tree of its own: browsers show it with the rest
        root.extend([*root.itersiblings()])
    return root


def _is_truncated(root: etree._Element) -> bool:
    """Tell whether the parse stopped at the depth limit: then the last node is that deep."""
    depth = 1
    while len(root):
        root = root[-1]
        depth += 1
    return depth >= _DEPTH_LIMIT - 1


@dataclass(slots=True)
class Outline:
    """What the walk collects.

    Attributes
    ----------
    title : text of the first ``<title>``, white space folded, at most 1,000 characters; if there
        is one all of it is leaf 0
    leaves : one text a DOM leaf, "" for a leaf without text
    references, left, right, nofollow : one entry a link element, in document order
    captions : for links without text, by their place in `references`, what stands in for it:
        the ``alt`` of an area or of the first image inside, or the ``title``
    scripts : there are programs, or places to load them from
    metadata : the ``base``, ``link`` and ``meta`` elements
    headings : text of each heading, white space folded, and the number of the next leaf
    """

    title: str = ""
    leaves: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    nofollow: list[bool] = field(default_factory=list)
    captions: dict[int, str] = field(default_factory=dict)
    metadata: list[etree._Element] = field(default_factory=list)
    scripts: bool = False
    headings: list[tuple[str, int]] = field(default_factory=list)

    def truncate_links(self, most: int) -> int:
        """Keep the first `most` link elements; return how many were left out."""
        left_out = len(self.references) - most
        if left_out <= 0:
            return 0
        for column in (self.references, self.left, self.right, self.nofollow):
            del column[most:]
        self.captions = {at: text for at, text in self.captions.items() if at < most}
        return left_out


def build_outline(root: etree._Element) -> Outline:  # noqa: PLR0912, PLR0915 - few calls: it is hot
    """Walk over the tree under `root` once.

    A leaf is a text that is not all white space, or an element that holds neither an element
    nor such a text (methods 4, [A02 section 2.2.1]). Metadata, programs and an empty ``html``,
    ``head`` or ``body`` are no leaves. A link element without a leaf inside is one itself.
    """
    page = Outline()
    leaves, references, nofollow = page.leaves, page.references, page.nofollow
    left, right = page.left, page.right
    title = _read_title(page, root)
    for noframes in [*root.iter("noframes")]:
        _parse_noframes(noframes)
    open_links: list[tuple[etree._Element, int]] = []
    innermost: etree._Element | None = None  # the link element that is closed next
    ancestors: list[
        tuple[etree._Element, int]
    ] = []  # those that hold this one, and `n_open` there
    n_open = 1  # elements beside this one, itself among them, that are not closed
    walk = root.iter()
    # The hot loop of the program, 4,000 turns for a page of Wikipedia. lxml's `iterwalk`, which
    # tells where elements end, takes half as long again.
    for element in walk:
        text = element.text
        if text is not None and text.isspace():
            text = None
        is_empty = text is None
        children = len(element)
        tag = element.tag
        if tag in _SPECIAL:
            if tag in LINK_ATTRIBUTE:
                reference = element.get(LINK_ATTRIBUTE[tag])
                if reference is not None:
                    if children:
                        innermost = element
                        open_links.append((element, len(references)))
                    elif is_empty:
                        page.captions[len(references)] = _caption(element)
                    references.append(reference)
                    left.append(len(leaves))
                    right.append(len(leaves))  # or later, if the link is still open then
                    rel = element.get("rel")
                    nofollow.append(
                        rel is not None and not _NOFOLLOW.isdisjoint(rel.lower().split())
                    )
            elif tag in _HEADINGS:
                page.headings.append((_heading(element), len(leaves)))
            else:
                is_empty = False
                if tag in _METADATA:
                    page.metadata.append(element)
                    text = None
                elif tag in _HIDDEN or element is title:
                    page.scripts |= tag == "script" and element.get("type", "") in _SCRIPT_TYPES
                    text, children = None, 0
                    _skip_subtree(element, walk)
        if text is not None:
            leaves.append(text)
        if children:
            ancestors.append((element, n_open))
            n_open = children
            continue
        if is_empty:
            leaves.append("")
        while True:  # this element is closed, and those that it is the last of
            if element is innermost:
                link, at = open_links.pop()
                innermost = open_links[-1][0] if open_links else None
                _close_link(link, at, page)
            text = element.tail
            if text is not None and not text.isspace():
                leaves.append(text)
            n_open -= 1
            if n_open or not ancestors:
                break
            element, n_open = ancestors.pop()  # noqa: PLW2901
    return page


def collect_anchor_texts(page: Outline) -> list[str]:
    """Return the text inside each link element, white space folded, or its caption.

    Of long ones the first 64 leaves and 1,000 characters: what an anchor left open swallows is
    no anchor text any more.
    """
    leaves = page.leaves
    anchors = _AnchorTexts(leaves)
    texts = [
        " ".join(leaves[left].split())  # `collapse_whitespace`, without a call
        if left == right and len(leaves[left]) <= _MAX_ANCHOR_LENGTH
        else anchors.text(left, right)
        for left, right in zip(page.left, page.right, strict=True)
    ]
    for at, caption in page.captions.items():
        texts[at] = texts[at] or caption
    return texts


class _AnchorTexts:
    """Texts of links that lie around several leaves, or a long one: around which others may, too.

    A long leaf is folded once, however many links share it.
    """

    def __init__(self, leaves: list[str]) -> None:
        self._leaves = leaves
        self._folded: dict[int, str] = {}

    def text(self, left: int, right: int) -> str:
        """Return the text of leaves `left` to `right`, as `collect_anchor_texts` has it."""
        end = min(right + 1, left + _MAX_ANCHOR_LEAVES)
        leaves = self._leaves[left:end]
        if sum(map(len, leaves)) <= _MAX_ANCHOR_LENGTH:
            return collapse_whitespace(" ".join(leaves))[:_MAX_ANCHOR_LENGTH].rstrip()
        parts, length = [], 0
        for at in range(left, end):
            part = self._folded.get(at)
            if part is None:
                part = self._folded[at] = collapse_whitespace(self._leaves[at])[
                    :_MAX_ANCHOR_LENGTH
                ].rstrip()
            if part:
                parts.append(part)
                length += len(part) + 1
                if length > _MAX_ANCHOR_LENGTH:
                    break
        return " ".join(parts)[:_MAX_ANCHOR_LENGTH].rstrip()


def collapse_whitespace(text: str) -> str:
    """Return `text` with its white space folded to single blanks, as a browser shows it."""
    return " ".join(text.split())


def _heading(element: etree._Element) -> str:
    if not len(element):
        return collapse_whitespace((element.text or "")[:_MAX_SHARED_LENGTH])[:_MAX_HEADING_LENGTH]
    walk = etree.iterwalk(element, events=("start", "end"))
    texts: list[str | None] = []
    for event, inside in islice(walk, 2 * _MAX_HEADING_TEXTS):
        if inside.tag in _HIDDEN and event == "start":
            walk.skip_subtree()
        elif inside is not element or event == "start":
            texts.append(inside.text if event == "start" else inside.tail)
    return collapse_whitespace(" ".join([text[:_MAX_SHARED_LENGTH] for text in texts if text]))[
        :_MAX_HEADING_LENGTH
    ]


def _read_title(page: Outline, root: etree._Element) -> etree._Element | None:
    title = next(root.iter("title"), None)
    if title is not None:
        text = collapse_whitespace(title.text or "")
        page.title = text[:_MAX_TITLE_LENGTH].rstrip()
        page.leaves.append(text)
    return title


def _skip_subtree(element: etree._Element, walk: Iterator[etree._Element]) -> None:
    """Leave out all that is in `element`, which `walk` has come to."""
    for _ in islice(walk, sum(1 for _ in element.iterdescendants())):
        pass


def _close_link(link: etree._Element, at: int, page: Outline) -> None:
    leaves, left = page.leaves, page.left[at]
    if len(leaves) == left:
        leaves.append("")
    page.right[at] = len(leaves) - 1
    if not leaves[-1] and not any(leaves[left : left + _MAX_ANCHOR_LEAVES]):
        page.captions[at] = _caption(link)


def _caption(link: etree._Element) -> str:
    caption = link.get("alt") or _image_text(link) or link.get("title") or ""
    return collapse_whitespace(caption[:_MAX_SHARED_LENGTH])[:_MAX_ANCHOR_LENGTH].rstrip()


def _image_text(link: etree._Element) -> str | None:
    inside = islice(link.iter(), _MAX_ANCHOR_LEAVES)
    return next((text for e in inside if e.tag == "img" and (text := e.get("alt"))), None)


def _parse_noframes(noframes: etree._Element) -> None:
    """Make elements of what libxml2 leaves as text: it is for readers who see no frames, as we.

    One within another is no page's doing, and each would be parsed anew at every level.
    """
    markup = noframes.text or ""
    noframes.text = None
    inside = None if "<noframes" in markup.lower() else parse_tree(markup.encode())
    if inside is not None:
        noframes.append(inside)
