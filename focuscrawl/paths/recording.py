"""Recording training paths: a person walks a site and labels its pages.

`Walk` is what was done so far; each step gives a new one, so that every step can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.paths.site_path import SitePath
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.page import PageView


class LinkChoice(NamedTuple):
    """A link that a person can take, as `link_choices` lists them."""

    url: str
    anchor: str


@dataclass(frozen=True)
class Walk:
    """Where a person is on a site, and the paths saved on the way.

    Attributes
    ----------
    pages, labels : from the front door to here; labels are None where nothing was said
    saved : paths that have ended
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]
    saved: tuple[SitePath, ...] = ()

    @classmethod
    def begin(cls, start: str) -> Walk:
        """Stand at the front door."""
        return cls((start,), (None,))

    @property
    def here(self) -> str:
        """The page that is shown."""
        return self.pages[-1]

    def follow(self, url: str) -> Walk:
        """Take a link."""
        return replace(self, pages=(*self.pages, url), labels=(*self.labels, None))

    def back(self) -> Walk:
        """Go back a page; at the front door stay."""
        if len(self.pages) == 1:
            return self
        return replace(self, pages=self.pages[:-1], labels=self.labels[:-1])

    def milestone(self, label: str) -> Walk:
        """Say what this page is, on this walk and in all paths saved that go through it."""
        return replace(
            self,
            labels=(*self.labels[:-1], label),
            saved=tuple(_labelled(path, self.here, label) for path in self.saved),
        )

    def end(self, *, goal: bool) -> Walk:
        """Save the path to here as one that ends in a goal or a fail, and go back a page."""
        ending = GOAL if goal else FAIL
        path = SitePath(self.pages, (*self.labels[:-1], ending))
        return replace(self, saved=(*self.saved, path)).back()


def link_choices(view: PageView, targets: Sequence[str | None]) -> list[LinkChoice]:
    """Return the links of a page that can be taken: each page once, by its first anchor.

    Parameters
    ----------
    targets : where each of its links leads; None: nowhere
    """
    found: dict[str, LinkChoice] = {}
    for url, anchor in zip(targets, view.links.anchors, strict=True):
        if url is None or url == view.url:
            continue
        if url not in found or (anchor and not found[url].anchor):
            found[url] = LinkChoice(url, anchor)
    return list(found.values())


def _labelled(path: SitePath, page: str, label: str) -> SitePath:
    kept = [
        label if url == page and old not in {GOAL, FAIL} else old
        for url, old in zip(path.pages, path.labels, strict=True)
    ]
    return replace(path, labels=tuple(kept))
