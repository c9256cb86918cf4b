"""Which element each DOM leaf of a page is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.tree import parse_tree
from focuscrawl.page.walk import outline

if TYPE_CHECKING:
    from numpy.typing import NDArray

# what is no leaf when it is empty must stay empty, and the text of these is not the page's
_PAGE = frozenset({"body", "head", "html", "noframes"})
_AS_IT_IS = _PAGE | {"base", "link", "meta", "script", "style", "template", "title"}


def leaf_tags(body: bytes) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Return the name of the element each leaf is, or is a text of, and whether it is a text.

    Leaves are those of `focuscrawl.page.parse_page`, in their order [A02 section 2.2.1].
    """
    utf8 = to_utf8(body, None)[0]
    root = parse_tree(utf8)
    if root is None:
        return np.zeros(0, np.str_), np.zeros(0, bool)
    texts = [bool(leaf.strip()) for leaf in outline(root).leaves]
    root = parse_tree(utf8)  # the walk may have changed the tree
    assert root is not None
    # every text becomes its element's name: the walk then finds the names where it found leaves
    for element in root.iter():
        if element.tag not in _AS_IT_IS:
            text = element.text
            if (text and not text.isspace()) or not len(element):
                element.text = element.tag
        elif element.tag in ("body", "title") and element.text and not element.text.isspace():
            element.text = element.tag
        parent, tail = element.getparent(), element.tail
        if parent is not None and tail and not tail.isspace():
            element.tail = parent.tag
    return np.array(outline(root).leaves, np.str_), np.array(texts, bool)
