"""All that the studio answers about topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.studio.topics import api, classes_api, pages
from focuscrawl.studio.topics.examples import Examples

if TYPE_CHECKING:
    from starlette.routing import Route

    from focuscrawl.studio.desk import Desk


def routes(desk: Desk) -> list[Route]:
    """Return the routes of topics: their API and their pages."""
    examples = Examples()
    return [*classes_api.routes(desk), *api.routes(desk, examples), *pages.routes(desk, examples)]
