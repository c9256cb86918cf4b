"""The datasheet of a collection: what it is, where it comes from, what was left out and why.

It answers, in its own words, what T. Gebru et al. ask in Datasheets for datasets, Communications
of the ACM 64(12), 2021: for whoever gets a collection, and has not made it.
"""

from __future__ import annotations

import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING

from focuscrawl import __version__
from focuscrawl.collection.collection import COLUMNS
from focuscrawl.crawl.page_source import LIVE
from focuscrawl.foundation.urls import host
from focuscrawl.report.outcomes import PAGE, UNCHANGED
from focuscrawl.report.plain_text import one_line, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from focuscrawl.collection.collection import Collection

_TOP = 20  # rows of a table
_USES = [
    "- For reading, search, statistics and models of texts on the topic, as far as the law and "
    "the licences of the pages allow; most pages belong to those who wrote them, and this "
    "collection gives no right to them.",
    "- It is no sample of the Web, nor of the topic: it has what is linked from where the crawl "
    "began, by way of pages that the critic holds for relevant, and more of sites with "
    "many pages.",
    "- Pages name people, and may say of them what is false, private or out of date. Who asks "
    "to be left out is found by `url` or by the words of `text`.",
    "- R is a measurement, not a judgement: look at pages with R near the limit first.",
]
_PACKAGES = ("trafilatura", "resiliparse", "py3langid", "semantic-text-splitter", "pyarrow")


def datasheet(
    collection: Collection, now: datetime, *, command: str = "", columns: Sequence[str] = ()
) -> str:
    """Return the datasheet as Markdown; what pages say is text in it.

    Parameters
    ----------
    command : that made the collection; empty: it is not known
    columns : of its table, of `focuscrawl.collection.collection.COLUMNS`
    """
    topic = _text(collection.identity.get("topic", "?"))
    sections = {
        "What it is": _what(collection, topic),
        "How it was told what is on the topic": _critic(collection),
        "Where it comes from": _crawl(collection),
        "How complete it is": _completeness(collection),
        "What was left out, and why": _left_out(collection),
        "What was done to the pages": _done(collection, columns),
        "What pages ask of robots": _robots(collection),
        "Licences": _licences(collection),
        "What it is good for, and what not": _USES,
        "Hosts": _table("host", Counter(host(page.url) for page in collection.pages)),
        "Columns": _columns(columns),
        "How to make it again": _made(collection, command),
    }
    lines = [
        f"# {topic}: {pluralize(len(collection.pages), 'page')}",
        "",
        f"Collected {now:%Y-%m-%d} by focuscrawl {__version__}.",
    ]
    for heading, said in sections.items():
        if said:
            lines += ["", f"## {heading}", *said]
    return "\n".join([*lines, ""])


def _what(collection: Collection, topic: str) -> list[str]:
    pages = collection.pages
    words = sum(len(page.content.text.split()) for page in pages)
    lines = [
        f"Pages of the Web on one topic, {topic}, found by a focused crawl: one that follows the "
        "links which are likely to lead to more of them.",
        "",
    ]
    phrases = collection.origin.critic.phrases
    if phrases:
        lines.append(f"- The topic in words: {', '.join(map(_text, phrases))}.")
    lines += [
        f"- {pluralize(words, 'word')} on {pluralize(len(pages), 'page')} of "
        f"{pluralize(len({host(page.url) for page in pages}), 'host')}.",
        f"- Languages: {_listed(page.content.language or 'unknown' for page in pages)}.",
    ]
    dates = sorted(page.content.date for page in pages if page.content.date is not None)
    if dates:
        lines.append(
            f"- {pluralize(len(dates), 'page')} say when they were written or changed: from "
            f"{dates[0]} to {dates[-1]}, half of them since {dates[len(dates) // 2]}."
        )
    return lines


def _critic(collection: Collection) -> list[str]:
    identity, card, pages = collection.identity, collection.origin.critic, collection.pages
    named = _text(identity.get("critic_name", identity.get("critic", "?")))
    lines = [
        f"A text classifier, the critic {named}, gives every page its relevance R: how probable "
        "it is, by its words, that the page is on the topic. Pages with R ≥ "
        f"{collection.wanted.min_relevance:g} were taken; no person has looked at all of them.",
        "",
    ]
    if pages:
        mean = sum(page.relevance for page in pages) / len(pages)
        lines.append(f"- Mean R of the pages: {mean:.2f}.")
    if card.why_not:
        return [
            *lines,
            f"- How often the critic is right was not measured: {_text(card.why_not)}.",
        ]
    examples = f"{pluralize(card.on, 'example')} on the topic and {card.off:,} off it"
    lines.append(f"- Measured by cross-validation on its own examples, {examples}, at R > ½:")
    none = "it takes none of them" if card.off else "there are no examples off the topic"
    lines += [
        "  - precision, how many of the pages it takes are on the topic: "
        f"{_share(card.precision, none)}",
        f"  - recall, how many pages on the topic it takes: {_share(card.recall, none)}",
    ]
    if card.others:
        lines.append(
            f"  - of {pluralize(card.others, 'page')} that stand for all others, and that "
            f"nobody has looked at, it takes {card.called:,}."
        )
    return [*lines, "- On other pages than its examples it may be right more or less often."]


def _share(share: tuple[float, float, float] | None, why_not: str) -> str:
    if share is None:
        return f"unknown, {why_not}."
    return "{:.2f} (90 % interval {:.2f} to {:.2f}).".format(*share)


def _crawl(collection: Collection) -> list[str]:
    identity, origin, pages = collection.identity, collection.origin, collection.pages
    live = identity.get("web", LIVE) == LIVE
    web = "" if live else identity.get("web_name", "?")
    where = f"the recorded web {_text(PurePath(web).name)}" if web else "the live Web"
    lines = [f"- Crawled on {where}, by the strategy {_text(identity.get('strategy', '?'))}."]
    if pages:
        fetched = [page.fetched_at for page in pages]
        lines.append(
            f"- Fetched from {min(fetched):%Y-%m-%d %H:%M} to {max(fetched):%Y-%m-%d %H:%M} UTC"
            + (", from the recording: what the pages say is older." if web else ".")
        )
    if origin.stopped:
        lines.append(f"- Why the crawl ended: {_text(origin.stopped)}.")
    limits = {
        "only on hosts": identity.get("hosts"),
        "not at": identity.get("deny"),
        "of pages in these languages alone": identity.get("languages"),
        "links from the start at most": identity.get("max_depth"),
        "found also by": identity.get("discover"),
    }
    lines += [f"- Scope: {what} {_text(value)}." for what, value in limits.items() if value]
    if origin.seeds:
        lines.append(f"- It began at {pluralize(len(origin.seeds), 'URL')} (R, or - if none):")
        lines += [
            f"  - {'-' if relevance is None else f'{relevance:.2f}'} {_text(url)}"
            for url, relevance in origin.seeds[:_TOP]
        ]
        if len(origin.seeds) > _TOP:
            lines.append(f"  - and {len(origin.seeds) - _TOP:,} more")
    return lines


def _completeness(collection: Collection) -> list[str]:
    estimate = collection.origin.completeness
    if estimate is None:
        return ["The crawl has made no estimate."]
    low, high = estimate.interval
    return [
        f"By its own estimate the crawl has {estimate.recall:.2f} (90 % interval {low:.2f} to "
        f"{high:.2f}) of the pages with R > ½ that links from its start lead to: "
        f"{estimate.relevant:,} are here; {estimate.discovered:,.0f} were expected among the "
        f"links that waited, {estimate.undiscovered:,.0f} beyond. Pages that no such link leads "
        "to are not in the sum, nor are those that the critic does not know for what they are.",
    ]


def _left_out(collection: Collection) -> list[str]:
    origin, least = collection.origin, collection.wanted.min_relevance
    counts: Counter[str] = Counter()
    for what, number in origin.outcomes.items():
        if what not in (PAGE, UNCHANGED):
            counts[f"came to no page of its own: {what}"] = number
    off = origin.fetched - counts.total() - collection.fetched
    if off > 0:
        counts[f"R < {least:g}, or no text"] = off
    counts.update(collection.skipped)
    if origin.forbidden:
        counts["never fetched: robots.txt forbids it"] = origin.forbidden
    whole = f"{pluralize(origin.fetched, 'fetch')} of the crawl, " if origin.fetched else ""
    begun = f"Of {whole}{pluralize(collection.fetched, 'page')} with R ≥ {least:g}:"
    return [begun, "", *(_table("why", counts) if counts else ["Nothing."])]


def _done(collection: Collection, columns: Sequence[str]) -> list[str]:
    pages, wanted = collection.pages, collection.wanted
    others = sum(len(page.duplicates) for page in pages)
    near = (
        "Pages that say nearly the same are all here."
        if wanted.near_duplicates
        else "Of pages that say nearly the same (MinHash) the one with the highest R is here"
        + (f", and names the others: {others:,} in all." if "duplicates" in columns else ".")
    )
    return [
        f"- Main texts were found by {_listed(page.content.extractor for page in pages)}; menus, "
        "advertisements and the like are left out where they were told from the text. An archive "
        "(WARC) has the pages as they came.",
        f"- {near}",
        "- Pages of which nothing is left without the lines that many pages of their host have "
        "are left out.",
        "- Nothing was corrected, translated or made anonymous.",
    ]


def _robots(collection: Collection) -> list[str]:
    forbidden = collection.origin.forbidden
    lines = [
        "A crawl obeys robots.txt unless its settings say otherwise; "
        f"it kept this one from {pluralize(forbidden, 'URL')}. What the pages taken ask for "
        "themselves, by X-Robots-Tag, `meta` elements and the TDM Reservation Protocol (its file "
        "of a whole host, /.well-known/tdmrep.json, was not looked at):",
        "",
    ]
    said = Counter(wish for page in collection.pages for wish in page.robots or ())
    silent = sum(page.robots == [] for page in collection.pages)
    unknown = sum(page.robots is None for page in collection.pages)
    said += Counter({"nothing": silent, "unknown, it is kept no longer": unknown})
    return [*lines, *_table("asks", said)]


def _licences(collection: Collection) -> list[str]:
    named = Counter(page.content.license or "none named" for page in collection.pages)
    return [
        "What pages themselves link to as their licence; the rest says nothing, which is no "
        "permission.",
        "",
        *_table("licence", named),
    ]


def _columns(columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    rows = [f"| `{name}` | {COLUMNS[name][1]} |" for name in columns]
    return ["| column | |", "|---|---|", *rows]


def _made(collection: Collection, command: str) -> list[str]:
    identity = collection.identity
    packages = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    lines = [
        f"- Crawl: focuscrawl {_text(identity.get('focuscrawl_version', '?'))}, begun "
        f"{_text(identity.get('started_at', '?'))}, with"
    ]
    lines += [f"  - {_text(each, 2_000)}" for each in collection.origin.start_arguments[:_TOP]]
    if command:
        lines.append(f"- Collection: `{one_line(command).replace('`', '')}`")
    return [
        *lines,
        f"- With focuscrawl {__version__}, Python {platform.python_version()}, "
        f"{', '.join(packages)}.",
        "- Nobody keeps it up to date: a crawl of the live Web finds other pages on another day.",
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _table(what: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {what} | pages |", "|---|--:|"]
    rows += [f"| {_text(name)} | {n:,} |" for name, n in counts.most_common(_TOP)]
    rest = sum(counts.values()) - sum(n for _, n in counts.most_common(_TOP))
    return [*rows, f"| {len(counts) - _TOP:,} more | {rest:,} |"] if rest else rows


def _listed(names: Iterable[str]) -> str:
    counts = Counter(names)
    return ", ".join(f"{_text(name)} {n:,}" for name, n in counts.most_common(_TOP)) or "none"


def _text(text: str, width: int = 200) -> str:
    """Return a stranger's text on a line, without what Markdown takes for markup."""
    return one_line(text, width).translate({ord(c): f"\\{c}" for c in "\\`*_[]<>|#"})
