"""Hosts by what they brought, in a bounded number of counts."""

from __future__ import annotations

_KEPT = 10_000
SHOWN = 10  #: hosts that bring most


class BestHosts:
    """Fetches and sum of R of each host.

    Sums never fall: the ten largest are kept up with each fetch, so nothing is sorted but these.
    Of more than 10,000 hosts the half that brought least is forgotten, and counted from 0 if it
    brings something again: what is kept does not grow with the crawl, and of those that bring
    most nothing is lost.
    """

    def __init__(self) -> None:
        self._hosts: dict[int, tuple[int, float]] = {}
        self._best: dict[int, float] = {}  # sums of the largest

    def add(self, host: int, relevance: float) -> None:
        """Count a fetch of a host, by its number."""
        fetches, total = self._hosts.get(host, (0, 0.0))
        total += relevance
        self._hosts[host] = (fetches + 1, total)
        if host in self._best or len(self._best) < SHOWN:
            self._best[host] = total
        else:
            least = min(self._best, key=self._rank)
            if total > self._best[least]:
                del self._best[least]
                self._best[host] = total
        if len(self._hosts) > _KEPT:
            kept = sorted(self._hosts.items(), key=lambda item: -item[1][1])
            self._hosts = dict(kept[: _KEPT // 2])

    def best(self) -> list[tuple[int, int, float]]:
        """Return the number, the fetches and the sum of R of the best hosts, the best first."""
        ranked = sorted(self._best, key=self._rank, reverse=True)
        return [(host, *self._hosts[host]) for host in ranked]

    def _rank(self, host: int) -> tuple[float, int]:
        return self._best[host], -host

    def __len__(self) -> int:
        return len(self._hosts)
