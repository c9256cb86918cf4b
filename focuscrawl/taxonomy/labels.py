"""Label tables: CSV files of example URLs and their topics."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.taxonomy.files import open_source
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
    with open_source(path) as source:
        rows = csv.reader(io.TextIOWrapper(source, encoding="utf-8-sig", newline=""))
        try:
            yield from _labels(path, rows)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}: not UTF-8 text ({error.reason}); save the table as UTF-8 CSV"
            ) from error
        except csv.Error as error:
            raise UserError(
                f"{path}: line {rows.line_num} is not CSV ({error}); save the table as UTF-8 CSV"
            ) from error


def _labels(path: str | Path, rows: Iterator[list[str]]) -> Iterator[Label]:
    header = [name.strip().lower() for name in next(rows, [])]
    if not header:
        raise UserError(f"{path}: empty file; it needs the columns url,topic[,split]")
    if "url" not in header or "topic" not in header:
        raise UserError(f"{path}: has the columns {','.join(header)}; it needs url,topic[,split]")
    url_at, topic_at = header.index("url"), header.index("topic")
    split_at = header.index("split") if "split" in header else len(header)
    for number, row in enumerate(rows, start=1):
        if not row:
            continue  # a blank line, as editors leave them at the end
        cells = [cell.strip() for cell in row]
        cells += [""] * (len(header) + 1 - len(cells))
        url, topic, split = cells[url_at], cells[topic_at], cells[split_at]
        if not url or not topic:
            missing = "topic" if url else "url"
            raise UserError(
                f"{path}: row {number} has no {missing}; fill it in or leave the row out"
            )
        yield Label(url, normalise(topic), split or "train")
