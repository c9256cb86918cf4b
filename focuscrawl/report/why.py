"""Explains why a URL was fetched, is queued, or was excluded; for ``focuscrawl why``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_extraction import name_features
from focuscrawl.apprentice.link_table import PageFeatures, unpack_words
from focuscrawl.apprentice.options import Options
from focuscrawl.crawl.page_source import LIVE
from focuscrawl.foundation.urls import host
from focuscrawl.frontier import LAST, halve_score
from focuscrawl.offline.apprentice_training import initial_apprentice
from focuscrawl.report.outcomes import PAGE, outcome, skipped_hosts
from focuscrawl.report.plain_text import align_columns, one_line, pluralize, printable
from focuscrawl.report.summary import fetch_notes, replay_discounts
from focuscrawl.report.url_lookup import find_url
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.store import CrawlStore


_SHOWN = 3  # busy hosts shown


_BETTER = """
SELECT h.name, count(*)
FROM url u JOIN host h ON h.id = u.host JOIN page found ON found.url = u.referrer
     LEFT JOIN page p ON p.url = u.id
WHERE found.seq < :seq AND coalesce(p.score, u.score) > :score AND u.host <> :host
      AND (p.seq > :seq OR u.state = :queued)
GROUP BY h.name ORDER BY max(coalesce(p.score, u.score)) DESC, h.name
"""


#: names for people of the parts of a score; ``docs/explanation/apprentice.md`` explains them
PART_NAMES = {
    "mean_relevance": "pages that link to it",
    "best_relevance": "best page that links to it",
    "links": "number of links",
    "reading": "critic on the link",
    "around": "critic on the text around the link",
    "prefix": "pages in the same directory",
    "pattern": "pages with similar URLs",
    "alias": "page known under another URL",
    "alias_query": "page known with another query",
    "links (words)": "words around the links",
    "address (words)": "words of the URL",
}
_SHOWN_REASONS = 5  # reasons shown for and against a URL
_NEGLIGIBLE = 0.02  # log-odds; smaller parts are not shown
_PAGES = 100  # linking pages whose words are collected
_LINKS_SHOWN = 10
_ANCHOR = 40  # characters of an anchor text shown
_STEPS_SHOWN = 6  # steps shown at each end of a long path
_VISIBLE_DIFFERENCE = 0.0005  # scores that differ by less are shown with the same digits
_COUNT = "SELECT count(*) FROM link WHERE target = ?"


def describe_busy_hosts(store: CrawlStore, row: sqlite3.Row, page: sqlite3.Row) -> str | None:
    """Describe the URLs with better scores that waited for busy hosts when a page was fetched.

    The text gives the number of URLs that were found before the fetch of the page and were fetched
    later or are still queued. The function compares the last scores of these URLs with the score
    of the page.

    Parameters
    ----------
    row, page : Row
        Rows of the page in the tables ``url`` and ``page``.
    """
    if page["score"] is None or store.identity().get("web", LIVE) != LIVE:
        return None
    about = {"seq": page["seq"], "score": page["score"], "host": row["host"], "queued": QUEUED}
    hosts = [*map(tuple, store.rows(_BETTER, about))]
    if not hosts:
        return None
    names = [one_line(name) for name, _ in hosts[:_SHOWN]]
    if len(hosts) > _SHOWN:
        names.append(f"{len(hosts) - _SHOWN:,} more")
    number = sum(urls for _, urls in hosts)
    learned = [*store.rows("SELECT 1 FROM models LIMIT 1")]
    since = ", or got them later from a newer model" if learned else ""
    urls = pluralize(number, "URL")
    return f"{urls} of busy hosts had better scores{since} ({', '.join(names)})"


@dataclass(frozen=True)
class Reasons:
    """Contributions of features to the score of a URL; contributions above 0 raise the score."""

    #: parts whose sum is the log-odds of the score; see `Apprentice.explain`
    parts: dict[str, float]
    words: dict[str, float]  #: contributions of single words and positions, the largest first
    score: float  #: the score in [0, 1]

    def lines(self) -> list[tuple[str, str]]:
        """Return the largest contributions for and against the URL as lines of text."""
        named = {_part_name(n): part for n, part in self.parts.items() if n != "intercept"}
        lines = []
        for kind, found in (("", named), ("words ", self.words)):
            ranked = sorted(found.items(), key=lambda item: -abs(item[1]))
            for side, sign in (("for", 1.0), ("against", -1.0)):
                most = [(n, part) for n, part in ranked if part * sign > _NEGLIGIBLE][
                    :_SHOWN_REASONS
                ]
                if most:
                    text = ", ".join(f"{name} {part:+.2f}" for name, part in most)
                    lines.append((f"{kind}{side}", text))
        total = sum(self.parts.values())
        lines.append(("total", f"{total:+.2f}, which is a score of {self.score:.3f}"))
        return lines


def _part_name(name: str) -> str:
    """Name a part for people; ``(HIGH,-2)`` is a relevant link two positions before."""
    if name in PART_NAMES:
        return PART_NAMES[name]
    level, offset = name.strip("()").split(",")
    where = "before" if int(offset) < 0 else "after"
    kind = "relevant" if level == "HIGH" else "irrelevant"
    return f"{kind} link {abs(int(offset))} {where}"


def explain_score(store: CrawlStore, url: int) -> Reasons | None:
    """Return the contribution of each feature to the last score of the URL with the ID `url`.

    The apprentice is rebuilt from the features of every page in the store. If the URL was fetched,
    the rebuilt apprentice does not learn from this fetch.

    Returns
    -------
    Reasons or None
        None if the crawl has another strategy, or no link leads to the URL.
    """
    identity = store.identity()
    if identity.get("strategy") != "apprentice":
        return None
    initial = initial_apprentice(store)
    with reporting_damage(store.location):
        given = json.loads(identity.get("options", "{}"))
        apprentice = Apprentice.warm_started(Options.from_mapping(given), initial)
        words = _replay_pages(store, apprentice, url)
    scorer = apprentice.scorer
    if not scorer.evidence.has_links(url):
        return None
    parts = scorer.explain(url)
    score = scorer.learner.response(np.array([sum(parts.values())]))
    named = _word_reasons(store, apprentice, url, words)
    return Reasons(parts, named, float(score[0]))


def _replay_pages(store: CrawlStore, apprentice: Apprentice, url: int) -> list[str]:
    """Replay all pages to the apprentice; return the words of the pages that link to `url`."""
    history, words = History(store), _WordCollector(url)
    model = history.last_model()
    if model is not None:
        apprentice.load(model[1])
    n_urls = history.n_urls()
    for fetch in history.fetches(links=False):
        if not fetch.is_revisit:
            # the relevance of the page itself must not count as a reason to fetch it
            url_id = n_urls if fetch.url == url else fetch.url
            apprentice.observe(url_id, fetch.relevance)
        if fetch.memo is not None:
            facts = PageFeatures.from_bytes(fetch.memo, n_urls)
            apprentice.expand(fetch.url, facts)
            words.look_at(facts)
    return [*words.found]


@dataclass
class _WordCollector:
    """Collects the words of the first `_PAGES` pages that link to a URL."""

    url: int
    found: dict[str, None] = field(default_factory=dict)
    left: int = _PAGES

    def look_at(self, facts: PageFeatures) -> None:
        if self.left and self.url in facts.targets:
            self.found.update(dict.fromkeys(unpack_words(facts.vocabulary)))
            self.left -= 1


def _word_reasons(
    store: CrawlStore, apprentice: Apprentice, url: int, words: Sequence[str]
) -> dict[str, float]:
    features, weights = apprentice.scorer.features(url)
    used = np.abs(weights) > 0.0
    classes = "SELECT DISTINCT topic FROM page WHERE topic IS NOT NULL ORDER BY topic"
    names = name_features(
        features[used],
        url=_url_of(store, url),
        words=words,
        classes=[topic for (topic,) in store.rows(classes)],
        options=apprentice.options,
    )
    found = [
        (one_line(names[feature]), weight)
        for feature, weight in zip(features[used].tolist(), weights[used].tolist(), strict=True)
        if feature in names
    ]
    return dict(sorted(found, key=lambda item: -abs(item[1])))


@dataclass(frozen=True)
class Explanation:
    """Explanation of the state and the score of one URL."""

    url: str  #: URL as in the store
    state: str  #: state of the URL for people
    score: str  #: last score of the URL in the frontier, for people
    value: float | None  #: the score; None for a seed
    #: URLs with better scores when the page was fetched, see `describe_busy_hosts`
    busy: str | None
    depth: int  #: clicks from a seed
    #: the links to the URL with the best scores; links known before the fetch come first.
    #: ``source``, ``seq`` and ``relevance`` are of the linking page. ``score`` and
    #: ``model_version`` are of the time when that page was fetched; None: not followed.
    links: list[sqlite3.Row]
    links_found: int  #: number of links to the URL
    #: number of these links that were known before the fetch; None for a URL not fetched
    links_before: int | None
    #: pages from the seed to the URL, with ``url``, ``seq`` and ``relevance`` (None: not fetched).
    #: On each page the next one was first found.
    path: list[sqlite3.Row]
    reasons: Reasons | None  #: contributions to the score, if the strategy is the apprentice

    @classmethod
    def of(cls, store: CrawlStore, url: str) -> Explanation:
        """Return the explanation of a URL's state and score, read from the store.

        Raises
        ------
        UserError
            The crawl has not found the URL; the message names a similar URL.
        """
        row = find_url(store, url)
        path = _path(store, row)
        fetched_at = path[-1]["seq"]
        page = _page(store, row["id"]) if row["state"] == FETCHED else None
        value = row["score"] if page is None else page["score"]
        return cls(
            url=row["url"],
            state=_describe_state(store, row),
            score=_describe_score(row, value),
            value=value,
            busy=None if page is None else describe_busy_hosts(store, row, page),
            depth=row["depth"],
            links=[*store.rows(_LINKS, (row["id"], fetched_at, _LINKS_SHOWN))],
            links_found=store.row(_COUNT, (row["id"],))[0],
            links_before=None
            if fetched_at is None
            else store.row(_COUNT_BEFORE, (row["id"], fetched_at))[0],
            path=path,
            reasons=explain_score(store, row["id"]),
        )

    def text(self) -> str:
        """Return the explanation for a terminal, without a final newline."""
        clicks = "a seed" if self.depth == 0 else f"{self.depth} from a seed"
        lines = [self.url, f"state   {self.state}", f"score   {self.score}", f"clicks  {clicks}"]
        if self.busy is not None:
            lines.append(f"busy    {self.busy}")
        if self.reasons is not None:
            lines += self._reasons(self.reasons)
        if not self.links_found:
            lines.append("links   no fetched page links to the URL")
        else:
            words = f"{pluralize(self.links_found, 'link')} to the URL"
            if self.links_before is not None:
                words += f", {self.links_before:,} known before its fetch"
            if self.links_found > len(self.links):
                words += f"; the best {len(self.links)}"
            lines += [f"links   {words}:", *self._link_table()]
        if len(self.path) > 1:
            lines += ["path    from the seed; each page is the first on which the next was found:"]
            lines += self._path_table()
        return printable("\n".join(lines))

    def _reasons(self, found: Reasons) -> list[str]:
        """Return the contributions to the score as lines, and a note if the score differs."""
        fetched = self.path[-1]["seq"] is not None
        without = ", without the fetch of the page itself" if fetched else ""
        lines = [f"reasons in log-odds, by the last model of the apprentice{without}:"]
        lines += [f"  {side:<13} {parts}" for side, parts in found.lines()]
        if self.value is not None and abs(self.value - found.score) >= _VISIBLE_DIFFERENCE:
            side = "when fetched" if fetched else "in frontier"
            lines.append(f"  {side:<13} {self.value:.3f}: the score has changed since")
        return lines

    def _link_table(self) -> list[str]:
        rows = [["  score then", "model", "fetch", "relevance", "anchor", "on page"]]
        rows += [
            [
                f"  {_format_score(link['score'])}",
                f"{link['model_version']}",
                _format_seq(link["seq"]),
                _format_score(link["relevance"]),
                one_line(link["anchor"], _ANCHOR) or "-",
                link["source"],
            ]
            for link in self.links
        ]
        return align_columns(rows, left={4, 5})

    def _path_table(self) -> list[str]:
        rows = [["  fetch", "relevance", "page"]]
        rows += [
            [f"  {_format_seq(step['seq'])}", _format_score(step["relevance"]), step["url"]]
            for step in self.path
        ]
        lines = align_columns(rows, left={2})
        left_out = len(self.path) - 2 * _STEPS_SHOWN
        if left_out > 0:
            lines[1 + _STEPS_SHOWN : -_STEPS_SHOWN] = [f"  … {left_out:,} more …"]
        return lines


def _format_score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _format_seq(seq: int | None) -> str:
    return "-" if seq is None else f"{seq:,}"


def _page(store: CrawlStore, url: int) -> sqlite3.Row:
    return store.row("SELECT * FROM page WHERE url = ?", (url,))


def _url_of(store: CrawlStore, number: int) -> str:
    return str(store.row("SELECT url FROM url WHERE id = ?", (number,))[0])


def _describe_fetched(store: CrawlStore, row: sqlite3.Row) -> str:
    page = _page(store, row["id"])
    came = outcome(page["status"], page["error"], page["duplicate_of"] is not None)
    if came == PAGE:
        told = one_line(page["title"] or "", 80)
    elif page["duplicate_of"] is not None:
        told = f"a duplicate of {_url_of(store, page['duplicate_of'])}"
    else:
        told = came if page["error"] is None else one_line(page["error"], 120)
    words = f"fetch {page['seq']:,}, relevance {page['relevance']:.3f}"
    notes = fetch_notes(store, page["seq"], row["url"])
    return "; ".join([f"{words}: {told}" if told else words, *notes])


# seeds have no score and come before every link
_RANK = """
SELECT count(*) AS waiting, count(CASE WHEN score IS NULL AND :score IS NOT NULL
                                            OR score > :score THEN 1 END) AS ahead,
       count(CASE WHEN score IS :score THEN 1 END) AS level
FROM url WHERE state = :queued
"""


def _describe_queued(store: CrawlStore, row: sqlite3.Row) -> str:
    waiting, ahead, level = store.row(_RANK, {"score": row["score"], "queued": QUEUED})
    words = f"queued at rank {ahead + 1:,} of {waiting:,}"
    if level > 1:
        words += f", the same score as {pluralize(level - 1, 'other URL')}"
    held = _describe_discount(store, row)
    left = skipped_hosts(store).get(host(row["url"]))
    if left is not None:
        held = f"host skipped: {one_line(left, 120)}"
    return words if held is None else f"{words}; {held}"


def _describe_discount(store: CrawlStore, row: sqlite3.Row) -> str | None:
    discounts = replay_discounts(store)
    reason = discounts.reason(row["url"])
    if reason is None or row["score"] is None:
        return None
    halvings = discounts.halvings(row["url"])
    if halvings == LAST:
        return f"all other URLs are fetched first, because {reason}"
    counted = halve_score(row["score"], halvings)
    return f"its score {row['score']:.2g} counts as {counted:.2g}, because {reason}"


_EXCLUSION = """
SELECT detail FROM events WHERE kind = 'excluded' AND substr(detail, 1, length(:start)) = :start
LIMIT 1
"""


def _describe_excluded(store: CrawlStore, row: sqlite3.Row) -> str:
    start = f"{row['url']}: "
    for (detail,) in store.rows(_EXCLUSION, {"start": start}):
        return f"excluded: {one_line(detail[len(start) :], 120)}"
    return "excluded: the crawl will not fetch the URL"


def _describe_state(store: CrawlStore, row: sqlite3.Row) -> str:
    if row["state"] == UNFOLLOWED:
        return "not followed: the strategy follows no link to the URL"
    return {QUEUED: _describe_queued, FETCHED: _describe_fetched, EXCLUDED: _describe_excluded}[
        row["state"]
    ](store, row)


def _describe_score(row: sqlite3.Row, value: float | None) -> str:
    if value is None:
        return "none: a seed" if row["referrer"] is None else "none"
    return f"{value:.4g}" + (" when it left the frontier" if row["state"] == FETCHED else "")


_COUNT_BEFORE = """
SELECT count(*) FROM link l JOIN page p ON p.url = l.source WHERE l.target = ? AND p.seq < ?
"""
_LINKS = """
SELECT u.url AS source, p.seq, p.relevance, l.anchor, l.score, l.model_version
FROM link l JOIN url u ON u.id = l.source LEFT JOIN page p ON p.url = l.source
WHERE l.target = ? ORDER BY coalesce(p.seq < ?, 0) DESC, l.score DESC NULLS LAST, l.id LIMIT ?
"""
_STEP = """
SELECT u.url, u.referrer, p.seq, p.relevance FROM url u LEFT JOIN page p ON p.url = u.id
WHERE u.id = ?
"""


def _path(store: CrawlStore, row: sqlite3.Row) -> list[sqlite3.Row]:
    steps: dict[int, sqlite3.Row] = {}
    number: int | None = row["id"]
    while number is not None and number not in steps:  # a corrupt store may have a loop
        steps[number] = store.row(_STEP, (number,))
        number = steps[number]["referrer"]
    return [*steps.values()][::-1]
