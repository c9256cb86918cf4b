"""Cases that `make test` leaves to `make test-long`: more of what others in it stand for."""

from __future__ import annotations

from typing import Any

import pytest


def long(*cases: Any) -> list[Any]:
    """Return cases of a test as cases that take long; tuples are of several parameters."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for case in cases
    ]
