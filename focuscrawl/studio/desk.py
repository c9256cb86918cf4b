"""What every page and every address of the API has at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING

from focuscrawl.studio.crawls import NamedCrawl

if TYPE_CHECKING:
    from focuscrawl.studio.folder import StudioFolder
    from focuscrawl.studio.jobs import Jobs


@dataclass(frozen=True)
class Desk:
    """A studio's folder and what is done in it.

    Attributes
    ----------
    folder : topics, critics and crawls
    jobs : commands that were begun here, running or ended
    read_only : nobody may change anything; who asks to is refused before a route is found
    over : set when the studio ends, so that streams end, too
    beginning : held while a crawl is given its name, of two forms that are sent at once
    """

    folder: StudioFolder
    jobs: Jobs
    read_only: bool
    over: Event = field(default_factory=Event)
    beginning: Lock = field(default_factory=Lock)

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl called so.

        Raises
        ------
        UserError
            There is none.
        """
        path = self.folder.crawl(name)
        return NamedCrawl(self.folder.name_of(path), path)
