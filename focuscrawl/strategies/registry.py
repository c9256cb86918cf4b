"""Strategies by name."""

from __future__ import annotations

import difflib
import inspect
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.strategies.protocol import Strategy, StrategyContext

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


def make_strategy(name: str, context: StrategyContext, options: Mapping[str, Any]) -> Strategy:
    """Make the strategy `name` with the options a user gave.

    Raises
    ------
    UserError
        There is no such strategy, or it has no such option.
    """
    strategy = find_strategy(name)
    known = [*inspect.signature(strategy).parameters][1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(
            f"strategy {name} has no option {unknown[0]!r}: "
            + (f"there are {', '.join(known)}" if known else "it has none")
        )
    return _shim(strategy(context, **options))


def _shim(s):
    from focuscrawl.strategies.protocol import LearningStrategy
    from focuscrawl.strategies.sharing import Shareable

    s.learns = isinstance(s, LearningStrategy)
    s.shareable = isinstance(s, Shareable)
    if not hasattr(s, "worth"):
        s.worth = lambda url, relevance: relevance
    if not s.learns:
        s.model_version = 0
        s.lesson_due = lambda: False
    if not hasattr(s, "lag"):
        s.lag = 0
    if not hasattr(s, "recall_all") and s.shareable:
        import numpy as np

        def recall_all(pages):
            out = {}
            for p in pages:
                u, v = s.recall(p)
                out.update(zip(u.tolist(), v.tolist()))
            return np.array(list(out), np.int64), np.array(list(out.values()), float)

        s.recall_all = recall_all
    return s
