"""What counts as one site: links within it say nothing of prestige (METHODS 7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tldextract import TLDExtract

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from focuscrawl.foundation.arrays import Ints


#: a site is a host; a registered domain; every page is a site of its own
RULES = ("host", "domain", "none")


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites of a crawl's pages by one rule.

    Attributes
    ----------
    rule : one of `RULES`
    of_pages : int64 (n_pages,), the number of each page's site
    """

    rule: str
    of_pages: Ints

    @classmethod
    def by(cls, rule: str, host: Ints, names: Sequence[str]) -> Self:
        """Tell sites apart by `rule`.

        Parameters
        ----------
        host : int64 (n_pages,), the number of each page's host
        names : of the hosts, with their ports
        """
        if rule == "none":
            return cls(rule, np.arange(len(host)))
        if rule == "domain":
            domains: dict[str, int] = {}
            number = [domains.setdefault(registered_domain(name), len(domains)) for name in names]
            return cls(rule, np.array(number, np.int64)[host])
        return cls(rule, host)

    @classmethod
    def fitting(cls, source: Ints, target: Ints, host: Ints) -> Self:
        """Return hosts as sites, or, if every link stays on its host, no rule."""
        rule = "host" if (host[source] != host[target]).any() else "none"
        return cls.by(rule, host, ())


@cache
def registered_domain(host: str) -> str:
    """Return the part of a host's name that somebody has registered, the host if there is none.

    By the public suffix list that comes with `tldextract`; nothing is asked of the network.
    Private suffixes count: the people of ``github.io`` are as different as those of ``.org``.

    >>> registered_domain("www.ics.uci.edu"), registered_domain("jo.github.io:8080")
    ('uci.edu', 'jo.github.io')
    """
    found = _suffixes()(host)
    return f"{found.domain}.{found.suffix}" if found.domain and found.suffix else host


@cache
def _suffixes() -> TLDExtract:
    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)
