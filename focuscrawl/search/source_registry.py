"""Opens the source of start pages that a user names; other packages can add sources."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import suggest_name
from focuscrawl.search.seed_source import source_settings
from focuscrawl.search.url_list import STANDARD_INPUT, UrlList

if TYPE_CHECKING:
    from focuscrawl.search.seed_source import SeedSource

GROUP = "focuscrawl.seed_sources"


def open_source(spec: str, agent: str) -> SeedSource:
    """Open the source that a user names.

    Parameters
    ----------
    spec : str
        ``NAME`` or ``NAME:ARGUMENT`` of an installed source; a file of URLs or search results;
        ``-`` for a list of URLs from standard input; or a search function ``module:callable``.
    agent : str
        User-Agent header of requests.

    Raises
    ------
    UserError
        There is no such source, or its settings are missing.
    """
    name, _, argument = spec.partition(":")
    found = entry_points(group=GROUP, name=name)
    if not found or Path(spec).exists():
        if spec == STANDARD_INPUT or argument or Path(spec).exists():
            return UrlList(spec, {}, agent)
        raise UserError(
            f"there is no file and no source {spec!r}: {suggest_name(spec, installed_sources())}"
        )
    point = next(iter(found))
    try:
        source = point.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"source {name} cannot be loaded from {point.value}: {error}") from None
    opened: SeedSource = source(argument, source_settings(name), agent)
    return opened


def installed_sources() -> list[str]:
    """Return the names of the installed sources."""
    return sorted(entry_points(group=GROUP).names)


def default_source() -> str | None:
    """Return the installed source whose address the user has set, or None."""
    for name in installed_sources():
        if "url" in source_settings(name):
            return name
    return None
