"""The folder with the files of all steps from keywords to an exported corpus."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from focuscrawl.completeness.recall_estimate import MIN_TARGETS, split_examples
from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular, write_atomically
from focuscrawl.report.plain_text import one_line
from focuscrawl.search import installed_sources

_LEAST_EXAMPLES = 3
#: with fewer pages on the topic, no page is held out as a target page
LEAST_TO_HOLD_OUT = MIN_TARGETS + _LEAST_EXAMPLES
ORDER_FILE = "corpus.json"  #: file of the order in the folder of a corpus
_ARGUMENTS = {"keywords": "KEYWORDS", "urls": "URL"}  # the others are options
_LONGEST_VALUE = 200  # characters of an option in a message
_CRITIC = re.compile(r"critic-(\d{1,9})")


@dataclass(frozen=True)
class CorpusOrder:
    """The options that determine the topic and the start pages of a corpus."""

    keywords: str
    urls: tuple[str, ...]
    targets: tuple[str, ...]
    all_examples: bool
    web: str | None
    search: str | None
    tuples: int
    tuple_size: int
    results: int
    per_site: int
    others: int
    random_state: int

    @property
    def topic(self) -> str:
        """Path of the class that the critic learns; the first phrase is the name of the class."""
        words = parse_phrases(self.keywords)[0]
        return f"/{'_'.join(words).capitalize()}"

    def split_pages(self) -> tuple[list[str], list[str]]:
        """Return the given pages that are examples, and the target pages.

        If the user gives 17 or more pages but names no target pages, some of the given pages
        become target pages. At least three given pages remain examples.
        """
        if self.targets or self.all_examples or len(self.urls) < LEAST_TO_HOLD_OUT:
            return [*self.urls], [*self.targets]
        return split_examples(self.urls, self.random_state)


class CorpusFolder:
    """The folder with the files of all steps from keywords to a corpus.

    Topic definition and critics have the names that the studio uses, so that each step can be
    repeated in the studio.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order = path / ORDER_FILE
        self.topic = path / "topic.toml"
        self.answers = path / "search.jsonl"
        self.plan = path / "plan.json"
        self.exports = path / "exports.txt"  # names of the export files, relative to the folder
        self.crawl = path / "crawl"
        self.log = self.crawl / "crawl.log"
        self._fetched = path / ".examples"

    def candidates(self) -> Path:
        """Return a new file for the judged candidates of a search."""
        number = 1 + len([*self.path.glob("candidates*.csv")])
        return self.path / ("candidates.csv" if number == 1 else f"candidates-{number}.csv")

    def critics(self) -> list[Path]:
        """Return the folders of the critics, from the oldest to the latest."""
        found = {path: _CRITIC.fullmatch(path.name) for path in self.path.glob("critic-*")}
        return sorted((p for p, match in found.items() if match), key=lambda p: int(p.name[7:]))

    def crawl_critic(self) -> Path:
        """Return the critic with which the crawl started; without a crawl, the latest critic."""
        critics = self.critics()
        if len(critics) == 1 or not CrawlFolder(self.crawl).exists:
            return critics[-1]
        identity = CrawlFolder(self.crawl).identity()
        first = identity.get("begun_critic", identity["critic"])
        topic = identity.get("begun_topic", identity["topic"])
        same = (each for each in critics if load_trained(str(each), topic).fingerprint == first)
        return next(same, critics[-1])

    def examples(self, number: int) -> Path:
        """Return the folder of a crawl that fetches candidates."""
        return self._fetched / str(number)

    def next_examples(self) -> Path:
        """Return the folder for a crawl that fetches candidates of a further search."""
        return self.examples(1 + len([*self._fetched.glob("*")]))

    def recordings(self) -> list[Path]:
        """Return the recordings of the fetched candidates."""
        return sorted(self._fetched.glob("*/pages.warc.gz"))

    def known_source(self) -> str | None:
        """Return the source of start pages that the corpus in the folder uses, if it is installed.

        The result is None for a source that is a file or a Python function, because only the user
        may name such a source.
        """
        try:
            known = str(json.loads(read_regular(self.order))["search"])
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        return known if known in installed_sources() else None

    def check_output(self, out: Path) -> None:
        """Raise `UserError` if the file `out` exists and is no export of this corpus."""
        if out.is_file() and self._relative(out) not in self._exported():
            raise UserError(
                f"{out} exists already, and is no export of the corpus in {self.path}: name "
                "another file with --out"
            )

    def add_output(self, out: Path) -> None:
        """Record that the file `out` is an export of this corpus."""
        names = dict.fromkeys([*self._exported(), self._relative(out)])
        write_atomically(self.exports, "".join(f"{name}\n" for name in names))

    def _exported(self) -> list[str]:
        if not self.exports.exists():
            return []
        return read_regular(self.exports).decode("utf-8", "replace").splitlines()

    def _relative(self, out: Path) -> str:
        return os.path.relpath(out.resolve(), self.path.resolve())

    def discard_topic(self) -> None:
        """Remove the critics, the topic definition, the plan and the crawl of a failed corpus.

        Another command may then use the folder, see `open`.
        """
        for path in (self.topic, self.plan):
            path.unlink(missing_ok=True)
        for folder in (*self.critics(), self.crawl):
            if folder.exists():
                shutil.rmtree(folder)

    def open(self, order: CorpusOrder) -> None:
        """Create the folder, or check that an existing folder was created with the same options.

        A folder without a topic definition belongs to a command that failed or was interrupted.
        Another command may use this folder.

        Raises
        ------
        UserError
            The folder belongs to another corpus, or cannot be written.
        """
        given: dict[str, Any] = json.loads(json.dumps(asdict(order)))
        try:
            known = json.loads(read_regular(self.order)) if self.order.exists() else None
            if known is not None and self.topic.exists():
                self._check(known, given)
                return
            if known is None and (
                self.topic.exists() or self.critics() or CrawlFolder(self.crawl).exists
            ):
                raise UserError(
                    f"{self.path} contains another topic: name another folder with --folder"
                )
            self.path.mkdir(parents=True, exist_ok=True)
            if known != given and self._fetched.exists():
                shutil.rmtree(self._fetched)
            write_atomically(self.order, json.dumps(given, indent=1) + "\n")
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}") from None
        except ValueError:
            raise UserError(
                f"{self.order} is damaged: name another folder with --folder"
            ) from None

    def _check(self, known: Any, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            before = known.get(name) if isinstance(known, dict) else None
            if before != value:
                option = _ARGUMENTS.get(name, f"--{name.replace('_', '-')}")
                raise UserError(
                    f"{self.path} has the corpus of another command: {option} was "
                    f"{_describe(before)}, not {_describe(value)}; name another folder with "
                    f"--folder, or delete the folder {self.path}"
                )


def _describe(value: Any) -> str:
    """Return the value of an option for a message."""
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "not given" if value in ("", None, False) else one_line(value, _LONGEST_VALUE)
