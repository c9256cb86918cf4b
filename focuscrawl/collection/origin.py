"""The provenance of an export: crawl arguments, outcomes, robots directives, critic quality."""

# ruff: noqa: PLC0415 - importing scikit-learn takes a second, and `--help` needs no critic

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from focuscrawl.crawl.target_pages import target_states
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, write_atomically
from focuscrawl.foundation.user_input import NO_PROGRESS, Progress
from focuscrawl.page.documents import is_pdf
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.robots_rules import DEFAULT_AGENT, split_rules
from focuscrawl.page.walk import parse_tree
from focuscrawl.report.plain_text import one_line
from focuscrawl.report.summary import Summary
from focuscrawl.store.history import History
from focuscrawl.topics import read_verdicts

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Answer, Web


_ROBOTS = ("x-robots-tag", "robots", DEFAULT_AGENT)
_TDM = ("tdm-reservation", "tdm-policy")
_HEAD = 1 << 16  # bytes of a page searched for `meta` elements
_MAX_DIRECTIVES, _LONGEST_DIRECTIVE = 20, 100  # directives of a page, characters of each
FILE = "critic-quality.json"  #: in the crawl's folder
_LARGEST_FILE = 1 << 16  # bytes
_FORBIDDEN = "Forbidden by robots.txt"


def find_answer(webs: Sequence[Web], url: str) -> Answer | None:
    """Return the first recorded response with a 2xx status for a URL, or None."""
    for web in webs:
        (known,) = web.resolve([url])
        answer = None if known is None else web.fetch(known)
        if answer is not None and 200 <= answer.status < 300:
            return answer
    return None


def read_robots_signals(answer: Answer) -> list[str]:
    """Return the distinct robots and text-mining directives in a page, such as ``noindex``.

    The directives are read from the header X-Robots-Tag, the element ``<meta name=robots>``, and
    the headers and ``meta`` elements of the TDM Reservation Protocol (W3C Community Group). The
    TDM Reservation Protocol's file for a whole host is not read.
    """
    directives = (one_line(each, _LONGEST_DIRECTIVE) for each in _read_directives(answer))
    return [*dict.fromkeys(filter(None, directives))][:_MAX_DIRECTIVES]


def _read_directives(answer: Answer) -> Iterator[str]:
    for name, value in [*answer.headers, *_meta_elements(answer)]:
        plain = name.strip().lower()
        if plain in _ROBOTS:
            named = f"{plain}: " if plain == DEFAULT_AGENT else ""
            for agent, rule in split_rules(value):
                yield f"{agent}: {rule}" if agent else f"{named}{rule}"
        elif plain in _TDM and value.strip():
            yield f"{plain}={value.strip()}"


def _meta_elements(answer: Answer) -> Iterator[tuple[str, str]]:
    if is_pdf(answer.body):
        return
    _, encoding = answer.content_type
    root = parse_tree(to_utf8(answer.body[:_HEAD], encoding)[0])
    for meta in () if root is None else root.iter("meta"):
        yield meta.get("name", ""), meta.get("content", "")


@dataclass(frozen=True)
class CriticQuality:
    """Quality of a critic, measured by cross-validation on its examples.

    Attributes
    ----------
    on, off : int
        Numbers of relevant and of off-topic examples.
    precision, recall : tuple[float, float, float] | None
        Value and bounds of the 90 % interval, at a relevance above 0.5; None: not measured.
    others, called : int
        Number of unlabelled pages, and number of them that are judged relevant.
    why_not : str
        Why the quality was not measured, if so.
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
    progress: Progress = NO_PROGRESS,
) -> CriticQuality:
    """Return the quality of a crawl's critic from the crawl's folder, or else measure it now.

    The pages of the critic's examples are read from the recordings `webs`. The measured quality is
    saved in the crawl's folder.
    """
    fingerprint = identity.get("critic", "")
    quality = _read_quality(folder, fingerprint)
    if quality is None:
        try:
            quality = _measure_quality(identity, webs, progress)
        except UserError as error:
            return CriticQuality(why_not=str(error))
        saved = {"critic": fingerprint, **asdict(quality)}
        with suppress(OSError):  # in a read-only folder, the next export measures again
            write_atomically(folder / FILE, json.dumps(saved, indent=1) + "\n")
    return quality


def _measure_quality(
    identity: Mapping[str, str], webs: Sequence[Web], progress: Progress
) -> CriticQuality:
    from focuscrawl.critic.assessment import Quality
    from focuscrawl.critic.critic_files import find_model, read_critic
    from focuscrawl.critic.example_checks import critic_phrases
    from focuscrawl.critic.focused_critic import is_few_shot
    from focuscrawl.taxonomy import parse_topics

    name, topic = identity.get("critic_name", ""), identity.get("topic", "")
    if is_callable_spec(name):
        raise UserError("the critic is a Python callable")
    trained, _ = read_critic(find_model(name))
    if not _has_fingerprint(name, topic, trained, identity.get("critic", "")):
        raise UserError(f"{name} has changed since the crawl")
    if not is_few_shot(trained):
        _check_examples([url for url, _ in trained.examples], webs)
    found = Quality.measure(trained, parse_topics(topic), webs, progress=progress)
    return CriticQuality(
        on=found.on,
        off=found.off,
        precision=None if found.precision is None else (*found.precision,),
        recall=None if found.recall is None else (*found.recall,),
        others=found.others,
        called=found.called,
        phrases=tuple(" ".join(words) for words in critic_phrases(trained)),
        why_not=found.why_not,
    )


def _check_examples(examples: Sequence[str], webs: Sequence[Web]) -> None:
    """Raise `UserError` if most of a critic's examples are not recorded."""
    recorded: set[str] = set()
    for web in webs:
        known = web.resolve(examples)
        recorded.update(url for url, found in zip(examples, known, strict=True) if found)
    if 2 * len(recorded) < len(examples):
        raise UserError(
            f"only {len(recorded)} of {len(examples)} examples of the critic are recorded; name "
            "the recorded web of the training with --web"
        )


def _has_fingerprint(name: str, topic: str, trained: TrainedCritic, fingerprint: str) -> bool:
    from focuscrawl.critic.critic_files import load_trained

    choices = (False, True) if trained.calibration is not None else (False,)
    return fingerprint in (
        load_trained(name, topic, calibrated=each).fingerprint for each in choices
    )


def _read_quality(folder: Path, fingerprint: str) -> CriticQuality | None:
    """Read a saved result; None if the file is missing, damaged or of another critic."""
    try:
        with open(folder / FILE, "rb", opener=open_nofollow) as file:
            found: Any = json.loads(file.read(_LARGEST_FILE))
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
    # OverflowError: an infinite number; RecursionError: deeply nested JSON
    except (OSError, UserError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _share(found: Any) -> tuple[float, float, float] | None:
    if found is None:
        return None
    value, low, high = map(float, found)
    return value, low, high


_UNKNOWN = CriticQuality(why_not="no result is available")


@dataclass(frozen=True)
class Origin:
    """Facts about a crawl for the datasheet of its export.

    Attributes
    ----------
    start_arguments : tuple[str, ...]
        Distinct arguments of the runs of the crawl.
    seeds : tuple[tuple[str, float | None], ...]
        Start URLs and their relevance; None: no page was fetched.
    outcomes : Mapping[str, int]
        Number of fetches by outcome (`focuscrawl.report.outcomes`).
    forbidden : int
        Number of URLs that a robots.txt forbids.
    """

    start_arguments: tuple[str, ...] = ()
    seeds: tuple[tuple[str, float | None], ...] = ()
    stopped: str = ""
    fetched: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    forbidden: int = 0
    completeness: RecallEstimate | None = None
    targets: tuple[str, ...] = ()  #: URLs of the target pages of the crawl
    critic: CriticQuality = _UNKNOWN
    verdicts: Mapping[str, str] = field(default_factory=dict)  #: ``good`` or ``bad``, by URL

    @classmethod
    def of(
        cls, store: CrawlStore, folder: Path, webs: Sequence[Web], progress: Progress = NO_PROGRESS
    ) -> Self:
        """Read the facts from a crawl's store; measure the quality of its critic if necessary."""
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
            targets=tuple(target_states(store, folder)),
            critic=get_critic_quality(summary.identity, folder, webs, progress),
            verdicts=read_verdicts(folder),
        )


def _seeds(store: CrawlStore) -> tuple[tuple[str, float | None], ...]:
    rows = store.rows(
        "SELECT u.url, CASE WHEN p.status BETWEEN 200 AND 299 THEN p.relevance END "
        "FROM url u LEFT JOIN page p ON p.url = u.id "
        "WHERE u.score IS NULL AND u.referrer IS NULL AND u.depth = 0 ORDER BY u.id"
    )
    return tuple((url, relevance) for url, relevance in rows)
