"""The datasheet of a collection: what it is, where it comes from, what was left out and why.

After T. Gebru et al., Datasheets for datasets, Communications of the ACM 64(12), 2021.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from focuscrawl import __version__
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import counted, one_line

if TYPE_CHECKING:
    from datetime import datetime

    from focuscrawl.collection.collection import Collection

_TOP = 20  # rows of a table


def datasheet(collection: Collection, now: datetime) -> str:
    """Return the datasheet as Markdown; what pages say is text in it."""
    pages, identity, wanted = collection.pages, collection.identity, collection.wanted
    topic = _text(identity.get("topic", "?"))
    words = sum(len(page.of.text.split()) for page in pages)
    lines = [
        f"# {topic}: {counted(len(pages), 'page')}",
        "",
        f"Collected {now:%Y-%m-%d} by focuscrawl {__version__}.",
        "",
        "## What it is",
        f"- Topic: {topic}; a page is taken if the critic holds it for relevant with "
        f"R ≥ {wanted.min_relevance:g}.",
        f"- Critic: {_text(identity.get('critic_name', identity.get('critic', '?')))}. How often "
        "it is right is not known from a crawl: `focuscrawl critic check` measures it.",
        f"- {counted(words, 'word')}; texts by {_listed(page.of.extractor for page in pages)}.",
        f"- Languages: {_listed(page.of.language or 'unknown' for page in pages)}.",
        "",
        "## Where it comes from",
        f"- Crawled by {_text(identity.get('strategy', '?'))} on "
        f"{_text(identity.get('web_name', 'the live Web'))}.",
    ]
    if pages:
        fetched = [page.fetched_at for page in pages]
        lines.append(
            f"- Fetched from {min(fetched):%Y-%m-%d %H:%M} to {max(fetched):%Y-%m-%d %H:%M} UTC."
        )
    lines += [
        "- robots.txt was obeyed where the crawl was live and its settings were the default ones.",
        "",
        *_table("host", Counter(host(page.url) for page in pages)),
        "",
        "## Licences",
        "What pages themselves link to as their licence; the rest says nothing, which is no "
        "permission.",
        "",
        *_table("licence", Counter(page.of.license or "none named" for page in pages)),
        "",
        "## What was left out, and why",
        f"Of {counted(collection.fetched, 'page')} with R ≥ {wanted.min_relevance:g}:",
        "",
        *(_table("why", collection.left_out) if collection.left_out else ["Nothing."]),
        "",
    ]
    return "\n".join(lines)


def _table(what: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {what} | pages |", "|---|--:|"]
    rows += [f"| {_text(name)} | {n:,} |" for name, n in counts.most_common(_TOP)]
    rest = sum(counts.values()) - sum(n for _, n in counts.most_common(_TOP))
    return [*rows, f"| {len(counts) - _TOP:,} more | {rest:,} |"] if rest else rows


def _listed(names: object) -> str:
    counts = Counter(names)  # type: ignore[call-overload]
    return ", ".join(f"{_text(str(name))} {n:,}" for name, n in counts.most_common(_TOP)) or "none"


def _text(text: str) -> str:
    """Return a stranger's text on a line, without what Markdown takes for markup."""
    return one_line(text, 200).translate({ord(c): f"\\{c}" for c in "\\`*_[]<>|#"})
