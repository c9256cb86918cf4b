"""Where processes of our own look for modules: not in the current folder."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE = "PYTHONSAFEPATH"


@contextmanager
def without_current_folder() -> Iterator[None]:
    """Have Python processes that are started meanwhile import nothing from the current folder.

    ``python -m`` and ``python -c``, which process pools use, look there first: in a folder of a
    stranger's, a file of the name of any module would be run.
    """
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before
