"""Target pages of a crawl: known relevant pages that the crawl must find by links.

The file `TARGETS_FILE` in the folder of a crawl lists the target pages. A target page is *found*
when the crawl has fetched its URL, and *met* when the crawl knows its URL.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.completeness.recall_estimate import MIN_TARGETS, TargetCounts
from focuscrawl.completeness.stop_rules import check_reachable
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, write_atomically
from focuscrawl.foundation.urls import normalize
from focuscrawl.store.schema import FETCHED

if TYPE_CHECKING:
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


logger = logging.getLogger(__name__)

TARGETS_FILE = "targets.txt"
_LONGEST = 10_000_000  # characters read of a file


def choose_targets(
    config: CrawlConfig,
    *,
    critic: Critic,
    web: Web | None,
    knowledge: Knowledge | None,
    seeds: Sequence[str],
) -> list[str]:
    """Read the target pages that a configuration names, and drop pages that the crawl knows.

    A crawl knows its start pages, the relevant examples of the critic and the pages of earlier
    crawls in the knowledge file. In a replay, target pages that are not recorded are dropped, too.

    Raises
    ------
    UserError
        The file cannot be read, or every page in the file is known or not recorded.
    """
    if config.targets is None:
        return []
    named = read_seeds(config.targets, config.topics, "targets")
    found = web.resolve(named) if web is not None and config.closed else named
    recorded = [url for url in dict.fromkeys(found) if url is not None]
    examples = {normalize(example) for example in critic.examples}
    known = examples.union(seeds)
    if knowledge is not None:
        at = knowledge.positions(recorded)
        known.update(url for url, place in zip(recorded, at.tolist(), strict=True) if place >= 0)
    targets = [url for url in recorded if url not in known]
    for number, reason in (
        (len(named) - len(recorded), "not in the recorded web, or named twice"),
        (len(recorded) - len(targets), "start pages, examples of the critic or in the knowledge"),
    ):
        if number:
            logger.warning(
                "%d of %d target pages do not count, because they are %s",
                number,
                len(named),
                reason,
            )
    if not targets:
        raise UserError(
            f"targets: the crawl knows all {len(named)} pages of {config.targets}, or they are "
            "not recorded: name relevant pages that are no start pages and no examples of the "
            "critic"
        )
    if len(targets) < MIN_TARGETS:
        logger.warning(
            "%d target pages certify no recall: at least %d are necessary",
            len(targets),
            MIN_TARGETS,
        )
    return targets


def check_targets(config: CrawlConfig, targets: Sequence[str]) -> None:
    """Raise `UserError` if the target pages cannot certify the recall of the user's stop rule."""
    problem = check_reachable(config.stop, len(targets))
    if problem is not None:
        raise UserError(problem)


def write_targets(folder: Path, targets: Iterable[str]) -> None:
    """Write the target pages into the folder of a crawl, one URL per line."""
    write_atomically(folder / TARGETS_FILE, "".join(f"{url}\n" for url in targets))


def read_targets(folder: Path) -> list[str]:
    """Read the target pages from the folder of a crawl; [] for a crawl without target pages."""
    try:
        with open(
            folder / TARGETS_FILE, encoding="utf-8", errors="replace", opener=open_nofollow
        ) as file:
            return file.read(_LONGEST).split()
    except FileNotFoundError:
        return []


class TargetPages:
    """Counts the target pages that a running crawl has found.

    Parameters
    ----------
    targets : sequence of str
        Normalised URLs.
    urls : UrlTable
        All URLs that the crawl knows.
    """

    def __init__(self, targets: Sequence[str], urls: UrlTable) -> None:
        self._urls = urls
        self._total = len(targets)
        self._missing = [_names(url) for url in targets]

    def __bool__(self) -> bool:
        return self._total > 0

    def counts(self) -> TargetCounts:
        """Return the current counts, which leave out target pages that became start pages."""
        missing, met = [], 0
        for names in self._missing:
            known = [url_id for url_id in map(self._urls.get, names) if url_id is not None]
            if any(map(self._is_start_page, known)):
                self._total -= 1
            elif not any(self._urls.state(url_id) == FETCHED for url_id in known):
                missing.append(names)
                met += bool(known)
        self._missing = missing
        fetched = self._total - len(missing)
        return TargetCounts(self._total, fetched, fetched + met)

    def _is_start_page(self, url_id: int) -> bool:
        return self._urls.depth(url_id) == 0 and self._urls.referrer_id(url_id) is None


def count_targets(store: CrawlStore, folder: Path) -> TargetCounts | None:
    """Count the target pages that a stored crawl has found; None without target pages."""
    states = target_states(store, folder)
    if not states:
        return None
    fetched = sum(state == FETCHED for state in states.values())
    met = sum(state is not None for state in states.values())
    find = "SELECT 1 FROM pages WHERE url IN (?, ?) AND relevance > ?"
    relevant = sum(bool([*store.rows(find, (*_names(url), RELEVANT))]) for url in states)
    return TargetCounts(len(states), fetched, met, relevant)


def target_states(store: CrawlStore, folder: Path) -> dict[str, int | None]:
    """Return the state of the URL of each target page; None if the crawl has not met the URL.

    Target pages that became start pages are left out.
    """
    find = "SELECT state, depth = 0 AND referrer IS NULL FROM url WHERE url IN (?, ?)"
    found: dict[str, int | None] = {}
    for url in read_targets(folder):
        rows = [tuple(row) for row in store.rows(find, _names(url))]
        states = [state for state, _ in rows]
        if not any(is_start_page for _, is_start_page in rows):
            found[url] = FETCHED if FETCHED in states else next(iter(states), None)
    return found


def _names(url: str) -> tuple[str, str]:
    """Return a URL with the schemes ``http`` and ``https``."""
    rest = url.partition("://")[2]
    return f"https://{rest}", f"http://{rest}"
