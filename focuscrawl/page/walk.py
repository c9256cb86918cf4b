"""Parses HTML to an element tree, and collects texts, links and metadata of the tree."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from urllib.parse import urljoin

import numpy as np
from lxml import etree

# libxml2 stops parsing at an element deeper than this
_DEPTH_LIMIT = 2048
# tags that are removed from pages nested deeper: all but links, metadata and unnestable elements
_NESTING_TAG = re.compile(
    rb"</?(?!(?:a|area|base|br|frame|hr|iframe|img|input|link|meta|noframes|script|style"
    rb"|textarea|title)[\s/>])[a-z][^<>]*>",
    re.IGNORECASE,
)
_SEPARATOR = b"<base>"  # separates two texts and is not a leaf
# places where a browser may break a word; libxml2 would put what follows into this element
_BREAK = re.compile(rb"</?wbr(?=[\s/>])[^<>]*>", re.IGNORECASE)
_LOWER_CASE, _W, _B = np.uint8(0x20), ord("w"), ord("b")  # the bit of lower case; letters

LINK_ATTRIBUTE = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_SVG_LINK_ATTRIBUTE = "xlink:href"  # of ``a`` in SVG 1.1

_MAX_FORM_ELEMENTS = 64  # of a form that is a link
_MAX_QUERY_LENGTH = 2083  # characters of the query of a form
_CONTROLS = frozenset({"button", "input", "select", "textarea"})
_BUTTONS = frozenset({"button", "image", "reset", "submit"})
# fields that a person decides on
_CHOICES = frozenset({"checkbox", "file", "password", "radio", "select", "textarea"})
_FORM_ESCAPED = re.compile(r"[\x00-\x7f](?<![A-Za-z0-9*._-])")  # in names and values

_MAX_FRAMES = 16  # frames with ``srcdoc`` that are read
_FRAME_METADATA = ("base", "link", "meta", "title")  # that do not apply to the page

# elements without visible text; `noscript` is visible, because scripts are not run
_HIDDEN = frozenset({"noembed", "script", "style", "template"})
_UNTITLED = ("svg", "template")  # elements that contain titles of other things than the page
_SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript"})  # not data
_METADATA = frozenset({"base", "link", "meta"})
# elements that are not leaves even if they are empty
_NON_LEAVES = _HIDDEN | _METADATA | {"body", "head", "html", "noframes", "title"}

# values of ``rel`` for links that the author does not endorse, paid links and links of readers
_NOFOLLOW = frozenset({"nofollow", "sponsored", "ugc"})

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MAX_HEADING_TEXTS = 16  # texts of a heading; an unclosed heading may contain the whole page
_MAX_HEADING_LENGTH = 300

_LINK_ELEMENTS = LINK_ATTRIBUTE.keys() | {"form"}
_SPECIAL = _NON_LEAVES | _HEADINGS | _LINK_ELEMENTS

_MAX_TITLES = 100  # that are examined; those of pictures are in menus
_MAX_TITLE_LENGTH = 1000
_MAX_ANCHOR_LEAVES = 64  # an unclosed link may contain the rest of the page
_MAX_ANCHOR_LENGTH = 1000
# characters, with white space, of a text that is read once for each heading or link around it
_MAX_SHARED_LENGTH = 10_000


class _Parsers(threading.local):
    """A parser for each thread, because lxml locks a parser that threads share."""

    def __init__(self) -> None:
        # comments are not leaves, and an unused index of ids would take a fifth of the parse time
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
    """Parse a page and return the root element; None if the page is empty.

    The parser libxml2 parses up to 2,048 nested elements. If elements are nested deeper, only the
    links and texts of these elements are kept.

    Parameters
    ----------
    utf8 : markup as returned by `focuscrawl.page.encoding.to_utf8`
    """
    if _may_have_break(utf8):
        utf8 = _BREAK.sub(b"", utf8)
    root = _parse(utf8)
    if root is not None and _is_truncated(root):
        root = _parse(_NESTING_TAG.sub(_SEPARATOR, utf8))
    return root


def _may_have_break(utf8: bytes) -> bool:
    """Return whether a page contains "wb" in any case, in a third of the time of `_BREAK`."""
    lower = np.frombuffer(utf8, np.uint8) | _LOWER_CASE
    return bool(((lower[:-1] == _W) & (lower[1:] == _B)).any())


def _parse(utf8: bytes) -> etree._Element | None:
    try:
        root = etree.fromstring(utf8, _parsers.parser)
    except etree.ParseError:  # only white space
        return None
    if root is not None:  # None if there are only comments
        # elements after ``</html>`` become siblings of the root; browsers show them in the page
        root.extend([*root.itersiblings()])
    return root


def _is_truncated(root: etree._Element) -> bool:
    """Return whether the parse stopped at the depth limit, which is the depth of the last node."""
    depth = 1
    while len(root):
        root = root[-1]
        depth += 1
    return depth >= _DEPTH_LIMIT - 1


@dataclass(slots=True)
class Outline:
    """Content of a page, as collected by `build_outline`.

    Attributes
    ----------
    title : text of the first ``<title>`` outside SVG with collapsed white space, at most 1,000
        characters. If the page has a title, the whole title is leaf 0
    leaves : text of each DOM leaf, "" for a leaf without text
    references, left, right, nofollow : columns of the link elements, in document order
    captions : replacements for missing link texts, by index in `references`: the ``alt`` of the
        area or of the first image inside, or the ``title``
    scripts : whether the page has scripts, inline or external
    metadata : the ``base``, ``link`` and ``meta`` elements
    headings : text of each heading with collapsed white space, and index of the next leaf
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

    def add_link(self, reference: str) -> None:
        """Add an empty DOM leaf for a link that is no ``a`` element, such as a canonical URL."""
        self.references.append(reference)
        self.left.append(len(self.leaves))
        self.right.append(len(self.leaves))
        self.nofollow.append(False)
        self.leaves.append("")

    def truncate_links(self, most: int) -> int:
        """Keep the first `most` link elements; return the number of removed link elements."""
        n_removed = len(self.references) - most
        if n_removed <= 0:
            return 0
        for column in (self.references, self.left, self.right, self.nofollow):
            del column[most:]
        self.captions = {at: text for at, text in self.captions.items() if at < most}
        return n_removed


def build_outline(root: etree._Element) -> Outline:  # noqa: PLR0912, PLR0915 - a hot loop
    """Collect the leaves, links and metadata of a page in one walk over the element tree.

    A DOM leaf is a text with other characters than white space, or an element that contains
    neither elements nor such a text (methods.md 4, [A02 section 2.2.1]). Metadata, scripts and an
    empty ``html``, ``head`` or ``body`` are not leaves. A link element that contains no leaf is
    itself a leaf.
    """
    page = Outline()
    leaves, references, nofollow = page.leaves, page.references, page.nofollow
    left, right = page.left, page.right
    title = _read_title(page, root)
    for noframes in [*root.iter("noframes")]:
        _parse_noframes(noframes)
    open_links: list[tuple[etree._Element, int]] = []
    innermost: etree._Element | None = None  # the link element that is closed next
    ancestors: list[tuple[etree._Element, int]] = []  # with `n_open` at each ancestor
    n_open = 1  # open elements among this element and its siblings
    walk = root.iter()
    # The hottest loop of the program, with 4,000 iterations for a page of Wikipedia. lxml's
    # `iterwalk`, which has events for the end of elements, takes 50 % longer.
    for element in walk:
        text = element.text
        if text is not None and text.isspace():
            text = None
        is_empty = text is None
        children = len(element)
        tag = element.tag
        if tag in _SPECIAL:
            if tag == "iframe":  # the text is only shown by browsers without frames
                text, is_empty = None, True
                if children:
                    _skip_subtree(element, walk)
                    children = 0
            if tag in _LINK_ELEMENTS:
                if tag == "form":
                    reference = _form_reference(element)
                else:
                    reference = element.get(LINK_ATTRIBUTE[tag])
                    if reference is None and tag == "a":
                        reference = element.get(_SVG_LINK_ATTRIBUTE)
                if reference is not None:
                    if children:
                        innermost = element
                        open_links.append((element, len(references)))
                    elif is_empty:
                        page.captions[len(references)] = _caption(element)
                    references.append(reference)
                    left.append(len(leaves))
                    right.append(len(leaves))  # updated when a link with children is closed
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
        while True:  # close this element, and every ancestor whose last child is closed
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
    """Return the text of each link element; for links without text, the caption of an image.

    Link texts are truncated to 64 DOM leaves and 1,000 characters, because an unclosed link
    element may contain the rest of the page.
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
    """Builds texts of links around several leaves or a long leaf.

    The white space of a long leaf is collapsed once, even if many links contain the leaf.
    """

    def __init__(self, leaves: list[str]) -> None:
        self._leaves = leaves
        self._folded: dict[int, str] = {}

    def text(self, left: int, right: int) -> str:
        """Return the truncated text of a link: the texts of the DOM leaves `left` to `right`."""
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
    """Return `text` with each run of white space replaced by one space, as browsers show it."""
    return " ".join(text.split())


def _heading(element: etree._Element) -> str:
    if not len(element):
        return collapse_whitespace((element.text or "")[:_MAX_SHARED_LENGTH])[:_MAX_HEADING_LENGTH]
    walk = etree.iterwalk(element, events=("start", "end"))
    texts: list[str | None] = []
    for event, inside in islice(walk, 2 * _MAX_HEADING_TEXTS):
        if (inside.tag in _HIDDEN or inside.tag == "iframe") and event == "start":
            walk.skip_subtree()
        elif inside is not element or event == "start":
            texts.append(inside.text if event == "start" else inside.tail)
    return collapse_whitespace(" ".join([text[:_MAX_SHARED_LENGTH] for text in texts if text]))[
        :_MAX_HEADING_LENGTH
    ]


def _read_title(page: Outline, root: etree._Element) -> etree._Element | None:
    # by parts of the page, because lxml's `iter` looks for the next match in advance
    titles = islice(chain.from_iterable(part.iter("title") for part in root), _MAX_TITLES)
    title = next(
        (one for one in titles if next(one.iterancestors(*_UNTITLED), None) is None), None
    )
    if title is not None:
        text = collapse_whitespace(title.text or "")
        page.title = text[:_MAX_TITLE_LENGTH].rstrip()
        page.leaves.append(text)
    return title


def _skip_subtree(element: etree._Element, walk: Iterator[etree._Element]) -> None:
    """Advance `walk` from `element` past all its descendants."""
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


def _form_reference(form: etree._Element) -> str | None:
    """Return the reference that a browser requests for a form that is submitted unchanged.

    None for a form with another method than GET, without ``action``, or with fields that a person
    has to fill in or choose from (WHATWG HTML, "form submission"). An empty query is left out.
    """
    inside = [*islice(form.iter(), _MAX_FORM_ELEMENTS + 1)]
    controls = [
        (_control_kind(each), each)
        for each in inside
        if each.tag in _CONTROLS and each.get("disabled") is None
    ]
    # the first button, which Enter presses
    button = next((each for kind, each in controls if kind in {"submit", "image"}), form)
    target = button.get("formaction") or form.get("action")
    method = button.get("formmethod") or form.get("method") or ""
    if not target or method.strip().lower() in {"post", "dialog"}:
        return None
    if len(inside) > _MAX_FORM_ELEMENTS or any(_needs_input(*each) for each in controls):
        return None
    query = "&".join(
        f"{_form_encode(name)}={_form_encode(each.get('value', ''))}"
        for kind, each in controls
        if (name := each.get("name"))
        and (kind not in _BUTTONS or (each is button and kind == "submit"))
    )
    target = target.partition("#")[0].partition("?")[0]
    if len(query) > _MAX_QUERY_LENGTH:
        return None
    return f"{target}?{query}" if query else target


def _control_kind(control: etree._Element) -> str:
    kind = control.get("type", "").strip().lower()
    if control.tag == "input":
        return kind or "text"
    if control.tag == "button":
        return kind if kind in _BUTTONS else "submit"
    return str(control.tag)


def _needs_input(kind: str, control: etree._Element) -> bool:
    if kind in _BUTTONS or kind == "hidden":
        return False
    return kind in _CHOICES or not control.get("value", "").strip()


def _form_encode(text: str) -> str:
    # other characters are encoded when the reference is resolved, in the encoding of the page
    return _FORM_ESCAPED.sub(lambda c: "+" if c[0] == " " else f"%{ord(c[0]):02X}", text)


def find_srcdocs(root: etree._Element) -> list[etree._Element]:
    """Return the first ``iframe`` elements of a page that have an attribute ``srcdoc``."""
    frames = (each for each in root.iter("iframe") if each.get("srcdoc", "").strip())
    return [*islice(frames, _MAX_FRAMES)]


def parse_srcdoc(frame: etree._Element) -> None:
    """Parse the ``srcdoc`` of an ``iframe`` and insert the content after the ``iframe``."""
    inside = parse_tree(frame.get("srcdoc", "").encode())
    if inside is None:
        return
    base = next((each.get("href", "") for each in inside.iter("base")), "")
    for element in inside.iter(*LINK_ATTRIBUTE) if base else ():
        attribute = LINK_ATTRIBUTE[element.tag]
        reference = element.get(attribute)
        if reference is not None:
            with suppress(ValueError):
                element.set(attribute, urljoin(base, reference))
    etree.strip_elements(inside, *_FRAME_METADATA, with_tail=False)
    inside.tail, frame.tail = frame.tail, None
    frame.addnext(inside)


def _parse_noframes(noframes: etree._Element) -> None:
    """Replace the text of a ``noframes`` element, which libxml2 does not parse, by elements.

    Nested ``noframes`` are dropped, because parsing them would take quadratic time.
    """
    markup = noframes.text or ""
    noframes.text = None
    inside = None if "<noframes" in markup.lower() else parse_tree(markup.encode())
    if inside is not None:
        noframes.append(inside)
