"""Learners, arrays and options as bytes without pickle, for the store and for files."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.foundation.packed_arrays import unpack_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.base import Learner


def pack_columns(columns: Sequence[NDArray[Any]], dtypes: Sequence[str]) -> bytes:
    """Pack arrays of these little-endian types: the length of each, then one after another."""
    typed = [
        column.astype(dtype, copy=False) for column, dtype in zip(columns, dtypes, strict=True)
    ]
    sizes = np.array([column.size for column in typed], "<i4")
    return b"".join(part.tobytes() for part in (sizes, *typed))


def unpack_columns(data: bytes, dtypes: Sequence[str]) -> list[NDArray[Any]]:
    """Unpack what `pack_columns` has packed; views."""
    at, columns = 4 * len(dtypes), []
    for size, dtype in zip(np.frombuffer(data, "<i4", len(dtypes)).tolist(), dtypes, strict=True):
        columns.append(np.frombuffer(data, dtype, size, at))
        at += columns[-1].nbytes
    return columns


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a `prefix` of two characters, without it."""
    return {name[2:]: arrays[name] for name in arrays if name.startswith(prefix)}


def pack(learner: Learner, **arrays: NDArray[np.generic]) -> bytes:
    """Pack a learner (prefix ``m_``) and arrays, without pickling."""
    model = {f"m_{name}": value for name, value in learner.get_state().items()}
    return pack_arrays(**model, **arrays)


def pack_arrays(**arrays: NDArray[np.generic]) -> bytes:
    """Pack arrays, without pickling."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def join(first: bytes, second: bytes) -> bytes:
    """Put two packs into one; see `parts_of`."""
    return len(first).to_bytes(8, "little") + first + second


def parts_of(joined: bytes) -> tuple[bytes, bytes]:
    """Return the two packs that were joined."""
    end = 8 + int.from_bytes(joined[:8], "little")
    return joined[8:end], joined[end:]


def pack_options(options: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return options as an array, for `pack`."""
    return np.frombuffer(json.dumps(options).encode(), np.uint8)


def options_in(packed: bytes) -> dict[str, Any]:
    """Return the array ``options`` that was packed."""
    options: dict[str, Any] = json.loads(unpack_arrays(packed)["options"].tobytes())
    return options
