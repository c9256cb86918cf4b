"""Finds strategies by name among the entry points of all installed packages."""

from __future__ import annotations

import difflib
import inspect
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.strategies.base import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.strategies.base import StrategyContext

GROUP = "focuscrawl.strategies"


def strategy_names() -> list[str]:
    """Return the names of all installed strategies."""
    return sorted(entry_points(group=GROUP).names)


@cache
def describe_strategy(name: str) -> str:
    """Return the first sentence of the docstring of a strategy; empty if there is none."""
    try:
        text = inspect.getdoc(find_strategy(name)) or ""
    except UserError:  # reported to users of the strategy
        return ""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def find_strategy(name: str) -> type[Strategy]:
    """Return the class of the strategy `name`.

    Raises
    ------
    UserError
        No installed package has this strategy, or its entry point is not a `Strategy`.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        names = strategy_names()
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(names)}"
        raise UserError(f"strategy {name!r} not found: {hint}")
    point = next(iter(found))
    try:
        strategy = point.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"strategy {name} cannot be loaded from {point.value}: {error}") from None
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise UserError(
            f"strategy {name} ({point.value}) is not a subclass of focuscrawl.strategies.Strategy"
        )
    if inspect.isabstract(strategy):
        missing = ", ".join(sorted(strategy.__abstractmethods__))
        raise UserError(f"strategy {name} ({point.value}) does not implement {missing}")
    return strategy


def make_strategy(name: str, context: StrategyContext, options: Mapping[str, Any]) -> Strategy:
    """Create the strategy `name` with the options that a user has set.

    Raises
    ------
    UserError
        The strategy or an option does not exist.
    """
    strategy = find_strategy(name)
    known = [*inspect.signature(strategy).parameters][1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(
            f"strategy {name} has no option {unknown[0]!r}: "
            + (f"available: {', '.join(known)}" if known else "the strategy has no options")
        )
    return strategy(context, **options)
