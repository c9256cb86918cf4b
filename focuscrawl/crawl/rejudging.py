"""A crawl judged anew by another critic, while it runs or at rest."""

from __future__ import annotations

import json
import logging
import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.completeness.recall_estimate import FILE as ESTIMATES
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.first_visits import judge_page, score_links
from focuscrawl.crawl.learning import model_row
from focuscrawl.crawl.page_source import PageSource, open_page_webs
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import MAX_CONSECUTIVE_FAILURES, reload, restore_links
from focuscrawl.critic.critic_files import load_trained, reject_callable_spec
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import changing, open_plain, refuse_link, write_whole
from focuscrawl.foundation.model_folder import UNSOUND, reason
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.store import schema
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History
from focuscrawl.store.writer import rewrite
from focuscrawl.strategies import JudgedPage, StrategyContext, make_strategy
from focuscrawl.webs.opening import open_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.first_visits import Verdict
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore, ModelRow
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


logger = logging.getLogger(__name__)

#: in the crawl's folder: the critic that it is to follow
REQUEST_FILE = "follow.json"
#: the same, if the crawl could not; its log says why
REFUSED_FILE = "follow.refused"
#: kind of the event of a new definition
REDEFINED = "redefined"
_EVERY = 0.1  # seconds between two looks for a request
_APART = 1.1  # fetches from a lesson to the next, as a ratio: a crawl has many times as many


@dataclass
class Rejudged:
    """A crawl as another critic judges it; nothing of it is in the store yet.

    Attributes
    ----------
    pages : (seq, relevance, topic) of the pages read again
    links : (id, score, model version) of their links; a score of None: not followed
    memos : (seq, the strategy's memo of the page's links)
    urls : (URL, score, state) of those that wait, or would
    models : lessons of a strategy that learns
    unread : pages that could not be read or judged again, and keep their judgement
    moved : pages whose relevance went over 1/2, up or down
    """

    pages: list[tuple[int, float, str | None]] = field(default_factory=list)
    links: list[tuple[int, float | None, int]] = field(default_factory=list)
    memos: list[tuple[int, bytes | None]] = field(default_factory=list)
    urls: list[tuple[int, float | None, int]] = field(default_factory=list)
    models: list[ModelRow] = field(default_factory=list)
    unread: int = 0
    moved: tuple[int, int] = (0, 0)

    def describe(self) -> str:
        """Return the outcome in one line."""
        up, down = self.moved
        line = f"{len(self.pages)} pages judged anew: {up} now relevant, {down} no longer"
        return f"{line}; {self.unread} could not be read again" if self.unread else line


def check_readable(store: CrawlStore, webs: Sequence[Web]) -> None:
    """Raise `UserError` if a crawl has pages, and none of them can be read again.

    Parameters
    ----------
    webs : where its pages are, in the order to look for one
    """
    history = History(store)
    pages = [page for page in history.first_fetches() if page.is_page]
    source = PageSource(webs, [row.url for row in history.urls()])
    if pages and not any(source.read(page.url, page.digest or b"") for page in pages):
        raise _unreadable(store)


def _unreadable(store: CrawlStore) -> UserError:
    return UserError(
        f"{store.where}: none of its pages can be read again: record them with "
        "-s FOCUSCRAWL_WARC=1, or name a recording of them with --web"
    )


class Rejudging:
    """Goes through a crawl as if it had been judged by another critic from the start.

    The same pages in the same order, whatever would have been fetched instead; the strategy
    sees them anew, and its scores of the URLs that wait are those the crawl continues with. A
    strategy that learns has a lesson whenever there are a tenth more fetches.

    Parameters
    ----------
    store : of the crawl, which must not be fetching meanwhile
    webs : where the pages are read again, in the order to look for one
    critic, strategy : the new ones; the strategy has seen nothing yet
    languages : that the crawl is confined to
    on_page : called for every page
    """

    def __init__(
        self,
        store: CrawlStore,
        webs: Sequence[Web],
        *,
        critic: Critic,
        strategy: Strategy,
        languages: LanguageFilter,
        on_page: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._critic = critic
        self._strategy = strategy
        self._languages = languages
        self._on_page = on_page
        self._urls = [*History(store).urls()]
        self._source = PageSource(webs, [row.url for row in self._urls])
        self._scores = np.full(len(self._urls), np.nan)
        self._linked = np.zeros(len(self._urls), np.bool_)
        self._duplicates = Duplicates()
        self._found = Rejudged()
        self._failed_in_a_row = 0

    def run(self) -> Rejudged:
        """Judge every page, score every link.

        Raises
        ------
        UserError
            No page of the crawl can be read again.
        """
        up = down = 0
        lesson_at = 1.0
        history = History(self._store)
        last = history.n_fetches()
        for fetch in history.fetches():
            self._linked[[link.target for link in fetch.links]] = True
            if fetch.again:
                # of a page fetched twice, a recording answers with the first only
                self._recall(fetch)
                continue
            relevance = self._page(fetch)
            up += fetch.relevance <= RELEVANT < relevance
            down += relevance <= RELEVANT < fetch.relevance
            if (fetch.seq >= lesson_at or fetch.seq == last) and self._lesson():
                lesson_at = fetch.seq * _APART
            self._on_page()
        self._found.moved = up, down
        if self._found.unread and not self._found.pages:
            raise _unreadable(self._store)
        self._found.urls = [*self._states()]
        return self._found

    def _page(self, fetch: StoredFetch) -> float:
        """Judge one fetch, and score its links."""
        if fetch.digest is None or fetch.duplicate_of is not None:
            self._strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
            return fetch.relevance
        names = Duplicates.known_urls(self._urls[fetch.url].url, fetch.canonical)
        self._duplicates.add(fetch.url, fetch.digest, names)
        targets = [link.target for link in fetch.links]
        read = self._source.read(fetch.url, fetch.digest, targets)
        verdict = None if read is None else self._verdict(fetch, read[0])
        if read is None or verdict is None:
            self._found.unread += 1
            self._strategy.observe(fetch.url, fetch.relevance, None)
            self._recall(fetch)
            return fetch.relevance
        view, places = read
        relevance, probabilities, topic, _ = verdict
        self._strategy.observe(fetch.url, relevance, None)
        self._found.pages.append((fetch.seq, relevance, topic))
        page = JudgedPage(
            view=view,
            url=fetch.url,
            seq=fetch.seq,
            depth=self._urls[fetch.url].depth,
            relevance=relevance,
            probabilities=probabilities,
            links=places,
            targets=np.array(targets, np.int64),
            referrer=self._urls[fetch.url].referrer,
        )
        try:
            expansion, scores = score_links(self._strategy, page)
        except Exception as error:
            self._failed(fetch, error)
            self._found.memos.append((fetch.seq, None))
            return relevance
        self._failed_in_a_row = 0
        self._scores[expansion.urls] = expansion.scores
        self._found.memos.append((fetch.seq, expansion.memo))
        version = self._strategy.model_version
        rows = zip(fetch.links, scores, strict=True)
        self._found.links += [(link.id, score, version) for link, score in rows]
        return relevance

    def _verdict(self, fetch: StoredFetch, view: PageView) -> Verdict | None:
        try:
            return judge_page(self._critic, view, self._languages)
        except Exception as error:
            self._failed(fetch, error)
            return None

    def _failed(self, fetch: StoredFetch, error: Exception) -> None:
        """Skip a page that critic or strategy fails on; raise the error after many."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= MAX_CONSECUTIVE_FAILURES:
            raise error
        logger.warning("%s keeps what it had: critic or strategy failed: %r", fetch.name, error)

    def _recall(self, fetch: StoredFetch) -> None:
        urls, scores = restore_links(self._strategy, fetch)
        self._scores[urls] = scores

    def _lesson(self) -> bool:
        if not self._strategy.is_training_due():
            return False
        lesson = self._strategy.learn()
        since, scores = self._strategy.adopt(lesson)
        self._scores[lesson.urls] = lesson.scores
        self._scores[since] = scores
        self._found.models.append(model_row(lesson))
        return True

    def _states(self) -> Sequence[tuple[int, float | None, int]]:
        """Return the URLs that wait with another score, or do no longer, or now do."""
        changed: list[tuple[int, float | None, int]] = []
        for url, stored in enumerate(self._urls):
            before, state, score = stored.score, stored.state, float(self._scores[url])
            if state == schema.QUEUED and before is None:
                continue  # a start URL comes first, whatever links to it
            if state == schema.QUEUED:
                if np.isfinite(score):
                    changed.append((url, score, state))
                elif self._found.pages and self._linked[url]:  # others were asked for
                    changed.append((url, None, schema.UNFOLLOWED))
            elif state == schema.UNFOLLOWED and np.isfinite(score):
                known = self._duplicates.find_by_url(stored.url) is not None
                changed.append((url, score, schema.EXCLUDED if known else schema.QUEUED))
        return changed


def resumed_config(
    folder: CrawlFolder, config: CrawlConfig, critic: Critic
) -> tuple[CrawlConfig, Critic]:
    """Return the configuration and the critic that a crawl resumes with.

    Those given, unless the crawl was started with them and follows others since: the command that
    started a crawl resumes it.
    """
    if not folder.exists:
        return config, critic
    identity = folder.identity()
    begun = (identity.get("begun_critic"), identity.get("begun_topic"))
    if begun != (critic.fingerprint, ",".join(config.topics)):
        return config, critic
    # the folder may have been moved since
    spec = _kept(folder.path, Path(identity["critic_name"]).name)
    config = config.with_values(critic=spec, topic=identity["topic"])
    return config, load_trained(spec, config.topic)


def _kept(folder: Path, name: str) -> str:
    """Return the critic of a name in a crawl's folder, which may be a stranger's.

    Raises
    ------
    UserError
        It is a program, or elsewhere.
    """
    reject_callable_spec(name, str(folder), "-a critic=")
    if Path(name).name != name:
        raise UserError(
            f"{folder} is to follow the critic {name}, which is not in it: remove {REQUEST_FILE}"
        )
    refuse_link(folder / name)
    return str(folder / name)


def check_topic_changeable(store: CrawlStore, identity: Mapping[str, str]) -> None:
    """Raise `UserError` if a crawl builds on knowledge of the topic as it was."""
    if identity.get("knowledge"):
        raise UserError(
            f"{store.where}: this crawl began with knowledge of its topic as it was: have a crawl "
            "without knowledge follow another definition"
        )


def rejudge_crawl(
    store: CrawlStore,
    folder: Path,
    critic_name: str,
    topic: str,
    *,
    webs: Sequence[Web] | None = None,
    on_page: Callable[[], object] = lambda: None,
) -> tuple[Critic, Strategy, Rejudged]:
    """Judge a crawl that is not fetching anew by a critic, and store that.

    Parameters
    ----------
    store, folder : of the crawl
    critic_name : of a critic in `folder`
    topic : topic paths of it, comma-separated
    webs : where the pages are; None: by the identity of the crawl
    on_page : called for every page

    Returns
    -------
    The critic, a strategy that has seen nothing yet, and what changed

    Raises
    ------
    UserError
        The pages cannot be read again, or the crawl builds on knowledge of the topic; nothing
        was changed then.
    """
    identity = store.identity()
    check_topic_changeable(store, identity)
    sources = open_page_webs(identity, folder) if webs is None else webs
    critic = load_trained(_kept(folder, critic_name), topic)
    replayed = sources[0] if identity.get("web", "live") != "live" else None
    seed = int(identity.get("random_state", "0"))
    context = StrategyContext(critic, seed, replayed, tuple(topic.split(",")))

    with taking_in(store.where):
        options = dict(json.loads(identity.get("options", "{}")))

    def fresh() -> Strategy:
        return make_strategy(identity.get("strategy", "apprentice"), context, options)

    languages = LanguageFilter(filter(None, identity.get("languages", "").split(",")))
    found = Rejudging(
        store, sources, critic=critic, strategy=fresh(), languages=languages, on_page=on_page
    ).run()
    now = {
        "critic": critic.fingerprint,
        "critic_name": str(folder / critic_name),
        "topic": topic,
        "begun_critic": identity.get("begun_critic", identity.get("critic", "")),
        "begun_topic": identity.get("begun_topic", identity.get("topic", "")),
    }
    rewrite(
        store,
        pages=found.pages,
        links=found.links,
        memos=found.memos,
        urls=found.urls,
        models=found.models,
        identity=now,
        event=(History(store).n_fetches(), REDEFINED, f"{critic_name}: {found.describe()}"),
    )
    (folder / ESTIMATES).unlink(missing_ok=True)  # they were of the topic as it was
    return critic, fresh(), found


def request_topic_change(folder: Path, critic_name: str, topic: str, web: str | None) -> None:
    """Ask the crawl in `folder` to follow another critic, now or when it is resumed."""
    wanted = {"critic": critic_name, "topic": topic, "web": web}
    with changing(folder / REQUEST_FILE):
        write_whole(folder / REQUEST_FILE, json.dumps(wanted))


def read_request(folder: Path) -> tuple[str, str, str | None] | None:
    """Return the request of `request_topic_change` in a folder; None: none that makes sense."""
    try:
        return _wanted(folder / REQUEST_FILE)
    except (UserError, OSError):
        return None


def remove_request(
    folder: Path, answered: tuple[str, str, str | None] | None, *, refused: bool = False
) -> None:
    """Remove a request that was answered, see `read_request`, unless there is another since.

    Parameters
    ----------
    refused : keep it as `REFUSED_FILE`
    """
    request = folder / REQUEST_FILE
    with changing(request):
        if read_request(folder) != answered:
            return
        if refused:
            request.replace(folder / REFUSED_FILE)
        else:
            request.unlink(missing_ok=True)


def _wanted(request: Path) -> tuple[str, str, str | None]:
    """Return what `request_topic_change` was given: critic, topic, web.

    Raises
    ------
    UserError
        Something else is written there.
    """
    try:
        with open(request, encoding="utf-8", opener=open_plain) as file:
            asked = json.load(file)
        critic, topic, web = (asked[name] for name in ("critic", "topic", "web"))
    except UNSOUND as error:
        raise UserError(
            f"{request} asks for nothing that makes sense ({reason(error)})"
        ) from error
    if not (isinstance(critic, str) and isinstance(topic, str) and isinstance(web, str | None)):
        raise UserError(f"{request} asks for nothing that makes sense")
    return critic, topic, web


class TopicChange(Part):
    """Looks for a new definition of the topic, and judges the crawl anew, off the event loop.

    Nothing new is fetched meanwhile: what is in flight is recorded first, then the crawl is judged
    anew and restored in a thread of its own. Nobody else may touch frontier and URLs for that
    time, see `CrawlState.reloading`.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._request = crawl.folder.path / REQUEST_FILE
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-change")
        self._under_way: Future[None] | None = None
        self._next_look = -math.inf

    def poll(self, now: float) -> bool:
        """Start to judge anew if that is wanted and nothing is in flight, or finish it."""
        if self._under_way is not None and self._under_way.done():
            done, self._under_way = self._under_way, None
            self._crawl.reloading = False
            done.result()
        elif self._under_way is None and now >= self._next_look:
            if not self._request.exists():
                self._next_look = now + _EVERY
            elif self._crawl.in_flight:
                return True
            else:
                self._crawl.reloading = True
                self._under_way = self._thread.submit(self._follow)
        return self._under_way is not None

    def close(self) -> None:
        """Wait until what is under way is done."""
        self._thread.shutdown()
        self._under_way = None
        self._crawl.reloading = False

    def _follow(self) -> None:
        crawl, folder = self._crawl, self._crawl.folder.path
        crawl.flush()
        request = read_request(folder)
        try:
            name, topic, named = _wanted(self._request)
            webs = [crawl.web] if crawl.web is not None else None
            if webs is None:
                others = [] if named is None else [open_named(named, self._request)]
                webs = open_page_webs(crawl.store.identity(), folder, others)
            critic, strategy, found = rejudge_crawl(crawl.store, folder, name, topic, webs=webs)
        except UserError as error:
            logger.error("the new definition cannot be followed: %s", error)
            remove_request(folder, request, refused=True)
            return
        crawl.critic, crawl.strategy = critic, strategy
        crawl.config = crawl.config.with_values(critic=name, topic=topic)
        reload(crawl)
        logger.info("following a new definition: %s", found.describe())
        remove_request(folder, request)
