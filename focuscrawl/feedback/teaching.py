"""A model in the place of the person who is asked about pages: it teaches, the critic learns."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.feedback.teacher_prompt import NoVerdictError, page_digest, parse_verdict
from focuscrawl.feedback.teacher_record import TeacherRecord, digest_of
from focuscrawl.feedback.teacher_topic import find_page, prompt_of
from focuscrawl.report.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from focuscrawl.feedback.suggestions import Suggestion
    from focuscrawl.feedback.teacher import Teacher
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.protocol import Web

_IN_VAIN = 3  # first answers without a verdict, after which nothing more is asked


class Lesson(NamedTuple):
    """What came of one page.

    Attributes
    ----------
    page : that was suggested
    verdict : True for good, False for bad, None for neither
    how : "asked", "kept" (asked before), "no verdict" (the answer was none), "unread" (no web has
        the page, so nobody was asked)
    tokens : that it cost
    """

    page: Suggestion
    verdict: bool | None
    how: str
    tokens: int = 0


class Teaching:
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
        self._prompt = prompt_of(definition, webs, self._record.verdicts)
        self._asked = digest_of(teacher.endpoint, teacher.model, self._prompt.digest)
        self.unsure = frozenset(self._record.unsure_of(self._asked))

    def ask(self, pages: Iterable[Suggestion]) -> Iterator[Lesson]:
        """Ask about pages, one after the other.

        Raises
        ------
        UserError
            The teacher does not answer, or its first three answers hold no verdict.
        """
        mark = secrets.token_hex(16)
        in_vain: int | None = 0  # None: there was a verdict
        for page in pages:
            lesson = self._ask(page, mark)
            yield lesson
            if lesson.how == "asked":
                in_vain = None
            elif lesson.how == "no verdict" and in_vain is not None:
                in_vain += 1
                if in_vain == _IN_VAIN:
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

    def _ask(self, page: Suggestion, mark: str) -> Lesson:
        view = find_page(self._webs, page.url)
        if view is None:
            return Lesson(page, None, "unread")
        digest = page_digest(view)
        if (self._asked, digest) in self._record.answers:
            return Lesson(page, self._record.answers[self._asked, digest], "kept")
        reply = self._teacher.ask(self._prompt.messages(view, mark))
        try:
            verdict = parse_verdict(reply.text)
        except NoVerdictError:
            return Lesson(page, None, "no verdict", reply.tokens)
        model, tokens = self.model, reply.tokens
        self._record.keep(self._asked, digest, page.url, verdict, model=model, tokens=tokens)
        return Lesson(page, verdict, "asked", tokens)
