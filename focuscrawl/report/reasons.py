"""What the apprentice counts for and against a URL."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.apprentice.beginning import make_apprentice
from focuscrawl.apprentice.facts import PageFacts
from focuscrawl.apprentice.options import Options
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_SHOWN = 5  # of each side
_NEGLIGIBLE = 0.05  # log-odds


def reasons(store: CrawlStore, url: int) -> dict[str, float] | None:
    """Return what speaks for (above 0) and against a URL, by the last model of the crawl.

    A URL that was fetched is looked at as if it had not been.

    The apprentice is built up again from what the store has kept of every page. The parts add
    up to the log-odds of the URL's score; see `Apprentice.explain`.

    Returns
    -------
    None if another strategy crawled, or no link leads to the URL
    """
    identity = store.identity()
    if identity.get("strategy") != "apprentice":
        return None
    options = json.loads(identity.get("options", "{}"))
    apprentice = make_apprentice(Options.of(options), options.get("begin_with"))
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
    for page in store.rows(pages):
        # what the fetch itself has shown must not count as a reason for it
        apprentice.observe(count.urls if page.url == url else page.url, page.relevance)
        if page.data is not None:
            apprentice.expand(page.url, PageFacts.from_bytes(page.data))
    return apprentice.explain(url) if apprentice.has_links(url) else None


def in_words(parts: dict[str, float]) -> list[tuple[str, str]]:
    """Return the strongest parts on either side as (side, parts) for people."""
    named = {name.replace("_", " "): part for name, part in parts.items() if name != "intercept"}
    ranked = sorted(named.items(), key=lambda item: -abs(item[1]))
    lines = []
    for side, sign in (("for", 1.0), ("against", -1.0)):
        strongest = [(n, part) for n, part in ranked if part * sign > _NEGLIGIBLE][:_SHOWN]
        if strongest:
            lines.append((side, ", ".join(f"{name} {part:+.2f}" for name, part in strongest)))
    chance = 1.0 / (1.0 + math.exp(-sum(parts.values())))
    lines.append(("together", f"{sum(parts.values()):+.2f} log-odds, a chance of {chance:.3f}"))
    return lines
