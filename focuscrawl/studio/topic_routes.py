"""Routes of the studio for creating topics, judging examples and training critics.

The routes for judging pages of a crawl are in `focuscrawl.studio.judging`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.critic.critic_files import find_model
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular
from focuscrawl.foundation.urls import normalize, parse_url
from focuscrawl.studio import listing, topic_folder
from focuscrawl.studio.drawings import draw_reliability
from focuscrawl.studio.listing import JOBS_CHANGED
from focuscrawl.studio.page_rendering import (
    PREFIX,
    FieldChecks,
    accepted_response,
    json_endpoint,
    post_route,
    text_value,
    text_values,
)
from focuscrawl.studio.topic_folder import ExampleQueue, TopicFiles, count_new_judgements
from focuscrawl.studio.topic_jobs import (
    RETRAIN_AFTER,
    check_not_of_crawl,
    delete_topic,
    read_quality,
    retrain,
    start_fetching,
    start_measuring,
    start_training,
    training_state,
)
from focuscrawl.taxonomy import normalise, parse_topics
from focuscrawl.topics import (
    TopicDefinition,
    check_marked_classes,
    edit_definition,
    read_definition,
    write_definition,
)
from focuscrawl.topics.bookmarks import parse_bookmarks
from focuscrawl.topics.definition import move_class, move_examples

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import StudioFolder

    FindTopic = Callable[[Request], TopicFiles]

_PHRASE_SEPARATOR = re.compile(r"[,\n]")
_N_LISTED = 50  # judgements
_MAX_DIGITS = 7
_N_VERSIONS = 5  # critics shown side by side
_VERDICTS = _GOOD, _BAD, _SKIP, _NONE = "good", "bad", "skip", "none"
#: headers that let pages update the page to judge, or the classes (events of htmx)
JUDGED = {"HX-Trigger": "judged"}
_MARKED = {"HX-Trigger": "marked"}
#: fields of a definition that the API returns
_DEFINITION_FIELDS = (
    *("critic", "web", "topics", "words", "description"),
    *("seeds", "good", "bad", "classes"),
)


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the pages and their API."""
    examples = ExampleQueue()

    def find_topic(request: Request) -> TopicFiles:
        return TopicFiles(context.folder, context.folder.topic(request.path_params["name"]))

    return [
        *_topic_api(context, find_topic, examples),
        *_class_api(context, find_topic),
        *_topic_pages(context, find_topic, examples),
        *_class_pages(context),
    ]


def _topic_api(
    context: StudioContext, find_topic: FindTopic, examples: ExampleQueue
) -> list[Route]:
    def create(_: Request, values: Mapping[str, Any]) -> Response:
        train = text_value(values, "train")
        created = TopicFiles(context.folder, create_topic(context.folder, values))
        if train:
            start_training(context, created)
        location = {"HX-Redirect": f"{context.base}/topics/{quote(created.name)}/definition"}
        return JSONResponse(
            _definition_values(created), HTTPStatus.CREATED, headers=location | JOBS_CHANGED
        )

    def bookmarks(_: Request, values: Mapping[str, Any]) -> Response:
        found = parse_bookmarks(text_value(values, "text"), "the file")
        return JSONResponse([each._asdict() for each in found])

    def quality(request: Request) -> dict[str, Any] | None:
        critics = find_topic(request).critics()
        return read_quality(critics[-1]) if critics else None

    def state(request: Request) -> dict[str, Any]:
        found = training_state(context, find_topic(request))
        for name in ("training", "measuring", "fetching"):
            found[name] = None if found[name] is None else found[name].to_dict()
        return found

    def judge(request: Request, values: Mapping[str, Any]) -> Response:
        topic, judgement = find_topic(request), Judgement.parse(values)
        check_not_of_crawl(topic)
        before = dict[str, str]()

        def change(known: TopicDefinition) -> TopicDefinition:
            before.update(judgement.before(known))
            return judgement.change(known)

        if judgement.verdict == _SKIP:
            before = dict.fromkeys(judgement.urls, _NONE)
        else:
            edit_definition(topic.path, change)
        for url in judgement.urls:
            examples.settle(topic, url, skipped=judgement.verdict == _SKIP)
        retrain(context, topic)
        return judgement.response(before)

    def edit(request: Request, values: Mapping[str, Any]) -> Response:
        topic = find_topic(request)
        check_not_of_crawl(topic)
        edit_definition(topic.path, lambda known: edited_definition(known, values, context.folder))
        if text_value(values, "train"):
            start_training(context, topic)
        return JSONResponse(_definition_values(topic), headers={"HX-Refresh": "true"})

    def delete(request: Request, _: Mapping[str, Any]) -> Response:
        topic = find_topic(request)
        delete_topic(context, topic)
        return JSONResponse({"name": topic.name}, headers={"HX-Redirect": f"{context.base}/"})

    def train(request: Request, _: Mapping[str, Any]) -> Response:
        job = start_training(context, find_topic(request))
        return accepted_response(job.to_dict(), JOBS_CHANGED)

    def measure(request: Request, _: Mapping[str, Any]) -> Response:
        job = start_measuring(context, find_topic(request))
        return accepted_response(job.to_dict(), JOBS_CHANGED)

    def fetch(request: Request, values: Mapping[str, Any]) -> Response:
        urls, web = parse_urls(text_values(values, "urls")), text_value(values, "web")
        if not urls:
            raise UserError("no pages to fetch: give one URL per line")
        recording = context.folder.recording_of(urls, web)
        job = start_fetching(context, find_topic(request), urls, recording)
        return accepted_response(job.to_dict(), JOBS_CHANGED)

    one = f"{PREFIX}/topics/{{name:path}}"
    return [
        post_route(f"{PREFIX}/topics", create),
        post_route(f"{PREFIX}/bookmarks", bookmarks),
        post_route(f"{one}/judge", judge),
        post_route(f"{one}/edit", edit),
        post_route(f"{one}/delete", delete),
        post_route(f"{one}/train", train),
        post_route(f"{one}/measure", measure),
        post_route(f"{one}/examples", fetch),
        Route(f"{one}/quality", json_endpoint(quality)),
        Route(f"{one}/training", json_endpoint(state)),
        Route(
            f"{one}/examples", json_endpoint(lambda request: examples.to_dict(find_topic(request)))
        ),
        Route(one, json_endpoint(lambda request: _definition_values(find_topic(request)))),
    ]


def _class_api(context: StudioContext, find_topic: FindTopic) -> list[Route]:
    def mark(request: Request, values: Mapping[str, Any]) -> Response:
        topic, good = find_topic(request), text_value(values, "verdict") == _GOOD

        def change(known: TopicDefinition) -> TopicDefinition:
            if known.critic is None:
                raise UserError("the definition names no critic, so it has no classes to mark")
            tree = topic_folder.load_class_tree(find_model(known.critic))
            return topic_folder.set_marked(known, text_value(values, "class"), tree, good=good)

        edit_definition(topic.path, change)
        return JSONResponse(_definition_values(topic), headers=_MARKED)

    def split(request: Request, values: Mapping[str, Any]) -> Response:
        topic, name = find_topic(request), text_value(values, "sub")
        # a path is another or a new class, a name is a subclass
        path = normalise(name if name.startswith("/") else f"{text_value(values, 'class')}/{name}")
        urls = parse_urls(text_values(values, "urls"))
        if not name.strip("/") or not urls:
            raise UserError("choose the pages to move, and give their subclass or class")
        marks = [path] if text_value(values, "only") else None
        edit_definition(topic.path, lambda known: move_examples(known, {path: urls}, marks))
        return JSONResponse(_definition_values(topic), headers=_MARKED)

    def move(request: Request, values: Mapping[str, Any]) -> Response:
        topic = find_topic(request)
        old, new = (normalise(text_value(values, name)) for name in ("class", "to"))
        edit_definition(topic.path, lambda known: move_class(known, old, new))
        return JSONResponse(_definition_values(topic), headers=_MARKED)

    def class_rows(request: Request) -> dict[str, Any]:
        tree = topic_folder.load_class_tree(context.folder.critic(request.path_params["name"]))
        under, search = request.query_params.get("under", "/"), request.query_params.get("q", "")
        found, cut = topic_folder.class_rows(tree, None, under=under, search=search)
        return {"classes": found, "cut": cut}

    one = f"{PREFIX}/topics/{{name:path}}"
    return [
        post_route(f"{one}/mark", mark),
        post_route(f"{one}/split", split),
        post_route(f"{one}/move", move),
        Route(f"{PREFIX}/critics/{{name:path}}/classes", json_endpoint(class_rows)),
    ]


def _topic_pages(
    context: StudioContext, find_topic: FindTopic, examples: ExampleQueue
) -> list[Route]:
    def shown(topic: TopicFiles, here: str, **values: Any) -> dict[str, Any]:
        known = {"topic": topic, "definition": read_definition(topic.path), "here": here}
        known |= {"new": count_new_judgements(topic), "enough": RETRAIN_AFTER}
        known["crawls"] = [context.folder.name_of(path) for path in topic.crawls()]
        return {**known, **training_state(context, topic), **values}

    def new(request: Request) -> dict[str, Any]:
        asked = {name: request.query_params.get(name, "") for name in ("critic", "classes")}
        return asked | {
            "critics": listing.list_critics(context.folder),
            "recordings": context.folder.recordings(),
        }

    def definition(request: Request) -> dict[str, Any]:
        topic = find_topic(request)
        recordings = context.folder.recordings()
        text = read_regular(topic.path).decode()
        return shown(topic, "definition", text=text, recordings=recordings)

    def training(request: Request) -> dict[str, Any]:
        return shown(find_topic(request), request.query_params.get("here", ""))

    def judging(request: Request) -> dict[str, Any]:
        return shown(find_topic(request), "examples", recordings=context.folder.recordings())

    def example(request: Request) -> dict[str, Any]:
        topic = find_topic(request)
        person = request.query_params.get("tab", "")
        values = {"card": examples.next(topic, person), "left": len(examples.unjudged(topic))}
        return shown(topic, "", **values)

    def judgements(request: Request) -> dict[str, Any]:
        topic, query = find_topic(request), dict(request.query_params)
        found = filter_judgements(read_definition(topic.path).verdicts, {}, query)
        at = f"/parts/topics/{quote(topic.name)}/judgements"
        return judgements_shown(found, query) | {"crawl": "", "at": at}

    def quality(request: Request) -> dict[str, Any]:
        topic = find_topic(request)
        known = shown(topic, "quality")
        names = [critic.name for critic in topic.critics()]
        found = [read_quality(critic) for critic in topic.critics()]
        versions = [*zip(names, found, strict=True)][: -_N_VERSIONS - 1 : -1]
        curve = draw_reliability(found[-1]["bins"]) if found and found[-1] else None
        return known | {"versions": versions, "curve": curve}

    one = "/topics/{name:path}"
    return [
        Route("/topics/new", context.page_endpoint("topic_new", new)),
        Route(f"{one}/definition", context.page_endpoint("topic_definition", definition)),
        Route(f"{one}/examples", context.page_endpoint("topic_examples", judging)),
        Route(f"{one}/quality", context.page_endpoint("topic_quality", quality)),
        Route(f"/parts{one}/training", context.page_endpoint("topic_training", training)),
        Route(f"/parts{one}/example", context.page_endpoint("topic_example", example)),
        Route(f"/parts{one}/judgements", context.page_endpoint("judgements", judgements)),
    ]


def _class_pages(context: StudioContext) -> list[Route]:
    def tree(request: Request) -> dict[str, Any]:
        name, query = request.path_params["name"], request.query_params
        context.folder.critic(name)
        of = query.get("topic", "")
        topic = TopicFiles(context.folder, context.folder.topic(of)) if of else None
        topics = listing.list_topics(context.folder)
        return {
            "name": name,
            "under": query.get("under", "/"),
            "search": query.get("q", ""),
            "about": topic,
            "definition": None if topic is None else read_definition(topic.path),
            "topics": [each["name"] for each in topics if each.get("critic") == name],
        }

    def rows(request: Request) -> dict[str, Any]:
        asked = tree(request)
        known = topic_folder.load_class_tree(context.folder.critic(asked["name"]))
        definition, under, search = asked["definition"], asked["under"], asked["search"]
        found, cut = topic_folder.class_rows(known, definition, under=under, search=search)
        below = topic_folder.class_examples(known, under, definition) if under != "/" else []
        return asked | {
            "rows": found,
            "cut": cut,
            "total": len(known.leaves),
            "examples": below,
        }

    one = "/critics/{name:path}/classes"
    return [
        Route(one, context.page_endpoint("critic_classes", tree)),
        Route(f"/parts{one}", context.page_endpoint("critic_class_rows", rows)),
    ]


def create_topic(folder: StudioFolder, values: Mapping[str, Any]) -> Path:
    """Write a new topic definition ``NAME/topic.toml`` from form values; return its path.

    The values ``name``, ``words`` (phrases separated by commas) and ``description`` describe the
    topic. The value ``urls`` contains the URLs of on-topic pages, which are also seeds, and
    ``bad`` contains the URLs of off-topic pages. The value ``critic`` names a critic, ``classes``
    lists the critic's on-topic classes, and ``web`` is the recording from which pages are read.
    All form values may be missing or empty. For pages of the demo web, ``web`` can be empty.
    """
    checks, critic, web = FieldChecks(), text_value(values, "critic"), text_value(values, "web")
    urls, bad, recording = list[str](), list[str](), None
    topics: tuple[str, ...] = ()
    described = ("words", "urls", "description", "critic")
    with checks.field("name"):
        place = folder.new_folder(text_value(values, "name"))
    with checks.field("urls"):
        urls = parse_urls(text_values(values, "urls"))
    with checks.field("bad"):
        bad = parse_urls(text_values(values, "bad"))
    with checks.field("critic"):
        if critic:
            folder.critic(critic)
    with checks.field("classes"):
        topics = parse_topics(text_value(values, "classes"))
        if topics and not critic:
            raise UserError("classes are given without a critic: name the critic of the classes")
        if critic and not topics:
            raise UserError("name the classes of the critic that form the topic")
    with checks.field("web"):
        recording = folder.recording_of([*urls, *bad], web)
    words = parse_phrases(text_value(values, "words"))
    with checks.field("words"):
        if not any(values.get(name) for name in described):
            raise UserError(
                "describe the topic with a phrase, on-topic pages or a class of a critic"
            )
    checks.finish()
    name = f"/{place.name}"
    created = TopicDefinition(
        critic=critic or None,
        web=recording,
        topics=topics,
        name=None if critic or name == OFF_TOPIC else name,
        words=words,
        description=text_value(values, "description") or None,
        seeds=tuple(urls),
    ).with_judgements(urls, bad)
    with checks.field("classes"):
        check_marked_classes(created)
    checks.finish()
    path = place / "topic.toml"
    try:
        place.mkdir()
    except OSError as error:
        raise UserError(f"{place} cannot be created: {error.strerror}") from None
    try:
        write_definition(created, path)
    except UserError:
        place.rmdir()
        raise
    return path


def filter_judgements(
    verdicts: Mapping[str, str], fetched: Mapping[str, Any], query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the judgements that match a query: first of bad, then of good pages.

    Among pages with the same verdict, the latest judgement comes first.

    Parameters
    ----------
    verdicts : mapping of str to str
        Verdict of each judged page, by URL.
    fetched : mapping of str to mapping
        ``title`` and ``relevance`` of fetched pages, by URL.
    query : mapping of str to str
        See `focuscrawl.studio.judging.list_judgements`, as for the result.
    """
    words, verdict = query.get("q", "").lower().split(), query.get("verdict", "")
    rows = []
    for url, given in reversed([*verdicts.items()]):
        page = fetched.get(url)
        title, relevance = ("", None) if page is None else (page["title"] or "", page["relevance"])
        found = f"{title} {url}".lower()
        if verdict in ("", given) and all(word in found for word in words):
            differs = relevance is not None and (relevance > RELEVANT) != (given == _GOOD)
            row = {"url": url, "verdict": given, "title": title, "relevance": relevance}
            rows.append(row | {"differs": differs})
    n = query.get("n", "")
    most = int(n) if n.isascii() and n.isdecimal() and len(n) < _MAX_DIGITS else _N_LISTED
    return {"total": len(rows), "rows": rows[:most]}


def judgements_shown(found: dict[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the values for the template of judgements, and the query that returns more rows."""
    filtered = bool(query.get("q") or query.get("verdict"))
    longer = {**query, "n": str(len(found["rows"]) + _N_LISTED)}
    return found | {"query": longer, "filtered": filtered}


def edited_definition(
    known: TopicDefinition, values: Mapping[str, Any], folder: StudioFolder
) -> TopicDefinition:
    """Return a topic definition that is changed by posted fields such as ``words`` and ``seeds``.

    Fields that were not posted remain unchanged. A field such as ``good_was`` contains the value
    that the person saw. With such a field, only the person's own changes are applied, so that
    changes by other persons remain.
    """
    checks, changed = FieldChecks(), dict[str, Any]()
    for name in ("words", "seeds", "good", "bad"):
        with checks.field(name):
            if name in values:
                new, seen = _parse_lines(name, values, name), f"{name}_was"
                if seen in values:
                    old, now = {*_parse_lines(name, values, seen)}, getattr(known, name)
                    kept = [each for each in now if each in new or each not in old]
                    new = [*kept, *(each for each in new if each not in old)]
                changed[name] = tuple(dict.fromkeys(new))
    description = text_value(values, "description")
    if "description" in values and description != text_value(values, "description_was", "\0"):
        changed["description"] = description or None
    result, web = replace(known, **changed), text_value(values, "web")
    with checks.field("web"):
        if "web" in values and (not web or web != known.web):
            recording = folder.recording_of(sorted(result.judged_urls), web)
            result = replace(result, web=recording)
    both = [url for url in result.bad if url in {*result.good}]
    with checks.field("bad"):
        if both:
            raise UserError(
                f"{both[0]} is also a good page: remove the page from one of the lists"
            )
    with checks.field("words"):
        if not (result.critic or result.words or result.description or result.good):
            raise UserError("the topic needs a phrase, a description or a good page")
    checks.finish()
    return result


def _parse_lines(name: str, values: Mapping[str, Any], key: str) -> list[str]:
    lines = text_values(values, key)
    return lines if name == "words" else parse_urls(lines)


def parse_phrases(text: str) -> tuple[str, ...]:
    """Return the distinct phrases of a text, which are separated by commas or line ends."""
    found = filter(None, map(str.strip, _PHRASE_SEPARATOR.split(text)))
    return tuple(dict.fromkeys(found))


def parse_urls(lines: list[str]) -> list[str]:
    """Return the distinct normalised URLs in a text with one URL per line and # comments."""
    found = (parse_url(line, f"{line!r:.120}") for line in lines if not line.startswith("#"))
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Judgement:
    """A verdict of a person on some pages: ``good``, ``bad``, ``skip``, or ``none`` (removed)."""

    urls: list[str]
    verdict: str

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Judgement:
        """Parse a posted judgement; raise `UserError` if a URL or the verdict is invalid."""
        given = text_values(values, "urls") or [text_value(values, "url")]
        urls = [normalize(url) for url in given]
        if None in urls:
            raise UserError("url must be the URL of the judged page")
        verdict = text_value(values, "verdict")
        if verdict not in _VERDICTS:
            raise UserError(f"verdict {verdict!r:.40} is invalid: use {', '.join(_VERDICTS)}")
        return cls([url for url in urls if url is not None], verdict)

    def change(self, known: TopicDefinition) -> TopicDefinition:
        """Return the topic definition with this judgement."""
        if self.verdict == _GOOD:
            return known.with_judgements(self.urls, [])
        if self.verdict == _BAD:
            return known.with_judgements([], self.urls)
        return known if self.verdict == _SKIP else known.without_judgements(self.urls)

    def before(self, known: TopicDefinition) -> dict[str, str]:
        """Return the verdicts that a topic definition has for the judged pages, by URL."""
        verdicts = known.verdicts
        return {url: verdicts.get(url, _NONE) for url in self.urls}

    def response(self, before: Mapping[str, str]) -> Response:
        """Return the response to the judgement, given the earlier verdicts on the same pages."""
        found = {"url": self.urls[0], "verdict": self.verdict, "before": before}
        return JSONResponse(found, headers=JUDGED)


def _definition_values(topic: TopicFiles) -> dict[str, Any]:
    known = read_definition(topic.path)
    return {"name": topic.name} | {field: getattr(known, field) for field in _DEFINITION_FIELDS}
