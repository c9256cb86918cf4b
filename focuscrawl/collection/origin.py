"""Where a collection comes from: answers kept, what pages ask of robots, the critic's quality."""

# ruff: noqa: PLC0415 - scikit-learn takes a second to import, which `--help` can do without

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_plain, write_whole
from focuscrawl.foundation.user_input import SILENT, Progress
from focuscrawl.page import read_content_type
from focuscrawl.page.documents import is_pdf
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.walk import parse_tree
from focuscrawl.report.plain_text import one_line
from focuscrawl.report.summary import Summary
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from focuscrawl.completeness.recall_estimate import RecallEstimate
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Answer, Web


_ROBOTS = ("x-robots-tag", "robots")
_TDM = ("tdm-reservation", "tdm-policy")
_HEAD = 1 << 16  # bytes of a page that are looked at: such elements are in its head
_MOST, _LONGEST = 20, 100  # wishes of a page, characters of one
FILE = "critic-quality.json"  #: in the crawl's folder
_LONGEST_CARD = 1 << 16  # bytes of it
_FORBIDDEN = "Forbidden by robots.txt"


def find_answer(webs: Sequence[Web], url: str) -> Answer | None:
    """Return what came of a URL, the first answer with a status of 2xx; None: nothing is kept.

    Parameters
    ----------
    webs : that hold the pages as they came, in the order to look for one
    """
    for web in webs:
        (known,) = web.resolve([url])
        answer = None if known is None else web.fetch(known)
        if answer is not None and 200 <= answer.status < 300:
            return answer
    return None


def read_robots_signals(answer: Answer) -> list[str]:
    """Return what a page asks of robots and text miners, each once: ``noindex``.

    It asks by HTTP header or ``meta`` element: X-Robots-Tag, ``<meta name=robots>``, and the TDM
    Reservation Protocol of the W3C's community group, but for its file of a whole host.
    """
    wishes = (one_line(each, _LONGEST) for each in _wishes(answer))
    return [*dict.fromkeys(filter(None, wishes))][:_MOST]


def _wishes(answer: Answer) -> Iterator[str]:
    for name, value in [*answer.headers, *_of_page(answer)]:
        plain = name.strip().lower()
        if plain in _ROBOTS:
            yield from value.lower().split(",")
        elif plain in _TDM and value.strip():
            yield f"{plain}={value.strip()}"


def _of_page(answer: Answer) -> Iterator[tuple[str, str]]:
    if is_pdf(answer.body):
        return
    _, encoding = read_content_type(answer.header("content-type"))
    root = parse_tree(to_utf8(answer.body[:_HEAD], encoding)[0])
    for meta in () if root is None else root.iter("meta"):
        yield meta.get("name", ""), meta.get("content", "")


@dataclass(frozen=True)
class CriticQuality:
    """What is known of a critic.

    Attributes
    ----------
    on, off : examples on the topic and off it, each judged by what the others teach
    precision, recall : shares of R > 1/2 with their 90 % interval; None: not measured
    others, called : other pages that it was learned from, which nobody has looked at, and how many
        of them it takes for relevant
    phrases : that it was learned from
    why_not : why nothing was measured; empty: it was
    """

    on: int = 0
    off: int = 0
    precision: tuple[float, float, float] | None = None
    recall: tuple[float, float, float] | None = None
    others: int = 0
    called: int = 0
    phrases: tuple[str, ...] = ()
    why_not: str = ""


def get_critic_quality(
    identity: Mapping[str, str],
    folder: Path,
    webs: Sequence[Web],
    progress: Progress = SILENT,
) -> CriticQuality:
    """Return the card of a crawl's critic, measured now if it is not there.

    Parameters
    ----------
    identity : of the crawl, see `focuscrawl.store.CrawlStore.identity`
    folder : of the crawl, where the card is kept
    webs : where the critic's examples are, in the order to look for one
    """
    fingerprint = identity.get("critic", "")
    card = _kept(folder, fingerprint)
    if card is None:
        try:
            card = _measured(identity, webs, progress)
        except UserError as error:
            return CriticQuality(why_not=str(error))
        kept = {"critic": fingerprint, **asdict(card)}
        with suppress(OSError):  # nobody's to write: it is measured again next time
            write_whole(folder / FILE, json.dumps(kept, indent=1) + "\n")
    return card


def _measured(
    identity: Mapping[str, str], webs: Sequence[Web], progress: Progress
) -> CriticQuality:
    from focuscrawl.critic.assessment import Quality
    from focuscrawl.critic.critic_files import find_model, read_critic
    from focuscrawl.critic.example_checks import phrases_of_critic
    from focuscrawl.critic.focused_critic import is_from_little
    from focuscrawl.taxonomy import read_topics

    name, topic = identity.get("critic_name", ""), identity.get("topic", "")
    if is_callable_spec(name):
        raise UserError("the critic is a program")
    trained, _ = read_critic(find_model(name))
    if not _is_the_same(name, topic, trained, identity.get("critic", "")):
        raise UserError(f"{name} is another critic by now")
    if not is_from_little(trained):
        _refuse_few([url for url, _ in trained.examples], webs)
    found = Quality.of(trained, read_topics(topic), webs, progress=progress)
    return CriticQuality(
        on=found.on,
        off=found.off,
        precision=None if found.precision is None else (*found.precision,),
        recall=None if found.recall is None else (*found.recall,),
        others=found.others,
        called=found.called,
        phrases=tuple(" ".join(words) for words in phrases_of_critic(trained)),
        why_not=found.why_not,
    )


def _refuse_few(examples: Sequence[str], webs: Sequence[Web]) -> None:
    """Raise `UserError` if most of a critic's examples are nowhere: the rest says little."""
    there: set[str] = set()
    for web in webs:
        known = web.resolve(examples)
        there.update(url for url, found in zip(examples, known, strict=True) if found is not None)
    if 2 * len(there) < len(examples):
        raise UserError(
            f"{len(there)} of {len(examples)} of its examples are here; --web names the recording "
            "that it was learned from"
        )


def _is_the_same(name: str, topic: str, trained: TrainedCritic, fingerprint: str) -> bool:
    from focuscrawl.critic.critic_files import load_trained

    either = (False, True) if trained.calibration is not None else (False,)
    found = (load_trained(name, topic, calibrated=each).fingerprint for each in either)
    return fingerprint in found


def _kept(folder: Path, fingerprint: str) -> CriticQuality | None:
    """Read the card; None if it is not there, of another critic, or not what was written."""
    try:
        with open(folder / FILE, "rb", opener=open_plain) as file:
            found: Any = json.loads(file.read(_LONGEST_CARD))
        if found["critic"] != fingerprint:
            return None
        return CriticQuality(
            on=int(found["on"]),
            off=int(found["off"]),
            precision=_share(found["precision"]),
            recall=_share(found["recall"]),
            others=int(found["others"]),
            called=int(found["called"]),
            phrases=tuple(map(str, found["phrases"])),
            why_not=str(found["why_not"]),
        )
    except (OSError, UserError, ValueError, TypeError, KeyError):
        return None
    except (OverflowError, RecursionError):  # infinite, or nested without end
        return None


def _share(found: Any) -> tuple[float, float, float] | None:
    if found is None:
        return None
    value, low, high = map(float, found)
    return value, low, high


_UNKNOWN = CriticQuality(why_not="nothing is known of it")


@dataclass(frozen=True)
class Origin:
    """What is told of a crawl to those who get its pages.

    Attributes
    ----------
    start_arguments : arguments of the crawl, once for each time they were others
    seeds : start URLs and their R; None: no page was had there
    stopped : why it ended, in words
    fetched : fetches, whatever came of them
    outcomes : fetches by what came of them, see `focuscrawl.report.outcomes`
    forbidden : URLs that were not fetched because a robots.txt forbids it
    completeness : estimate of how complete it is; None: none was made
    critic : how good its critic is
    """

    start_arguments: tuple[str, ...] = ()
    seeds: tuple[tuple[str, float | None], ...] = ()
    stopped: str = ""
    fetched: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    forbidden: int = 0
    completeness: RecallEstimate | None = None
    critic: CriticQuality = _UNKNOWN

    @classmethod
    def of(
        cls, store: CrawlStore, folder: Path, webs: Sequence[Web], progress: Progress = SILENT
    ) -> Self:
        """Read it from a crawl; measure the critic if that was not done before.

        Parameters
        ----------
        folder : of the crawl
        webs : where pages and examples are, in the order to look for one
        progress : told of the examples that the critic is measured by
        """
        summary, history = Summary.of(store), History(store)
        excluded = history.events("excluded")
        return cls(
            start_arguments=tuple(dict.fromkeys(each.detail for each in history.events("start"))),
            seeds=_seeds(store),
            stopped=summary.stopped,
            fetched=summary.fetched,
            outcomes=summary.outcomes,
            forbidden=sum(each.detail.endswith(_FORBIDDEN) for each in excluded),
            completeness=summary.completeness,
            critic=get_critic_quality(summary.identity, folder, webs, progress),
        )


def _seeds(store: CrawlStore) -> tuple[tuple[str, float | None], ...]:
    rows = store.rows(
        "SELECT u.url, CASE WHEN p.status BETWEEN 200 AND 299 THEN p.relevance END "
        "FROM url u LEFT JOIN page p ON p.url = u.id "
        "WHERE u.score IS NULL AND u.referrer IS NULL AND u.depth = 0 ORDER BY u.id"
    )
    return tuple((url, relevance) for url, relevance in rows)
