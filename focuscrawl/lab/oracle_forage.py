"""What a forage could be: by an oracle that knows all goals, and the ways to them.

The fewest pages that join a front door to its goals are a Steiner tree, which is hard to find. The
oracle is greedy: of all pages that list goals it goes to the one that brings most for the fetches
it takes, those of the goals included, and on from there. So it can be done as well as this; better
than one goal a fetch, with the fetches of the shortest way to the nearest left out, cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.forages import clicks, foraged, goals_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.lab.forages import Forage, Ground, Links

ORACLE = "oracle"


def best_forage(ground: Ground, links: Links, recall: float) -> Forage:
    """Forage a site by the ways to its goals until this share of them is found."""
    lists = {page: found for page in ground.pages if (found := ground.goals & set(links(page)))}
    fetched: dict[str, str | None] = {ground.site: None}
    wanted = goals_for(recall, len(ground.goals)) if ground.goals else 0
    missing = wanted - len(ground.goals & fetched.keys())
    while missing > 0:
        before = clicks(fetched, links)
        ways = {page: _new(page, before) for page in lists}
        worth = {
            page: min(len(found - fetched.keys() - set(ways[page])), missing)
            for page, found in lists.items()
        }
        best = max(
            (page for page in lists if worth[page]),
            key=lambda page: (worth[page] / (worth[page] + len(ways[page])), page),
        )
        for page in ways[best]:
            fetched[page] = before[page]
        left = [goal for goal in links(best) if goal in ground.goals and goal not in fetched]
        missing = wanted - len(ground.goals & fetched.keys())
        fetched.update(dict.fromkeys(left[: max(missing, 0)], best))
        missing = wanted - len(ground.goals & fetched.keys())
    return foraged(ground, ORACLE, fetched)


def _new(page: str, before: Mapping[str, str | None]) -> list[str]:
    """Return the pages that are still to be fetched on the way to a page, itself included."""
    way = []
    at: str | None = page
    while at is not None and before[at] is not None:
        way.append(at)
        at = before[at]
    return way[::-1]
