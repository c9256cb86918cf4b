"""Loads the templates of HTML pages, which have one style and automatic escaping."""

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
    """Return the rows of a data frame for a template, with columns as attributes."""
    return list(frame.itertuples(name="Row"))


def data_uri(image: bytes) -> str:
    """Return a PNG image as a data URI."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


@cache
def load_template(name: str, package: str = "focuscrawl.report") -> Template:
    """Load the template `name` of `package`, which can include ``style.css``.

    The template can use the filters ``one_line``, ``middle`` and ``data_uri``.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each, ".") for each in (package, "focuscrawl.report")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"one_line": one_line, "middle": shorten_middle, "data_uri": data_uri}
    # URLs are untrusted: only http and https become links
    environment.tests["web"] = lambda url: url.startswith(("http://", "https://"))
    return environment.get_template(name)
