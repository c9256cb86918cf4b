"""What every page and every address of the API has at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.studio.crawls import SHARED, NamedCrawl, SharedCrawls

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.studio.folder import StudioFolder
    from focuscrawl.studio.jobs import Jobs
    from focuscrawl.studio.scrapyd import Scrapyd


@dataclass(frozen=True)
class Desk:
    """A studio's folder and what is done in it.

    Attributes
    ----------
    folder : topics, critics and crawls
    jobs : commands that were begun here, running or ended
    read_only : nobody may change anything; who asks to is refused before a route is found
    database : where workers share crawls; None: none is named
    scrapyd : that can be told to crawl; None: none is named
    base : what the paths of its pages begin with
    over : set when the studio ends, so that streams end, too
    beginning : held while a crawl is given its name, of two forms that are sent at once
    """

    folder: StudioFolder
    jobs: Jobs
    read_only: bool
    database: SharedCrawls | None = None
    scrapyd: Scrapyd | None = None
    base: str = ""
    over: Event = field(default_factory=Event)
    beginning: Lock = field(default_factory=Lock)

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl called so, in the folder or in the database.

        Raises
        ------
        UserError
            There is none.
        """
        if self.database is not None and name.startswith(SHARED):
            return self.database.crawl(name)
        path = self.folder.crawl(name)
        return NamedCrawl(self.folder.name_of(path), path)

    def crawl_folder(self, name: str) -> Path:
        """Return the folder of the crawl called so; UserError if it has none."""
        if self.database is not None and name.startswith(SHARED):
            raise UserError(
                f"{name:.100} is in a database: only crawls in folders are explored, judged and "
                "taken home here; focuscrawl report, why and distill take its URL"
            )
        return self.folder.crawl(name)
