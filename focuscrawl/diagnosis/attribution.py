"""Causes of a fall of the harvest rate, from the classes and referrers of its fetches."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.taxonomy import ROOT, ancestors, lies_under, parent

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_PAGE = "no page"  # redirects, errors, duplicates, what is no HTML
BUSY, FAILING, STAGNATING, DRIFTING = "busy", "failing", "stagnating", "drifting"
_SHOWN = 3
_LEAST = 0.05  # of the fetches, for a class to be proposed


class Outcome(NamedTuple):
    """The outcome of a fetch.

    Attributes
    ----------
    relevance : R, 0 for what is no page
    judged : whether it was a page, and a new one
    topic : its most probable class
    from_topic, from_relevant : class of the page it was first found on, and whether that is
        relevant; None and False for a start URL
    busy_host : the host of the best link that waited meanwhile, if that was much better
    """

    relevance: float
    judged: bool
    topic: str | None
    from_topic: str | None
    from_relevant: bool
    busy_host: str | None = None


class Share(NamedTuple):
    """A class that is not marked, and its share of the fetches, now and before the fall."""

    topic: str
    now: float
    before: float


class Proposal(NamedTuple):
    """A class that could be marked, too.

    Attributes
    ----------
    topic : a sibling or a parent of a marked class
    relation : ``sibling`` or ``parent``
    share : of the latest fetches that would then be relevant and were not
    leads : share of relevant pages among those first found on a page of it, over the whole
        crawl; None: there were none
    """

    topic: str
    relation: str
    share: float
    leads: float | None


@dataclass(frozen=True)
class Diagnosis:
    """A fall of the harvest rate, and what is behind it.

    Attributes
    ----------
    seq : fetches when it was found
    now, before : harvest rate of the latest fetches, and of all before them
    cause : of most fetches that are lost. ``busy``: better links waited for their hosts meanwhile;
        ``failing``: they bring no new page; ``drifting``: they
        are of other topics though found on relevant pages; ``stagnating``: they were found on
        other pages, as the links of relevant ones are spent
    lost_to : classes that the fetches go to instead, the largest shares first
    proposals : what could be marked to go on, the largest shares first
    busy : the host that most of the lost fetches did not wait for; None for another cause
    """

    seq: int
    now: float
    before: float
    cause: str
    lost_to: tuple[Share, ...]
    proposals: tuple[Proposal, ...]
    busy: str | None = None

    def short(self) -> str:
        """Return it for a progress bar."""
        if self.busy is not None:
            return f"{self.cause}: {self.busy}"
        eaten = (
            f": {_name(self.lost_to[0].topic)} {self.lost_to[0].now:.0%}" if self.lost_to else ""
        )
        return f"{self.cause}{eaten}"

    def describe(self) -> str:
        """Return it in one line."""
        line = f"harvest {self.now:.2f}, {self.before:.2f} before: {self.cause}"
        if self.busy is not None:
            line += (
                f"; your best host is busy, {self.busy}: a larger FOCUSCRAWL_PATIENCE waits for it"
            )
        if self.lost_to:
            eaten = [
                f"{each.topic} {each.now:.0%} (was {each.before:.0%})" for each in self.lost_to
            ]
            line += f"; goes to {', '.join(eaten)}"
        if self.proposals:
            line += f"; to go on, mark {', '.join(map(_proposed, self.proposals))}"
        return line


@dataclass
class Tally:
    """Running counts of fetches: their relevance, their classes, the classes they came from.

    Attributes
    ----------
    fetches, relevance, squares : how many, and the sums of R and of R squared
    lost : fetches that are not relevant, by class, or by what they are instead
    found : by class of the page that a fetch was first found on: fetches, and relevant ones
    """

    fetches: int = 0
    relevance: float = 0.0
    squares: float = 0.0
    lost: Counter[str] = field(default_factory=Counter)
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
        """Mean R."""
        return self.relevance / self.fetches


def diagnose(latest: Sequence[Outcome], earlier: Tally, marked: Sequence[str]) -> Diagnosis:
    """Explain why the latest fetches bring less than those before.

    Parameters
    ----------
    latest, earlier : fetches, neither empty
    marked : topic paths in focus
    """
    now = Tally()
    for each in latest:
        now.add(each)
    cause = _cause(latest)
    return Diagnosis(
        seq=now.fetches + earlier.fetches,
        now=now.rate,
        before=earlier.rate,
        cause=cause,
        lost_to=_eating(now, earlier),
        proposals=_proposals(latest, (earlier, now), marked),
        busy=_not_waited_for(latest).most_common(1)[0][0] if cause == BUSY else None,
    )


def _cause(latest: Sequence[Outcome]) -> str:
    lost = [each for each in latest if each.relevance <= RELEVANT]
    if _not_waited_for(latest).total() > len(lost) / 2:
        return BUSY
    if sum(not each.judged for each in lost) > len(lost) / 2:
        return FAILING
    return DRIFTING if sum(each.from_relevant for each in lost) > len(lost) / 2 else STAGNATING


def _not_waited_for(latest: Sequence[Outcome]) -> Counter[str]:
    """Count the hosts of the better links that waited during fetches that are lost."""
    return Counter(
        each.busy_host
        for each in latest
        if each.relevance <= RELEVANT and each.busy_host is not None
    )


def _eating(now: Tally, earlier: Tally) -> tuple[Share, ...]:
    shares = [
        Share(topic, n / now.fetches, earlier.lost[topic] / earlier.fetches)
        for topic, n in sorted(now.lost.items(), key=lambda item: (-item[1], item[0]))
    ]
    return tuple(shares[:_SHOWN])


def _proposals(
    latest: Sequence[Outcome], tallies: Sequence[Tally], marked: Sequence[str]
) -> tuple[Proposal, ...]:
    """Weigh the siblings and parents of what is marked; what everything lies under is none."""
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
        if gained < _LEAST * len(latest):
            continue
        counts = [
            count
            for tally in tallies
            for path, count in tally.found.items()
            if lies_under(path, [topic])
        ]
        from_it = sum(n for n, _ in counts)
        leads = sum(relevant for _, relevant in counts) / from_it if from_it else None
        found.append(Proposal(topic, relation, gained / len(latest), leads))
    # of equals the narrowest class
    found.sort(key=lambda each: (-each.share, -each.topic.count("/"), each.topic))
    return tuple(found[:_SHOWN])


def _name(topic: str) -> str:
    return topic.rpartition("/")[2] or topic


def _proposed(each: Proposal) -> str:
    shown = f"{each.topic} ({each.relation}, {each.share:.0%} more"
    return f"{shown}, leads on {each.leads:.0%})" if each.leads is not None else f"{shown})"
