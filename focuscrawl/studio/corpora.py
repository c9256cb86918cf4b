"""Creates corpora from keywords in background jobs, and shows which steps are finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from starlette.routing import Route

from focuscrawl.collection.corpus_folder import ORDER_FILE, CorpusFolder
from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular, reporting_write_errors, write_atomically
from focuscrawl.report.crawl_plan import CrawlPlan
from focuscrawl.report.outcomes import SEEDS_UNREACHABLE, STOPPED_EARLY, stop_reason
from focuscrawl.report.status import open_store
from focuscrawl.search import default_source
from focuscrawl.studio.exports import FOLDER, list_exports
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import JOBS_CHANGED, crawl_summary
from focuscrawl.studio.page_rendering import (
    PREFIX,
    FieldChecks,
    accepted_response,
    json_endpoint,
    post_route,
    text_value,
    text_values,
)
from focuscrawl.studio.served_folder import parse_name
from focuscrawl.studio.topic_routes import parse_urls
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import NamedCrawl, StudioFolder

CORPUS = "corpus"  #: kind of the jobs that create corpora
_FILE = "corpus.parquet"
_PAGES = 500  # default of the form
_MAX_PAGES, _MAX_URLS = 1_000_000, 500
_MAX_WORDS = 4  # of the first phrase, in the name of a new corpus


@dataclass(frozen=True)
class Corpus:
    """A corpus in the studio's folder, with the values that a person wrote into the form."""

    name: str  # path of its folder below the served folder
    keywords: str
    urls: list[str]
    web: str | None  # recording; None: the live Web

    @classmethod
    def from_form(cls, folder: StudioFolder, values: Mapping[str, Any], name: str = "") -> Self:
        """Check the fields ``keywords``, ``urls`` and ``web`` of the form of a corpus.

        Without a `name`, the first phrase of the keywords becomes the name of the corpus.
        """
        checks, urls, web = FieldChecks(), list[str](), None
        keywords, recording = text_value(values, "keywords"), text_value(values, "web")
        with checks.field("keywords"):
            phrases = parse_phrases(keywords)
            name = name or _free_name(folder, "_".join(phrases[0][:_MAX_WORDS]))
        with checks.field("urls"):
            urls = parse_urls(text_values(values, "urls"))
            if len(urls) > _MAX_URLS:
                raise UserError(f"{len(urls):,} pages are too many: give at most {_MAX_URLS}")
            if not urls and default_source() is None:
                raise UserError(
                    "give pages on the topic: without FOCUSCRAWL_SEARXNG_URL, the studio has no "
                    "search engine that finds pages"
                )
        with checks.field("web"):
            web = folder.recording_of(urls, recording)
        checks.finish()
        return cls(name, keywords, urls, web)

    @classmethod
    def read(cls, folder: StudioFolder, name: str) -> Self:
        """Read the corpus with a given name; raise `UserError` if there is none."""
        none = UserError(f"{folder.root} has no corpus {name!r:.200}: see the list of corpora")
        try:
            known = json.loads(read_regular(folder.safe_path(f"{name}/{ORDER_FILE}")))
            keywords, urls, web = known["keywords"], known["urls"], known["web"]
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            raise none from None
        texts = [keywords, *urls] if isinstance(urls, list) else [None]
        if not all(isinstance(each, str) for each in texts):
            raise none
        if web is not None:
            web = folder.recording(str(web).removeprefix("./"))
        return cls(name, keywords, parse_urls(urls), web)

    def order(self) -> dict[str, Any]:
        """Return the entries of the corpus in the file `ORDER_FILE`."""
        return {"keywords": self.keywords, "urls": self.urls, "web": self.web}

    def arguments(self, pages: int) -> list[str]:
        """Return the arguments of ``focuscrawl`` to create this corpus with `pages` fetches."""
        return [
            *(CORPUS, f"--pages={pages}", f"--folder=./{self.name}"),
            f"--out=./{self.name}/crawl/{FOLDER}/{_FILE}",
            *([] if self.web is None else [f"--web={self.web}"]),
            *("--", self.keywords, *self.urls),
        ]


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the pages and of the JSON API for corpora."""

    def create(_: Request, values: Mapping[str, Any]) -> Response:
        pages, corrected = _parse_pages(values), text_value(values, "of")
        if corrected and not read_steps(context, corrected)["correctable"]:
            raise UserError(f"{corrected} cannot be corrected any more: create another corpus")
        corpus = Corpus.from_form(context.folder, values, corrected)
        started = {"corpus": corpus.name, "job": start(context, corpus, pages).to_dict()}
        page = f"{context.base}/corpora/{quote(corpus.name)}"
        return accepted_response(started, {"HX-Redirect": page})

    def go_on(request: Request, values: Mapping[str, Any]) -> Response:
        pages = _parse_pages(values)
        corpus = Corpus.read(context.folder, request.path_params["name"])
        return accepted_response(start(context, corpus, pages).to_dict(), JOBS_CHANGED)

    def api(request: Request) -> dict[str, Any]:
        found = read_steps(context, request.path_params["name"])
        job = found["job"]
        return found | {"job": None if job is None else job.to_dict()}

    def steps(request: Request) -> dict[str, Any]:
        return read_steps(context, request.path_params["name"])

    def new(request: Request) -> dict[str, Any]:
        folder, query = context.folder, request.query_params
        return {
            "corpora": folder.corpora(),
            "filled": Corpus.read(folder, query["of"]) if query.get("of") else None,
            "recordings": folder.recordings(),
            "pages": query.get("pages", _PAGES),
            "searches": default_source() is not None,
        }

    one = f"{PREFIX}/corpora/{{name:path}}"
    return [
        post_route(f"{PREFIX}/corpora", create),
        post_route(f"{one}/go-on", go_on),
        Route(one, json_endpoint(api)),
        Route("/corpora/new", context.page_endpoint("new_corpus", new)),
        Route("/corpora/{name:path}", context.page_endpoint("corpus", steps)),
        Route("/parts/corpora/{name:path}", context.page_endpoint("corpus_steps", steps)),
    ]


def start(context: StudioContext, corpus: Corpus, pages: int) -> Job:
    """Start or resume the creation of a corpus of at most `pages` fetched pages.

    If the keywords, pages or recording of a failed corpus were corrected, it is created anew.
    """
    with context.job_lock():
        if context.jobs.running(CORPUS, corpus.name) is not None:
            raise UserError(f"{corpus.name} is being created already: wait until it has finished")
        written = (f"crawl/{FOLDER}", ".examples", "critic-1", "plan.json", "topic.toml")
        folder, *_ = [context.folder.safe_path(f"{corpus.name}/{each}") for each in written]
        order = context.folder.safe_path(f"{corpus.name}/{ORDER_FILE}")
        with reporting_write_errors(folder):
            order.parent.mkdir(parents=True, exist_ok=True)
            if not order.exists() or Corpus.read(context.folder, corpus.name) != corpus:
                CorpusFolder(order.parent).discard_topic()
                # the command replaces this file when it has checked its arguments
                write_atomically(order, json.dumps(corpus.order()))
            folder.mkdir(parents=True, exist_ok=True)
        return context.jobs.start(CORPUS, corpus.name, corpus.arguments(pages))


def list_corpora(context: StudioContext) -> list[dict[str, Any]]:
    """Return the corpora in the studio's folder for the first page.

    Each corpus is described by ``name``, ``keywords``, ``state`` (of its latest job, or empty),
    and ``exported`` (whether the file with its pages exists).
    """
    folder = context.folder
    states = {job.subject: job.state for job in reversed(context.jobs.all(kind=CORPUS))}
    found = []
    for name in folder.corpora():
        with suppress(UserError):
            keywords = Corpus.read(folder, name).keywords
            exported = folder.has_file(f"{name}/crawl/{FOLDER}/{_FILE}")
            row = {"name": name, "keywords": keywords, "exported": exported}
            found.append(row | {"state": states.get(name, "")})
    return found


def read_steps(context: StudioContext, name: str) -> dict[str, Any]:
    """Return the state of a corpus for its page.

    The fields ``topic`` (numbers of start pages and target pages), ``critic`` (name), ``plan``
    (facts and warnings), ``crawl`` (its `crawl_summary`) and ``exports`` are empty as long as the
    step is not finished. The field ``critic`` names the critic with which the crawl started, or
    else the latest critic. The field ``crawled`` is True if the crawl has ended by itself and has
    fetched a start page. The field ``correctable`` is True if the corpus has failed before its
    crawl fetched a page. The field ``job`` is the latest job, or None.
    """
    folder = context.folder
    files = CorpusFolder(folder.safe_path(name))
    job = next(iter(context.jobs.all(kind=CORPUS, subject=name)), None)
    if job is None:
        Corpus.read(folder, name)  # raises an error if there is no corpus
    critics = [each for each in files.critics() if folder.is_critic(each)]
    crawl = context.crawl(f"{name}/crawl") if CrawlFolder(files.crawl).exists else None
    used = files.crawl_critic() if critics and crawl is not None else next(reversed(critics), None)
    ended = "" if crawl is None else _read_end(crawl)
    failed = job is not None and job.state is JobState.FAILED
    is_ordered = folder.has_file(f"{name}/{ORDER_FILE}")
    return {
        "name": name,
        "job": job,
        "running": job is not None and job.state is JobState.RUNNING,
        "correctable": is_ordered and failed and (crawl is None or ended == SEEDS_UNREACHABLE),
        "topic": _read_topic(files) if folder.has_file(f"{name}/topic.toml") else None,
        "critic": None if used is None else used.name,
        "plan": _read_plan(files) if folder.has_file(f"{name}/plan.json") else None,
        "crawl": None if crawl is None else crawl_summary(crawl),
        "crawled": ended not in ("", SEEDS_UNREACHABLE),
        "exports": [] if crawl is None else list_exports(crawl.path),
        "file": _FILE,
        "pages": _pages_of(job) if crawl is None else 2 * crawl_summary(crawl)["fetched"],
    }


def _read_end(crawl: NamedCrawl) -> str:
    """Return why a crawl ended by itself; empty if it is running or was stopped."""
    with closing(open_store(crawl.path)) as store:
        reason = stop_reason(store)
    return "" if reason is None or reason in STOPPED_EARLY or crawl.control.in_use else reason


def _pages_of(job: Job | None) -> int:
    given = [] if job is None else [each for each in job.arguments if each.startswith("--pages=")]
    text = given[0].removeprefix("--pages=") if given else ""
    return int(text) if text.isascii() and text.isdecimal() else _PAGES


def _read_topic(files: CorpusFolder) -> dict[str, int]:
    definition = read_definition(files.topic)
    return {"seeds": len(definition.seeds), "targets": len(definition.targets)}


def _read_plan(files: CorpusFolder) -> dict[str, Any] | None:
    try:
        plan = CrawlPlan.from_dict(json.loads(read_regular(files.plan)))
    except (OSError, ValueError, RecursionError, UserError):
        return None
    fetched = sum(page.relevance is not None for page in plan.pages)
    relevant = sum(page.is_relevant for page in plan.pages)
    return {
        "fetched": fetched,
        "relevant": relevant,
        "words": plan.words,
        "warnings": list(plan.warnings),
    }


def _parse_pages(values: Mapping[str, Any]) -> int:
    checks, text, pages = FieldChecks(), text_value(values, "pages", str(_PAGES)), 0
    with checks.field("pages"):
        pages = int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
        if not 1 <= pages <= _MAX_PAGES:
            raise UserError(f"the number of pages must be from 1 to {_MAX_PAGES:,}")
    checks.finish()
    return pages


def _free_name(folder: StudioFolder, name: str) -> str:
    name = parse_name(name)
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(each for each in names if not folder.safe_path(each).exists())
