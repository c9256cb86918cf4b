"""Judges the pages of a running or stopped crawl again with another critic."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.completeness.recall_estimate import (
    ESTIMATES_FILE,
    FIRST_ESTIMATE,
    EstimateLog,
    RecallEstimator,
    read_estimates,
)
from focuscrawl.completeness.stop_rules import NEXT_FETCHES
from focuscrawl.crawl.first_visits import Verdict, judge_page, score_links
from focuscrawl.crawl.learning import model_row
from focuscrawl.crawl.page_source import PageSource, open_page_webs
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import MAX_CONSECUTIVE_FAILURES, reload, restore_links
from focuscrawl.critic.critic_files import load_trained, reject_callable_spec
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, refuse_link, update_lock, write_atomically
from focuscrawl.foundation.model_folder import DECODING_ERRORS, error_message
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.store import schema
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.history import History
from focuscrawl.store.writer import rewrite
from focuscrawl.strategies import JudgedPage, StrategyContext, make_strategy
from focuscrawl.webs.opening import open_web_from_file

if TYPE_CHECKING:
    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore, ModelRow
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


logger = logging.getLogger(__name__)

#: file in the folder of a crawl that requests another critic
REQUEST_FILE = "follow.json"
#: name of the request file after the crawl has refused the request and logged the reason
REFUSED_FILE = "follow.refused"
#: kind of the event that the crawl uses another critic
REDEFINED = "redefined"
_CHECK_INTERVAL = 0.1  # seconds between two checks for a request
_LESSON_RATIO = 1.1  # number of fetches between trainings, as a ratio; a crawl trains more often


@dataclass
class RejudgedCrawl:
    """New judgements and scores of all pages and links of a crawl, before they are stored."""

    #: seq, relevance and topic of each page that was judged again
    pages: list[tuple[int, float, str | None]] = field(default_factory=list)
    #: id, score and model version of each link; the score is None for a link not followed
    links: list[tuple[int, float | None, int]] = field(default_factory=list)
    #: seq of each page, and the strategy's memo of its links
    memos: list[tuple[int, bytes | None]] = field(default_factory=list)
    #: id, score and state of each URL whose score or state has changed
    urls: list[tuple[int, float | None, int]] = field(default_factory=list)
    models: list[ModelRow] = field(default_factory=list)
    unread: int = 0  # pages that could not be read or judged, and keep their judgement
    moved: tuple[int, int] = (0, 0)  # pages that are relevant now, and no longer relevant

    def describe(self) -> str:
        """Return a one-line summary of the new judgements, which `parse_moved` reads."""
        up, down = self.moved
        line = f"{len(self.pages)} pages judged again: {up} now relevant, {down} now off topic"
        return f"{line}; {self.unread} pages could not be read again" if self.unread else line


_MOVED = re.compile(r"(\d+) now relevant, (\d+) now off topic")


def parse_moved(detail: str) -> tuple[int, int]:
    """Return the numbers of pages that became relevant and off-topic, from a `REDEFINED` event."""
    match = _MOVED.search(detail)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def check_readable(store: CrawlStore, webs: Sequence[Web]) -> None:
    """Raise `UserError` if a crawl has pages, but no recording contains any of the pages."""
    history = History(store)
    pages = [page for page in history.first_fetches() if page.is_page]
    source = PageSource(webs, [row.url for row in history.urls()])
    if pages and not any(source.read(page.url, page.digest or b"") for page in pages):
        raise _unreadable_error(store)


def _unreadable_error(store: CrawlStore) -> UserError:
    return UserError(
        f"{store.location}: no page of the crawl can be read again: name a recording with --web; "
        "new crawls record their pages with -s FOCUSCRAWL_WARC=1"
    )


class Rejudging:
    """Judges all pages of a crawl with another critic and scores all links with a new strategy.

    Pages are judged again in the order in which the crawl fetched them. The crawl resumes with the
    new scores of the queued URLs. A strategy that learns is trained again each time the number of
    processed fetches has grown by a tenth. The strategy must be new, and the crawl must not fetch
    pages while `run` judges its pages.
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
        self._estimator = RecallEstimator(scores_are_relevance=strategy.expects_relevance)
        self._scores = np.full(len(self._urls), np.nan)
        self._linked = np.zeros(len(self._urls), np.bool_)
        self._found = RejudgedCrawl()
        self._failed_in_a_row = 0

    def run(self) -> RejudgedCrawl:
        """Judge every page and score every link of the crawl again.

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
            if fetch.is_revisit:
                # recordings return only the first version of a page that was fetched again
                self._keep_scores(fetch)
                continue
            relevance = self._rejudge_page(fetch)
            targets = [link.target for link in fetch.links]
            self._estimator.add_fetch(
                fetch.url, fetch.referrer, fetch.score, targets, relevant=relevance > RELEVANT
            )
            up += fetch.relevance <= RELEVANT < relevance
            down += relevance <= RELEVANT < fetch.relevance
            if (fetch.seq >= lesson_at or fetch.seq == last) and self._train():
                lesson_at = fetch.seq * _LESSON_RATIO
            self._on_page()
        self._found.moved = up, down
        if self._found.unread and not self._found.pages:
            raise _unreadable_error(self._store)
        self._found.urls = [*self._new_states()]
        return self._found

    def write_estimate(self, path: Path) -> None:
        """Replace all recall estimates in a file by one estimate from the new judgements."""
        next_fetches = next((each.next_fetches for each in read_estimates(path)), NEXT_FETCHES)
        path.unlink(missing_ok=True)
        if self._estimator.fetched < FIRST_ESTIMATE:
            return
        queued = self._store.rows("SELECT score FROM url WHERE state = ?", (schema.QUEUED,))
        scores = np.array([np.inf if score is None else score for (score,) in queued])
        EstimateLog(path, 0).add(self._estimator.estimate(scores, next_fetches))

    def _rejudge_page(self, fetch: StoredFetch) -> float:
        """Judge the page of a fetch, score its links, and return the relevance."""
        if fetch.digest is None or (fetch.duplicate_of is not None and not fetch.links):
            self._strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
            return fetch.relevance
        targets = [link.target for link in fetch.links]
        read = self._source.read(fetch.url, fetch.digest, targets)
        verdict = None if read is None else self._judge(fetch, read[0])
        if read is None or verdict is None:
            self._found.unread += 1
            self._strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
            self._keep_scores(fetch)
            return fetch.relevance
        view, places = read
        relevance, probabilities, topic, _ = verdict
        self._strategy.observe(fetch.url, relevance, fetch.duplicate_of)
        if fetch.duplicate_of is None:
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
            self._skip_page(fetch, error)
            self._found.memos.append((fetch.seq, None))
            return relevance
        self._failed_in_a_row = 0
        self._scores[expansion.urls] = expansion.scores
        self._found.memos.append((fetch.seq, expansion.memo))
        version = self._strategy.model_version
        rows = zip(fetch.links, scores, strict=True)
        self._found.links += [(link.id, score, version) for link, score in rows]
        return relevance

    def _judge(self, fetch: StoredFetch, view: PageView) -> Verdict | None:
        try:
            verdict = judge_page(self._critic, view, self._languages)
            # the links of a duplicate are scored like those of a page off topic
            return verdict if fetch.duplicate_of is None else verdict._replace(relevance=0.0)
        except Exception as error:
            self._skip_page(fetch, error)
            return None

    def _skip_page(self, fetch: StoredFetch, error: Exception) -> None:
        """Log an error of critic or strategy; raise the error after many pages in a row."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= MAX_CONSECUTIVE_FAILURES:
            raise error
        logger.warning(
            "%s keeps its judgement, because critic or strategy failed: %r", fetch.url_text, error
        )

    def _keep_scores(self, fetch: StoredFetch) -> None:
        urls, scores = restore_links(self._strategy, fetch)
        self._scores[urls] = scores

    def _train(self) -> bool:
        if not self._strategy.is_training_due():
            return False
        lesson = self._strategy.learn()
        since, scores = self._strategy.adopt(lesson)
        self._scores[lesson.urls] = lesson.scores
        self._scores[since] = scores
        self._found.models.append(model_row(lesson))
        return True

    def _new_states(self) -> Sequence[tuple[int, float | None, int]]:
        """Return the URLs whose score or state changes: id, score, state."""
        changed: list[tuple[int, float | None, int]] = []
        for url, stored in enumerate(self._urls):
            before, state, score = stored.score, stored.state, float(self._scores[url])
            if state == schema.QUEUED and before is None:
                continue  # a start page precedes all links
            if state == schema.QUEUED:
                if np.isfinite(score):
                    changed.append((url, score, state))
                elif self._found.pages and self._linked[url]:  # others were requested by a spider
                    changed.append((url, None, schema.UNFOLLOWED))
            elif state == schema.UNFOLLOWED and np.isfinite(score):
                changed.append((url, score, schema.QUEUED))
        return changed


def resumed_config(
    folder: CrawlFolder, config: CrawlConfig, critic: Critic
) -> tuple[CrawlConfig, Critic]:
    """Return the configuration and the critic with which a crawl starts or resumes.

    The critic and the topic of a crawl can change after its start. If the arguments name the
    critic and topic with which the crawl started, the crawl resumes with its present critic and
    topic. So the command that started a crawl also resumes the crawl.
    """
    if not folder.exists:
        return config, critic
    identity = folder.identity()
    first = (identity.get("begun_critic"), identity.get("begun_topic"))
    if first != (critic.fingerprint, ",".join(config.topics)):
        return config, critic
    # only the name: the folder may have been moved
    spec = _critic_in_folder(folder.path, Path(identity["critic_name"]).name)
    config = config.with_values(critic=spec, topic=identity["topic"])
    return config, load_trained(spec, config.topic)


def _critic_in_folder(folder: Path, name: str) -> str:
    """Return the path of a critic in a crawl's folder, whose files may be untrusted.

    Raises
    ------
    UserError
        The critic is a program, or is not in the folder.
    """
    reject_callable_spec(name, str(folder), "-a critic=")
    if Path(name).name != name:
        raise UserError(
            f"{folder}: the requested critic {name} is not in this folder: remove {REQUEST_FILE}"
        )
    refuse_link(folder / name)
    return str(folder / name)


def check_topic_changeable(store: CrawlStore, identity: Mapping[str, str]) -> None:
    """Raise `UserError` if a crawl uses a knowledge file, which is valid for one topic only."""
    if identity.get("knowledge"):
        raise UserError(
            f"{store.location}: a crawl with knowledge of its topic cannot change its topic: "
            "start a new crawl without knowledge"
        )


def rejudge_crawl(
    store: CrawlStore,
    folder: Path,
    critic_name: str,
    topic: str,
    *,
    webs: Sequence[Web] | None = None,
    on_page: Callable[[], object] = lambda: None,
) -> tuple[Critic, Strategy, RejudgedCrawl]:
    """Judge the pages of a crawl again with another critic, and store the judgements.

    The crawl must not fetch pages during the call.

    Parameters
    ----------
    critic_name : str
        File name of a critic in ``folder``.
    topic : str
        Topic paths of the critic, separated by commas.
    webs : sequence of Web or None
        Webs with the pages; None for those in the identity of the crawl.
    on_page : callable
        Called for every page, for a progress display.

    Returns
    -------
    tuple of (Critic, Strategy, RejudgedCrawl)
        The critic, a strategy that has not observed any page, and the changes.

    Raises
    ------
    UserError
        The pages cannot be read again, or the crawl uses knowledge. Nothing was changed.
    """
    identity = store.identity()
    check_topic_changeable(store, identity)
    sources = open_page_webs(identity, folder) if webs is None else webs
    critic = load_trained(_critic_in_folder(folder, critic_name), topic)
    replayed = sources[0] if identity.get("web", "live") != "live" else None
    seed = int(identity.get("random_state", "0"))
    context = StrategyContext(critic, seed, replayed, tuple(topic.split(",")))

    with reporting_damage(store.location):
        options = dict(json.loads(identity.get("options", "{}")))

    def fresh() -> Strategy:
        return make_strategy(identity.get("strategy", "apprentice"), context, options)

    languages = LanguageFilter(filter(None, identity.get("languages", "").split(",")))
    rejudging = Rejudging(
        store, sources, critic=critic, strategy=fresh(), languages=languages, on_page=on_page
    )
    found = rejudging.run()
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
    rejudging.write_estimate(folder / ESTIMATES_FILE)
    return critic, fresh(), found


def request_topic_change(folder: Path, critic_name: str, topic: str, web: str | None) -> None:
    """Ask the crawl in ``folder`` to use another critic, now or when the crawl is resumed."""
    content = {"critic": critic_name, "topic": topic, "web": web}
    with update_lock(folder / REQUEST_FILE):
        write_atomically(folder / REQUEST_FILE, json.dumps(content))


def read_request(folder: Path) -> tuple[str, str, str | None] | None:
    """Return the request that `request_topic_change` wrote; None if there is no valid request."""
    try:
        return _parse_request(folder / REQUEST_FILE)
    except (UserError, OSError):
        return None


def remove_request(
    folder: Path, answered: tuple[str, str, str | None] | None, *, refused: bool = False
) -> None:
    """Remove a processed request for a topic change, unless a newer request has replaced it.

    Parameters
    ----------
    refused : bool
        Rename the file of the request to `REFUSED_FILE` instead.
    """
    request = folder / REQUEST_FILE
    with update_lock(request):
        if read_request(folder) != answered:
            return
        if refused:
            request.replace(folder / REFUSED_FILE)
        else:
            request.unlink(missing_ok=True)


def _parse_request(request: Path) -> tuple[str, str, str | None]:
    """Return the arguments of `request_topic_change` (critic, topic, web) from a request file.

    Raises
    ------
    UserError
        The file is invalid.
    """
    try:
        with open(request, encoding="utf-8", opener=open_nofollow) as file:
            content = json.load(file)
        critic, topic, web = (content[name] for name in ("critic", "topic", "web"))
    except DECODING_ERRORS as error:
        raise UserError(
            f"{request} is not a valid request ({error_message(error)}): remove this file"
        ) from error
    if not (isinstance(critic, str) and isinstance(topic, str) and isinstance(web, str | None)):
        raise UserError(f"{request} is not a valid request: remove this file")
    return critic, topic, web


class TopicChange(Part):
    """Judges the pages of a running crawl again when another critic is requested.

    Before a topic change, the crawl records the fetches in flight and starts no new fetches. For a
    topic change, a background thread judges all pages of the crawl again and restores the crawl.
    Until the background thread has finished, no other thread may use the frontier and the URLs;
    see `CrawlState.reloading`.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._request = crawl.folder.path / REQUEST_FILE
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-change")
        self._future: Future[None] | None = None
        self._next_check = -math.inf

    def poll(self, now: float) -> bool:
        """Start the background thread for a requested topic change; apply the thread's result."""
        if self._future is not None and self._future.done():
            done, self._future = self._future, None
            self._crawl.reloading = False
            done.result()
        elif self._future is None and now >= self._next_check:
            if not self._request.exists():
                self._next_check = now + _CHECK_INTERVAL
            elif self._crawl.in_flight:
                return True
            else:
                self._crawl.reloading = True
                self._future = self._thread.submit(self._apply_request)
        return self._future is not None

    def close(self) -> None:
        """Wait until the background thread has finished."""
        self._thread.shutdown()
        self._future = None
        self._crawl.reloading = False

    def _apply_request(self) -> None:
        crawl, folder = self._crawl, self._crawl.folder.path
        crawl.flush()
        request = read_request(folder)
        try:
            name, topic, web_name = _parse_request(self._request)
            webs = [crawl.web] if crawl.web is not None else None
            if webs is None:
                others = [] if web_name is None else [open_web_from_file(web_name, self._request)]
                webs = open_page_webs(crawl.store.identity(), folder, others)
            critic, strategy, found = rejudge_crawl(crawl.store, folder, name, topic, webs=webs)
        except UserError as error:
            logger.error("cannot change the topic definition of the crawl: %s", error)
            remove_request(folder, request, refused=True)
            return
        crawl.critic, crawl.strategy = critic, strategy
        crawl.config = crawl.config.with_values(critic=name, topic=topic)
        reload(crawl)
        logger.info("the crawl uses the new topic definition: %s", found.describe())
        remove_request(folder, request)
