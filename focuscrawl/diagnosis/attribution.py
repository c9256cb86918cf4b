"""Finds the cause of a fall of the harvest rate, from the classes and referrers of pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.taxonomy import ROOT, ancestors, lies_under, parent

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_PAGE = "errors, redirects, duplicates"  # and documents other than HTML
BUSY, FAILING, STAGNATING, DRIFTING = "busy", "failing", "stagnating", "drifting"
_EXPLANATIONS = {
    FAILING: "most fetches without gain are errors, redirects or duplicates",
    STAGNATING: "the links of relevant pages are used up",
    DRIFTING: "links of relevant pages lead off topic",
}
_SHOWN = 3
_LEAST_SHARE = 0.05  # of the latest fetches, for a class to be proposed


class Outcome(NamedTuple):
    """Outcome of a fetch.

    Attributes
    ----------
    judged : bool
        Whether the fetch brought a new page; otherwise `relevance` is 0.
    from_topic, from_relevant
        Class of the page where the URL was found first, and whether that page is relevant.
    busy_host : str | None
        Host of the best queued link, if the link was much better but the host was busy.
    """

    relevance: float
    judged: bool
    topic: str | None
    from_topic: str | None
    from_relevant: bool
    busy_host: str | None = None


class Share(NamedTuple):
    """An off-topic class, and its share of fetches before the fall of the harvest rate and now."""

    topic: str
    now: float
    before: float


class Proposal(NamedTuple):
    """A class that the user could add to the relevant classes, a sibling or parent of one of them.

    Attributes
    ----------
    share : float
        Share of the latest fetches that would become relevant.
    link_precision : float | None
        Share of relevant pages among all pages found first on pages of the class.
    """

    topic: str
    relation: str
    share: float
    link_precision: float | None


@dataclass(frozen=True)
class Diagnosis:
    """A fall of the harvest rate and its cause.

    Attributes
    ----------
    now, before : float
        Harvest rate of the latest fetches and of all fetches before them.
    cause : str
        Cause of most off-topic fetches. ``busy``: better links waited for busy hosts; ``failing``:
        the fetches brought no new page; ``drifting``: the pages are off topic although relevant
        pages link to them; ``stagnating``: the links of relevant pages are used up.
    lost_to : tuple[Share, ...]
        Off-topic classes with the largest shares.
    busy_host : str | None
        If the cause is ``busy``: host that the best links waited for.
    """

    seq: int
    now: float
    before: float
    cause: str
    lost_to: tuple[Share, ...]
    proposals: tuple[Proposal, ...]
    busy_host: str | None = None

    def short(self) -> str:
        """Return a short text about the fall for a progress bar."""
        if self.busy_host is not None:
            return f"{self.cause}: {self.busy_host}"
        if not self.lost_to:
            return self.cause
        largest = self.lost_to[0]
        return (
            f"{self.cause}: {largest.topic.rpartition('/')[2] or largest.topic} {largest.now:.0%}"
        )

    def sentence(self) -> str:
        """Return the cause of the fall of the harvest rate as a sentence for a person."""
        return f"The harvest rate has fallen: {self._reason()}."

    def _reason(self) -> str:
        if self.busy_host is not None:
            return f"the best links are on the busy host {self.busy_host}"
        return _EXPLANATIONS.get(self.cause, self.cause)

    def describe(self) -> str:
        """Return the fall of the harvest rate, its cause and the proposed classes in one line."""
        fall = f"from {self.before:.2f} to {self.now:.2f} ({self.cause})"
        parts = [f"The harvest rate fell {fall}: {self._reason()}."]
        if self.busy_host is not None:
            parts.append("Set a larger FOCUSCRAWL_PATIENCE to wait for the host.")
        if self.lost_to:
            shares = (f"{x.topic} {x.now:.0%} ({x.before:.0%} before)" for x in self.lost_to)
            parts.append(f"Off-topic fetches: {', '.join(shares)}.")
        if self.proposals:
            proposals = ", ".join(map(_describe_proposal, self.proposals))
            parts.append(f"To find more pages, mark {proposals} as on-topic.")
        return " ".join(parts)


@dataclass
class Tally:
    """Running counts of fetches."""

    fetches: int = 0
    relevance: float = 0.0  # sum
    squares: float = 0.0  # sum of the squared relevance
    lost: Counter[str] = field(default_factory=Counter)  # off-topic fetches by class
    #: numbers of fetches and of relevant fetches by the class of the referrer
    found: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, each: Outcome) -> None:
        """Count a fetch."""
        self.fetches += 1
        self.relevance += each.relevance
        self.squares += each.relevance * each.relevance
        if each.relevance <= RELEVANT:
            self.lost[each.topic or "unknown" if each.judged else NO_PAGE] += 1
        if each.from_topic is not None:
            counts = self.found[each.from_topic]
            counts[0] += 1
            counts[1] += each.relevance > RELEVANT

    @property
    def rate(self) -> float:
        """Mean relevance."""
        return self.relevance / self.fetches


def diagnose(latest: Sequence[Outcome], earlier: Tally, marked: Sequence[str]) -> Diagnosis:
    """Diagnose why the latest fetches are less relevant than the fetches before them.

    The argument `marked` contains the topic paths of the relevant classes.
    """
    now = Tally()
    for each in latest:
        now.add(each)
    cause = _find_cause(latest)
    return Diagnosis(
        seq=now.fetches + earlier.fetches,
        now=now.rate,
        before=earlier.rate,
        cause=cause,
        lost_to=_largest_shares(now, earlier),
        proposals=_propose_classes(latest, (earlier, now), marked),
        busy_host=_count_busy_hosts(latest).most_common(1)[0][0] if cause == BUSY else None,
    )


def _find_cause(latest: Sequence[Outcome]) -> str:
    lost = [each for each in latest if each.relevance <= RELEVANT]
    if _count_busy_hosts(latest).total() > len(lost) / 2:
        return BUSY
    if sum(not each.judged for each in lost) > len(lost) / 2:
        return FAILING
    return DRIFTING if sum(each.from_relevant for each in lost) > len(lost) / 2 else STAGNATING


def _count_busy_hosts(latest: Sequence[Outcome]) -> Counter[str]:
    """Count the busy hosts of better links during off-topic fetches."""
    return Counter(
        each.busy_host
        for each in latest
        if each.relevance <= RELEVANT and each.busy_host is not None
    )


def _largest_shares(now: Tally, earlier: Tally) -> tuple[Share, ...]:
    shares = [
        Share(topic, n / now.fetches, earlier.lost[topic] / earlier.fetches)
        for topic, n in sorted(now.lost.items(), key=lambda item: (-item[1], item[0]))
    ]
    return tuple(shares[:_SHOWN])


def _propose_classes(
    latest: Sequence[Outcome], tallies: Sequence[Tally], marked: Sequence[str]
) -> tuple[Proposal, ...]:
    """Propose siblings and parents of relevant classes, but not the root."""
    seen = {each.topic for each in latest if each.topic is not None}
    candidates: dict[str, str] = {}
    for topic in marked:
        above = [path for path in ancestors(topic) if path != ROOT]
        if not above:
            continue
        candidates.update(dict.fromkeys(above, "parent"))
        for path in seen:
            branch = next((p for p in (path, *ancestors(path)) if parent(p) == above[-1]), None)
            if branch is not None and not lies_under(branch, marked):
                candidates.setdefault(branch, "sibling")
    found = []
    for topic, relation in candidates.items():
        gained = sum(
            each.judged and each.relevance <= RELEVANT and lies_under(each.topic or ROOT, [topic])
            for each in latest
        )
        if gained < _LEAST_SHARE * len(latest):
            continue
        counts = [
            count
            for tally in tallies
            for path, count in tally.found.items()
            if lies_under(path, [topic])
        ]
        n_found = sum(n for n, _ in counts)
        precision = sum(relevant for _, relevant in counts) / n_found if n_found else None
        found.append(Proposal(topic, relation, gained / len(latest), precision))
    # among equal shares, the most specific class first
    found.sort(key=lambda each: (-each.share, -each.topic.count("/"), each.topic))
    return tuple(found[:_SHOWN])


def _describe_proposal(each: Proposal) -> str:
    shown = f"{each.topic} ({each.relation}, {each.share:.0%} more relevant pages"
    if each.link_precision is None:
        return f"{shown})"
    return f"{shown}, {each.link_precision:.0%} of links from its pages are relevant)"
