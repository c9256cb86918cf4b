"""Templates of the HTML pages: in one style, and what a page calls itself is never markup."""

from __future__ import annotations

import base64
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from focuscrawl.report.plain_text import one_line, shorten_middle

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template


def rows_of(frame: pd.DataFrame) -> list[Any]:
    """Return the rows of a table for a template, which reads their columns by name."""
    return list(frame.itertuples(name="Row"))


def data_uri(image: bytes) -> str:
    """Return a PNG as a URI that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


@cache
def load_template(name: str, package: str = "focuscrawl.report") -> Template:
    """Load the template `name` of `package`; it can include ``style.css``.

    Its filters are ``one_line``, ``middle`` and ``data_uri``.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each, ".") for each in (package, "focuscrawl.report")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"one_line": one_line, "middle": shorten_middle, "data_uri": data_uri}
    # a page may name itself anything; only what a browser fetches becomes a link
    environment.tests["web"] = lambda url: url.startswith(("http://", "https://"))
    return environment.get_template(name)
