"""Search for start pages: asks sources such as SearXNG for pages that the critic then judges.

Other packages can add a `SeedSource` by an entry point in the group ``focuscrawl.seed_sources``.
"""

from focuscrawl.search.asking import Asked, ask_queries
from focuscrawl.search.candidates import (
    Candidate,
    JudgedCandidate,
    choose_candidates,
    judge_candidates,
)
from focuscrawl.search.queries import make_tuples
from focuscrawl.search.seed_source import (
    SearchAnswer,
    SeedSource,
    default_source,
    installed_sources,
    open_source,
)

__all__ = [
    "Asked",
    "Candidate",
    "JudgedCandidate",
    "SearchAnswer",
    "SeedSource",
    "ask_queries",
    "choose_candidates",
    "default_source",
    "installed_sources",
    "judge_candidates",
    "make_tuples",
    "open_source",
]
