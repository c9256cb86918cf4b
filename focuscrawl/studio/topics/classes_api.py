"""The JSON API of the classes of critics: looking at them, marking them, splitting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.critic.loading import find_model
from focuscrawl.errors import UserError
from focuscrawl.studio.posted import text_of, texts_of, with_values
from focuscrawl.studio.rendering import PREFIX
from focuscrawl.studio.topics import classes
from focuscrawl.studio.topics.api import plain_topic, verdict_of
from focuscrawl.studio.topics.beginning import urls_among
from focuscrawl.studio.topics.room import TopicRoom
from focuscrawl.topics import edit_definition
from focuscrawl.topics.refining import refined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from focuscrawl.studio.desk import Desk
    from focuscrawl.topics import TopicDefinition

#: what pages listen to, to show marks anew
MARKED = {"HX-Trigger": "marked"}


def routes(desk: Desk) -> list[Route]:
    """Return the routes of this part of the API."""

    def room(request: Request) -> TopicRoom:
        return TopicRoom(desk.folder, desk.folder.topic(request.path_params["name"]))

    def mark(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        about, good = room(request), verdict_of(text_of(values, "verdict")) is True

        def change(known: TopicDefinition) -> TopicDefinition:
            tree = classes.tree_of(find_model(_critic(known)))
            return classes.marked(known, text_of(values, "class"), tree, good=good)

        edit_definition(about.path, change)
        return JSONResponse(plain_topic(about), headers=MARKED)

    def split(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        about, name = room(request), text_of(values, "sub").strip("/")
        path = f"{text_of(values, 'class')}/{name}"
        urls = urls_among(texts_of(values, "urls"))
        if not name or not urls:
            raise UserError("choose the pages that move, and name the sub-class they move to")
        marks = [path] if text_of(values, "only") else None
        edit_definition(about.path, lambda known: refined(known, {path: urls}, marks))
        return JSONResponse(plain_topic(about), headers=MARKED)

    def class_rows(request: Request) -> JSONResponse:
        tree = classes.tree_of(desk.folder.critic(request.path_params["name"]))
        under, search = request.query_params.get("under", "/"), request.query_params.get("q", "")
        found, cut = classes.rows(tree, None, under=under, search=search)
        return JSONResponse({"classes": found, "cut": cut})

    one = f"{PREFIX}/topics/{{name:path}}"
    return [
        Route(f"{one}/mark", with_values(mark), methods=["POST"]),
        Route(f"{one}/split", with_values(split), methods=["POST"]),
        Route(f"{PREFIX}/critics/{{name:path}}/classes", class_rows),
    ]


def _critic(known: TopicDefinition) -> str:
    if known.critic is None:
        raise UserError("the definition names no critic: there are no classes to mark")
    return known.critic
