"""What users may write as the value of a setting or an option: readers that say what they accept.

A reader takes what was written, a text or what a settings module holds, and returns the value; it
raises ValueError or TypeError for anything else. Its `accepts` completes "NAME must be ...".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks

if TYPE_CHECKING:
    from collections.abc import Mapping

T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """Reads values of one type."""

    @property
    def accepts(self) -> str:
        """What it accepts, in words."""

    def __call__(self, written: Any) -> T_co:
        """Return the value."""


def read(reader: Reader[T_co], name: str, written: Any) -> T_co:
    """Return the value that a user gave to `name`.

    Raises
    ------
    UserError
        The reader does not accept it.
    """
    try:
        return reader(written)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be {reader.accepts}, not {written!r}") from None


_OFF = ("0", "false", "")
_ON = ("1", "true")


@dataclass(frozen=True)
class Flag:
    """Yes or no, as Scrapy's settings have it."""

    accepts: ClassVar[str] = "0 or 1"

    def __call__(self, written: Any) -> bool:
        """Return the flag."""
        text = str(written).lower()
        if text in _ON:
            return True
        if text and text in _OFF:  # empty is neither
            return False
        raise ValueError


@dataclass(frozen=True)
class Whole:
    """A whole number from `lowest` to `highest`."""

    lowest: int = 0
    highest: int | None = None

    @property
    def accepts(self) -> str:
        """The range."""
        return f"a whole number{_range(self.lowest, self.highest)}"

    def __call__(self, written: Any) -> int:
        """Return the number."""
        text = str(written).strip()
        if not text.isdecimal():
            raise ValueError
        return _within(int(text), self.lowest, self.highest)


@dataclass(frozen=True)
class Number:
    """A finite number from `lowest` to `highest`."""

    lowest: float = 0
    highest: float | None = None

    @property
    def accepts(self) -> str:
        """The range."""
        return f"a number{_range(self.lowest, self.highest)}"

    def __call__(self, written: Any) -> float:
        """Return the number."""
        number = float(written)
        if not math.isfinite(number):
            raise ValueError
        return _within(number, self.lowest, self.highest)


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    choices: tuple[str, ...]

    @property
    def accepts(self) -> str:
        """The choices."""
        return f"one of {', '.join(self.choices)}"

    def __call__(self, written: Any) -> str:
        """Return the choice."""
        if written not in self.choices:
            raise ValueError
        return str(written)


@dataclass(frozen=True)
class JsonObject:
    """A dictionary, or a JSON object as a text.

    Parameters
    ----------
    example : one that makes sense where it is asked for
    """

    example: str

    @property
    def accepts(self) -> str:
        """The form."""
        return f"a JSON object, as in '{self.example}'"

    def __call__(self, written: Any) -> dict[str, Any]:
        """Return a dictionary of the caller's own."""
        found: Mapping[str, Any] | Any = (
            json.loads(written) if isinstance(written, str) else written
        )
        if not hasattr(found, "keys"):
            raise TypeError
        return dict(found)


@dataclass(frozen=True)
class Text:
    """Any text; a list of texts becomes one with commas between."""

    accepts: str = "a text"

    def __call__(self, written: Any) -> str:
        """Return the text."""
        return ",".join(map(str, written)) if isinstance(written, list | tuple) else str(written)


@dataclass(frozen=True)
class FileName:
    """The name of a file, or whether there is to be one.

    Parameters
    ----------
    standard : the name that 1 stands for
    ending : of every name
    """

    standard: str
    ending: str = ""

    @property
    def accepts(self) -> str:
        """The form."""
        ending = f" that ends in {self.ending}" if self.ending else ""
        return f"0, 1 or the name of a file{ending}"

    def __call__(self, written: Any) -> str | None:
        """Return the name; None: no file."""
        text = str(written)
        if text.lower() in _OFF:
            return None
        if text.lower() in _ON:
            return self.standard
        if not text.endswith(self.ending):
            raise ValueError
        return text


@dataclass(frozen=True)
class Addresses:
    """Network addresses and networks; see `Networks.of`."""

    accepts: ClassVar[str] = "addresses and networks, with commas between"

    def __call__(self, written: Any) -> Networks:
        """Return the networks."""
        names = written.split(",") if isinstance(written, str) else list(written)
        return Networks.of(names if names != [""] else [])


_N = TypeVar("_N", int, float)


def _range(lowest: float, highest: float | None) -> str:
    return f", {lowest:g} or more" if highest is None else f" from {lowest:g} to {highest:g}"


def _within(number: _N, lowest: float, highest: float | None) -> _N:
    if number < lowest or (highest is not None and number > highest):
        raise ValueError
    return number
