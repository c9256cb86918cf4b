"""Why a URL was fetched, waits, or was left out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_extraction import name_features
from focuscrawl.apprentice.link_table import PageFeatures, unpack_words
from focuscrawl.apprentice.options import Options
from focuscrawl.crawl.page_source import LIVE
from focuscrawl.foundation.urls import host
from focuscrawl.offline.apprentice_training import initial_apprentice
from focuscrawl.report.outcomes import PAGE, hosts_left, outcome
from focuscrawl.report.plain_text import counted, one_line, printable, table
from focuscrawl.report.summary import held_back, near_duplicate
from focuscrawl.report.url_lookup import find_url
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from focuscrawl.store import CrawlStore


_SHOWN = 3  # hosts


_BETTER = """
SELECT h.name, count(*)
FROM url u JOIN host h ON h.id = u.host JOIN page found ON found.url = u.referrer
     LEFT JOIN page p ON p.url = u.id
WHERE found.seq < :seq AND coalesce(p.score, u.score) > :score AND u.host <> :host
      AND (p.seq > :seq OR u.state = :queued)
GROUP BY h.name ORDER BY max(coalesce(p.score, u.score)) DESC, h.name
"""


#: the parts of a score in words, which ``docs/explanation/apprentice.md`` explains
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
_SHOWN_REASONS = 5  # of each side
_NEGLIGIBLE = 0.02  # of the sum
_PAGES = 100  # whose words are looked through
_LINKS_SHOWN = 10
_ANCHOR = 40  # characters
_ENDS = 6  # steps shown at each end of a long path
_SAME = 0.0005  # scores that differ by less read the same
_COUNT = "SELECT count(*) FROM link WHERE target = ?"


def busy_hosts(store: CrawlStore, row: sqlite3.Row, page: sqlite3.Row) -> str | None:
    """Say which URLs of other hosts scored better than a page when it came; None if none did.

    Those are meant that were found before and came later, or wait still, by the scores they left
    the frontier with, or wait with now.

    Parameters
    ----------
    row, page : of the URL and of its fetch
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
    since = "; or were scored higher later" if learned else ""
    urls = counted(number, "URL")
    return f"{urls} of busy hosts had better scores ({', '.join(names)}){since}"


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
                most = [(n, part) for n, part in ranked if part * sign > _NEGLIGIBLE][
                    :_SHOWN_REASONS
                ]
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
    begun = initial_apprentice(store)
    with taking_in(store.where):
        given = json.loads(identity.get("options", "{}"))
        apprentice = Apprentice.warm_started(Options.from_mapping(given), begun)
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
            facts = PageFeatures.from_bytes(fetch.memo, n_urls)
            apprentice.expand(fetch.url, facts)
            words.look_at(facts)
    return [*words.found]


@dataclass
class _Words:
    """Collects the words of the first `_PAGES` pages that link to a URL."""

    url: int
    found: dict[str, None] = field(default_factory=dict)
    left: int = _PAGES

    def look_at(self, facts: PageFeatures) -> None:
        if self.left and self.url in facts.targets:
            self.found.update(dict.fromkeys(unpack_words(facts.vocabulary)))
            self.left -= 1


def _words(
    store: CrawlStore, apprentice: Apprentice, url: int, words: Sequence[str]
) -> dict[str, float]:
    features, weights = apprentice.scorer.features(url)
    said = np.abs(weights) > 0.0
    classes = "SELECT DISTINCT topic FROM page WHERE topic IS NOT NULL ORDER BY topic"
    names = name_features(
        features[said],
        url=_url(store, url),
        words=words,
        classes=[topic for (topic,) in store.rows(classes)],
        options=apprentice.options,
    )
    found = [
        (one_line(names[feature]), weight)
        for feature, weight in zip(features[said].tolist(), weights[said].tolist(), strict=True)
        if feature in names
    ]
    return dict(sorted(found, key=lambda item: -abs(item[1])))


@dataclass(frozen=True)
class Explanation:
    """All that speaks for one URL.

    Attributes
    ----------
    url : as the store has it
    state : what became of it, in words
    score : the one it left the frontier with, or waits by, in words
    value : the same as a number; None for what has none, as a seed
    busy : what had better scores when it was fetched, see `busy_hosts`; None: nothing
    depth : clicks from a seed
    links : the best links that lead there, by score; those known when it was fetched come first.
        Of each, ``source``, its ``seq`` and ``relevance``, ``anchor``, and the ``score`` it had
        when that page was expanded, by which ``model_version``; None if it was not followed
    links_found : how many lead there
    links_before : how many of them were known when it was fetched; None if it was not
    path : from the seed to the URL, each page the one on which the next was first found: ``url``,
        ``seq`` and ``relevance``; None before it is fetched
    reasons : what the apprentice counts for and against it, see `focuscrawl.report.why`;
        None where there is none to ask
    """

    url: str
    state: str
    score: str
    value: float | None
    busy: str | None
    depth: int
    links: list[sqlite3.Row]
    links_found: int
    links_before: int | None
    path: list[sqlite3.Row]
    reasons: Reasons | None

    @classmethod
    def of(cls, store: CrawlStore, url: str) -> Explanation:
        """Gather what the store knows about `url`.

        Raises
        ------
        UserError
            The crawl has never seen the URL; the message says what comes near.
        """
        row = find_url(store, url)
        path = _path(store, row)
        fetched_at = path[-1]["seq"]
        page = _page(store, row["id"]) if row["state"] == FETCHED else None
        value = row["score"] if page is None else page["score"]
        return cls(
            url=row["url"],
            state=_state(store, row),
            score=_score(row, value),
            value=value,
            busy=None if page is None else busy_hosts(store, row, page),
            depth=row["depth"],
            links=[*store.rows(_LINKS, (row["id"], fetched_at, _LINKS_SHOWN))],
            links_found=store.row(_COUNT, (row["id"],))[0],
            links_before=None
            if fetched_at is None
            else store.row(_COUNT_BEFORE, (row["id"], fetched_at))[0],
            path=path,
            reasons=reasons(store, row["id"]),
        )

    def text(self) -> str:
        """Return the explanation for a terminal, without a final newline."""
        clicks = "a seed" if self.depth == 0 else f"{self.depth} from a seed"
        lines = [self.url, f"state   {self.state}", f"score   {self.score}", f"clicks  {clicks}"]
        if self.busy is not None:
            lines.append(f"then    {self.busy}")
        if self.reasons is not None:
            lines += self._reasons(self.reasons)
        if not self.links_found:
            lines.append("links   no page fetched so far links there")
        else:
            words = f"{self.links_found:,} to it"
            if self.links_before is not None:
                words += f", {self.links_before:,} known when it was fetched"
            if self.links_found > len(self.links):
                words += f"; the best {len(self.links)}"
            lines += [f"links   {words}:", *self._link_table()]
        if len(self.path) > 1:
            lines += ["path    each page the first on which the next was found:"]
            lines += self._path_table()
        return printable("\n".join(lines))

    def _reasons(self, found: Reasons) -> list[str]:
        """Say what counts for and against it, and how that goes with its score."""
        fetched = self.path[-1]["seq"] is not None
        guess = ", as if it had not fetched the page" if fetched else ""
        lines = [f"reasons by the last model of the apprentice{guess}; in log-odds:"]
        lines += [f"  {side:<13} {parts}" for side, parts in found.lines()]
        if self.value is not None and abs(self.value - found.score) >= _SAME:
            side, since = ("when fetched", "learned") if fetched else ("it waits by", "changed")
            lines.append(f"  {side:<13} {self.value:.3f}: the rest was {since} since")
        return lines

    def _link_table(self) -> list[str]:
        rows = [["  score then", "model", "fetch", "R", "anchor", "on"]]
        rows += [
            [
                f"  {_number(link['score'])}",
                f"{link['model_version']}",
                _place(link["seq"]),
                _number(link["relevance"]),
                one_line(link["anchor"], _ANCHOR) or "-",
                link["source"],
            ]
            for link in self.links
        ]
        return table(rows, left={4, 5})

    def _path_table(self) -> list[str]:
        rows = [["  fetch", "R", "page"]]
        rows += [
            [f"  {_place(step['seq'])}", _number(step["relevance"]), step["url"]]
            for step in self.path
        ]
        lines = table(rows, left={2})
        left_out = len(self.path) - 2 * _ENDS
        if left_out > 0:
            lines[1 + _ENDS : -_ENDS] = [f"  … {left_out:,} more …"]
        return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _place(seq: int | None) -> str:
    return "-" if seq is None else f"{seq:,}"


def _page(store: CrawlStore, url: int) -> sqlite3.Row:
    return store.row("SELECT * FROM page WHERE url = ?", (url,))


def _url(store: CrawlStore, number: int) -> str:
    return str(store.row("SELECT url FROM url WHERE id = ?", (number,))[0])


def _fetched(store: CrawlStore, row: sqlite3.Row) -> str:
    page = _page(store, row["id"])
    came = outcome(page["status"], page["error"], page["duplicate_of"] is not None)
    words = f"fetched as number {page['seq']:,}, relevance {page['relevance']:.3f}"
    if came == PAGE:
        title = one_line(page["title"] or "", 80)
        words = f"{words}: {title}" if title else words
        alike = near_duplicate(store, page["seq"], row["url"])
        return words if alike is None else f"{words}; {alike}"
    if page["duplicate_of"] is not None:
        return f"{words}: a duplicate of {_url(store, page['duplicate_of'])}"
    if page["error"] is not None:
        return f"{words}: {one_line(page['error'], 120)}"
    return f"{words}: {came}"


# seeds, which have no score, come before every link
_RANK = """
SELECT count(*) AS waiting, count(CASE WHEN score IS NULL AND :score IS NOT NULL
                                            OR score > :score THEN 1 END) AS ahead,
       count(CASE WHEN score IS :score THEN 1 END) AS level
FROM url WHERE state = :queued
"""


def _queued(store: CrawlStore, row: sqlite3.Row) -> str:
    waiting, ahead, level = store.row(_RANK, {"score": row["score"], "queued": QUEUED})
    words = f"waits in the frontier at rank {ahead + 1:,} of {waiting:,}"
    if level > 1:
        words += f", level with {counted(level - 1, 'other')}"
    held = held_back(store, row["url"])
    left = hosts_left(store).get(host(row["url"]))
    if left is not None:
        held = f"its host is left alone: {one_line(left, 120)}"
    return words if held is None else f"{words}; {held}"


_EXCLUSION = """
SELECT detail FROM events WHERE kind = 'excluded' AND substr(detail, 1, length(:start)) = :start
LIMIT 1
"""
_ALIAS = """
SELECT p.seq, u.url FROM page p JOIN url u ON u.id = p.url
WHERE p.canonical = ? AND p.duplicate_of IS NULL ORDER BY p.seq LIMIT 1
"""


def _excluded(store: CrawlStore, row: sqlite3.Row) -> str:
    start = f"{row['url']}: "
    for (detail,) in store.rows(_EXCLUSION, {"start": start}):
        return f"excluded: {one_line(detail[len(start) :], 120)}"
    for seq, url in store.rows(_ALIAS, (row["url"],)):
        return f"excluded: its page came as fetch {seq:,}, under {url}"
    return "excluded: it will not be fetched"


def _state(store: CrawlStore, row: sqlite3.Row) -> str:
    if row["state"] == UNFOLLOWED:
        return "known, but the strategy follows no link to it"
    return {QUEUED: _queued, FETCHED: _fetched, EXCLUDED: _excluded}[row["state"]](store, row)


def _score(row: sqlite3.Row, value: float | None) -> str:
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
    while number is not None and number not in steps:  # a stranger's store may go in circles
        steps[number] = store.row(_STEP, (number,))
        number = steps[number]["referrer"]
    return [*steps.values()][::-1]
