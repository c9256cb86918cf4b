"""Every group of features and every learner by every rule of evidence, at work."""

from __future__ import annotations

import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.options import EVIDENCE, GROUPS, INPUTS, LEARNERS, Options

from .toy_crawl import Crawl, Pages

CHOICES = [(), *((name,) for name in GROUPS), tuple(GROUPS)]


def check(options: Options) -> Crawl:
    """Crawl, and take the crawl up elsewhere on the way: it must come out the same."""
    web = Pages(options)
    crawl = Crawl(web, Apprentice(options), lag=3).run(30)
    again = crawl.resumed(Apprentice(options))
    assert again.queue == crawl.queue
    again.run(11)
    crawl.run(11)
    assert len(set(crawl.order)) == 41
    assert again.order == crawl.order
    assert again.queue == crawl.queue
    assert again.apprentice.version == crawl.apprentice.version == 3
    return crawl


@pytest.mark.parametrize("groups", CHOICES, ids=lambda groups: "+".join(groups[:2]) or "none")
def test_every_group_by_itself_and_none_and_all(groups: tuple[str, ...]) -> None:
    crawl = check(Options(batch=12, groups=groups))
    parts = crawl.apprentice.scorer.explain(next(iter(crawl.queue)))
    if "url" not in groups:
        assert parts["address (words)"] == 0.0
    assert len(parts) == len(INPUTS) + 3 + (22 if "cocitation" in groups else 0)
    # a group that is on must be able to tell URLs apart
    assert (len(set(crawl.queue.values())) > 1) == bool(groups)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    "more", [{}, {"contrast": 0.5, "tunnel": False, "graded": False, "memory": 9}]
)
def test_every_learner_by_every_rule_of_evidence(
    learner: str, evidence: str, more: dict[str, float]
) -> None:
    options = Options.of({"batch": 12, "learner": learner, "evidence": evidence, **more})
    crawl = check(options)
    if not more:
        assert crawl.harvest > 0.5  # 0.4 of the pages are good
