"""The classes of a critic as a tree to look at, to search, and to mark."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.foundation.plain_files import read_regular
from focuscrawl.taxonomy import ROOT, lies_under, normalise
from focuscrawl.topics.class_tree import class_tree, marking, pages_below, unmarking

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    from focuscrawl.taxonomy import Taxonomy
    from focuscrawl.topics import TopicDefinition

_ROWS = 300  # shown at once; of more, the levels that fit
_EXAMPLES = 200  # of a class


def rows(
    classes: Taxonomy, definition: TopicDefinition | None, *, under: str = ROOT, search: str = ""
) -> tuple[list[dict[str, Any]], bool]:
    """Return the classes at and below one, or those whose path has a text in it.

    Returns
    -------
    Of each ``path``, ``name``, ``level``, ``pages`` (below it, too), ``below`` (classes),
    ``marked`` (``here``, ``above`` or empty); and whether some are not shown

    Raises
    ------
    UserError
        There is no class `under`.
    """
    top = normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"there is no class {top}; near it: {', '.join(near)}")
    found = classes.descendants(top)
    if search:
        wanted = search.casefold()
        found = [path for path in found if wanted in path.casefold()]
    whole = len(found)
    level = top.rstrip("/").count("/")
    deepest = max((path.count("/") for path in found), default=0)
    while len(found) > _ROWS and not search and deepest > level + 1:
        deepest -= 1
        found = [path for path in found if path.count("/") <= deepest]
    pages = pages_below(classes)
    moved = _moved(definition)
    topics = () if definition is None else definition.topics
    shown = [
        {
            "path": path,
            "name": path.rpartition("/")[2],
            "level": 0 if search else path.count("/") - level - 1,
            "pages": pages[path],
            "below": len(classes.children(path)),
            "split": [each for each in moved if each.startswith(f"{path}/")],
            "marked": "here" if path in topics else "above" if lies_under(path, topics) else "",
        }
        for path in found[:_ROWS]
    ]
    return shown, len(shown) < whole


def examples(
    classes: Taxonomy, path: str, definition: TopicDefinition | None
) -> list[dict[str, str]]:
    """Return example pages of a class: ``url`` and, if moved into a sub-class, ``moved``."""
    moved = {url: to for to, urls in _moved(definition).items() for url in urls}
    return [
        {"url": url, "moved": moved.get(url, "")} for url in classes.examples(path)[:_EXAMPLES]
    ]


def marked(
    definition: TopicDefinition, path: str, classes: Taxonomy, *, good: bool
) -> TopicDefinition:
    """Return the definition with a class marked as good, or no longer; see `class_tree`."""
    wanted = normalise(path)
    if wanted not in classes:
        raise UserError(f"there is no class {wanted}")
    return marking(definition, wanted) if good else unmarking(definition, wanted, classes)


def _moved(definition: TopicDefinition | None) -> Mapping[str, tuple[str, ...]]:
    return {} if definition is None else definition.classes


def tree_of(critic: Traversable) -> Taxonomy:
    """Return the classes of a critic."""
    return _tree(str(critic), hash(read_regular(critic / MANIFEST)))


@lru_cache(maxsize=4)
def _tree(spec: str, _changed: int) -> Taxonomy:
    return class_tree(read_critic(find_model(spec))[0])
