"""What every page and every address of the API has at hand."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.locks import changing
from focuscrawl.studio.crawls import NamedCrawl

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    base : what the paths of its pages begin with
    over : set when the studio ends, so that streams end, too
    """

    folder: StudioFolder
    jobs: Jobs
    read_only: bool
    base: str = ""
    over: Event = field(default_factory=Event)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Keep others, and other studios of the folder, from beginning jobs.

        Who looks whether one is under way, and begins one if not, does both within it.
        """
        try:
            with changing(self.folder.root / "jobs"):
                yield
        except OSError as error:
            raise UserError(f"{self.folder.root} cannot be written: {error.strerror}") from None

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl called so.

        Raises
        ------
        UserError
            There is none.
        """
        path = self.folder.crawl(name)
        return NamedCrawl(self.folder.name_of(path), path)
