"""The text of a page as people read it: with its case and its punctuation, in paragraphs."""

from __future__ import annotations

from focuscrawl.page.effort import Effort, effort
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.tree import parse_tree
from focuscrawl.page.walk import outline

_PARAGRAPH = 160  # characters, at least: shorter texts are joined
_LONG = 2 * _PARAGRAPH  # as long as this it ends wherever a leaf does, not only with a sentence
_SENTENCE = (".", "!", "?", ":", "。")
_OPENING, _CLOSING = ("(", "[", "“"), (",", ".", ";", ":", "!", "?", ")", "]", "”")
_LARGEST = 2 << 20  # bytes of a page that are looked at


def shown_text(body: bytes, encoding: str | None, longest: int) -> tuple[list[str], bool]:
    """Return what a page shows, in paragraphs, and whether that is not all.

    Parameters
    ----------
    body, encoding : of an HTML page, as for `focuscrawl.page.parse_page`
    longest : characters of text
    """
    utf8 = to_utf8(body, encoding, _LARGEST)[0]
    if effort(utf8, Effort.LARGE) > Effort.LARGE:
        return [], True  # nobody knows how long it would take
    root = parse_tree(utf8)
    leaves = [] if root is None else outline(root).leaves
    paragraphs, left = [""], longest
    for leaf in leaves:
        text = " ".join(leaf.split())
        if text and not text.startswith(_CLOSING) and _is_whole(paragraphs[-1]):
            paragraphs.append("")
        paragraphs[-1] = _joined(paragraphs[-1], text[:left])
        left -= len(text)
        if left < 0:
            break
    return [each for each in paragraphs if each], left < 0 or len(body) > _LARGEST


def _is_whole(paragraph: str) -> bool:
    if len(paragraph) < _PARAGRAPH:
        return False
    return len(paragraph) >= _LONG or paragraph.endswith(_SENTENCE)


def _joined(before: str, text: str) -> str:
    """Join the texts of two leaves, of which one may be a word in the midst of a sentence."""
    if not before or not text or text.startswith(_CLOSING) or before.endswith(_OPENING):
        return before + text
    return f"{before} {text}"
