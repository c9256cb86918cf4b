"""The pages that show all that is in the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from focuscrawl.studio import listing
from focuscrawl.studio.rendering import render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.desk import Desk


def routes(desk: Desk) -> list[Route]:
    """Return the routes of these pages."""
    folder = desk.folder

    def overview(_: Request) -> Response:
        listed = {
            "topics": listing.topics(folder),
            "critics": listing.critics(folder),
            "crawls": listing.crawls(desk),
            "jobs": desk.jobs.all()[:10],
        }
        return render(desk, "overview", listed)

    def crawls(_: Request) -> Response:
        return render(desk, "crawls", {"crawls": listing.crawls(desk)})

    def jobs(_: Request) -> Response:
        return render(desk, "jobs", {"jobs": desk.jobs.all()[:10]})

    return [
        Route("/", overview),
        Route("/parts/crawls", crawls),
        Route("/parts/jobs", jobs),
    ]
