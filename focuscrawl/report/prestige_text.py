"""The lists of a distillation for a terminal, for a browser, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.report.plain_text import middle, one_line, table
from focuscrawl.report.templates import load_template, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.report.prestige import Distillation

_TITLE = 60  # characters
_SITE = 32
_URL = 110


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
            middle(one_line(row["site"]), _SITE),
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
