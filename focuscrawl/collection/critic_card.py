"""How good the critic of a crawl is, by its own examples: measured once, kept with the crawl."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.callable_critic import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.plain_files import open_plain
from focuscrawl.foundation.progress_listener import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.webs.protocol import Web

FILE = "critic-quality.json"  #: in the crawl's folder
_LONGEST = 1 << 16  # bytes of it

# scikit-learn takes a second to import, which `--help` can do without
# ruff: noqa: PLC0415


@dataclass(frozen=True)
class CriticCard:
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


def critic_card(
    identity: Mapping[str, str],
    folder: Path,
    webs: Sequence[Web],
    progress: Progress = SILENT,
) -> CriticCard:
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
            return CriticCard(why_not=str(error))
        kept = {"critic": fingerprint, **asdict(card)}
        with suppress(OSError):  # nobody's to write: it is measured again next time
            write_whole(folder / FILE, json.dumps(kept, indent=1) + "\n")
    return card


def _measured(identity: Mapping[str, str], webs: Sequence[Web], progress: Progress) -> CriticCard:
    from focuscrawl.critic.few_examples_check import phrases_of_critic
    from focuscrawl.critic.files import read_critic
    from focuscrawl.critic.loading import find_model
    from focuscrawl.critic.quality import Quality
    from focuscrawl.critic.trained import is_from_little
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
    return CriticCard(
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
    from focuscrawl.critic.loading import load_trained

    either = (False, True) if trained.calibration is not None else (False,)
    found = (load_trained(name, topic, calibrated=each).fingerprint for each in either)
    return fingerprint in found


def _kept(folder: Path, fingerprint: str) -> CriticCard | None:
    """Read the card; None if it is not there, of another critic, or not what was written."""
    try:
        with open(folder / FILE, "rb", opener=open_plain) as file:
            found: Any = json.loads(file.read(_LONGEST))
        if found["critic"] != fingerprint:
            return None
        return CriticCard(
            on=int(found["on"]),
            off=int(found["off"]),
            precision=_share(found["precision"]),
            recall=_share(found["recall"]),
            others=int(found["others"]),
            called=int(found["called"]),
            phrases=tuple(map(str, found["phrases"])),
            why_not=str(found["why_not"]),
        )
    except (OSError, UserError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _share(found: Any) -> tuple[float, float, float] | None:
    if found is None:
        return None
    value, low, high = map(float, found)
    return value, low, high
