"""What a crawl would begin with, and what it would take, before a night is spent on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import counted
from focuscrawl.report.start_pages import StartPage, facts_of, in_line, in_lines

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Outlook:
    """Start pages of a crawl as they were judged, and what a fetch of it takes.

    Attributes
    ----------
    pages : start pages that were tried, the best first
    seeds, most : how many there are, and how many of them were tried at most
    words : of the good start pages, by which the critic knows its topic; None where that is not
        to be had
    size : bytes that a fetch leaves on the disk
    live : whether it would crawl the live Web
    delay : seconds between two fetches of a host
    at_once : fetches under way, at most
    warnings : why it may bring nothing, each a sentence
    """

    pages: tuple[StartPage, ...]
    seeds: int
    most: int
    words: str | None
    size: float
    live: bool
    delay: float
    at_once: int
    warnings: tuple[str, ...]

    def lines(self, budget: int) -> list[str]:
        """Return all but the warnings for a terminal."""
        lines = in_lines(self.pages)
        if self.seeds > self.most:
            lines.append(in_line("", f"of {self.seeds:,} seeds: --most {self.seeds} fetches all"))
        return [*lines, *(in_line(*fact) for fact in [*self._known_by(), *self.costs(budget)])]

    def facts(self, budget: int) -> list[tuple[str, str]]:
        """Return what is known beside the pages and the warnings: name and words of each."""
        return [*facts_of(self.pages), *self._known_by(), *self.costs(budget)]

    def _known_by(self) -> list[tuple[str, str]]:
        return [] if self.words is None else [("words", self.words)]

    def costs(self, budget: int) -> list[tuple[str, str]]:
        """Return what a budget would take, in time and on disk."""
        if not budget:
            return [("budget", "no limit: time and disk have none either")]
        there = {host(page.url) for page in self.pages if page.relevance is not None}
        if not there:
            return [("time", "no start page could be had: nothing to reckon it from")]
        fetches = counted(budget, "fetch")
        disk = ("disk", f"at most about {max(1, self.size * budget / 1e6):,.0f} MB for {fetches}")
        if not self.live:
            return [("time", "a replay waits for nobody: minutes"), disk]
        of_these = min(len(there), self.at_once)
        few, many = (
            timedelta(seconds=round(budget * self.delay / n)) for n in (of_these, self.at_once)
        )
        said = (
            f"{few} for {fetches} if it stays on these hosts, "
            f"{self.delay:g} s apart on each; {many} on many; more where servers are slow"
        )
        return [("time", said), disk]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Self:
        """Take what `plain` has returned; UserError if it is something else."""
        try:
            pages = tuple(StartPage(**page) for page in values["pages"])
            return cls(**{**values, "pages": pages, "warnings": tuple(values["warnings"])})
        except (LookupError, TypeError) as error:
            raise UserError(f"this is no outlook of a crawl: {error}") from None
