"""All that the studio answers about judging pages of a crawl."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.errors import UserError
from focuscrawl.feedback.crawl_definition import DEFINITION, definition_of
from focuscrawl.foundation.plain_files import plain_below
from focuscrawl.report.stores import open_store
from focuscrawl.studio import listing
from focuscrawl.studio.judging.following import Following
from focuscrawl.studio.judging.questions import Questions
from focuscrawl.studio.posted import with_values
from focuscrawl.studio.rendering import PREFIX, render
from focuscrawl.studio.topics.api import JUDGED, judged, judgement_of
from focuscrawl.topics import edit_definition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.desk import Desk
    from focuscrawl.topics import TopicDefinition

#: fetches: judging more than these anew takes so long that it waits until somebody asks for it
SMALL = 2000


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the page where pages of a crawl are judged, and of its API."""
    questions, following = Questions(), Following(desk)

    def crawl(request: Request) -> Path:
        return desk.folder.crawl(request.path_params["name"])

    def asked(path: Path) -> dict[str, Any]:
        """Return what there is to judge: ``choosing``, ``card``, ``left``, ``wrong``."""
        try:
            card, left = questions.next(path)
            choosing = card is None and not left and questions.begin(path)
            if not choosing and card is None:
                card, left = questions.next(path)
        except UserError as error:
            return {"choosing": False, "card": None, "left": 0, "wrong": str(error)}
        return {"choosing": choosing, "card": card, "left": left, "wrong": ""}

    def question(request: Request) -> JSONResponse:
        found = asked(crawl(request))
        card = found.pop("card")
        return JSONResponse(found | {"page": None if card is None else card.plain()})

    def moved(request: Request) -> JSONResponse:
        return JSONResponse(following.state(crawl(request)))

    def judge(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        path, (url, verdict) = crawl(request), judgement_of(values)
        if verdict is None:
            questions.settle(path, url, passed=True)
            return JSONResponse({"url": url}, headers=JUDGED)

        def begun() -> TopicDefinition:
            with closing(open_store(path)) as store:
                return definition_of(store, path)

        following.remember(path)
        definition = plain_below(path, DEFINITION)
        edit_definition(definition, lambda known: judged(known, url, good=verdict), begun)
        questions.settle(path, url, passed=False)
        if _state(desk, path)["fetched"] <= SMALL:
            following.keep_up(path)
        return JSONResponse({"url": url}, headers=JUDGED)

    def follow(request: Request, _: Mapping[str, Any]) -> JSONResponse:
        following.begin(crawl(request))
        return JSONResponse(following.state(crawl(request)), headers=JUDGED)

    def shown(request: Request) -> dict[str, Any]:
        path = crawl(request)
        state = _state(desk, path)
        return {
            "crawl": state["name"],
            "name": state["name"],
            "fetched": state["fetched"],
            "small": state["fetched"] <= SMALL,
        }

    def page(request: Request) -> Response:
        return render(desk, "crawl_judge", shown(request))

    def part_question(request: Request) -> Response:
        return render(desk, "crawl_question", {**shown(request), **asked(crawl(request))})

    def part_moved(request: Request) -> Response:
        return render(desk, "crawl_moved", {**shown(request), **following.state(crawl(request))})

    one = f"{PREFIX}/crawls/{{name:path}}"
    return [
        Route(f"{one}/judge", with_values(judge), methods=["POST"]),
        Route(f"{one}/follow", with_values(follow), methods=["POST"]),
        Route(f"{one}/question", question),
        Route(f"{one}/moved", moved),
        Route("/crawls/{name:path}/judge", page),
        Route("/parts/crawls/{name:path}/question", part_question),
        Route("/parts/crawls/{name:path}/moved", part_moved),
    ]


def _state(desk: Desk, path: Path) -> dict[str, Any]:
    return listing.crawl(desk.crawl(desk.folder.name_of(path)))
