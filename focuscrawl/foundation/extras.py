"""Packages that only some uses of focuscrawl need: its extras, and what is said without them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORT = ("jinja2", "matplotlib", "pandas")

#: by extra, the modules that are imported only where it is asked for
EXTRAS: dict[str, tuple[str, ...]] = {
    "report": _REPORT,
    "lab": (*_REPORT, "pyarrow"),
    "browser": ("scrapy_playwright", "playwright"),
    "feeds": ("feedparser",),
    "languages": ("py3langid",),
    "metrics": ("prometheus_client",),
    "parquet": ("pyarrow",),
    "pdf": ("pypdf",),
    "spark": ("pyspark", "pyarrow"),
    "embeddings": ("wordllama", "safetensors", "tokenizers"),
    "studio": (*_REPORT, "starlette", "uvicorn"),
    "text": (
        *("trafilatura", "lxml_html_clean", "resiliparse", "semantic_text_splitter"),
        *("py3langid", "pyarrow"),
    ),
}


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import, within the ``with`` block, what belongs to an extra.

    Parameters
    ----------
    what : the user asked for that needs it

    Raises
    ------
    UserError
        The extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS[extra]:
            raise
        raise UserError(
            f"{what} needs {module}, which is not installed: pip install 'focuscrawl[{extra}]'"
        ) from None
