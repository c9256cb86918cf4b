"""``focuscrawl topic suggest``, ``apply``, ``mark``, ``neighbours``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.cli.critic_examples import (
    describe_definition,
    example_crawl_options,
    fetch_examples,
    print_unread_examples,
    warn_of_missing_embeddings,
)
from focuscrawl.crawl.page_source import open_page_webs
from focuscrawl.errors import UserError
from focuscrawl.feedback import (
    DEFAULT_KIND,
    KINDS,
    RECORD_FILE,
    Teacher,
    TeacherSession,
    apply_definition,
    check_applicable,
    read_judgements,
    suggest,
    write_questions,
)
from focuscrawl.feedback.applying import DEFINITION_FILE, load_crawl_definition
from focuscrawl.feedback.suggestions import neighbour_sources, read_verdict, suggest_neighbours
from focuscrawl.feedback.teacher import KEY_VARIABLE
from focuscrawl.offline.link_graph import CrawlGraph
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.report.status import open_store
from focuscrawl.taxonomy import lies_under, normalise
from focuscrawl.topics import check_marked_classes, edit_definition, read_definition, training_urls
from focuscrawl.topics.definition import mark_class
from focuscrawl.webs.opening import open_webs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.feedback import Suggestion
    from focuscrawl.topics import TopicDefinition


_WORDS = {True: "good", False: "bad", None: "unsure"}

_CRAWL = click.argument("crawl_dir", metavar="CRAWL_DIR", type=common_options.PATH)
_WEB = click.option("--web", help="Where pages and examples are that the crawl has not.")
_NUMBER = common_options.integer_option("--n", "Pages to judge.", 20)
_OUT = common_options.path_option("--out", "Write the questions to this CSV.")
_ANSWERS = common_options.path_option("--answers", "Take the answers from this CSV.")


@click.command()
@_CRAWL
@common_options.DEFINITION
@_WEB
def apply(*, crawl_dir: Path, definition: Path, web: str | None) -> None:
    """Have the crawl in CRAWL_DIR follow TOPIC.toml.

    Trains the critic, judges the pages of the crawl anew and re-scores what waits. A crawl that
    runs does so by itself; one at rest is resumed by the command that began it.
    """
    made, path = read_definition(definition), crawl_dir / DEFINITION_FILE
    before = read_definition(path) if path.exists() else made
    _apply(made, crawl_dir, web)
    if definition.resolve() != path.resolve():

        def following(now: TopicDefinition) -> TopicDefinition:
            good = [url for url in now.good if url not in before.good]
            bad = [url for url in now.bad if url not in before.bad]
            return made.with_judgements(good, bad)  # with what was judged while it was trained

        edit_definition(path, following, lambda: made)  # judgements, marks are added to that


@click.command()
@_CRAWL
@click.argument("topic", metavar="CLASS")
@_WEB
def mark(*, crawl_dir: Path, topic: str, web: str | None) -> None:
    """Mark CLASS as well, as an alarm proposes, and have the crawl follow.

    CLASS is a class of the crawl's critic; all classes below it are marked with it. What the
    crawl has fetched is judged anew, and what waits is re-scored, as with apply.

    \b
    focuscrawl topic mark crawls/funds /Business/Investing
    """
    path, wanted = crawl_dir / DEFINITION_FILE, normalise(topic)
    with closing(open_store(crawl_dir)) as store:
        known = load_crawl_definition(store, crawl_dir, web)
    if known.critic is None:
        raise UserError(f"{path} names no critic: there are no classes to mark")
    if lies_under(wanted, known.topics):
        raise UserError(f"{wanted} is marked already: {', '.join(known.topics)}")
    made = mark_class(known, wanted)
    check_marked_classes(made)
    check_applicable(made, crawl_dir, web=web)
    made = edit_definition(path, lambda now: mark_class(now, wanted), lambda: known)
    _apply(made, crawl_dir, web)
    click.echo(f"{path}: {describe_definition(made)}")


@click.command("suggest")
@_CRAWL
@click.option(
    "--topic",
    "definition",
    type=common_options.PATH,
    help=f"The definition.  [default: CRAWL_DIR/{DEFINITION_FILE}, made if need be]",
)
@_NUMBER
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice(list(KINDS)),
    default=[DEFAULT_KIND],
    show_default=True,
    help="Which pages; of several kinds, in turn.",
)
@_OUT
@_ANSWERS
@click.option(
    "--teacher", "endpoint", metavar="URL", help="Ask the model behind this: https://host/v1."
)
@click.option("--model", help="Its name there.")
@common_options.integer_option("--per-minute", "Questions to it, at most.", 60)
@_WEB
def suggest_command(
    *,
    crawl_dir: Path,
    definition: Path | None,
    n: int,
    kind: tuple[str, ...],
    out: Path | None,
    answers: Path | None,
    endpoint: str | None,
    model: str | None,
    per_minute: int,
    web: str | None,
) -> None:
    """Ask about pages of a crawl, and have it follow the answers; works while it runs.

    Asked are pages that the critic is unsure of and that are unlike those judged before; with
    --kind others: that their neighbours speak against or for, the top hubs and authorities.
    Without --out, --answers and --teacher it asks here. A teacher's key is read from
    FOCUSCRAWL_TEACHER_KEY.

    \b
    focuscrawl topic suggest crawls/cycling
    focuscrawl topic suggest crawls/cycling --out questions.csv
    focuscrawl topic suggest crawls/cycling --answers questions.csv
    focuscrawl topic suggest crawls/cycling --teacher http://localhost:11434/v1 --model NAME
    """
    _check_asking(out, answers)
    teacher = _teacher_of(endpoint, model, per_minute)
    if teacher is not None and (out or answers):
        raise UserError("--teacher asks and tells: leave out --out and --answers")
    path = crawl_dir / DEFINITION_FILE if definition is None else definition
    with closing(open_store(crawl_dir)) as store:
        of_crawl = definition is None
        known = load_crawl_definition(store, crawl_dir, web) if of_crawl else read_definition(path)
        webs = check_applicable(known, crawl_dir, web=web)
        settled, session = known.judged_urls, None
        if teacher is not None:
            session = TeacherSession(teacher, known, webs, crawl_dir / RECORD_FILE)
            settled |= session.unsure
        settled |= {*training_urls(known)}
        pages = [] if answers else suggest(store, webs, n, known=settled, kinds=kind)
    if not pages and answers is None:
        raise UserError(f"{crawl_dir}: every page worth asking about was judged already")
    if session is not None:
        made = _ask_teacher(session, pages, known, path)
    else:
        judged = _judgements(pages, out, answers)
        if judged is None:
            return
        made = known
        if any(judged):  # they are kept, even if the crawl cannot follow
            made = edit_definition(path, lambda now: now.with_judgements(*judged), lambda: known)
    if made is known:
        click.echo("no judgement, no change")
        return
    _apply(made, crawl_dir, web)
    click.echo(f"{path}: {describe_definition(made)}")


def _apply(definition: TopicDefinition, crawl_dir: Path, web: str | None) -> None:
    with closing(ProgressBar("Reading")) as examples, closing(ProgressBar("Judging")) as pages:
        applied = apply_definition(definition, crawl_dir, web=web, examples=examples, pages=pages)
    print_unread_examples(definition.judged_urls, applied.trained)
    warn_of_missing_embeddings(applied.trained)
    click.echo(f"{applied.critic}: topics {', '.join(applied.topics)}")
    click.echo(applied.outcome or "the crawl is running: it follows before its next fetch")


@click.command("neighbours")
@common_options.DEFINITION
@click.option("--web", help="Where the pages are, if the definition names no web.")
@click.option("--crawl", "crawls", multiple=True, help="A crawl that knows who links to them.")
@_NUMBER
@_OUT
@_ANSWERS
@example_crawl_options
def neighbours_command(
    *,
    definition: Path,
    web: str | None,
    crawls: tuple[str, ...],
    n: int,
    out: Path | None,
    answers: Path | None,
    **live: Any,
) -> None:
    """Propose pages around the examples of TOPIC.toml as further examples, before a crawl.

    Pages that good pages and seeds link to and, with --crawl, pages that link to them: the most
    relevant are asked about, here or with --out and --answers, and join the definition. Where no
    web and no crawl is named they are fetched, by a polite crawl that is kept.

    \b
    focuscrawl topic neighbours cycling.toml
    focuscrawl topic neighbours cycling.toml --crawl crawls/cycling --out questions.csv
    """
    _check_asking(out, answers)
    known = read_definition(definition)
    live["out"] = definition.stem
    pages = _around(known, web, crawls, n, live) if answers is None else []
    judged = _judgements(pages, out, answers)
    if judged is None:
        return
    if not any(judged):
        click.echo("no judgement, no change")
        return
    made = edit_definition(definition, lambda now: now.with_judgements(*judged), lambda: known)
    click.echo(f"{definition}: {describe_definition(made)}")


def _around(
    known: TopicDefinition,
    web: str | None,
    crawls: Sequence[str],
    n: int,
    live: Mapping[str, Any],
) -> list[Suggestion]:
    """Return the pages to ask about; `live` says how they are fetched where no web is named."""
    examples = neighbour_sources(known)
    webs = open_webs(known.web, "the definition", [web])
    graphs = []
    with ExitStack() as stack:
        for each in crawls:
            store = stack.enter_context(closing(open_store(each)))
            graphs.append(CrawlGraph.from_store(store))
            webs += open_page_webs(store.identity(), Path(each))
        if not webs:
            webs = [fetch_examples(examples, max_distance=1, **live)]
        return suggest_neighbours(known, webs, n, crawls=graphs)


def _check_asking(out: Path | None, answers: Path | None) -> None:
    if out is not None and answers is not None:
        raise UserError("--out asks and --answers tells: give one of them")


def _judgements(
    pages: Sequence[Suggestion], out: Path | None, answers: Path | None
) -> tuple[list[str], list[str]] | None:
    """Ask about pages, or read the answers; return good and bad URLs, None if asked in a file."""
    if out is not None:
        write_questions(pages, out)
        click.echo(f"wrote {out}: fill in the column verdict (good or bad), then give --answers")
        return None
    return _ask_here(pages) if answers is None else read_judgements(answers)


def _ask_here(pages: Sequence[Suggestion]) -> tuple[list[str], list[str]]:
    """Ask in the terminal; ``q`` ends the questions, and the answers so far count."""
    judged = {True: list[str](), False: list[str]()}
    for number, page in enumerate(pages, 1):
        click.echo(f"{number}/{len(pages)}  {page.kind}, {page.reason}")
        click.echo(f"  {one_line(page.title, 90)}")
        click.echo(f"  {middle(one_line(page.url), 110)}")
        try:
            answer = click.prompt(
                "  on the topic? yes, no, skip, quit", type=click.Choice(list("ynsq")), default="s"
            )
        except click.Abort:
            if sys.stdin.isatty():
                raise
            if number > 1:
                break  # the answers so far count
            raise UserError(
                "nobody is there to answer: write the questions with --out FILE, and tell the "
                "answers with --answers FILE"
            ) from None
        if answer == "q":
            break
        verdict = read_verdict("?" if answer == "s" else answer)
        if verdict is not None:
            judged[verdict].append(page.url)
    return judged[True], judged[False]


def _teacher_of(endpoint: str | None, model: str | None, per_minute: int) -> Teacher | None:
    """Return the teacher; None if no endpoint is named."""
    if endpoint is None:
        if model is not None:
            raise UserError("--model goes with --teacher: name the endpoint, too")
        return None
    if model is None or not model.strip():
        raise UserError("--teacher asks a model: name it with --model")
    return Teacher(
        endpoint, model.strip(), key=os.environ.get(KEY_VARIABLE), per_minute=per_minute
    )


def _ask_teacher(
    session: TeacherSession, pages: Sequence[Suggestion], known: TopicDefinition, path: Path
) -> TopicDefinition:
    """Ask about pages; return the definition with the verdicts, `known` itself if there is none.

    Each verdict is in the definition's file before the next is asked for. After Ctrl-C, or if the
    teacher stops answering, the answers so far count.
    """
    made, tokens, found = known, 0, Counter[str]()
    with closing(session):
        try:
            for number, answer in enumerate(session.ask(pages), 1):
                tokens += answer.tokens
                word = answer.outcome if answer.outcome in ("no verdict", "unread") else ""
                word = word or _WORDS[answer.verdict]
                found[word] += 1
                url = middle(one_line(answer.page.url), 90)
                click.echo(f"{number}/{len(pages)}  {word:10}  {url}")
                if answer.verdict is not None:
                    made = _keep(path, known, answer.page.url, good=answer.verdict)
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
                click.echo(f"{one_line(session.model)}: {said}; {tokens:,} tokens")
    return made


def _keep(path: Path, known: TopicDefinition, url: str, *, good: bool) -> TopicDefinition:
    judged = ([url], []) if good else ([], [url])
    return edit_definition(path, lambda now: now.with_judgements(*judged), lambda: known)
