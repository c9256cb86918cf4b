"""Dense numbers for strings: URLs and hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class NameTable:
    """Numbers strings 0, 1, 2, ... in the order they are first seen."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = list(names)
        self._ids = {name: i for i, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> str:
        return self._names[i]

    def get(self, name: str) -> int | None:
        """Return the number of `name`, None if it has none."""
        return self._ids.get(name)

    def add(self, name: str) -> tuple[int, bool]:
        """Return the number of `name` and whether it is new."""
        new = len(self._names)
        i = self._ids.setdefault(name, new)
        if i == new:
            self._names.append(name)
        return i, i == new
