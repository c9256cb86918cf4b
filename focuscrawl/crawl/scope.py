"""What a crawl is confined to: hosts, parts of URLs that are left out, languages, clicks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.url_lists import Hosts, UrlPatterns
from focuscrawl.foundation.urls import host
from focuscrawl.page.language import Languages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.crawl.plan import CrawlPlan

OTHER_LANGUAGE = "language"  # kind of the event that a page is in another language
_SHOWN = 200  # characters of a list as it is kept with the crawl


class Scope:
    """Which URLs a crawl follows, from which pages, and in which languages a page counts.

    Parameters
    ----------
    plan : its `hosts`, `deny`, `max_depth` and `languages`

    Raises
    ------
    UserError
        What tells languages is not installed, or does not know one of them.
    """

    def __init__(self, plan: CrawlPlan) -> None:
        self._hosts = Hosts(plan.hosts) if plan.hosts else None
        self._deny = UrlPatterns(plan.deny)
        self._max_depth = plan.max_depth
        self.languages = Languages(plan.languages)

    @property
    def admits_all(self) -> bool:
        """Tell whether there is no URL that it does not admit."""
        return self._hosts is None and not self._deny

    def admits(self, url: str) -> bool:
        """Tell whether a normalised URL is on one of the hosts, and not left out."""
        if self._hosts is not None and not self._hosts.has(host(url)):
            return False
        return not self._deny.match(url)

    def leads_on(self, depth: int) -> bool:
        """Tell whether the links of a page that is so many clicks from a seed are followed."""
        return self._max_depth is None or depth < self._max_depth

    def confine(self, seeds: Sequence[str]) -> list[str]:
        """Return the seeds that are in it.

        Raises
        ------
        UserError
            None is.
        """
        found = [seed for seed in seeds if self.admits(seed)]
        if seeds and not found:
            raise UserError(
                f"none of the {len(seeds)} seeds is in the scope of the crawl, as {seeds[0]}: "
                "change hosts or deny, or name other seeds"
            )
        return found


def scope_identity(plan: CrawlPlan) -> Mapping[str, str]:
    """Return what is kept with a crawl of its scope, and of what it discovers.

    With another one it would be another crawl.
    """
    return {
        "hosts": _in_short(plan.hosts),
        "deny": _in_short(plan.deny),
        "languages": ",".join(plan.languages),
        "discover": ",".join(plan.discover),
        "max_depth": "" if plan.max_depth is None else str(plan.max_depth),
    }


def _in_short(names: Sequence[str]) -> str:
    text = ",".join(sorted(names))
    if len(text) <= _SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:_SHOWN]}... ({len(names)}, {digest})"
