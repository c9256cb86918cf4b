"""Hubs, authorities and popular sites of a crawl, for ``focuscrawl distill`` and the studio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import AUTHORITY_THRESHOLD, Distiller, registered_domain, top_pages
from focuscrawl.errors import UserError
from focuscrawl.offline.link_graph import CrawlLinks
from focuscrawl.report.plain_text import align_columns, one_line, shorten_middle
from focuscrawl.report.templates import load_template, rows_of

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


_Z = 1.96  # normal quantile of the 95 % interval
_SITE = {"host": "host", "domain": "registered domain"}
_SITES = {
    "host": "hosts: links within a host do not count",
    "domain": "registered domains: links within a domain do not count",
    "none": "none: all links count",
}


_TITLE = 60  # characters shown
_SITE_COLUMNS = 32
_URL = 110


@dataclass(frozen=True)
class Distillation:
    """Hub and authority scores of the pages of a crawl."""

    facts: list[tuple[str, str]]  #: names and values that describe the distillation
    between_sites: bool  #: links within a site do not count
    #: a row for each URL of the crawl, by ID: ``url``, ``title``, ``site``, ``relevance`` (NaN:
    #: not fetched), ``hub``, ``authority``, and the numbers of links that count: ``out``,
    #: ``relevant_out`` (to relevant pages), ``in``, ``relevant_in`` (from relevant pages)
    pages: pd.DataFrame
    popular: pd.DataFrame  #: sites with relevant pages, see `popular_sites`

    @classmethod
    def of(cls, store: CrawlStore, rule: str | None = None) -> Distillation:
        """Compute hub and authority scores for the crawl in `store`, which may be running.

        Parameters
        ----------
        rule : str or None
            One of `focuscrawl.distiller.SITE_RULES`; None means ``host``, or ``none`` if every
            link stays on its host.

        Raises
        ------
        UserError
            The crawl has no hubs.
        """
        crawl = CrawlLinks.from_store(store)
        sites = crawl.sites(rule)
        graph = crawl.graph(sites)
        source, target = graph.off_site_links()
        scores = Distiller(graph).distill()
        if not scores.hubs.any():
            raise UserError(_explain_no_hubs(store.location, sites.rule, on_site=not len(source)))
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
            counted += ", because every link stays on its host"
        facts = [
            ("topic", store.identity().get("topic", "")),
            ("fetched", f"{int(crawl.fetched.sum()):,}"),
            ("sites", counted),
            ("links", f"{len(source):,}"),
            ("rounds", f"{scores.rounds}" + ("" if scores.stable else ", not converged")),
        ]
        return cls(facts, sites.rule != "none", pages, popular_sites(pages[crawl.judged]))

    def best(self, score: str, n: int) -> pd.DataFrame:
        """Return the `n` pages with the best score ``hub`` or ``authority``."""
        return self.pages.iloc[top_pages(self.pages[score].to_numpy(), n)]


def _explain_no_hubs(where: str, rule: str, *, on_site: bool) -> str:
    """Return an error message that says why there are no hubs, and what to do."""
    if rule == "none":
        return (
            f"{where}: no other page links to a page with a relevance above "
            f"{AUTHORITY_THRESHOLD}: crawl with a larger budget or other seeds"
        )
    why = (
        f"no link from another {_SITE[rule]} leads to a page with a relevance above "
        f"{AUTHORITY_THRESHOLD}"
    )
    if on_site:
        why = f"every link stays within its {_SITE[rule]}"
    return f"{where}: {why}: use --sites none to count links within a {_SITE[rule]} as well"


def popular_sites(pages: pd.DataFrame) -> pd.DataFrame:
    """Return the sites with relevant pages, ordered by the share of relevant pages.

    Sites are ordered by the lower end of the 95 % confidence interval of the share [Wilson 1927],
    because a single page is weak evidence for a site, even if the page is relevant.

    Parameters
    ----------
    pages : DataFrame
        Judged pages with ``site``, ``relevance`` and ``relevant_in``.

    Returns
    -------
    DataFrame
        Indexed by site: ``pages``, ``relevant``, ``density`` (share of relevant pages),
        ``at_least`` (lower end of the interval), ``relevant_in`` (links from relevant pages of
        other sites).
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


def format_lists(found: Distillation, top: int) -> str:
    """Return facts about a crawl and its `top` best hubs, authorities and sites as text."""
    between = ", between sites" if found.between_sites else ""
    width = max(len(name) for name, _ in found.facts)
    lines = [f"{name:<{width}}  {one_line(value)}" for name, value in found.facts]
    for name, score in (("hubs", "hub"), ("authorities", "authority")):
        lines += ["", f"{name} (out and in: links with relevant pages / all links{between})"]
        lines += _page_rows(found.best(score, top), score)
    lines += ["", "sites by share of relevant pages (at least: lower end of the 95 % interval)"]
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
    return "\n".join([*lines, *align_columns(rows, {5})])


def render_page(found: Distillation, top: int) -> str:
    """Return hubs, authorities and popular sites as a self-contained HTML page."""
    return load_template("distilled.html.j2").render(
        facts=found.facts,
        lists=[
            ("Hubs", "Hubs link to authorities", "hub", found.best("hub", top)),
            ("Authorities", "Hubs link to authorities", "authority", found.best("authority", top)),
        ],
        elsewhere=" of other sites" if found.between_sites else "",
        popular=rows_of(found.popular.head(top)),
    )


def scored_pages(found: Distillation) -> pd.DataFrame:
    """Return the pages with a hub or authority score above 0, the best hubs first."""
    pages = found.pages[(found.pages["hub"] > 0) | (found.pages["authority"] > 0)]
    return pages.sort_values(["hub", "authority"], ascending=False, kind="stable")


def _page_rows(pages: pd.DataFrame, score: str) -> list[str]:
    """Return two lines for each page: its numbers, and its URL."""
    heading = ["", "score", "relevance", "out", "in", "site", "title"]
    rows = [
        [
            f"{place}.",
            f"{row[score]:.3f}",
            f"{row['relevance']:.2f}",
            f"{row['relevant_out']}/{row['out']}",
            f"{row['relevant_in']}/{row['in']}",
            shorten_middle(one_line(row["site"]), _SITE_COLUMNS),
            one_line(row["title"] or "", _TITLE),
        ]
        for place, row in enumerate(pages.to_dict("records"), 1)
    ]
    aligned = align_columns([heading, *rows], {5, 6})
    indent = " " * aligned[0].index("site")
    lines = [aligned[0]]
    for line, url in zip(aligned[1:], pages["url"], strict=True):
        lines += [line, indent + shorten_middle(one_line(url), _URL)]
    return lines
