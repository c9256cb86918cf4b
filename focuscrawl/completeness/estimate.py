"""What is estimated of a crawl: relevant pages waiting and unseen, and the share that is here."""

from __future__ import annotations

from dataclasses import dataclass

# Constants of the 90 % interval, chosen on crawls of uci and the synthetic web so that it holds
# on them, and measured on others.
_TOO_MUCH = 8.0  # what is left may be so many times less than estimated
_TOO_LITTLE = 1.5  # and so many times more
_UNDIMINISHED = 10.0  # more yet, times the harvest squared, while it has not fallen
_BEHIND = 0.2  # of the relevant pages here: groups of pages behind pages off the topic
_BEYOND_COUNTING = 2.0  # pages, whatever is estimated


@dataclass(frozen=True)
class Estimate:
    """How complete a crawl is.

    Attributes
    ----------
    fetched : fetches when it was made
    relevant : relevant pages among them
    waiting : URLs in the frontier
    discovered : relevant pages expected among those
    undiscovered : relevant pages expected beyond them, that no page fetched links to
    harvest : share of relevant pages among the last fetches
    next_fetches, next_harvest : share of relevant pages that is expected of so many next fetches
    """

    fetched: int
    relevant: int
    waiting: int
    discovered: float
    undiscovered: float
    harvest: float
    next_fetches: int
    next_harvest: float

    @property
    def left(self) -> float:
        """Relevant pages in reach that are not here."""
        return self.discovered + self.undiscovered

    @property
    def recall(self) -> float:
        """Share of the relevant pages in reach that is here; 0 where there is none."""
        return self._share(self.left)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the recall is in nine cases of ten."""
        if not self.waiting:
            return self.recall, self.recall
        off_topic = max(self.fetched - self.relevant, 1)
        unexplored = min(1.0, self.waiting / off_topic)
        most = self.left * (_TOO_LITTLE + _UNDIMINISHED * self.harvest**2)
        most += _BEHIND * self.relevant * unexplored + _BEYOND_COUNTING
        least = self.left / _TOO_MUCH
        return self._share(most), self._share(least if least >= _BEYOND_COUNTING else 0.0)

    def _share(self, left: float) -> float:
        return self.relevant / (self.relevant + left) if self.relevant else 0.0

    def short(self) -> str:
        """Return it in a few characters, for a progress bar."""
        return f"recall ~{self.recall:.2f}"

    def in_words(self) -> str:
        """Return it in a line."""
        low, high = self.interval
        return (
            f"about {self.recall:.2f} ({low:.2f} to {high:.2f}) of those in reach; "
            f"left: {self.discovered:,.0f} in the frontier, {self.undiscovered:,.0f} beyond"
        )
