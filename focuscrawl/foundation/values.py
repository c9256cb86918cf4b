"""Readers of what users write as the value of a setting, which say what they accept."""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks

T_co = TypeVar("T_co", covariant=True)
_N = TypeVar("_N", int, float)

_OFF, _ON = ("0", "false"), ("1", "true")


@dataclass(frozen=True)
class Reader(Generic[T_co]):
    """Reads what was written, a text or what a settings module holds.

    Attributes
    ----------
    accepts : completes "NAME must be ..."
    value_of : returns the value; raises ValueError or TypeError for what it does not accept
    """

    accepts: str
    value_of: Callable[[Any], T_co]

    def read(self, name: str, written: object) -> T_co:
        """Return the value that a user gave to `name`.

        Raises
        ------
        UserError
            It is not accepted.
        """
        try:
            return self.value_of(written)
        except (TypeError, ValueError):
            raise UserError(f"{name} must be {self.accepts}, not {written!r}") from None


def _flag(written: object) -> bool:
    text = str(written).lower()
    if text not in (*_ON, *_OFF):
        raise ValueError
    return text in _ON


def _text(written: object) -> str:
    return ",".join(map(str, written)) if isinstance(written, list | tuple) else str(written)


def _networks(written: Any) -> Networks:
    names = written.split(",") if isinstance(written, str) else list(written)
    return Networks.of(name for name in names if name != "")


def _address(written: object) -> str:
    return str(ipaddress.ip_address(str(written)))


FLAG = Reader("0 or 1", _flag)
TEXT = Reader("a text", _text)  # a list of texts becomes one with commas between
IP_ADDRESS = Reader("an IP address", _address)
NETWORKS = Reader("addresses and networks, with commas between", _networks)


def whole_number(lowest: int = 0, highest: int | None = None) -> Reader[int]:
    """Return a reader of whole numbers from `lowest` to `highest`."""

    def value_of(written: object) -> int:
        text = str(written).strip()
        if not text.isdecimal():
            raise ValueError
        return _within(int(text), lowest, highest)

    return Reader(f"a whole number{_range(lowest, highest)}", value_of)


def number(lowest: float = 0, highest: float | None = None) -> Reader[float]:
    """Return a reader of finite numbers from `lowest` to `highest`."""

    def value_of(written: Any) -> float:
        return _within(float(written), lowest, highest)

    return Reader(f"a number{_range(lowest, highest)}", value_of)


def one_of(*choices: str) -> Reader[str]:
    """Return a reader of one of some words."""

    def value_of(written: object) -> str:
        return choices[choices.index(str(written))]

    return Reader(f"one of {', '.join(choices)}", value_of)


def json_object(example: str) -> Reader[Mapping[str, Any]]:
    """Return a reader of dictionaries, also written as JSON; `example` is one that makes sense."""

    def value_of(written: Any) -> Mapping[str, Any]:
        found = json.loads(written) if isinstance(written, str) else written
        if not isinstance(found, Mapping):
            raise TypeError
        return found

    return Reader(f"a JSON object, as in '{example}'", value_of)


def file_name(standard: str, ending: str = "", *words: str) -> Reader[str | None]:
    """Return a reader of the name of a file that there need not be; None: there is to be none.

    Parameters
    ----------
    standard : the name that 1 stands for
    ending : of every name
    words : what may stand there instead
    """

    def value_of(written: object) -> str | None:
        text = str(written)
        if text.lower() in (*_OFF, ""):
            return None
        if text.lower() in _ON:
            return standard
        if text not in words and not text.endswith(ending):
            raise ValueError
        return text

    needed = f" that ends in {ending}" if ending else ""
    return Reader(f"{', '.join(['0', '1', *words])} or the name of a file{needed}", value_of)


def _range(lowest: float, highest: float | None) -> str:
    return f", {lowest:g} or more" if highest is None else f" from {lowest:g} to {highest:g}"


def _within(value: _N, lowest: float, highest: float | None) -> _N:
    if not lowest <= value <= (math.inf if highest is None else highest) or math.isinf(value):
        raise ValueError
    return value
