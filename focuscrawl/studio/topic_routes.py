"""Routes of topics: starting one, judging its examples, its critics and their classes.

All of it is done by the functions and commands that people use, and changes the same definition.
Pages of a crawl are judged in `focuscrawl.studio.judging`.
"""

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
from focuscrawl.foundation.files import read_regular
from focuscrawl.foundation.urls import invalid_url_message, normalize
from focuscrawl.studio import listing, topic_folder
from focuscrawl.studio.drawings import draw_reliability
from focuscrawl.studio.listing import JOBS_CHANGED
from focuscrawl.studio.page_rendering import (
    PREFIX,
    accepted,
    json_of,
    post,
    text_of,
    texts_of,
)
from focuscrawl.studio.topic_folder import Examples, TopicFiles, new_judgements
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
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk
    from focuscrawl.studio.served_folder import StudioFolder

    FindTopic = Callable[[Request], TopicFiles]

_PHRASES_END = re.compile(r"[,\n]")
_GOOD, _BAD, _SKIP = "good", "bad", "skip"
#: events of htmx: pages that listen to them show the next page to judge, or the classes anew
JUDGED = {"HX-Trigger": "judged"}
_MARKED = {"HX-Trigger": "marked"}
#: fields of a definition that the API returns
_SHOWN = ("critic", "web", "topics", "words", "description", "seeds", "good", "bad", "classes")


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the pages and their API."""
    examples = Examples()

    def topic(request: Request) -> TopicFiles:
        return TopicFiles(desk.folder, desk.folder.topic(request.path_params["name"]))

    return [
        *_topic_api(desk, topic, examples),
        *_class_api(desk, topic),
        *_topic_pages(desk, topic, examples),
        *_class_pages(desk),
    ]


def _topic_api(desk: Desk, topic: FindTopic, examples: Examples) -> list[Route]:
    def begin(_: Request, values: Mapping[str, Any]) -> Response:
        train = text_of(values, "train")
        made = TopicFiles(desk.folder, begin_topic(desk.folder, values))
        if train:
            begin_training(desk, made)
        where = {"HX-Redirect": f"{desk.base}/topics/{quote(made.name)}/definition"}
        return JSONResponse(_plain(made), HTTPStatus.CREATED, headers=where | JOBS_CHANGED)

    def bookmarks(_: Request, values: Mapping[str, Any]) -> Response:
        found = bookmarks_in(text_of(values, "text"), "the file")
        return JSONResponse([each._asdict() for each in found])

    def quality(request: Request) -> dict[str, Any] | None:
        critics = topic(request).critics()
        return quality_of(critics[-1]) if critics else None

    def state(request: Request) -> dict[str, Any]:
        found = training_state(desk, topic(request))
        for name in ("training", "measuring", "fetching"):
            found[name] = None if found[name] is None else found[name].plain()
        return found

    def judge(request: Request, values: Mapping[str, Any]) -> Response:
        about, (url, verdict) = topic(request), judgement_of(values)
        if about.is_of_crawl:
            raise UserError(f"{about.name} is what a crawl follows: judge pages of the crawl")
        if verdict is None:
            examples.skip(about, url)
        else:
            edit_definition(about.path, lambda known: judged(known, url, good=verdict))
            if about.critics() and new_judgements(about) >= ENOUGH:
                begin_training(desk, about)
        return JSONResponse({"url": url}, headers=JUDGED)

    def train(request: Request, _: Mapping[str, Any]) -> Response:
        return accepted(begin_training(desk, topic(request)).plain(), JOBS_CHANGED)

    def measure(request: Request, _: Mapping[str, Any]) -> Response:
        return accepted(begin_measuring(desk, topic(request)).plain(), JOBS_CHANGED)

    def fetch(request: Request, values: Mapping[str, Any]) -> Response:
        urls, web = urls_among(texts_of(values, "urls")), text_of(values, "web")
        if not urls:
            raise UserError("name pages to fetch: URLs, one a line")
        recording = desk.folder.recording(web) if web else None
        job = begin_fetching(desk, topic(request), urls, recording)
        return accepted(job.plain(), JOBS_CHANGED)

    one = f"{PREFIX}/topics/{{name:path}}"
    return [
        post(f"{PREFIX}/topics", begin),
        post(f"{PREFIX}/bookmarks", bookmarks),
        post(f"{one}/judge", judge),
        post(f"{one}/train", train),
        post(f"{one}/measure", measure),
        post(f"{one}/examples", fetch),
        Route(f"{one}/quality", json_of(quality)),
        Route(f"{one}/training", json_of(state)),
        Route(f"{one}/examples", json_of(lambda request: examples.plain(topic(request)))),
        Route(one, json_of(lambda request: _plain(topic(request)))),
    ]


def _class_api(desk: Desk, topic: FindTopic) -> list[Route]:
    def mark(request: Request, values: Mapping[str, Any]) -> Response:
        about, good = topic(request), _verdict_of(text_of(values, "verdict")) is True

        def change(known: TopicDefinition) -> TopicDefinition:
            if known.critic is None:
                raise UserError("the definition names no critic: there are no classes to mark")
            tree = topic_folder.tree_of(find_model(known.critic))
            return topic_folder.marked(known, text_of(values, "class"), tree, good=good)

        edit_definition(about.path, change)
        return JSONResponse(_plain(about), headers=_MARKED)

    def split(request: Request, values: Mapping[str, Any]) -> Response:
        about, name = topic(request), text_of(values, "sub").strip("/")
        path = f"{text_of(values, 'class')}/{name}"
        urls = urls_among(texts_of(values, "urls"))
        if not name or not urls:
            raise UserError("choose the pages that move, and name the sub-class they move to")
        marks = [path] if text_of(values, "only") else None
        edit_definition(about.path, lambda known: refined(known, {path: urls}, marks))
        return JSONResponse(_plain(about), headers=_MARKED)

    def class_rows(request: Request) -> dict[str, Any]:
        tree = topic_folder.tree_of(desk.folder.critic(request.path_params["name"]))
        under, search = request.query_params.get("under", "/"), request.query_params.get("q", "")
        found, cut = topic_folder.rows(tree, None, under=under, search=search)
        return {"classes": found, "cut": cut}

    one = f"{PREFIX}/topics/{{name:path}}"
    return [
        post(f"{one}/mark", mark),
        post(f"{one}/split", split),
        Route(f"{PREFIX}/critics/{{name:path}}/classes", json_of(class_rows)),
    ]


def _topic_pages(desk: Desk, topic: FindTopic, examples: Examples) -> list[Route]:
    def shown(about: TopicFiles, here: str, **values: Any) -> dict[str, Any]:
        known = {"topic": about, "definition": read_definition(about.path), "here": here}
        return {**known, **training_state(desk, about), **values}

    def new(request: Request) -> dict[str, Any]:
        asked = {name: request.query_params.get(name, "") for name in ("critic", "classes")}
        return asked | {
            "critics": listing.critics(desk.folder),
            "recordings": desk.folder.recordings(),
        }

    def definition(request: Request) -> dict[str, Any]:
        about = topic(request)
        return shown(about, "definition", text=read_regular(about.path).decode())

    def training(request: Request) -> dict[str, Any]:
        return shown(topic(request), "")

    def judging(request: Request) -> dict[str, Any]:
        return shown(topic(request), "examples", recordings=desk.folder.recordings())

    def example(request: Request) -> dict[str, Any]:
        about = topic(request)
        values = {"card": examples.next(about), "left": len(examples.waiting(about))}
        return shown(about, "", **values, new=new_judgements(about), enough=ENOUGH)

    def quality(request: Request) -> dict[str, Any]:
        about = topic(request)
        found = [quality_of(critic) for critic in about.critics()]
        earlier = found[-2] if len(found) > 1 else None
        curve = draw_reliability(found[-1]["bins"]) if found and found[-1] else None
        return shown(about, "quality", earlier=earlier, curve=curve)

    one = "/topics/{name:path}"
    return [
        Route("/topics/new", desk.page("topic_new", new)),
        Route(f"{one}/definition", desk.page("topic_definition", definition)),
        Route(f"{one}/examples", desk.page("topic_examples", judging)),
        Route(f"{one}/quality", desk.page("topic_quality", quality)),
        Route(f"/parts{one}/training", desk.page("topic_training", training)),
        Route(f"/parts{one}/example", desk.page("topic_example", example)),
    ]


def _class_pages(desk: Desk) -> list[Route]:
    def tree(request: Request) -> dict[str, Any]:
        name, query = request.path_params["name"], request.query_params
        desk.folder.critic(name)
        of = query.get("topic", "")
        about = TopicFiles(desk.folder, desk.folder.topic(of)) if of else None
        topics = listing.topics(desk.folder)
        return {
            "name": name,
            "under": query.get("under", "/"),
            "search": query.get("q", ""),
            "about": about,
            "definition": None if about is None else read_definition(about.path),
            "topics": [each["name"] for each in topics if each.get("critic") == name],
        }

    def rows(request: Request) -> dict[str, Any]:
        asked = tree(request)
        known = topic_folder.tree_of(desk.folder.critic(asked["name"]))
        definition, under, search = asked["definition"], asked["under"], asked["search"]
        found, cut = topic_folder.rows(known, definition, under=under, search=search)
        below = topic_folder.examples(known, under, definition) if under != "/" else []
        return asked | {
            "rows": found,
            "cut": cut,
            "total": len(known.leaves),
            "examples": below,
        }

    one = "/critics/{name:path}/classes"
    return [
        Route(one, desk.page("critic_classes", tree)),
        Route(f"/parts{one}", desk.page("critic_class_rows", rows)),
    ]


def begin_topic(folder: StudioFolder, values: Mapping[str, Any]) -> Path:
    """Write ``NAME/topic.toml``, and return its path.

    Parameters
    ----------
    values : ``name``; ``words``, phrases with commas between; ``description``; ``urls``, pages on
        the topic, which are also seeds; ``bad``, pages off it; ``critic`` and ``classes`` of it;
        ``web``, a recording to read pages from. Empty values are left out

    Raises
    ------
    UserError
        A value makes no sense, or there are too few.
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
    """Return the URLs in lines, normalised, each once; UserError if a line is no URL."""
    found = {line: normalize(line) for line in lines if not line.startswith("#")}
    for line, url in found.items():
        if url is None:
            raise UserError(f"{line!r:.120} {invalid_url_message(line)}")
    return list(dict.fromkeys(url for url in found.values() if url is not None))


def judgement_of(values: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Return the URL that was judged, normalised, and the verdict; None if it was skipped."""
    url = normalize(text_of(values, "url"))
    if url is None:
        raise UserError("judge which page? Name its url")
    return url, _verdict_of(text_of(values, "verdict"))


def _verdict_of(text: str) -> bool | None:
    if text not in (_GOOD, _BAD, _SKIP):
        raise UserError(f"{text!r:.40} is no verdict: there are {_GOOD}, {_BAD}, {_SKIP}")
    return None if text == _SKIP else text == _GOOD


def judged(known: TopicDefinition, url: str, *, good: bool) -> TopicDefinition:
    """Return a definition with one more judgement."""
    return known.judging([url], []) if good else known.judging([], [url])


def _plain(topic: TopicFiles) -> dict[str, Any]:
    known = read_definition(topic.path)
    return {"name": topic.name} | {field: getattr(known, field) for field in _SHOWN}
