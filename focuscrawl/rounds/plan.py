"""What to crawl in rounds, and how: a TOML file."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.errors import UserError
from focuscrawl.foundation.toml_text import read_toml, text_of
from focuscrawl.foundation.values import TEXT, Reader, json_object, number, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def size_of_round(written: object) -> float:
    """Read the size of a round: a share of the budget, below 100 %, or a number of fetches.

    Raises
    ------
    ValueError
        It is neither.
    """
    text = str(written).strip()
    in_percent = text.endswith("%")
    share = float(text.removesuffix("%")) / 100.0 if in_percent else float(text)
    if not (0.0 < share < 1.0 or (not in_percent and share >= 1.0 and share % 1 == 0)):
        raise ValueError
    return share


#: what a plan may say of a crawl: keys of `CrawlPlan`
_OF_CRAWL: dict[str, Reader[Any]] = {
    "topic": TEXT,
    "critic": TEXT,
    "strategy": TEXT,
    "options": json_object('{"batch": 5}'),
    "seeds": TEXT,
    "web": TEXT,
    "budget": whole_number(1),
    "random_state": whole_number(),
}
#: and of its rounds: fields of `RoundsPlan`
_OF_ROUNDS: dict[str, Reader[Any]] = {
    "round": Reader("a share of the budget, as '1%', or a number of fetches", size_of_round),
    "buckets": whole_number(1, 1000),
    "seconds": number(1),
    "settings": json_object('{"DOWNLOAD_DELAY": 2}'),
}
_NEEDED = ("topic", "budget")


@dataclass(frozen=True)
class RoundsPlan:
    """A crawl in rounds.

    Attributes
    ----------
    crawl : what to crawl
    round : fetches of a round, below 1: as a share of the budget
    buckets : parts that the hosts are spread over; no more of a round can be done at a time
    settings : Scrapy's and ours, by name, for a crawl of the live Web
    seconds : of a live round, see `focuscrawl.rounds.round_time`; None: as many as fit its size
    """

    crawl: CrawlPlan
    round: float = 0.01
    buckets: int = 8
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def fetches(self) -> int:
        """Fetches of a round, at least one."""
        share = self.round * self.crawl.budget if self.round < 1.0 else self.round
        return max(1, int(share))


def read_plan(path: Path) -> RoundsPlan:
    """Read a plan.

    Raises
    ------
    UserError
        The file cannot be read, lacks something, or says something that there is not.
    """
    try:
        given = read_toml(text_of(path))
    except OSError as error:
        raise UserError(f"plan {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"plan {path} is no TOML file: {error}") from None
    known = [*_OF_CRAWL, *_OF_ROUNDS]
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"keys are {', '.join(known)}"
            raise UserError(f"plan {path} knows no {key!r}: {hint}")
    for key in _NEEDED:
        if key not in given:
            raise UserError(f"plan {path} does not say {key!r}")
    read = {
        key: reader.read(f"plan {path}: {key}", given[key])
        for key, reader in (_OF_CRAWL | _OF_ROUNDS).items()
        if key in given
    }
    for key in ("settings", "options"):
        try:
            json.dumps(read.get(key))
        except TypeError:  # TOML has dates, which the tables' JSON has not
            raise UserError(f"plan {path}: {key} has a date or time: write it as text") from None
    crawl = CrawlPlan(**{key: value for key, value in read.items() if key in _OF_CRAWL})
    return RoundsPlan(crawl, **{key: read[key] for key in _OF_ROUNDS if key in read})
