"""What a study keeps may be damaged, or somebody else's: that is told in one line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: of JSON, pandas and PyArrow, whose own errors are of these kinds, too
_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    NotImplementedError,
    RecursionError,
)


@contextmanager
def damage_is_told(path: Path, way_out: str) -> Iterator[None]:
    """Raise `UserError` for what goes wrong while a file of a study is read.

    Parameters
    ----------
    way_out : what makes the file anew
    """
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} is not there: {way_out}") from None
    except PermissionError:
        raise UserError(f"{path} may not be read: {way_out}") from None
    except (OSError, *_DAMAGE):  # PyArrow has the first for damage, too
        raise UserError(f"{path} is damaged: {way_out}") from None
