"""``focuscrawl topic suggest --teacher``: a model answers in the place of the person."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import click

from focuscrawl.errors import UserError
from focuscrawl.feedback import Teacher
from focuscrawl.feedback.teacher import KEY
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.topics import edit_definition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.feedback import Suggestion, Teaching
    from focuscrawl.topics import TopicDefinition

_WORDS = {True: "good", False: "bad", None: "unsure"}


def teacher_of(endpoint: str | None, model: str | None, per_minute: int) -> Teacher | None:
    """Return who is to be asked; None if nobody is named."""
    if endpoint is None:
        if model is not None:
            raise UserError("--model goes with --teacher: name the endpoint, too")
        return None
    if model is None or not model.strip():
        raise UserError("--teacher asks a model: name it with --model")
    return Teacher(endpoint, model.strip(), key=os.environ.get(KEY), per_minute=per_minute)


def ask_teacher(
    teaching: Teaching, pages: Sequence[Suggestion], known: TopicDefinition, path: Path
) -> TopicDefinition:
    """Ask about pages; each verdict is in the definition's file before the next is asked for.

    Ctrl-C ends the questions, and what was answered counts.

    Returns
    -------
    The definition with the verdicts; `known` itself if there is none

    Raises
    ------
    UserError
        The teacher does not answer; what it has answered is kept.
    """
    made, tokens, found = known, 0, Counter[str]()
    with closing(teaching):
        try:
            for number, lesson in enumerate(teaching.ask(pages), 1):
                tokens += lesson.tokens
                word = lesson.how if lesson.how in ("no verdict", "unread") else ""
                word = word or _WORDS[lesson.verdict]
                found[word] += 1
                url = middle(one_line(lesson.page.url), 90)
                click.echo(f"{number}/{len(pages)}  {word:10}  {url}")
                if lesson.verdict is not None:
                    made = _keep(path, known, lesson.page.url, good=lesson.verdict)
        except KeyboardInterrupt:
            click.echo("interrupted: what was answered counts", err=True)
        except UserError as error:
            if made is known:
                raise
            n = counted(found["good"] + found["bad"], "answer")
            raise UserError(
                f"{error}; {path} holds {n} of it, which focuscrawl topic apply has the crawl "
                "follow"
            ) from None
        finally:
            if found:
                said = ", ".join(f"{n} {word}" for word, n in found.items())
                click.echo(f"{one_line(teaching.model)}: {said}; {tokens:,} tokens")
    return made


def _keep(path: Path, known: TopicDefinition, url: str, *, good: bool) -> TopicDefinition:
    judged = ([url], []) if good else ([], [url])
    return edit_definition(path, lambda now: now.judging(*judged), lambda: known)
