"""The JSON API of topics."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.studio.api import JOBS_CHANGED
from focuscrawl.studio.posted import text_of, texts_of, with_values
from focuscrawl.studio.rendering import PREFIX
from focuscrawl.studio.topics.beginning import begin_topic, bookmarked, urls_among
from focuscrawl.studio.topics.examples import new_judgements
from focuscrawl.studio.topics.room import TopicRoom
from focuscrawl.studio.topics.training import (
    ENOUGH,
    begin_fetching,
    begin_measuring,
    begin_training,
    quality_of,
    training_state,
)
from focuscrawl.topics import edit_definition, read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from focuscrawl.studio.desk import Desk
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.topics.examples import Examples
    from focuscrawl.topics import TopicDefinition

_GOOD, _BAD, _SKIP = "good", "bad", "skip"
#: what pages listen to, to show the next one
JUDGED = {"HX-Trigger": "judged"}


def routes(desk: Desk, examples: Examples) -> list[Route]:
    """Return the routes of the API; `examples` are those that the pages show."""

    def room(request: Request) -> TopicRoom:
        return TopicRoom(desk.folder, desk.folder.topic(request.path_params["name"]))

    def begin(_: Request, values: Mapping[str, Any]) -> JSONResponse:
        train = text_of(values, "train")
        made = TopicRoom(desk.folder, begin_topic(desk.folder, values))
        if train:
            begin_training(desk, made)
        where = {"HX-Redirect": f"{desk.base}/topics/{quote(made.name)}/definition"}
        return JSONResponse(plain_topic(made), HTTPStatus.CREATED, headers=where | JOBS_CHANGED)

    def bookmarks(_: Request, values: Mapping[str, Any]) -> JSONResponse:
        return JSONResponse(bookmarked(text_of(values, "text")))

    def topic(request: Request) -> JSONResponse:
        return JSONResponse(plain_topic(room(request)))

    def quality(request: Request) -> JSONResponse:
        critics = room(request).critics()
        return JSONResponse(quality_of(critics[-1]) if critics else None)

    def state(request: Request) -> JSONResponse:
        found = training_state(desk, room(request))
        jobs = ("training", "measuring", "fetching")
        plain = {name: None if found[name] is None else found[name].plain() for name in jobs}
        return JSONResponse(found | plain)

    def next_example(request: Request) -> JSONResponse:
        return JSONResponse(examples.plain(room(request)))

    def judge(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        about, (url, verdict) = room(request), judgement_of(values)
        if about.is_of_crawl:
            raise UserError(f"{about.name} is what a crawl follows: judge pages of the crawl")
        if verdict is None:
            examples.skip(about, url)
        else:
            edit_definition(about.path, lambda known: judged(known, url, good=verdict))
            if about.critics() and new_judgements(about) >= ENOUGH:
                begin_training(desk, about)
        return JSONResponse({"url": url}, headers=JUDGED)

    def train(request: Request, _: Mapping[str, Any]) -> JSONResponse:
        return _begun(begin_training(desk, room(request)))

    def measure(request: Request, _: Mapping[str, Any]) -> JSONResponse:
        return _begun(begin_measuring(desk, room(request)))

    def fetch(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        urls, web = urls_among(texts_of(values, "urls")), text_of(values, "web")
        if not urls:
            raise UserError("name pages to fetch: URLs, one a line")
        recording = desk.folder.recording(web) if web else None
        return _begun(begin_fetching(desk, room(request), urls, recording))

    one = f"{PREFIX}/topics/{{name:path}}"
    posts = {"judge": judge, "train": train, "measure": measure}
    reads = {"quality": quality, "training": state, "examples": next_example}
    return [
        Route(f"{PREFIX}/topics", with_values(begin), methods=["POST"]),
        Route(f"{PREFIX}/bookmarks", with_values(bookmarks), methods=["POST"]),
        *(
            Route(f"{one}/{verb}", with_values(endpoint), methods=["POST"])
            for verb, endpoint in posts.items()
        ),
        Route(f"{one}/examples", with_values(fetch), methods=["POST"]),
        *(Route(f"{one}/{what}", endpoint) for what, endpoint in reads.items()),
        Route(one, topic),
    ]


def judgement_of(values: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Return the URL that was judged, normalised, and what it is; None: passed over."""
    url = normalize(text_of(values, "url"))
    if url is None:
        raise UserError("judge which page? Name its url")
    return url, verdict_of(text_of(values, "verdict"))


def verdict_of(text: str) -> bool | None:
    """Return what a verdict says; UserError if it is none."""
    if text not in (_GOOD, _BAD, _SKIP):
        raise UserError(f"{text!r:.40} is no verdict: there are {_GOOD}, {_BAD}, {_SKIP}")
    return None if text == _SKIP else text == _GOOD


def judged(known: TopicDefinition, url: str, *, good: bool) -> TopicDefinition:
    """Return a definition with one more judgement."""
    return known.judging([url], []) if good else known.judging([], [url])


def _begun(job: Job) -> JSONResponse:
    return JSONResponse(job.plain(), HTTPStatus.ACCEPTED, headers=JOBS_CHANGED)


def plain_topic(room: TopicRoom) -> dict[str, Any]:
    """Return what the definition of a topic says, under the names it has there."""
    known = read_definition(room.path)
    return {
        "name": room.name,
        "critic": known.critic,
        "web": known.web,
        "topics": known.topics,
        "words": known.words,
        "description": known.description,
        "seeds": known.seeds,
        "good": known.good,
        "bad": known.bad,
        "classes": known.classes,
    }
