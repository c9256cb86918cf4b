"""Optional dependencies (extras), and the error message if an extra is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from focuscrawl.errors import UserError

_REPORT = ("jinja2", "matplotlib", "pandas")

#: modules of each extra; focuscrawl imports them only for features that need the extra
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
def require_extra(extra: str, feature: str) -> Iterator[None]:
    """Report a missing extra if an import within the ``with`` block fails.

    Parameters
    ----------
    feature : str
        Subject of the message: the option or feature that needs the extra.

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
            f"{feature} needs {module}, which is not installed: pip install 'focuscrawl[{extra}]'"
        ) from None
