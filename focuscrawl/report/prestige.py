"""Hubs, authorities and popular sites of a crawl, from its store (METHODS 7, F99 section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import sqlalchemy as sa

from focuscrawl.distiller import Distiller, LinkGraph, Scores, Sites, best, stand_ins
from focuscrawl.distiller.distiller import THRESHOLD
from focuscrawl.distiller.sites import registered_domain
from focuscrawl.errors import UserError
from focuscrawl.store import schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.store import CrawlStore

RELEVANT = 0.5  # a page counts as relevant above
_Z = 1.96  # of the 95 % interval
_SITE = {"host": "host", "domain": "registered domain", "none": "page"}


@dataclass(frozen=True)
class Distillation:
    """What the distiller makes of a crawl.

    Attributes
    ----------
    where : the crawl's store, for messages
    topic : of the crawl
    sites : what counted as a site
    chosen : whether the rule was chosen here, as every link stays on its host
    fetches : of the crawl
    links : distinct links between sites
    scores : of all pages
    pages : one row a URL of the crawl, by number: ``url``, ``title``, ``site``, ``relevance``
        (NaN: not fetched), ``hub``, ``authority``, and of the distinct links between sites
        ``out``, ``relevant_out`` (to relevant pages), ``in``, ``relevant_in`` (from relevant
        pages)
    popular : one row a site with relevant pages, see `popular_sites`
    """

    where: str
    topic: str
    sites: Sites
    chosen: bool
    fetches: int
    links: int
    scores: Scores
    pages: pd.DataFrame
    popular: pd.DataFrame

    @classmethod
    def of(cls, store: CrawlStore, rule: str | None = None) -> Distillation:
        """Distil the crawl in `store`, which may be running.

        Parameters
        ----------
        rule : one of `focuscrawl.distiller.RULES`; None: hosts, but no rule if every link stays
            on its host

        Raises
        ------
        UserError
            There is nothing to distil.
        """
        crawl = _Links.read(store)
        hosts = crawl.host_names
        if rule is None:
            sites = Sites.fitting(crawl.source, crawl.target, crawl.host)
        else:
            sites = Sites.by(rule, crawl.host, hosts)
        graph = LinkGraph(crawl.source, crawl.target, sites.of_pages, crawl.relevance)
        source, target = graph.off_site()
        scores = Distiller(graph).distill()
        if not scores.hubs.any():
            raise UserError(_nothing(store.where, sites.rule, on_site=not len(source)))
        named = [registered_domain(name) for name in hosts] if sites.rule == "domain" else hosts
        site = np.array(named, object)[crawl.host]
        relevant = crawl.relevance > RELEVANT
        n = graph.n_pages
        counts = {
            "out": np.bincount(source, minlength=n),
            "relevant_out": np.bincount(source[relevant[target]], minlength=n),
            "in": np.bincount(target, minlength=n),
            "relevant_in": np.bincount(target[relevant[source]], minlength=n),
        }
        pages = crawl.pages.assign(
            site=site, hub=scores.hubs, authority=scores.authorities, **counts
        )
        pages = pages[["url", "title", "site", "relevance", "hub", "authority", *counts]]
        return cls(
            where=store.where,
            topic=store.identity().get("topic", ""),
            sites=sites,
            chosen=rule is None and sites.rule == "none",
            fetches=int(crawl.fetched.sum()),
            links=len(source),
            scores=scores,
            pages=pages,
            popular=popular_sites(pages[crawl.judged]),
        )

    def hubs(self, n: int) -> pd.DataFrame:
        """Return the rows of `pages` of the `n` best hubs, the best first."""
        return self.pages.iloc[best(self.scores.hubs, n)]

    def authorities(self, n: int) -> pd.DataFrame:
        """Return the rows of `pages` of the `n` best authorities, the best first."""
        return self.pages.iloc[best(self.scores.authorities, n)]

    def facts(self) -> list[tuple[str, str]]:
        """Return what is to be known of the lists: names and values."""
        rule = {
            "host": "hosts: links within a host do not count",
            "domain": "registered domains: links within one do not count",
            "none": "none: all links count",
        }[self.sites.rule]
        if self.chosen:
            rule += ", as every link stays on its host"
        rounds = f"{self.scores.rounds}" + ("" if self.scores.stable else ", not settled")
        return [
            ("topic", self.topic),
            ("fetched", f"{self.fetches:,}"),
            ("sites", rule),
            ("links", f"{self.links:,}"),
            ("rounds", rounds),
        ]


def _nothing(where: str, rule: str, *, on_site: bool) -> str:
    """Say why there are no hubs, and the way out."""
    if rule == "none":
        return (
            f"{where}: no page of relevance above {THRESHOLD} is linked to by another one: "
            "let the crawl fetch more, or start it elsewhere"
        )
    why = f"no page of relevance above {THRESHOLD} is linked to from another {_SITE[rule]}"
    if on_site:
        why = f"every link stays within its {_SITE[rule]}"
    return f"{where}: {why}: with --sites none, links within a {_SITE[rule]} count, too"


def popular_sites(pages: pd.DataFrame) -> pd.DataFrame:
    """Return the sites with relevant pages, the ones that are densest with them first.

    One relevant page of one is no proof of density: sites are ordered by the lower end of the
    95 % interval [Wilson 1927] of the share.

    Parameters
    ----------
    pages : rows of judged pages with ``site``, ``relevance`` and ``relevant_in``

    Returns
    -------
    Indexed by site: ``pages``, ``relevant``, ``density``, ``at_least`` (the lower end),
    ``relevant_in`` (links from relevant pages of other sites)
    """
    frame = pages.assign(relevant=pages["relevance"] > RELEVANT)
    table = frame.groupby("site", sort=True).agg(
        pages=("url", "size"), relevant=("relevant", "sum"), relevant_in=("relevant_in", "sum")
    )
    table = table[table["relevant"] > 0]
    n, share = table["pages"], table["relevant"] / table["pages"]
    spread = _Z * np.sqrt(share * (1.0 - share) / n + _Z**2 / (4.0 * n**2))
    lower = (share + _Z**2 / (2.0 * n) - spread) / (1.0 + _Z**2 / n)
    table = table.assign(density=share, at_least=lower)
    table = table[["pages", "relevant", "density", "at_least", "relevant_in"]]
    return table.sort_values(["at_least", "relevant"], ascending=False, kind="stable")


@dataclass(frozen=True)
class _Links:
    """Pages and links of a store, by the numbers of URLs; links lead to what stands for a URL."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    host: NDArray[np.int64]
    host_names: list[str]
    relevance: NDArray[np.float64]
    fetched: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    pages: pd.DataFrame

    @classmethod
    def read(cls, store: CrawlStore) -> _Links:
        # what is read later holds what was written with the earlier: the crawl may be running
        link, p, u, h = (table.c for table in (schema.link, schema.page, schema.url, schema.host))
        links = _columns(store, sa.select(link.source, link.target).order_by(link.id))
        fetches = _columns(
            store,
            sa.select(p.url, p.relevance, p.title, p.duplicate_of, p.digest.is_not(None)).order_by(
                p.seq
            ),
        )
        urls = _columns(store, sa.select(u.id, u.url, u.host, u.referrer).order_by(u.id))
        hosts = _columns(store, sa.select(h.id, h.name).order_by(h.id))
        n, ids = len(urls[0]), _numbers(urls[0])
        page, repeats = _places(ids, fetches[0]), _places(ids, fetches[3])
        source, target = _places(ids, links[0]), _places(ids, links[1])
        relevance, fetched = np.full(n, np.nan), np.zeros(n, np.bool_)
        judged, title = fetched.copy(), np.full(n, None, object)
        relevance[page] = fetches[1]
        fetched[page] = True
        judged[page] = np.array(fetches[4], np.bool_) & (repeats < 0)
        title[page] = fetches[2]
        referrer = _places(ids, urls[3])
        return cls(
            source=source,
            target=stand_ins(page, repeats, referrer, source)[target],
            host=_places(_numbers(hosts[0]), urls[2]),
            host_names=list(hosts[1]),
            relevance=relevance,
            fetched=fetched,
            judged=judged,
            pages=pd.DataFrame({"url": urls[1], "title": title, "relevance": relevance}),
        )


def _columns(store: CrawlStore, statement: sa.Select[Any]) -> list[list[Any]]:
    rows = [tuple(row) for row in store.rows(statement)]
    return [list(column) for column in zip(*rows, strict=True)] or [
        [] for _ in statement.selected_columns
    ]


def _numbers(column: list[int | None]) -> NDArray[np.int64]:
    """Return a column of numbers; -1 for NULL."""
    return np.array([-1 if each is None else each for each in column], np.int64)


def _places(ids: NDArray[np.int64], column: list[int | None]) -> NDArray[np.int64]:
    """Return where in `ids`, ascending, the numbers of a column are; -1 for NULL."""
    numbers = _numbers(column)
    return np.where(numbers < 0, -1, np.searchsorted(ids, numbers))
