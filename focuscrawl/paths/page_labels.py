"""Tables of page labels: what each page is, and whose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import read_rows
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
    rows = read_rows(path, ["url", label, *([] if site is None else [site])])
    read = [(url, row) for _, row in rows if (url := normalize(row["url"])) is not None]
    known = list(resolve([url for url, _ in read]))
    found = PageLabels({}, {})
    for url, (_, row) in zip(known, read, strict=True):
        if url is not None:
            found.labels[url] = row[label]
            if site is not None:
                found.sites[url] = row[site]
    if not found.labels:
        raise UserError(f"{path} labels no page of the web: is it the table of another one?")
    return found
