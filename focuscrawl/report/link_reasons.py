"""What the apprentice counts for and against a URL."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_names import name_features
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.page_facts import PageFacts, unpack_words
from focuscrawl.offline.apprentice_training import begun_with
from focuscrawl.report.plain_text import one_line
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.store.soundness import taking_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.store import CrawlStore

#: the parts of a score in words, which ``docs/apprentice.md`` explains
NAMES = {
    "mean_relevance": "pages that link to it",
    "best_relevance": "best page that links to it",
    "links": "number of links",
    "reading": "critic on the link",
    "around": "critic on what is around the link",
    "prefix": "its directory",
    "pattern": "URLs that look alike",
    "alias": "page known by another URL",
    "alias_query": "page known with another query",
    "links (words)": "words around the links",
    "address (words)": "words of the URL",
}
_SHOWN = 5  # of each side
_NEGLIGIBLE = 0.02  # of the sum
_PAGES = 100  # whose words are looked through


@dataclass(frozen=True)
class Reasons:
    """What speaks for (above 0) and against a URL.

    Attributes
    ----------
    parts : add up to the linear sum of its score; see `Apprentice.explain`
    words : what of it are single words and places, by their names, the strongest first
    score : what that sum means, in [0, 1]
    """

    parts: dict[str, float]
    words: dict[str, float]
    score: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the strongest parts on either side as (side, parts), for people."""
        named = {_in_words(n): part for n, part in self.parts.items() if n != "intercept"}
        lines = []
        for kind, found in (("", named), ("words ", self.words)):
            ranked = sorted(found.items(), key=lambda item: -abs(item[1]))
            for side, sign in (("for", 1.0), ("against", -1.0)):
                most = [(n, part) for n, part in ranked if part * sign > _NEGLIGIBLE][:_SHOWN]
                if most:
                    text = ", ".join(f"{name} {part:+.2f}" for name, part in most)
                    lines.append((f"{kind}{side}", text))
        total = sum(self.parts.values())
        lines.append(("together", f"{total:+.2f}, a score of {self.score:.3f}"))
        return lines


def _in_words(name: str) -> str:
    """Name a part for people; ``(HIGH,-2)`` is a link two places before."""
    if name in NAMES:
        return NAMES[name]
    level, offset = name.strip("()").split(",")
    where = "before" if int(offset) < 0 else "after"
    kind = "relevant" if level == "HIGH" else "irrelevant"
    return f"{kind} link {abs(int(offset))} {where}"


def reasons(store: CrawlStore, url: int) -> Reasons | None:
    """Return what speaks for and against the URL numbered `url`, by the last model of the crawl.

    A URL that was fetched is looked at as if it had not been. The apprentice is built up again
    from what the store has kept of every page.

    Returns
    -------
    None if another strategy crawled, or no link leads to the URL
    """
    identity = store.identity()
    if identity.get("strategy") != "apprentice":
        return None
    begun = begun_with(store)
    with taking_in(store.where):
        given = json.loads(identity.get("options", "{}"))
        apprentice = Apprentice.warm_started(Options.of(given), begun)
        words = _replay(store, apprentice, url)
    scorer = apprentice.scorer
    if not scorer.evidence.has_links(url):
        return None
    parts = scorer.explain(url)
    score = scorer.learner.response(np.array([sum(parts.values())]))
    named = _words(store, apprentice, url, words)
    return Reasons(parts, named, float(score[0]))


def _replay(store: CrawlStore, apprentice: Apprentice, url: int) -> list[str]:
    """Let the apprentice see all pages again; return the words of those that link to `url`."""
    history, words = History(store), _Words(url)
    model = history.last_model()
    if model is not None:
        apprentice.load(model[1])
    n_urls = history.n_urls()
    for fetch in history.fetches(links=False):
        if not fetch.again:
            # what the fetch itself has shown must not count as a reason for it
            number = n_urls if fetch.url == url else fetch.url
            apprentice.observe(number, fetch.relevance)
        if fetch.memo is not None:
            facts = PageFacts.from_bytes(fetch.memo, n_urls)
            apprentice.expand(fetch.url, facts)
            words.look_at(facts)
    return [*words.found]


@dataclass
class _Words:
    """Collects the words of the first `_PAGES` pages that link to a URL."""

    url: int
    found: dict[str, None] = field(default_factory=dict)
    left: int = _PAGES

    def look_at(self, facts: PageFacts) -> None:
        if self.left and self.url in facts.targets:
            self.found.update(dict.fromkeys(unpack_words(facts.vocabulary)))
            self.left -= 1


def _words(
    store: CrawlStore, apprentice: Apprentice, url: int, words: Sequence[str]
) -> dict[str, float]:
    features, weights = apprentice.scorer.features(url)
    said = np.abs(weights) > 0.0
    p, u = schema.page.c, schema.url.c
    classes = sa.select(p.topic).where(p.topic.is_not(None)).distinct().order_by(p.topic)
    row = store.row(sa.select(u.url).where(u.id == url))
    names = name_features(
        features[said],
        url=row.url,
        words=words,
        classes=[page.topic for page in store.rows(classes)],
        options=apprentice.options,
    )
    found = [
        (one_line(names[feature]), weight)
        for feature, weight in zip(features[said].tolist(), weights[said].tolist(), strict=True)
        if feature in names
    ]
    return dict(sorted(found, key=lambda item: -abs(item[1])))
