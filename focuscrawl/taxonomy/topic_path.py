"""Topic paths: ``/Computers/Internet``; ``/`` is the root of every taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = "/"
OTHER = "Other"
"""Name of the leaf that takes the examples an internal topic has of its own [A02 section 3.1]."""
DEEPEST = 100
"""The most levels; all topics above one are topics too, so each costs the length of its path."""


def normalise(topic: str) -> str:
    """Write a topic the one way the taxonomy knows it.

    A leading slash, no trailing one, no empty components, no blanks around components. Dmoz
    writes its root ``Top`` and no leading slash: ``Top/Arts`` is ``/Arts``. A path with a
    leading slash keeps a component ``Top``, so that normalising twice changes nothing.

    Parameters
    ----------
    topic : path as a user, a table or a Dmoz dump spells it
    """
    parts = [part for part in map(str.strip, topic.split("/")) if part]
    if parts and parts[0] == "Top" and not topic.lstrip().startswith("/"):
        del parts[0]
    return ROOT + "/".join(parts)


def read_topics(text: str) -> tuple[str, ...]:
    """Return the normalised paths that are written with commas between."""
    return tuple(normalise(part) for part in text.split(",") if part.strip())


def too_deep(path: str) -> bool:
    """Tell whether a normalised `path` has more levels than a taxonomy may have."""
    return path.count("/") > DEEPEST


def parent(path: str) -> str:
    """Return the topic above a normalised `path`; the root is its own parent."""
    return path[: path.rfind("/")] or ROOT


def child(path: str, name: str) -> str:
    """Return the topic called `name` right below a normalised `path`."""
    return f"{path.rstrip('/')}/{name}"


def ancestors(path: str) -> list[str]:
    """Return the topics above a normalised `path`, root first, without `path` itself.

    ``ancestors("/A/B/C")`` is ``["/", "/A", "/A/B"]``: with the path itself these are the
    topic features of a page [A02 section 2.2].
    """
    above: list[str] = []
    while path != ROOT:
        path = parent(path)
        above.append(path)
    return above[::-1]


def lies_under(path: str, topics: Iterable[str]) -> bool:
    """Tell whether `path` is one of `topics` or below one; all are normalised."""
    return any(f"{path}/".startswith(f"{topic.rstrip('/')}/") for topic in topics)
