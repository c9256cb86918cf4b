"""Write the datasheet of an export: contents, provenance, completeness, omissions, licences.

The sections of the datasheet answer the questions of Gebru et al., Datasheets for datasets,
Communications of the ACM 64(12), 2021.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING

from focuscrawl import __version__
from focuscrawl.collection.collection import COLUMNS
from focuscrawl.crawl.page_source import LIVE
from focuscrawl.foundation.urls import host
from focuscrawl.page.words import count_words
from focuscrawl.report.outcomes import PAGE, UNCHANGED
from focuscrawl.report.plain_text import one_line, pluralize

if TYPE_CHECKING:
    from focuscrawl.collection.collection import Collection

_TOP = 20  # rows of a table
_USES = [
    "- Use the collection for reading, search, statistics and language models on the topic, as "
    "far as the law and the licences of the pages allow. Most pages belong to their authors, and "
    "the collection gives no rights to them.",
    "- The collection is not a random sample of the Web or of the topic. It contains pages that "
    "links lead to from the start pages by way of relevant pages, and more pages of large sites.",
    "- Pages name people, and may contain false, private or outdated statements about them. Find "
    "the pages of people who ask for removal by `url` or by the words of `text`.",
    "- Relevance is computed, not judged by a person: check pages close to the lowest exported "
    "relevance first.",
]
_PACKAGES = ("trafilatura", "resiliparse", "py3langid", "semantic-text-splitter", "pyarrow")


def datasheet(
    collection: Collection, now: datetime, *, command: str = "", columns: Sequence[str] = ()
) -> str:
    """Return the datasheet of an export as Markdown, in which text from pages is escaped.

    The argument `command` is the command line that wrote the export, if known. The argument
    `columns` gives the exported columns.
    """
    topic = _escape(collection.identity.get("topic", "?"))
    sections = {
        "Contents": _contents(collection, topic),
        "How pages were judged": _critic(collection),
        "Crawl": _crawl(collection),
        "Completeness": _completeness(collection),
        "Skipped pages": _skipped(collection),
        "Processing": _processing(collection, columns),
        "Robots and text-mining directives": _robots(collection),
        "Licences": _licences(collection),
        "Uses and limits": _USES,
        "Hosts": _table("host", Counter(host(page.url) for page in collection.pages)),
        "Columns": _columns(columns),
        "How to repeat the export": _reproduction(collection, command),
    }
    lines = [
        f"# {topic}: {pluralize(len(collection.pages), 'page')}",
        "",
        f"Exported {now:%Y-%m-%d} by focuscrawl {__version__}.",
    ]
    for heading, section in sections.items():
        if section:
            lines += ["", f"## {heading}", *section]
    return "\n".join([*lines, ""])


def _contents(collection: Collection, topic: str) -> list[str]:
    pages = collection.pages
    words = round(sum(count_words(page.content.text) for page in pages))
    lines = [
        f"Web pages on the topic {topic}, found by a focused crawl. A focused crawl follows the "
        "links that are likely to lead to relevant pages.",
        "",
    ]
    phrases = collection.origin.critic.phrases
    if phrases:
        lines.append(f"- Phrases of the topic: {', '.join(map(_escape, phrases))}.")
    lines += [
        f"- {pluralize(words, 'word')} on {pluralize(len(pages), 'page')} of "
        f"{pluralize(len({host(page.url) for page in pages}), 'host')}.",
        f"- Languages: {_list_counts(page.content.language or 'unknown' for page in pages)}.",
    ]
    warning = collection.host_warning()
    if warning is not None:
        lines.append(f"- {_escape(warning)}, so the texts may represent this site, not the topic.")
    dates = sorted(page.content.date for page in pages if page.content.date is not None)
    if dates:
        lines.append(
            f"- {pluralize(len(dates), 'page')} with a date of publication or change, from "
            f"{dates[0]} to {dates[-1]}; median {dates[len(dates) // 2]}."
        )
    return lines


def _critic(collection: Collection) -> list[str]:
    identity, quality, pages = collection.identity, collection.origin.critic, collection.pages
    name = _escape(identity.get("critic_name", identity.get("critic", "?")))
    lines = [
        f"A text classifier, the critic {name}, gave every page its relevance: the probability, "
        "by its words, that the page is on the topic. Pages with relevance ≥ "
        f"{collection.options.min_relevance:g} were exported. No person has checked all pages.",
        "",
        *_judgements(collection),
    ]
    if pages:
        mean = sum(page.relevance for page in pages) / len(pages)
        lines.append(f"- Mean relevance of the exported pages: {mean:.2f}.")
    if quality.why_not:
        return [*lines, f"- The critic's quality was not measured: {_escape(quality.why_not)}."]
    examples = (
        f"{pluralize(quality.on, 'relevant example')} and {quality.off:,} off-topic examples"
    )
    lines.append(
        f"- Quality measured by cross-validation on the critic's own {examples}, at a relevance "
        "above 0.5:"
    )
    missing = "no example was judged relevant" if quality.off else "there is no off-topic example"
    lines += [
        "  - precision, the share of relevant pages among pages judged relevant: "
        f"{_describe_share(quality.precision, missing)}",
        "  - recall, the share of relevant pages that are judged relevant: "
        f"{_describe_share(quality.recall, missing)}",
    ]
    if quality.others:
        lines.append(
            f"  - of {pluralize(quality.others, 'other page')} that nobody has labelled, "
            f"{quality.called:,} were judged relevant."
        )
    return [*lines, "- The quality on other pages may be higher or lower."]


def _judgements(collection: Collection) -> list[str]:
    """Return a line about pages that persons judged; [] without such pages."""
    verdicts = collection.origin.verdicts
    if not verdicts:
        return []
    crawl, exported = (
        f"{each['good']:,} good, {each['bad']:,} not good"
        for each in (Counter(verdicts.values()), Counter(p.verdict for p in collection.pages))
    )
    return [
        f"- To train the critic, persons judged {pluralize(len(verdicts), 'page')} of the crawl: "
        f"{crawl}. Judged pages in the export: {exported}."
    ]


def _describe_share(share: tuple[float, float, float] | None, reason: str) -> str:
    if share is None:
        return f"unknown, {reason}."
    return "{:.2f} (90 % interval {:.2f} to {:.2f}).".format(*share)


def _crawl(collection: Collection) -> list[str]:
    identity, origin, pages = collection.identity, collection.origin, collection.pages
    live = identity.get("web", LIVE) == LIVE
    web = "" if live else identity.get("web_name", "?")
    where = f"the recorded web {_escape(PurePath(web).name)}" if web else "the live Web"
    lines = [f"- Crawled on {where} with the strategy {_escape(identity.get('strategy', '?'))}."]
    if pages:
        fetched = [page.fetched_at for page in pages]
        lines.append(
            f"- Fetched from {min(fetched):%Y-%m-%d %H:%M} to {max(fetched):%Y-%m-%d %H:%M} UTC"
            + (", from a recording; the pages themselves are older." if web else ".")
        )
    if origin.stopped:
        lines.append(f"- Why the crawl stopped: {_escape(origin.stopped)}.")
    limits = {
        "allowed hosts": identity.get("hosts"),
        "excluded URLs": identity.get("deny"),
        "languages": identity.get("languages"),
        "most links from a start page": identity.get("max_depth"),
        "other sources of URLs": identity.get("discover"),
    }
    lines += [f"- Scope: {limit}: {_escape(value)}." for limit, value in limits.items() if value]
    if origin.seeds:
        lines.append(f"- {pluralize(len(origin.seeds), 'start page')}, with relevance if fetched:")
        lines += [
            f"  - {'-' if relevance is None else f'{relevance:.2f}'} {_escape(url)}"
            for url, relevance in origin.seeds[:_TOP]
        ]
        if len(origin.seeds) > _TOP:
            lines.append(f"  - and {len(origin.seeds) - _TOP:,} more")
    return lines


def _completeness(collection: Collection) -> list[str]:
    estimate, lines = collection.origin.completeness, _certified_recall(collection)
    if estimate is None:
        return [*lines, "The crawl recorded no estimate of its recall."]
    low, high = estimate.interval
    return [
        *lines,
        f"Estimated recall: {estimate.recall:.2f} (90 % interval {low:.2f} to {high:.2f}), the "
        "share of reachable relevant pages that the crawl fetched. The estimate is a guess. "
        "Reachable pages are those that links lead to from the start pages. The crawl fetched "
        f"{estimate.relevant:,} relevant pages. About {estimate.discovered:,.0f} more were "
        f"queued, and about {estimate.undiscovered:,.0f} not yet discovered. The estimate does "
        "not count relevant pages that no such link leads to, or that the critic misjudges.",
    ]


def _certified_recall(collection: Collection) -> list[str]:
    """Return a paragraph about the target pages in the collection; [] without target pages."""
    counts = collection.count_targets()
    if counts is None:
        return []
    return [
        f"In the collection: {counts.describe()}. Target pages "
        "are relevant pages that a person knew, and that were neither start pages nor examples "
        "of the critic. The bound holds for pages like the target pages. Target pages from a "
        "search engine are prominent pages, so the recall of other pages may be lower.",
        "",
    ]


def _skipped(collection: Collection) -> list[str]:
    origin, least = collection.origin, collection.options.min_relevance
    counts: Counter[str] = Counter()
    for outcome, number in origin.outcomes.items():
        if outcome not in (PAGE, UNCHANGED):
            counts[outcome] = number
    off = origin.fetched - counts.total() - collection.fetched
    if off > 0:
        counts[f"relevance < {least:g}, or no text"] = off
    counts.update(collection.skipped)
    fetches = (
        pluralize(origin.fetched, "fetch")
        if origin.fetched
        else f"{pluralize(collection.fetched, 'page')} with relevance ≥ {least:g}"
    )
    exported = pluralize(len(collection.pages), "page")
    intro = f"Of {fetches}, the export contains {exported}. The table counts the others."
    return [intro, "", *(_table("reason", counts) if counts else ["No page was skipped."])]


def _processing(collection: Collection, columns: Sequence[str]) -> list[str]:
    pages, options = collection.pages, collection.options
    others = sum(len(page.duplicates) for page in pages)
    near = (
        "Near-duplicate pages are included."
        if options.near_duplicates
        else "Of near-duplicate pages (MinHash), only the page with the highest relevance is "
        "included" + "."
    )
    if "duplicates" in columns:
        near += (
            f" The column `duplicates` lists {pluralize(others, 'URL')} of duplicates and "
            "near-duplicates of exported pages."
        )
    return [
        "- Extractors of the main text: "
        f"{_list_counts(page.content.extractor for page in pages)}. Menus and advertisements are "
        "removed where the extractor recognises them. A WARC export contains the pages unchanged.",
        f"- {near}",
        "- A page is skipped if nearly all its lines occur on many pages of its host.",
        "- No page was corrected, translated or anonymised.",
    ]


def _robots(collection: Collection) -> list[str]:
    forbidden = collection.origin.forbidden
    lines = [
        f"The crawl obeyed robots.txt unless its settings differ; {pluralize(forbidden, 'URL')} "
        "were not fetched because of robots.txt. The table counts the directives of the exported "
        "pages, from X-Robots-Tag headers, `meta` elements and the TDM Reservation Protocol, "
        "except the protocol's file of a host, /.well-known/tdmrep.json.",
        "",
    ]
    directives = Counter(each for page in collection.pages for each in page.robots or ())
    none = sum(page.robots == [] for page in collection.pages)
    unknown = sum(page.robots is None for page in collection.pages)
    directives += Counter({"none": none, "unknown, response not recorded": unknown})
    return [*lines, *_table("directive", directives)]


def _licences(collection: Collection) -> list[str]:
    named = Counter(page.content.license or "none named" for page in collection.pages)
    return [
        "Licences that the pages link to. A page that names no licence gives no permission.",
        "",
        *_table("licence", named),
    ]


def _columns(columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    rows = [f"| `{name}` | {COLUMNS[name][1]} |" for name in columns]
    return ["| column | |", "|---|---|", *rows]


def _reproduction(collection: Collection, command: str) -> list[str]:
    identity = collection.identity
    packages = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    lines = [
        f"- Crawl: focuscrawl {_escape(identity.get('focuscrawl_version', '?'))}, started "
        f"{_escape(identity.get('started_at', '?'))}, with"
    ]
    lines += [f"  - {_escape(each, 2_000)}" for each in collection.origin.start_arguments[:_TOP]]
    if command:
        lines.append(f"- Export: `{one_line(command).replace('`', '')}`")
    return [
        *lines,
        f"- Exported with focuscrawl {__version__}, Python {platform.python_version()}, "
        f"{', '.join(packages)}.",
        "- The collection is not updated, and a new crawl of the live Web will fetch other pages.",
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _table(heading: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {heading} | pages |", "|---|--:|"]
    rows += [f"| {_escape(name)} | {n:,} |" for name, n in counts.most_common(_TOP)]
    rest = sum(counts.values()) - sum(n for _, n in counts.most_common(_TOP))
    return [*rows, f"| {len(counts) - _TOP:,} more | {rest:,} |"] if rest else rows


def _list_counts(names: Iterable[str]) -> str:
    counts = Counter(names)
    return ", ".join(f"{_escape(name)} {n:,}" for name, n in counts.most_common(_TOP)) or "none"


def _escape(text: str, width: int = 200) -> str:
    """Return untrusted text in one line, with the markup characters of Markdown escaped."""
    return one_line(text, width).translate({ord(c): f"\\{c}" for c in "\\`*_[]<>|#"})
