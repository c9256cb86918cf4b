"""Every setting of focuscrawl: its name, what it may be, and its default.

The table is the one place where a setting is declared; what it means is said in
``docs/settings.md``, which the tests hold to the table. Whoever wants the value asks the entry,
``ANY_MEDIA.of(settings)``; `check_settings` refuses whatever is not in the table or cannot be
read, before a crawl is opened. A setting that has the name of a field of `CrawlPlan` goes there
(`focuscrawl.engine.plan_from_settings`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.values import (
    FLAG,
    NETWORKS,
    TEXT,
    Reader,
    file_name,
    json_object,
    number,
    one_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

T = TypeVar("T")

_PREFIX = "FOCUSCRAWL_"
_TEXT_OR_NONE: Reader[str | None] = TEXT


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Attributes
    ----------
    name : in settings
    reader : of what users write
    default : value where nothing is set
    """

    name: str
    reader: Reader[T]
    default: T

    @property
    def key(self) -> str:
        """The name as an argument, or as a field of a plan."""
        return self.name.removeprefix(_PREFIX).lower()

    def of(self, settings: BaseSettings) -> T:
        """Return the value in `settings`.

        Raises
        ------
        UserError
            It is not what the setting may be.
        """
        written = settings.get(self.name)
        return self.default if written is None else self.reader.read(self.name, written)


class Argument(Setting[T]):
    """A setting that can be given with ``-a``, too; an empty one stands for the default."""

    def of(self, settings: BaseSettings) -> T:
        """Return the value in `settings`."""
        blank = not str(settings.get(self.name)).strip()
        return self.default if blank else super().of(settings)


# The arguments of a crawl: ``scrapy crawl focused -a topic=...``, or these settings.

TOPIC = Argument("FOCUSCRAWL_TOPIC", TEXT, "")
SEEDS = Argument("FOCUSCRAWL_SEEDS", _TEXT_OR_NONE, None)
CRITIC = Argument("FOCUSCRAWL_CRITIC", TEXT, "models/demo")
STRATEGY = Argument("FOCUSCRAWL_STRATEGY", TEXT, "apprentice")
BUDGET = Argument("FOCUSCRAWL_BUDGET", whole_number(), 1000)  # fetches
WEB = Argument("FOCUSCRAWL_WEB", _TEXT_OR_NONE, None)
CRAWL_DIR = Argument("FOCUSCRAWL_CRAWL_DIR", _TEXT_OR_NONE, None)
STORE = Argument("FOCUSCRAWL_STORE", _TEXT_OR_NONE, None)
RANDOM_STATE = Argument("FOCUSCRAWL_RANDOM_STATE", whole_number(), 0)
APPRENTICE = Argument("FOCUSCRAWL_APPRENTICE", _TEXT_OR_NONE, None)
WITHIN = Argument("FOCUSCRAWL_WITHIN", _TEXT_OR_NONE, None)
KNOWLEDGE = Argument("FOCUSCRAWL_KNOWLEDGE", _TEXT_OR_NONE, None)

# Settings only.

ANY_MEDIA = Setting("FOCUSCRAWL_ANY_MEDIA", FLAG, False)
BACKOFF = Setting("FOCUSCRAWL_BACKOFF", number(), 1.0)  # seconds
BACKOFF_MAX = Setting("FOCUSCRAWL_BACKOFF_MAX", number(), 120.0)  # seconds
CALIBRATED: Setting[bool | None] = Setting("FOCUSCRAWL_CALIBRATED", FLAG, None)
CALLBACK = Setting("FOCUSCRAWL_CALLBACK", TEXT, "parse")
CLOSED = Setting("FOCUSCRAWL_CLOSED", FLAG, True)
DISTILL = Setting("FOCUSCRAWL_DISTILL", whole_number(), 0)  # fetches
DISTILL_SITES = Setting(
    "FOCUSCRAWL_DISTILL_SITES", one_of("auto", "host", "domain", "none"), "auto"
)
HOST_FAILURES = Setting("FOCUSCRAWL_HOST_FAILURES", whole_number(), 8)  # in a row
INSTANCES = Setting("FOCUSCRAWL_INSTANCES", _TEXT_OR_NONE, None)
LEASE = Setting("FOCUSCRAWL_LEASE", whole_number(2), 60)  # seconds
LIMITS = Setting("FOCUSCRAWL_LIMITS", FLAG, True)
LOG_JSON = Setting("FOCUSCRAWL_LOG_JSON", file_name("log.jsonl"), None)
META = Setting("FOCUSCRAWL_META", json_object('{"playwright": true}'), {})
META_REFRESH: Setting[float | None] = Setting("FOCUSCRAWL_META_REFRESH", number(), None)
METRICS_PORT = Setting("FOCUSCRAWL_METRICS_PORT", whole_number(0, 65535), 0)
NEAR_DUPLICATES = Setting("FOCUSCRAWL_NEAR_DUPLICATES", FLAG, True)
NOT_MODIFIED_COST = Setting("FOCUSCRAWL_NOT_MODIFIED_COST", number(0, 1), 0.1)  # of a fetch
OBEY_META_ROBOTS: Setting[bool | None] = Setting("FOCUSCRAWL_OBEY_META_ROBOTS", FLAG, None)
PRIVATE_ADDRESSES = Setting("FOCUSCRAWL_PRIVATE_ADDRESSES", NETWORKS, Networks())
PROGRESS = Setting("FOCUSCRAWL_PROGRESS", FLAG, True)
REVISIT = Setting("FOCUSCRAWL_REVISIT", FLAG, False)
REVISIT_HUBS = Setting(
    "FOCUSCRAWL_REVISIT_HUBS", whole_number(), 0
)  # seconds; in a replay fetches
SHARDS = Setting("FOCUSCRAWL_SHARDS", whole_number(1, 10_000), 64)
STAGNATION = Setting("FOCUSCRAWL_STAGNATION", whole_number(), 0)  # fetches
STOP_TIMEOUT = Setting("FOCUSCRAWL_STOP_TIMEOUT", number(), 15.0)  # seconds
STRATEGY_OPTIONS = Setting("FOCUSCRAWL_STRATEGY_OPTIONS", json_object('{"option": 1}'), {})
WARC = Setting("FOCUSCRAWL_WARC", file_name("pages.warc.gz", ".warc.gz"), None)

SETTINGS: dict[str, Setting[Any]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Setting)
}
#: by name behind ``-a``
ARGUMENTS = {each.key: each for each in SETTINGS.values() if isinstance(each, Argument)}


def check_settings(settings: BaseSettings) -> None:
    """Refuse a setting that does not exist, and a value that a setting cannot have.

    Raises
    ------
    UserError
        There is one.
    """
    unknown = [name for name in settings if name.upper().startswith(_PREFIX)]
    for name in sorted(set(unknown) - SETTINGS.keys()):
        (nearest,) = difflib.get_close_matches(name.upper(), SETTINGS, n=1, cutoff=0.0)
        raise UserError(f"there is no setting {name}: do you mean {nearest}?")
    for setting in SETTINGS.values():
        setting.of(settings)


def read_arguments(
    settings: BaseSettings, given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the arguments of a crawl by their names: as given, or else as in the settings.

    Parameters
    ----------
    given : with ``-a``

    Raises
    ------
    UserError
        There is no such argument, it is empty, or it cannot be read.
    """
    arguments = {name: setting.of(settings) for name, setting in ARGUMENTS.items()}
    for name, written in (given or {}).items():
        if name not in ARGUMENTS:
            raise UserError(f"unknown argument {name}: there are {', '.join(ARGUMENTS)}")
        if not written.strip():
            raise UserError(f"argument {name} is empty: give it a value or leave it out")
        arguments[name] = ARGUMENTS[name].reader.read(name, written)
    return arguments
