"""Checks of the options of strategies: numbers and counts within limits."""

from __future__ import annotations

import math

from focuscrawl.errors import UserError

_MOST = 1_000_000_000


def check_number(option: str, value: object, least: float, most: float = math.inf) -> None:
    """Raise `UserError` unless `value` is a number from `least` to `most`.

    Parameters
    ----------
    option : how the message names it: ``pagerank: damping``
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or math.isinf(value):  # type: ignore
        limits = f"from {least} up" if most == math.inf else f"from {least} to {most}"
        raise UserError(f"strategy {option} must be a number {limits}, not {value!r}")


def check_count(option: str, value: object, least: int) -> None:
    """Raise `UserError` unless `value` is a whole number from `least` to a thousand million."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise UserError(
            f"strategy {option} must be a whole number, {least} or more, not {value!r}"
        )


def is_list_of_texts(value: object) -> bool:
    """Tell whether an option is a list of texts."""
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
