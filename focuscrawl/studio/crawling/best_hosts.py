"""Hosts by what they brought, in a bounded number of counts."""

from __future__ import annotations

_KEPT = 10_000


class BestHosts:
    """Fetches and sum of R of each host.

    Of more than 10,000 hosts the half that brought least is forgotten, and counted from 0 if it
    brings something again: what is kept does not grow with the crawl, and of those that bring
    most nothing is lost.
    """

    def __init__(self) -> None:
        self._hosts: dict[int, tuple[int, float]] = {}

    def add(self, host: int, relevance: float) -> None:
        """Count a fetch of a host, by its number."""
        fetches, total = self._hosts.get(host, (0, 0.0))
        self._hosts[host] = (fetches + 1, total + relevance)
        if len(self._hosts) > _KEPT:
            self._hosts = dict(self.best(_KEPT // 2))

    def best(self, n: int) -> list[tuple[int, tuple[int, float]]]:
        """Return hosts with fetches and sum of R, those of the largest sums first."""
        return sorted(self._hosts.items(), key=lambda item: (-item[1][1], item[0]))[:n]
