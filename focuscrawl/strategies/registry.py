"""Strategies by name."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from focuscrawl.strategies.protocol import Strategy

GROUP = "focuscrawl.strategies"


def strategy_names() -> list[str]:
    """Return the names of all installed strategies."""
    return sorted(entry_points(group=GROUP).names)


def find_strategy(name: str) -> type[Strategy]:
    """Return the class of the strategy `name`.

    Raises
    ------
    UserError
        No installed package has a strategy of that name.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        names = strategy_names()
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise UserError(f"no strategy is called {name!r}: {hint}")
    strategy: type[Strategy] = next(iter(found)).load()
    return strategy
