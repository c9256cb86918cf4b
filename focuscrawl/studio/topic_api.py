"""The JSON API of topics and of the classes of critics."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.critic.critic_files import find_model
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.studio import topic_folder
from focuscrawl.studio.listing import JOBS_CHANGED
from focuscrawl.studio.page_rendering import PREFIX, text_of, texts_of, with_values
from focuscrawl.studio.topic_folder import TopicRoom, new_judgements
from focuscrawl.studio.topic_jobs import (
    ENOUGH,
    begin_fetching,
    begin_measuring,
    begin_training,
    quality_of,
    training_state,
)
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import (
    TopicDefinition,
    check_marked,
    edit_definition,
    read_definition,
    write_definition,
)
from focuscrawl.topics.bookmarks import bookmarks_in
from focuscrawl.topics.definition import refined

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import Desk
    from focuscrawl.studio.served_folder import StudioFolder
    from focuscrawl.studio.topic_folder import Examples


_PHRASES_END = re.compile(r"[,\n]")


def begin_topic(folder: StudioFolder, values: Mapping[str, Any]) -> Path:
    """Write ``NAME/topic.toml``.

    Parameters
    ----------
    values : ``name``; ``words``, phrases with commas between; ``description``; ``urls``, pages on
        the topic, where crawls also begin; ``bad``, pages that are not; ``critic`` and ``classes``
        of it; ``web``, a recording to read pages from. What is empty is left out

    Returns
    -------
    Path of the definition

    Raises
    ------
    UserError
        Something makes no sense, or says too little.
    """
    place = folder.new_folder(text_of(values, "name"))
    critic, web = text_of(values, "critic"), text_of(values, "web")
    urls = urls_among(texts_of(values, "urls"))
    if critic:
        folder.critic(critic)
    topics = read_topics(text_of(values, "classes"))
    if topics and not critic:
        raise UserError("classes are those of a critic: name it, too")
    name = f"/{place.name}"
    made = TopicDefinition(
        critic=critic or None,
        web=folder.recording(web) if web else None,
        topics=topics,
        name=None if critic or name == OFF_TOPIC else name,
        words=tuple(filter(None, map(str.strip, _PHRASES_END.split(text_of(values, "words"))))),
        description=text_of(values, "description") or None,
        seeds=tuple(urls),
    ).judging(urls, urls_among(texts_of(values, "bad")))
    if not (made.words or made.description or made.good or made.critic):
        raise UserError("say what the topic is: a phrase, or pages on it, or a class of a critic")
    check_marked(made)
    path = place / "topic.toml"
    try:
        place.mkdir()
    except OSError as error:
        raise UserError(f"{place} cannot be made: {error.strerror}") from None
    try:
        write_definition(made, path)
    except UserError:
        place.rmdir()
        raise
    return path


def urls_among(lines: list[str]) -> list[str]:
    """Return the URLs of lines, normalised, each once; UserError if one is none."""
    found = {line: normalize(line) for line in lines if not line.startswith("#")}
    for line, url in found.items():
        if url is None:
            raise UserError(f"{line!r:.120} {no_url(line)}")
    return list(dict.fromkeys(url for url in found.values() if url is not None))


def bookmarked(text: str) -> list[dict[str, str]]:
    """Return the bookmarks in what a browser has exported: ``url``, ``title``, ``folder``."""
    return [each._asdict() for each in bookmarks_in(text, "the file")]


_GOOD, _BAD, _SKIP = "good", "bad", "skip"
#: what pages listen to, to show the next one
JUDGED = {"HX-Trigger": "judged"}


def topic_api_routes(desk: Desk, examples: Examples) -> list[Route]:
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


#: what pages listen to, to show marks anew
MARKED = {"HX-Trigger": "marked"}


def class_api_routes(desk: Desk) -> list[Route]:
    """Return the routes of this part of the API."""

    def room(request: Request) -> TopicRoom:
        return TopicRoom(desk.folder, desk.folder.topic(request.path_params["name"]))

    def mark(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        about, good = room(request), verdict_of(text_of(values, "verdict")) is True

        def change(known: TopicDefinition) -> TopicDefinition:
            tree = topic_folder.tree_of(find_model(_critic(known)))
            return topic_folder.marked(known, text_of(values, "class"), tree, good=good)

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
        tree = topic_folder.tree_of(desk.folder.critic(request.path_params["name"]))
        under, search = request.query_params.get("under", "/"), request.query_params.get("q", "")
        found, cut = topic_folder.rows(tree, None, under=under, search=search)
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
