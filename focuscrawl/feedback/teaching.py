"""Lets a teacher (language model) judge pages of a crawl, and records the teacher's answers."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, PhraseModel
from focuscrawl.errors import UserError
from focuscrawl.feedback.suggestions import find_page
from focuscrawl.feedback.teacher import (
    NoVerdictError,
    Prompt,
    page_digest,
    parse_verdict,
    title_words,
)
from focuscrawl.foundation.files import open_nofollow, reporting_write_errors
from focuscrawl.report.plain_text import one_line
from focuscrawl.taxonomy import lies_under
from focuscrawl.topics.definition import load_base_critic

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.feedback.suggestions import Suggestion
    from focuscrawl.feedback.teacher import Teacher
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


#: name of the file of answers in a crawl's folder, JSON lines
RECORD_FILE = "teacher.jsonl"

_VERDICTS = {True: "good", False: "bad", None: "unsure"}
_MAX_INVALID = 3  # answers without a verdict at the start of a session, then the session stops
_MAX_TITLES = 5  # of good pages, and of bad pages
_MAX_PAGES_READ = 10  # to find these titles: judged pages, and examples of the critic


class TeacherAnswer(NamedTuple):
    """The answer of a teacher (language model) about one page.

    The field `outcome` is "asked", "recorded" (answered in an earlier session), "no verdict" (the
    answer was invalid) or "unread" (not asked, because no recording has the page).
    """

    page: Suggestion
    verdict: bool | None  # True for good, False for bad, None for neither
    outcome: str
    tokens: int = 0  # tokens used


class TeacherSession:
    """Asks a teacher about pages of a crawl, and records each answer before the next question.

    Parameters
    ----------
    webs : sequence of Web
        Webs to read pages and examples of the definition's critic from, in this order.
    record : Path
        File of the answers so far. Recorded answers are not asked for again.

    Attributes
    ----------
    unsure : frozenset of str
        URLs of pages that this teacher was unsure of.

    Raises
    ------
    UserError
        The definition does not describe the topic, or the record cannot be read.
    """

    def __init__(
        self, teacher: Teacher, definition: TopicDefinition, webs: Sequence[Web], record: Path
    ) -> None:
        self._teacher = teacher
        self._webs = webs
        self._record = TeacherRecord(record)
        self._prompt = make_prompt(definition, webs, self._record.verdicts)
        self._question = question_digest(teacher.endpoint, teacher.model, self._prompt.digest)
        self.unsure = frozenset(self._record.unsure_urls(self._question))

    def ask(self, pages: Iterable[Suggestion]) -> Iterator[TeacherAnswer]:
        """Ask the teacher about pages, one page after the other.

        Raises
        ------
        UserError
            The teacher does not answer, or its first three answers are not verdicts.
        """
        mark = secrets.token_hex(16)
        n_invalid: int | None = 0  # None after the first verdict
        for page in pages:
            answer = self._ask(page, mark)
            yield answer
            if answer.outcome == "asked":
                n_invalid = None
            elif answer.outcome == "no verdict" and n_invalid is not None:
                n_invalid += 1
                if n_invalid == _MAX_INVALID:
                    raise UserError(
                        f"the first three answers of {one_line(self.model)} are not verdicts: "
                        "choose another model with --model"
                    )

    def close(self) -> None:
        """Close the network connection to the teacher."""
        self._teacher.close()

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._teacher.model

    def _ask(self, page: Suggestion, mark: str) -> TeacherAnswer:
        view = find_page(self._webs, page.url)
        if view is None:
            return TeacherAnswer(page, None, "unread")
        digest = page_digest(view)
        if (self._question, digest) in self._record.answers:
            return TeacherAnswer(page, self._record.answers[self._question, digest], "recorded")
        reply = self._teacher.ask(self._prompt.messages(view, mark))
        try:
            verdict = parse_verdict(reply.text)
        except NoVerdictError:
            return TeacherAnswer(page, None, "no verdict", reply.tokens)
        model, tokens = self.model, reply.tokens
        self._record.append(self._question, digest, page.url, verdict, model=model, tokens=tokens)
        return TeacherAnswer(page, verdict, "asked", tokens)


def make_prompt(
    definition: TopicDefinition, webs: Sequence[Web], teacher_verdicts: Mapping[str, bool]
) -> Prompt:
    """Create the question to a teacher (language model) from a topic definition.

    Parameters
    ----------
    webs : sequence of Web
        Webs to read the titles of judged pages and of the critic's examples from.
    teacher_verdicts : mapping of str to bool
        Verdicts of teachers by URL. These pages are not used as examples: a teacher would repeat
        its own mistakes, and each answer would change the next question.

    Raises
    ------
    UserError
        The definition does not describe the topic.
    """
    phrases = list(definition.words)
    good = [url for url in definition.good if teacher_verdicts.get(url) is not True]
    bad = [url for url in definition.bad if teacher_verdicts.get(url) is not False]
    judged = {*good, *bad}
    good, bad = _sample_evenly(good), _sample_evenly(bad)
    if (base := load_base_critic(definition)) is not None:
        if isinstance(base.model, PhraseModel):
            phrases += [" ".join(phrase) for phrase in base.model.phrases]
        on, off = _critic_examples(definition, base)
        good += _sample_evenly([url for url in on if url not in judged])
        bad += _sample_evenly([url for url in off if url not in judged])
    classes = [path for path in definition.topics if path not in (ON_TOPIC, OFF_TOPIC)]
    titles = _read_titles(webs, good)
    if not (classes or phrases or titles):
        raise UserError(
            "the topic has no keywords, classes or readable examples for the teacher: write a "
            "definition (focuscrawl topic new --words), and name it with --topic"
        )
    return Prompt(classes, phrases, titles, _read_titles(webs, bad))


def _critic_examples(
    definition: TopicDefinition, base: TrainedCritic
) -> tuple[list[str], list[str]]:
    """Return the URLs of a critic's on-topic and off-topic examples."""
    moved = {url: path for path, urls in definition.classes.items() for url in urls}
    on, off = list[str](), list[str]()
    for url, path in {**dict(base.examples), **moved}.items():
        (on if lies_under(path, definition.topics) else off).append(url)
    return on, off


def _sample_evenly(urls: Sequence[str]) -> list[str]:
    """Return a few URLs at equal distances in the list."""
    step = max(len(urls) / _MAX_PAGES_READ, 1.0)
    return [urls[int(i * step)] for i in range(min(len(urls), _MAX_PAGES_READ))]


def _read_titles(webs: Sequence[Web], urls: Sequence[str]) -> list[str]:
    read = (find_page(webs, url) for url in urls)
    titles = (title_words(page.title) for page in read if page is not None)
    return [*islice(filter(None, titles), _MAX_TITLES)]


class TeacherRecord:
    """File of JSON lines with the answers of teachers (language models); skips invalid lines.

    Parameters
    ----------
    path : Path
        The file, which need not exist.

    Attributes
    ----------
    answers : dict of (str, str) to bool or None
        Verdicts by the digests of teacher and question (`question_digest`) and of the page. None:
        unsure.
    verdicts : dict of str to bool
        Latest good or bad verdict of any teacher, by URL.

    Raises
    ------
    UserError
        The file cannot be read, or is a symbolic link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends_in_newline = True
        self._unsure: dict[str, set[str]] = {}
        self.answers: dict[tuple[str, str], bool | None] = {}
        self.verdicts: dict[str, bool] = {}
        try:
            with open(path, encoding="utf-8", errors="replace", opener=open_nofollow) as file:
                for line in file:
                    self._read_line(line)
                    self._ends_in_newline = line.endswith("\n")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None

    def unsure_urls(self, question: str) -> set[str]:
        """Return the URLs of the pages about which a teacher was unsure."""
        return self._unsure.get(question, set())

    def append(
        self, question: str, page: str, url: str, verdict: bool | None, **more: Any
    ) -> None:
        """Append an answer to the file, and wait until it is written to disk.

        Parameters
        ----------
        question, page : str
            Digests of teacher and question, and of the page.
        more : dict
            Other fields of the line, for people who read the file.

        Raises
        ------
        UserError
            The file cannot be written.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = {"url": url, "verdict": _VERDICTS[verdict], **more, "at": at}
        line = json.dumps({**row, "asked": question, "page": page}) + "\n"
        with (
            reporting_write_errors(self._path),
            open(self._path, "a", encoding="utf-8", opener=open_nofollow) as file,
        ):
            file.write(line if self._ends_in_newline else f"\n{line}")
            file.flush()
            os.fsync(file.fileno())
        self._ends_in_newline = True
        self._read_line(line)

    def _read_line(self, line: str) -> None:
        try:
            row = json.loads(line)
            question, page, url = str(row["asked"]), str(row["page"]), str(row["url"])
            verdict = {word: each for each, word in _VERDICTS.items()}[row["verdict"]]
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        self.answers[question, page] = verdict
        if verdict is None:
            self._unsure.setdefault(question, set()).add(url)
        else:
            self.verdicts[url] = verdict


def question_digest(endpoint: str, model: str, prompt: str) -> str:
    """Return a digest of a teacher (endpoint and model) and of a question to the teacher."""
    return sha256(json.dumps([endpoint, model, prompt]).encode()).hexdigest()
