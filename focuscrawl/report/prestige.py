"""Hubs, authorities and popular sites of a crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import AUTHORITY_THRESHOLD, Distiller, registered_domain, top_pages
from focuscrawl.errors import UserError
from focuscrawl.offline.link_graph import CrawlLinks
from focuscrawl.report.plain_text import middle, one_line, table
from focuscrawl.report.templates import load_template, rows_of

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


_Z = 1.96  # of the 95 % interval
_SITE = {"host": "host", "domain": "registered domain"}
_SITES = {
    "host": "hosts: links within a host do not count",
    "domain": "registered domains: links within one do not count",
    "none": "none: all links count",
}


_TITLE = 60  # characters
_SITE_COLUMNS = 32
_URL = 110


@dataclass(frozen=True)
class Distillation:
    """What the distiller makes of a crawl.

    Attributes
    ----------
    facts : what is to be known of the lists: names and values
    between_sites : whether links within a site do not count
    pages : one row a URL of the crawl, by number: ``url``, ``title``, ``site``, ``relevance``
        (NaN: not fetched), ``hub``, ``authority``, and of the distinct links between sites
        ``out``, ``relevant_out`` (to relevant pages), ``in``, ``relevant_in`` (from relevant
        pages)
    popular : one row a site with relevant pages, see `popular_sites`
    """

    facts: list[tuple[str, str]]
    between_sites: bool
    pages: pd.DataFrame
    popular: pd.DataFrame

    @classmethod
    def of(cls, store: CrawlStore, rule: str | None = None) -> Distillation:
        """Distil the crawl in `store`, which may be running.

        Parameters
        ----------
        rule : one of `focuscrawl.distiller.SITE_RULES`; None: hosts, but no rule if every link
            stays on its host

        Raises
        ------
        UserError
            There is nothing to distil.
        """
        crawl = CrawlLinks.of(store)
        sites = crawl.sites(rule)
        graph = crawl.graph(sites)
        source, target = graph.off_site_links()
        scores = Distiller(graph).distill()
        if not scores.hubs.any():
            raise UserError(_nothing(store.where, sites.rule, on_site=not len(source)))
        hosts = crawl.host_names
        named = [registered_domain(name) for name in hosts] if sites.rule == "domain" else hosts
        relevant = crawl.relevance > RELEVANT
        n = graph.n_pages
        counts = {
            "out": np.bincount(source, minlength=n),
            "relevant_out": np.bincount(source[relevant[target]], minlength=n),
            "in": np.bincount(target, minlength=n),
            "relevant_in": np.bincount(target[relevant[source]], minlength=n),
        }
        pages = pd.DataFrame(
            {
                "url": crawl.names,
                "title": pd.Series(crawl.titles, dtype=object),
                "site": np.array(named, object)[crawl.host],
                "relevance": crawl.relevance,
                "hub": scores.hubs,
                "authority": scores.authorities,
                **counts,
            }
        )
        counted = _SITES[sites.rule]
        if rule is None and sites.rule == "none":
            counted += ", as every link stays on its host"
        facts = [
            ("topic", store.identity().get("topic", "")),
            ("fetched", f"{int(crawl.fetched.sum()):,}"),
            ("sites", counted),
            ("links", f"{len(source):,}"),
            ("rounds", f"{scores.rounds}" + ("" if scores.stable else ", not settled")),
        ]
        return cls(facts, sites.rule != "none", pages, popular_sites(pages[crawl.judged]))

    def best(self, score: str, n: int) -> pd.DataFrame:
        """Return the rows of `pages` of the `n` best by ``hub`` or ``authority``, in order."""
        return self.pages.iloc[top_pages(self.pages[score].to_numpy(), n)]


def _nothing(where: str, rule: str, *, on_site: bool) -> str:
    """Say why there are no hubs, and the way out."""
    if rule == "none":
        return (
            f"{where}: no page of relevance above {AUTHORITY_THRESHOLD} is linked to by another "
            "one: let the crawl fetch more, or start it elsewhere"
        )
    why = (
        f"no page of relevance above {AUTHORITY_THRESHOLD} is linked to from another {_SITE[rule]}"
    )
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


def text(found: Distillation, top: int) -> str:
    """Return facts and lists for a terminal, `top` rows each."""
    between = ", between sites" if found.between_sites else ""
    width = max(len(name) for name, _ in found.facts)
    lines = [f"{name:<{width}}  {one_line(value)}" for name, value in found.facts]
    for name, score in (("hubs", "hub"), ("authorities", "authority")):
        lines += ["", f"{name} (relevant/all links out and in{between})"]
        lines += _pages(found.best(score, top), score)
    lines += ["", "sites by density of relevant pages (at least, at 95 %)"]
    rows = [["", "relevant", "pages", "at least", "links in", "site"]]
    rows += [
        [
            f"{place}.",
            f"{row.relevant:,}",
            f"{row.pages:,}",
            f"{row.at_least:.2f}",
            f"{row.relevant_in:,}",
            one_line(row.Index, _URL),
        ]
        for place, row in enumerate(rows_of(found.popular.head(top)), 1)
    ]
    return "\n".join([*lines, *table(rows, {5})])


def page(found: Distillation, top: int) -> str:
    """Return facts and lists as an HTML page that needs nothing else."""
    return load_template("distilled.html.j2").render(
        facts=found.facts,
        lists=[
            ("Hubs", "They link to authorities", "hub", found.best("hub", top)),
            ("Authorities", "Hubs link to them", "authority", found.best("authority", top)),
        ],
        elsewhere=" of other sites" if found.between_sites else "",
        popular=rows_of(found.popular.head(top)),
    )


def scored(found: Distillation) -> pd.DataFrame:
    """Return the rows of `Distillation.pages` that have a score, the best hubs first."""
    pages = found.pages[(found.pages["hub"] > 0) | (found.pages["authority"] > 0)]
    return pages.sort_values(["hub", "authority"], ascending=False, kind="stable")


def _pages(pages: pd.DataFrame, score: str) -> list[str]:
    """Return two lines a page: its figures, and its URL."""
    heading = ["", "score", "R", "out", "in", "site", "title"]
    rows = [
        [
            f"{place}.",
            f"{row[score]:.3f}",
            f"{row['relevance']:.2f}",
            f"{row['relevant_out']}/{row['out']}",
            f"{row['relevant_in']}/{row['in']}",
            middle(one_line(row["site"]), _SITE_COLUMNS),
            one_line(row["title"] or "", _TITLE),
        ]
        for place, row in enumerate(pages.to_dict("records"), 1)
    ]
    aligned = table([heading, *rows], {5, 6})
    indent = " " * aligned[0].index("site")
    lines = [aligned[0]]
    for line, url in zip(aligned[1:], pages["url"], strict=True):
        lines += [line, indent + middle(one_line(url), _URL)]
    return lines
