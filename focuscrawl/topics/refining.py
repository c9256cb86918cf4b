"""Splitting a class that is too broad: pages move into sub-classes of it [F99 section 2]."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.topics.definition import TopicDefinition


def refined(
    definition: TopicDefinition,
    moved: Mapping[str, Sequence[str]],
    mark: Sequence[str] | None = None,
) -> TopicDefinition:
    """Return the definition with pages moved into sub-classes.

    Parameters
    ----------
    moved : URLs, normalised, by the path of a sub-class
    mark : sub-classes that are marked instead of the class that is split; None: marked is what was

    Raises
    ------
    UserError
        The definition names no critic, or a path lies below none of its classes, or `mark` names
        no sub-class.
    """
    if definition.critic is None:
        raise UserError("the definition names no critic: there are no classes to split")
    trained, _ = read_critic(find_model(definition.critic))
    classes = (*trained.model.classes, *definition.classes)
    for path in moved:
        if not any(_below(path, broad) for broad in classes):
            raise UserError(
                f"{path} lies below no class of {definition.critic}: name its sub-classes like "
                f"{classes[0]}/Name"
            )
    made = definition.splitting(moved)
    if mark is None:
        return made
    unknown = [path for path in mark if path not in made.classes]
    if unknown:
        raise UserError(f"{unknown[0]} is to be marked: the definition has no such sub-class")
    split = {path for path in trained.model.classes if any(_below(m, path) for m in moved)}
    kept = [path for path in made.topics if path not in split]
    return replace(made, topics=tuple(dict.fromkeys([*kept, *mark])))


def _below(path: str, topic: str) -> bool:
    return path.startswith(f"{topic}/")
