"""A model in the place of the person who is asked about pages: it teaches, the critic learns."""

from __future__ import annotations

import secrets
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, WordsModel
from focuscrawl.errors import UserError
from focuscrawl.feedback.teacher_prompt import (
    NoVerdictError,
    Prompt,
    page_digest,
    parse_verdict,
    title_words,
)
from focuscrawl.feedback.teacher_record import TeacherRecord, digest_of
from focuscrawl.report.plain_text import one_line
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from focuscrawl.feedback.suggestions import Suggestion
    from focuscrawl.feedback.teacher import Teacher
    from focuscrawl.page import PageView
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.protocol import Web

_EXAMPLES = 5  # titles a side
_LOOKED_AT = 10  # pages a side, judged ones and of the critic, that may have one
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
        self._prompt = _prompt(definition, webs, self._record.verdicts)
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
        view = _read(self._webs, page.url)
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


def _prompt(
    definition: TopicDefinition, webs: Sequence[Web], taught: Mapping[str, bool]
) -> Prompt:
    """Say what a topic is: marked classes, phrases, titles of pages that are and are not on it.

    Pages that a teacher has judged are no examples to one: it would learn its own mistakes, and
    each answer would make another question of the next.
    """
    phrases = list(definition.words)
    good, bad = (
        _spread([url for url in urls if taught.get(url) is not verdict])
        for urls, verdict in ((definition.good, True), (definition.bad, False))
    )
    if definition.critic is not None:
        base, _ = read_critic(find_model(definition.critic))
        if isinstance(base.model, WordsModel):
            phrases += [" ".join(phrase) for phrase in base.model.phrases]
        on = {url for url, path in base.examples if lies_under(path, definition.topics)}
        good += _spread([url for url, _ in base.examples if url in on])
        bad += _spread([url for url, _ in base.examples if url not in on])
    classes = [path for path in definition.topics if path not in (ON_TOPIC, OFF_TOPIC)]
    titles = _titles(webs, good)
    if not (classes or phrases or titles):
        raise UserError(
            "nothing says what the topic is: say it in a definition (focuscrawl topic new, with "
            "--words), and give that with --topic"
        )
    return Prompt(classes, phrases, titles, _titles(webs, bad))


def _spread(urls: Sequence[str]) -> list[str]:
    """Return a few of some URLs, from all over them."""
    step = max(len(urls) / _LOOKED_AT, 1.0)
    return [urls[int(i * step)] for i in range(min(len(urls), _LOOKED_AT))]


def _titles(webs: Sequence[Web], urls: Sequence[str]) -> list[str]:
    """Return the first few titles of pages."""
    read = (_read(webs, url) for url in urls)
    titles = (title_words(page.title) for page in read if page is not None)
    return [*islice(filter(None, titles), _EXAMPLES)]


def _read(webs: Sequence[Web], url: str) -> PageView | None:
    pages = (read_page(web, url) for web in webs)
    return next((page for page in pages if page is not None), None)
