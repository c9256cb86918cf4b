"""The pages of topics, and of the classes of critics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from focuscrawl.foundation.files import read_regular
from focuscrawl.studio import listing, topic_api, topic_folder
from focuscrawl.studio.page_rendering import render
from focuscrawl.studio.topic_folder import Examples, TopicRoom, curve, new_judgements
from focuscrawl.studio.topic_jobs import ENOUGH, quality_of, training_state
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk


# Topics in the studio: beginning one, training and measuring its critic, examples, classes.
#
# What is done is done by the functions and commands that people type; all of it writes the same
# definition. Not here: judging pages of a crawl (`focuscrawl.studio.judging`).


def topic_page_routes(desk: Desk, examples: Examples) -> list[Route]:
    """Return the routes of these pages."""

    def room(request: Request) -> TopicRoom:
        return TopicRoom(desk.folder, desk.folder.topic(request.path_params["name"]))

    def page(name: str, about: TopicRoom, here: str, **values: Any) -> Response:
        shown = {"topic": about, "definition": read_definition(about.path), "here": here}
        return render(desk, name, {**shown, **training_state(desk, about), **values})

    def new(request: Request) -> Response:
        asked = {name: request.query_params.get(name, "") for name in ("critic", "classes")}
        known = {"critics": listing.critics(desk.folder), "recordings": desk.folder.recordings()}
        return render(desk, "topic_new", known | asked)

    def definition(request: Request) -> Response:
        about = room(request)
        text = read_regular(about.path).decode()
        return page("topic_definition", about, "definition", text=text)

    def training(request: Request) -> Response:
        return page("topic_training", room(request), "")

    def judging(request: Request) -> Response:
        recordings = desk.folder.recordings()
        return page("topic_examples", room(request), "examples", recordings=recordings)

    def example(request: Request) -> Response:
        about = room(request)
        return page("topic_example", about, "", **_example(about))

    def _example(about: TopicRoom) -> dict[str, Any]:
        card = examples.next(about)
        left = len(examples.waiting(about))
        return {"card": card, "left": left, "new": new_judgements(about), "enough": ENOUGH}

    def quality(request: Request) -> Response:
        about = room(request)
        found = [quality_of(critic) for critic in about.critics()]
        earlier = found[-2] if len(found) > 1 else None
        bins = curve(found[-1]["bins"]) if found and found[-1] else None
        return page("topic_quality", about, "quality", earlier=earlier, curve=bins)

    def tree(request: Request) -> Response:
        return render(desk, "critic_classes", _asked(request))

    def tree_rows(request: Request) -> Response:
        asked = _asked(request)
        known = topic_folder.tree_of(desk.folder.critic(asked["name"]))
        definition, under, search = asked["definition"], asked["under"], asked["search"]
        rows, cut = topic_folder.rows(known, definition, under=under, search=search)
        below = topic_folder.examples(known, under, definition) if under != "/" else []
        shown = {"rows": rows, "cut": cut, "total": len(known.leaves), "examples": below}
        return render(desk, "critic_class_rows", asked | shown)

    def _asked(request: Request) -> dict[str, Any]:
        name, query = request.path_params["name"], request.query_params
        desk.folder.critic(name)
        of = query.get("topic", "")
        about = TopicRoom(desk.folder, desk.folder.topic(of)) if of else None
        topics = listing.topics(desk.folder)
        return {
            "name": name,
            "under": query.get("under", "/"),
            "search": query.get("q", ""),
            "about": about,
            "definition": None if about is None else read_definition(about.path),
            "topics": [each["name"] for each in topics if each.get("critic") == name],
        }

    one = "/topics/{name:path}"
    return [
        Route("/topics/new", new),
        Route(f"{one}/definition", definition),
        Route(f"{one}/examples", judging),
        Route(f"{one}/quality", quality),
        Route("/parts/topics/{name:path}/training", training),
        Route("/parts/topics/{name:path}/example", example),
        Route("/critics/{name:path}/classes", tree),
        Route("/parts/critics/{name:path}/classes", tree_rows),
    ]


def routes(desk: Desk) -> list[Route]:
    """Return the routes of topics: their API and their pages."""
    examples = Examples()
    return [
        *topic_api.class_api_routes(desk),
        *topic_api.topic_api_routes(desk, examples),
        *topic_page_routes(desk, examples),
    ]
