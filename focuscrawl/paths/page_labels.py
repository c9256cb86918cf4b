"""Tables of page labels: what each page is, and whose."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


@dataclass(frozen=True)
class PageLabels:
    """Labels of pages, by their URLs.

    Attributes
    ----------
    labels : what each page is
    sites : whose it is; empty where the table does not say
    """

    labels: dict[str, str]
    sites: dict[str, str]

    def goals(self, goal: str, start: str) -> set[str]:
        """Return the pages labelled `goal`, or below it; of the site of `start` if it has one."""
        site = self.sites.get(start)
        return {
            url
            for url, label in self.labels.items()
            if (label == goal or label.startswith(f"{goal}/"))
            and (not self.sites or self.sites.get(url) == site)
        }


def read_page_labels(
    path: Path,
    resolve: Callable[[list[str]], Iterable[str | None]],
    *,
    label: str = "topic",
    site: str | None = None,
) -> PageLabels:
    """Read a CSV file with a column ``url``.

    Parameters
    ----------
    resolve : maps normalised URLs to how the web spells them; None: not there, and left out
    label, site : names of the columns of labels, and of sites

    Raises
    ------
    UserError
        The file cannot be read, lacks a column, or names no page that the web has.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read ({error})") from None
    for column in ("url", label, *([] if site is None else [site])):
        if not rows or column not in rows[0]:
            there = ", ".join(rows[0]) if rows else "none"
            raise UserError(f"{path} has no column {column}: its columns are {there}")
    urls = [normalize((row["url"] or "").strip()) for row in rows]
    read = [(url, row) for url, row in zip(urls, rows, strict=True) if url is not None]
    known = list(resolve([url for url, _ in read]))
    found = PageLabels({}, {})
    for url, (_, row) in zip(known, read, strict=True):
        if url is not None:
            found.labels[url] = (row[label] or "").strip()
            if site is not None:
                found.sites[url] = (row[site] or "").strip()
    if not found.labels:
        raise UserError(f"{path} labels no page of the web: is it the table of another one?")
    return found
