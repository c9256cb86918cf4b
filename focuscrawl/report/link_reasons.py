"""What the apprentice counts for and against a URL."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_names import name_features
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.page_facts import PageFacts, unpack_words
from focuscrawl.offline.training import begun_with
from focuscrawl.report.plain_text import one_line
from focuscrawl.report.worker_replay import replay_workers
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.store import CrawlStore

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
        named = {n.replace("_", " "): part for n, part in self.parts.items() if n != "intercept"}
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
    given = json.loads(identity.get("options", "{}"))
    apprentice = Apprentice.warm_started(Options.of(given), begun_with(store))
    if "shards" in identity:
        number, words = replay_workers(store, apprentice, url)
    else:
        number, words = url, _replay(store, apprentice, url)
    if not apprentice.has_links(number):
        return None
    parts = apprentice.explain(number)
    score = apprentice.scorer.learner.response(np.array([sum(parts.values())]))
    named = _words(store, apprentice, number, url, words)
    return Reasons(parts, named, float(score[0]))


def _replay(store: CrawlStore, apprentice: Apprentice, url: int) -> list[str]:
    """Let the apprentice see all pages again; return the words of those that link to `url`."""
    p, memo, models = schema.page.c, schema.memo.c, schema.models.c
    last = sa.select(models.state).where(models.state.is_not(None))
    for model in store.rows(last.order_by(models.version.desc()).limit(1)):
        apprentice.load(model.state)
    pages = (
        sa.select(p.url, p.relevance, memo.data)
        .outerjoin(schema.memo, memo.seq == p.seq)
        .order_by(p.seq)
    )
    (count,) = store.rows(sa.select(sa.func.count().label("urls")).select_from(schema.url))
    words: dict[str, None] = {}
    left = _PAGES
    for page in store.rows(pages):
        # what the fetch itself has shown must not count as a reason for it
        apprentice.observe(count.urls if page.url == url else page.url, page.relevance)
        if page.data is not None:
            facts = PageFacts.from_bytes(page.data)
            apprentice.expand(page.url, facts)
            if left and url in facts.targets:
                words.update(dict.fromkeys(unpack_words(facts.vocabulary)))
                left -= 1
    return [*words]


def _words(
    store: CrawlStore, apprentice: Apprentice, number: int, url: int, words: Sequence[str]
) -> dict[str, float]:
    features, weights = apprentice.features(number)
    said = np.abs(weights) > 0.0
    p, u = schema.page.c, schema.url.c
    classes = sa.select(p.topic).where(p.topic.is_not(None)).distinct().order_by(p.topic)
    (row,) = store.rows(sa.select(u.url).where(u.id == url))
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
