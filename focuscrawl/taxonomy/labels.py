"""Label tables: CSV files of example URLs and their topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import read_rows
from focuscrawl.taxonomy.topic_path import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Label(NamedTuple):
    """One row of a label table.

    Attributes
    ----------
    url : the example, as the table spells it
    topic : normalised topic path
    split : ``train``: an example to learn from; ``test``: one to check a critic with
    """

    url: str
    topic: str
    split: str


def read_labels(path: str | Path) -> list[Label]:
    """Read a label table: CSV with a header ``url,topic[,split]``, plain or gzipped.

    Parameters
    ----------
    path : UTF-8 file; columns in any order, others are ignored. Without a ``split``, or where
        it is empty, a row is for training.

    Raises
    ------
    UserError
        If the file cannot be read or decoded, lacks a column, has no rows or an incomplete one.
    """
    labels = list(iterate_labels(path))
    if not labels:
        raise UserError(f"{path}: no rows below the header; give it rows of url,topic[,split]")
    return labels


def iterate_labels(path: str | Path) -> Iterator[Label]:
    """Yield the rows of a label table one by one; see `read_labels`."""
    for number, row in read_rows(path, ["url", "topic"], optional=["split"]):
        for column in ("topic", "url"):
            if not row[column]:
                raise UserError(
                    f"{path}: row {number} has no {column}; fill it in or leave the row out"
                )
        yield Label(row["url"], normalise(row["topic"]), row["split"] or "train")
