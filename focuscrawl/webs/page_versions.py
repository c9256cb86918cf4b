"""A page as it is in one version of a changing web."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from lxml import etree

from focuscrawl.foundation.urls import resolve
from focuscrawl.page.effort import Effort, effort
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.tree import parse_tree
from focuscrawl.webs.life_cycles import fraction
from focuscrawl.webs.pages import HtmlAnswer
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.webs.life_cycles import Life

_FIRST = datetime(2025, 1, 6, tzinfo=UTC)
_STEP = timedelta(days=7)  # from version to version
_NEW_WORDS = 30  # of an edit


def revised(
    answer: Answer,
    url: str,
    life: Life,
    version: int,
    births: Callable[[Sequence[str | None]], list[int]],
) -> Answer:
    """Return what a version answers in place of what was recorded.

    An edit adds a paragraph of the page's own words in another order, so that the page stays on
    its topic, and links to the pages that have come: links to pages that had not come with the
    last edit are left out. What is no page is left as it is.

    Parameters
    ----------
    answer : as recorded
    url : where it is in this version
    life : of the page
    births : gives the versions that the targets of links come with
    """
    page = HtmlAnswer.of(answer)
    utf8 = b"" if page is None else to_utf8(page.body, page.encoding)[0]
    root = None if effort(utf8, Effort.LARGE) > Effort.LARGE else parse_tree(utf8)
    if root is None:
        return replace(answer, url=url)
    anchors = list(root.iter("a", "area"))
    targets = resolve(answer.url, [each.get("href") or "" for each in anchors])
    born = births(targets)
    edits = life.edits(version)
    for anchor, first in zip(anchors, born, strict=True):
        if first > edits[-1]:
            _drop(anchor)
    if len(edits) > 1:
        _add_paragraph(root, life, len(edits) - 1)
    body = etree.tostring(root, method="html", encoding="utf-8", doctype="<!doctype html>")
    kept = [
        (name, value)
        for name, value in answer.headers
        if name.lower() not in {"content-type", "content-length", "etag", "last-modified"}
    ]
    own = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("ETag", f'"{blake2b(body, digest_size=8).hexdigest()}"'),
        ("Last-Modified", _date(edits[-1])),
    ]
    return Answer(url, 200, kept + own, body)


def _date(version: int) -> str:
    return format_datetime(_FIRST + (version - 1) * _STEP, usegmt=True)


def _drop(element: etree._Element) -> None:
    """Take an element out and leave the text behind it."""
    parent = element.getparent()
    if parent is None:
        return
    tail, before = element.tail or "", element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _add_paragraph(root: etree._Element, life: Life, revision: int) -> None:
    body = root.find("body")
    if body is None:
        return
    words = [word for text in body.itertext() for word in str(text).split()]
    if not words:
        return
    paragraph = etree.SubElement(body, "p")
    drawn = [
        words[int(fraction(life.key, 1000 * revision + i) * len(words))]
        for i in range(min(_NEW_WORDS, len(words)))
    ]
    paragraph.text = f"Revised {revision}: {' '.join(drawn)}"
