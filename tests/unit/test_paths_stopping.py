"""When a site is given up: by what its pages were, not by what a model says of strangers."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.paths.forager import SPAN, Prospect
from focuscrawl.paths.path_model import Calibration, Evidence

CALIBRATION = Calibration(Evidence(2.0, 2.0), Evidence(2.0, 2.0), 0.25, 8)
NOWHERE, DULL, MAYBE, GOOD = 0.01, 0.1, 0.25, 0.7


def _ends(fetched: list[float], waiting: list[float]) -> bool:
    """Tell whether a site ends while its pages have these Pr(goal), and these wait."""
    prospect = Prospect(CALIBRATION, 0.02)
    for url, goal in enumerate(fetched):
        prospect.fetched(url)
        prospect.judged(url, goal)
        if prospect.due and prospect.exhausted(np.array(waiting)[:SPAN]):
            return True
    return False


@pytest.mark.parametrize(
    ("fetched", "waiting", "over"),
    [
        ([GOOD] * 10 + [DULL] * 150, [DULL] * SPAN, True),
        ([DULL] * 10, [], True),
        ([DULL] * 10, [NOWHERE] * SPAN, True),  # all that waits is on other sites
        ([DULL] * 10, [DULL] + [NOWHERE] * SPAN, False),
        ([GOOD] * 10 + [DULL] * 150, [GOOD] * 5 + [DULL] * SPAN, False),  # a list was found
        ([GOOD] * 10 + [DULL] * 80, [DULL] * SPAN, False),  # too early to tell
        ([DULL] * 200, [DULL] * SPAN, False),  # nothing was found yet: it looks on
        ([GOOD] * 10 + [DULL] * 150, [MAYBE] * SPAN, True),
        (([GOOD] + [DULL] * 9) * 16, [MAYBE] * SPAN, False),  # a trickle of goals goes on
    ],
)
def test_a_site_is_over_when_goals_are_behind_and_none_ahead(
    fetched: list[float], waiting: list[float], over: bool
) -> None:
    assert _ends(fetched, waiting) is over


def test_what_was_fetched_in_vain_counts_as_no_goal() -> None:
    prospect = Prospect(CALIBRATION, 0.02)
    looks = []
    for url in range(160):
        prospect.fetched(url)
        prospect.judged(url if url < 10 else -1, GOOD)  # the others brought no page
        if prospect.due:
            looks.append(prospect.exhausted(np.full(SPAN, DULL)))
    assert len(looks) == 16
    assert looks[-1]
    assert not any(looks[:10])


def test_a_calibration_is_the_steeper_the_more_a_model_tells() -> None:
    evidence = Evidence(2.0, 2.0)(np.array([0.0, DULL, 0.5, GOOD, 1.0]))
    assert (np.diff(evidence) > 0.0).all()
    assert np.isfinite(evidence).all()
