"""A teacher judges pages of a crawl: its topic, its record, the loop."""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, WordsModel
from focuscrawl.errors import UserError
from focuscrawl.feedback.suggestions import find_page
from focuscrawl.feedback.teacher import (
    NoVerdictError,
    Prompt,
    page_digest,
    parse_verdict,
    title_words,
)
from focuscrawl.foundation.files import open_plain
from focuscrawl.report.plain_text import one_line
from focuscrawl.taxonomy import lies_under
from focuscrawl.topics.definition import load_base_critic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.feedback.suggestions import Suggestion
    from focuscrawl.feedback.teacher import Teacher
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


#: in the folder of a crawl, JSON lines
RECORD_FILE = "teacher.jsonl"

_VERDICTS = {True: "good", False: "bad", None: "unsure"}
_MAX_INVALID = 3  # first answers without a verdict, after which nothing more is asked
_MAX_TITLES = 5  # titles a side
_MAX_PAGES_READ = 10  # judged pages a side, and as many of the critic, that may have one


class TeacherAnswer(NamedTuple):
    """What came of one page.

    Attributes
    ----------
    page : that was suggested
    verdict : True for good, False for bad, None for neither
    outcome : "asked", "recorded" (answered in an earlier session), "no verdict" (the answer was
        not a verdict), "unread" (no web has the page, so the teacher was not asked)
    tokens : that it cost
    """

    page: Suggestion
    verdict: bool | None
    outcome: str
    tokens: int = 0


class TeacherSession:
    """Asks about pages of a crawl; each answer is recorded before the next question.

    Parameters
    ----------
    teacher : is asked
    definition : says what the topic is
    webs : where the pages are, judged ones and examples of the definition's critic, too, in the
        order to look for one
    record : file of the answers so far; what is in it is not asked again

    Attributes
    ----------
    unsure : URLs of pages that this teacher was asked about, and was unsure of

    Raises
    ------
    UserError
        There is nothing that says what the topic is, or the record cannot be read.
    """

    def __init__(
        self, teacher: Teacher, definition: TopicDefinition, webs: Sequence[Web], record: Path
    ) -> None:
        self._teacher = teacher
        self._webs = webs
        self._record = TeacherRecord(record)
        self._prompt = make_prompt(definition, webs, self._record.verdicts)
        self._asked = question_digest(teacher.endpoint, teacher.model, self._prompt.digest)
        self.unsure = frozenset(self._record.unsure_urls(self._asked))

    def ask(self, pages: Iterable[Suggestion]) -> Iterator[TeacherAnswer]:
        """Ask about pages, one after the other.

        Raises
        ------
        UserError
            The teacher does not answer, or its first three answers hold no verdict.
        """
        mark = secrets.token_hex(16)
        n_invalid: int | None = 0  # None: there was a verdict
        for page in pages:
            answer = self._ask(page, mark)
            yield answer
            if answer.outcome == "asked":
                n_invalid = None
            elif answer.outcome == "no verdict" and n_invalid is not None:
                n_invalid += 1
                if n_invalid == _MAX_INVALID:
                    raise UserError(
                        f"{one_line(self.model)} does not answer as it is asked to, "
                        "three times in a row: name another model with --model"
                    )

    def close(self) -> None:
        """End the connection to the teacher."""
        self._teacher.close()

    @property
    def model(self) -> str:
        """Name of who is asked."""
        return self._teacher.model

    def _ask(self, page: Suggestion, mark: str) -> TeacherAnswer:
        view = find_page(self._webs, page.url)
        if view is None:
            return TeacherAnswer(page, None, "unread")
        digest = page_digest(view)
        if (self._asked, digest) in self._record.answers:
            return TeacherAnswer(page, self._record.answers[self._asked, digest], "recorded")
        reply = self._teacher.ask(self._prompt.messages(view, mark))
        try:
            verdict = parse_verdict(reply.text)
        except NoVerdictError:
            return TeacherAnswer(page, None, "no verdict", reply.tokens)
        model, tokens = self.model, reply.tokens
        self._record.append(self._asked, digest, page.url, verdict, model=model, tokens=tokens)
        return TeacherAnswer(page, verdict, "asked", tokens)


def make_prompt(
    definition: TopicDefinition, webs: Sequence[Web], teacher_verdicts: Mapping[str, bool]
) -> Prompt:
    """Say what a topic is.

    Parameters
    ----------
    webs : where judged pages and examples of the definition's critic may be
    teacher_verdicts : verdicts of a teacher, by URL. These are no examples to one: it would learn
        its own mistakes, and each answer would make another question of the next

    Raises
    ------
    UserError
        Nothing says what the topic is.
    """
    phrases = list(definition.words)
    good = [url for url in definition.good if teacher_verdicts.get(url) is not True]
    bad = [url for url in definition.bad if teacher_verdicts.get(url) is not False]
    judged = {*good, *bad}
    good, bad = _sample_evenly(good), _sample_evenly(bad)
    if (base := load_base_critic(definition)) is not None:
        if isinstance(base.model, WordsModel):
            phrases += [" ".join(phrase) for phrase in base.model.phrases]
        on, off = _critic_examples(definition, base)
        good += _sample_evenly([url for url in on if url not in judged])
        bad += _sample_evenly([url for url in off if url not in judged])
    classes = [path for path in definition.topics if path not in (ON_TOPIC, OFF_TOPIC)]
    titles = _read_titles(webs, good)
    if not (classes or phrases or titles):
        raise UserError(
            "nothing says what the topic is: say it in a definition (focuscrawl topic new, with "
            "--words), and give that with --topic"
        )
    return Prompt(classes, phrases, titles, _read_titles(webs, bad))


def _critic_examples(
    definition: TopicDefinition, base: TrainedCritic
) -> tuple[list[str], list[str]]:
    """Return the URLs of a critic's examples, as the definition moves them: on and off topic."""
    moved = {url: path for path, urls in definition.classes.items() for url in urls}
    on, off = list[str](), list[str]()
    for url, path in {**dict(base.examples), **moved}.items():
        (on if lies_under(path, definition.topics) else off).append(url)
    return on, off


def _sample_evenly(urls: Sequence[str]) -> list[str]:
    """Return a few of some URLs, from all over them."""
    step = max(len(urls) / _MAX_PAGES_READ, 1.0)
    return [urls[int(i * step)] for i in range(min(len(urls), _MAX_PAGES_READ))]


def _read_titles(webs: Sequence[Web], urls: Sequence[str]) -> list[str]:
    """Return the first few titles of pages."""
    read = (find_page(webs, url) for url in urls)
    titles = (title_words(page.title) for page in read if page is not None)
    return [*islice(filter(None, titles), _MAX_TITLES)]


class TeacherRecord:
    """The answers in a file, each kept before the next question is asked.

    Parameters
    ----------
    path : of the file; it need not be there

    Attributes
    ----------
    answers : by digests of who was asked and of the page, True for good, False for bad, None for
        unsure
    verdicts : by URL, True for good and False for bad; the latest, whoever was asked

    Raises
    ------
    UserError
        It cannot be read, or is a link.

    Notes
    -----
    A line that is none, as where a disk was full, is an answer that is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends_in_newline = True  # the last line has its end
        self._unsure: dict[str, set[str]] = {}
        self.answers: dict[tuple[str, str], bool | None] = {}
        self.verdicts: dict[str, bool] = {}
        try:
            with open(path, encoding="utf-8", errors="replace", opener=open_plain) as file:
                for line in file:
                    self._read_line(line)
                    self._ends_in_newline = line.endswith("\n")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None

    def unsure_urls(self, asked: str) -> set[str]:
        """Return the URLs of the pages that whoever was asked was unsure of."""
        return self._unsure.get(asked, set())

    def append(self, asked: str, page: str, url: str, verdict: bool | None, **more: Any) -> None:
        """Write an answer down.

        Parameters
        ----------
        asked, page : digests of who was asked, see `question_digest`, and of the page
        more : for people who read the file

        Raises
        ------
        UserError
            It cannot be written.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = {"url": url, "verdict": _VERDICTS[verdict], **more, "at": at}
        line = json.dumps({**row, "asked": asked, "page": page}) + "\n"
        try:
            with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
                file.write(line if self._ends_in_newline else f"\n{line}")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"{self._path} cannot be written: {error.strerror}") from None
        self._ends_in_newline = True
        self._read_line(line)

    def _read_line(self, line: str) -> None:
        try:
            row = json.loads(line)
            asked, page, url = str(row["asked"]), str(row["page"]), str(row["url"])
            verdict = {word: each for each, word in _VERDICTS.items()}[row["verdict"]]
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        self.answers[asked, page] = verdict
        if verdict is None:
            self._unsure.setdefault(asked, set()).add(url)
        else:
            self.verdicts[url] = verdict


def question_digest(endpoint: str, model: str, prompt: str) -> str:
    """Return a digest of who is asked and how.

    Parameters
    ----------
    endpoint : without credentials
    prompt : digest of the question
    """
    return sha256(json.dumps([endpoint, model, prompt]).encode()).hexdigest()
