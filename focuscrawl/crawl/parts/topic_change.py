"""A crawl follows another definition of its topic: at rest, when it is resumed, or as it runs."""

from __future__ import annotations

import json
import logging
import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.completeness import FILE as ESTIMATES
from focuscrawl.crawl.page_source import webs_of
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.rejudging import Rejudged, Rejudging
from focuscrawl.crawl.restore import reload
from focuscrawl.critic.loading import load_trained, refuse_program
from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.locks import changing
from focuscrawl.foundation.model_folder import UNSOUND, reason
from focuscrawl.foundation.plain_files import open_plain, refuse_link
from focuscrawl.page.language import Languages
from focuscrawl.store.history import History
from focuscrawl.store.rewrite import rewrite
from focuscrawl.store.soundness import taking_in
from focuscrawl.strategies import StrategyContext, make_strategy
from focuscrawl.webs.by_name import open_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from focuscrawl.crawl.folder import CrawlFolder
    from focuscrawl.crawl.plan import CrawlPlan
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web

logger = logging.getLogger(__name__)

#: in the crawl's folder: the critic that a running crawl is to follow
REQUEST = "follow.json"
#: the same, when it could not: the crawl's log says why
REFUSED = "follow.refused"
#: kind of the event that tells of a new definition
REDEFINED = "redefined"

_EVERY = 0.1  # seconds between two looks for word


def following(folder: CrawlFolder, plan: CrawlPlan, critic: Critic) -> tuple[CrawlPlan, Critic]:
    """Return the plan and the critic that a crawl goes on with.

    Those given, unless the crawl was begun with them and has been told to follow others since:
    the command that began a crawl resumes it.
    """
    if not folder.exists:
        return plan, critic
    identity = folder.identity()
    begun = (identity.get("begun_critic"), identity.get("begun_topic"))
    if begun != (critic.fingerprint, ",".join(plan.topics)):
        return plan, critic
    # the folder may have been moved since
    spec = _kept(folder.path, Path(identity["critic_name"]).name)
    plan = replace(plan, critic=spec, topic=identity["topic"])
    return plan, load_trained(spec, plan.topic)


def _kept(folder: Path, name: str) -> str:
    """Return the critic of a name in a crawl's folder, which may be a stranger's.

    Raises
    ------
    UserError
        It is a program, or elsewhere.
    """
    refuse_program(name, str(folder), "-a critic=")
    if Path(name).name != name:
        raise UserError(
            f"{folder} is to follow the critic {name}, which is not in it: remove {REQUEST}"
        )
    refuse_link(folder / name)
    return str(folder / name)


def check_followable(store: CrawlStore, identity: Mapping[str, str]) -> None:
    """Raise `UserError` if a crawl builds on knowledge of the topic as it was."""
    if identity.get("knowledge"):
        raise UserError(
            f"{store.where}: this crawl began with knowledge of its topic as it was: have a crawl "
            "without knowledge follow another definition"
        )


def follow(
    store: CrawlStore,
    folder: Path,
    critic_name: str,
    topic: str,
    *,
    webs: Sequence[Web] | None = None,
    on_page: Callable[[], object] = lambda: None,
) -> tuple[Critic, Strategy, Rejudged]:
    """Have a crawl that is not fetching follow a critic: judge it anew and write that down.

    Parameters
    ----------
    store, folder : of the crawl
    critic_name : of a critic in `folder`
    topic : topic paths of it, comma-separated
    webs : where the pages are; None: as the crawl itself tells
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
    check_followable(store, identity)
    sources = webs_of(identity, folder) if webs is None else webs
    critic = load_trained(_kept(folder, critic_name), topic)
    replayed = sources[0] if identity.get("web", "live") != "live" else None
    seed = int(identity.get("random_state", "0"))
    context = StrategyContext(critic, seed, replayed, tuple(topic.split(",")))

    with taking_in(store.where):
        options = dict(json.loads(identity.get("options", "{}")))

    def fresh() -> Strategy:
        return make_strategy(identity.get("strategy", "apprentice"), context, options)

    languages = Languages(filter(None, identity.get("languages", "").split(",")))
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
        store.engine,
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


def ask_to_follow(folder: Path, critic_name: str, topic: str, web: str | None) -> None:
    """Leave word for the crawl that runs in `folder`, or will: it takes the rest upon itself."""
    wanted = {"critic": critic_name, "topic": topic, "web": web}
    with changing(folder / REQUEST):
        write_whole(folder / REQUEST, json.dumps(wanted))


def word_in(folder: Path) -> tuple[str, str, str | None] | None:
    """Return what `ask_to_follow` has left in a folder; None: nothing that makes sense."""
    try:
        return _wanted(folder / REQUEST)
    except (UserError, OSError):
        return None


def remove_word(
    folder: Path, word: tuple[str, str, str | None] | None, *, refused: bool = False
) -> None:
    """Remove a word that was answered, see `word_in`, but none that was left since.

    Parameters
    ----------
    refused : keep it as `REFUSED`
    """
    request = folder / REQUEST
    with changing(request):
        if word_in(folder) != word:
            return
        if refused:
            request.replace(folder / REFUSED)
        else:
            request.unlink(missing_ok=True)


def _wanted(request: Path) -> tuple[str, str, str | None]:
    """Return what `ask_to_follow` was given: critic, topic, web.

    Raises
    ------
    UserError
        Something else is written there.
    """
    try:
        with open(request, encoding="utf-8", opener=open_plain) as file:
            said = json.load(file)
        critic, topic, web = (said[name] for name in ("critic", "topic", "web"))
    except UNSOUND as error:
        raise UserError(
            f"{request} asks for nothing that makes sense ({reason(error)})"
        ) from error
    if not (isinstance(critic, str) and isinstance(topic, str) and isinstance(web, str | None)):
        raise UserError(f"{request} asks for nothing that makes sense")
    return critic, topic, web


class TopicChange(Part):
    """Looks for word of a new definition, and has the crawl follow it, off the event loop.

    Nothing new is fetched meanwhile: what is under way comes in first, then the crawl is judged
    anew and taken up again in a thread of its own. Nobody else may touch frontier and URLs for
    that time, see `CrawlState.reloading`.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._request = crawl.folder.path / REQUEST
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-change")
        self._under_way: Future[None] | None = None
        self._next_look = -math.inf

    @property
    def busy(self) -> bool:
        """True while the crawl is judged anew."""
        return self._under_way is not None

    def poll(self, now: float) -> bool:
        """Begin to follow if there is word and nothing is under way, or end it."""
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
        return self.busy

    def close(self) -> None:
        """Wait until what is under way is done."""
        self._thread.shutdown()
        self._under_way = None
        self._crawl.reloading = False

    def _follow(self) -> None:
        crawl, folder = self._crawl, self._crawl.folder.path
        crawl.flush()
        word = word_in(folder)
        try:
            name, topic, named = _wanted(self._request)
            webs = [crawl.web] if crawl.web is not None else None
            if webs is None:
                others = [] if named is None else [open_named(named, self._request)]
                webs = webs_of(crawl.store.identity(), folder, others)
            critic, strategy, found = follow(crawl.store, folder, name, topic, webs=webs)
        except UserError as error:
            logger.error("the new definition cannot be followed: %s", error)
            remove_word(folder, word, refused=True)
            return
        crawl.critic, crawl.strategy = critic, strategy
        crawl.plan = replace(crawl.plan, critic=name, topic=topic)
        reload(crawl)
        logger.info("following a new definition: %s", found.describe())
        remove_word(folder, word)
