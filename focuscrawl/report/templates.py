"""Templates of the HTML pages: in one style, and what a page calls itself is never markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template


def rows_of(frame: pd.DataFrame) -> list[Any]:
    """Return the rows of a table for a template, which reads their columns by name."""
    return list(frame.itertuples(name="Row"))


def load_template(name: str, *, package: str = "focuscrawl.report", **filters: object) -> Template:
    """Load the template `name` of `package`; it can include ``style.css``.

    Parameters
    ----------
    filters : functions of one argument, by the name they have in the template
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each, ".") for each in (package, "focuscrawl.report")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(filters)
    # a page may name itself anything; only what a browser fetches becomes a link
    environment.tests["web"] = lambda url: url.startswith(("http://", "https://"))
    return environment.get_template(name)
