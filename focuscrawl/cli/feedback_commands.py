"""Commands to judge pages: ``focuscrawl topic apply``, ``mark``, ``suggest``, ``neighbours``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
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
from focuscrawl.feedback.applying import apply_definition, check_applicable, load_crawl_definition
from focuscrawl.feedback.suggestions import (
    DEFAULT_KIND,
    KINDS,
    neighbour_sources,
    read_judgements,
    read_verdict,
    suggest,
    suggest_neighbours,
    write_questions,
)
from focuscrawl.feedback.teacher import KEY_VARIABLE, Teacher
from focuscrawl.feedback.teaching import RECORD_FILE, TeacherSession
from focuscrawl.offline.link_graph import CrawlGraph
from focuscrawl.report.plain_text import one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.taxonomy import lies_under, normalise
from focuscrawl.topics import (
    DEFINITION_FILE,
    check_marked_classes,
    edit_definition,
    read_definition,
    training_urls,
)
from focuscrawl.topics.definition import mark_class
from focuscrawl.webs.opening import open_webs

if TYPE_CHECKING:
    from focuscrawl.feedback.suggestions import Suggestion
    from focuscrawl.topics import TopicDefinition


_VERDICT_WORDS = {True: "good", False: "bad", None: "unsure"}

_NO_CHANGE = "No page was judged, so nothing was changed"

_CRAWL = click.argument("crawl_dir", metavar="CRAWL_DIR", type=common_options.PATH)
_WEB = common_options.web_option(
    "from which the command reads pages and examples that are missing in the crawl folder."
)
_NUMBER = common_options.integer_option(
    "--n", "Maximum number of pages that the command chooses for judgement.", 20
)
_OUT = common_options.path_option(
    "--out",
    "Do not ask for verdicts on the terminal; write the chosen pages to this CSV file, "
    "in which you enter your verdicts.",
)
_ANSWERS = common_options.path_option(
    "--answers",
    "Read your verdicts from this CSV file, which an earlier command with --out has written.",
)


@click.command()
@_CRAWL
@common_options.DEFINITION
@_WEB
def apply(*, crawl_dir: Path, definition: Path, web: str | None) -> None:
    """Apply the topic definition TOPIC.toml to a crawl.

    The command trains a critic (page classifier), judges the fetched pages of the crawl again, and
    computes new scores of the queued URLs. If the crawl is running, the crawl itself judges the
    pages again and computes the new scores, before its next fetch. To resume a stopped crawl,
    repeat the command that started the crawl.
    """
    wanted, path = read_definition(definition), crawl_dir / DEFINITION_FILE
    before = read_definition(path) if path.exists() else wanted
    _apply(wanted, crawl_dir, web)
    if definition.resolve() != path.resolve():

        def with_new_judgements(now: TopicDefinition) -> TopicDefinition:
            good = [url for url in now.good if url not in before.good]
            bad = [url for url in now.bad if url not in before.bad]
            return wanted.with_judgements(good, bad)  # judged while the critic was trained

        edit_definition(path, with_new_judgements, lambda: wanted)


@click.command()
@_CRAWL
@click.argument("topic", metavar="CLASS")
@_WEB
def mark(*, crawl_dir: Path, topic: str, web: str | None) -> None:
    """Add the class CLASS to the relevant classes of a crawl.

    CLASS is a class of the critic of the crawl, for example a class that the crawl proposed in a
    warning. The subclasses of CLASS become relevant as well. The crawl judges its fetched pages
    again, and computes new scores of the queued URLs.

    \b
    focuscrawl topic mark crawls/funds /Business/Investing
    """
    path, wanted = crawl_dir / DEFINITION_FILE, normalise(topic)
    with closing(open_store(crawl_dir)) as store:
        known = load_crawl_definition(store, crawl_dir, web)
    if known.critic is None:
        raise UserError(
            f"{path} names no critic, so no class can be marked: judge pages with "
            "`focuscrawl topic suggest`"
        )
    if lies_under(wanted, known.topics):
        raise UserError(
            f"class {wanted} is relevant already. Relevant classes: {', '.join(known.topics)}"
        )
    updated = mark_class(known, wanted)
    check_marked_classes(updated)
    check_applicable(updated, crawl_dir, web=web)
    updated = edit_definition(path, lambda now: mark_class(now, wanted), lambda: known)
    _apply(updated, crawl_dir, web)
    click.echo(f"{path}: {describe_definition(updated)}")


@click.command("suggest")
@_CRAWL
@click.option(
    "--topic",
    "definition",
    type=common_options.PATH,
    metavar="TOPIC.toml",
    help="Topic definition to which the command adds the verdicts; the command creates a missing "
    "file.  "
    f"[default: CRAWL_DIR/{DEFINITION_FILE}]",
)
@_NUMBER
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice(list(KINDS)),
    default=[DEFAULT_KIND],
    show_default=True,
    help="Kind of pages that the command chooses for judgement; repeatable. If you give several "
    "kinds, the command chooses pages of each kind in turn.",
)
@_OUT
@_ANSWERS
@click.option(
    "--teacher",
    "endpoint",
    metavar="URL",
    help="URL of an OpenAI-compatible API, such as https://host/v1, whose language model judges "
    "the pages.",
)
@click.option("--model", metavar="NAME", help="Name of the language model at the URL --teacher.")
@common_options.integer_option(
    "--per-minute",
    "Maximum number of requests that the command sends to the language model per minute.",
    60,
)
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
    """Ask you to judge pages of a crawl, and apply your verdicts.

    By default, the command chooses pages whose relevance is uncertain, and which differ from the
    pages that you have already judged. With the option --kind, the command chooses top hubs, top
    authorities, or pages whose relevance differs from the relevance of the pages that they
    link to.

    The command asks for the verdicts on the terminal, unless you give --out, --answers or
    --teacher. If the language model --teacher needs an API key, set the environment variable
    FOCUSCRAWL_TEACHER_KEY. You can run the command while the crawl is running.

    \b
    focuscrawl topic suggest crawls/cycling
    focuscrawl topic suggest crawls/cycling --out questions.csv
    focuscrawl topic suggest crawls/cycling --answers questions.csv
    focuscrawl topic suggest crawls/cycling --teacher http://localhost:11434/v1 --model NAME
    """
    _check_answer_options(out, answers)
    teacher = _make_teacher(endpoint, model, per_minute)
    if teacher is not None and (out or answers):
        raise UserError("--teacher cannot be combined with --out or --answers: leave them out")
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
        raise UserError(
            f"no page of {crawl_dir} is left to judge: crawl more pages or choose another --kind"
        )
    if session is not None:
        updated = _ask_teacher(session, pages, known, path)
    else:
        judged = _get_judgements(pages, out, answers)
        if judged is None:
            return
        updated = known
        if any(judged):  # save the judgements even if they cannot be applied
            updated = edit_definition(
                path, lambda now: now.with_judgements(*judged), lambda: known
            )
    if updated is known:
        click.echo(_NO_CHANGE)
        return
    _apply(updated, crawl_dir, web)
    click.echo(f"{path}: {describe_definition(updated)}")


def _apply(definition: TopicDefinition, crawl_dir: Path, web: str | None) -> None:
    with closing(ProgressBar("Reading")) as examples, closing(ProgressBar("Judging")) as pages:
        applied = apply_definition(definition, crawl_dir, web=web, examples=examples, pages=pages)
    print_unread_examples(definition.judged_urls, applied.trained)
    warn_of_missing_embeddings(applied.trained)
    click.echo(f"Saved critic {applied.critic}: topics {', '.join(applied.topics)}")
    click.echo(
        applied.outcome
        or "The crawl is running: it will judge its pages again before its next fetch"
    )


@click.command("neighbours")
@common_options.DEFINITION
@common_options.web_option("that contains the pages, if TOPIC.toml names no recording.")
@click.option(
    "--crawl",
    "crawls",
    multiple=True,
    metavar="CRAWL_DIR",
    help="Folder of a crawl in which the command looks for pages that link to the example pages; "
    "repeatable.",
)
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
    **crawl_options: Any,
) -> None:
    """Propose further examples for TOPIC.toml by following links.

    The command follows the links on the good pages and start pages in TOPIC.toml, and proposes
    the most relevant linked pages. With --crawl, the command also proposes pages that link to
    good pages or start pages. You judge the proposed pages on the terminal. To judge them in a
    CSV file instead, use --out and then --answers. The command adds your verdicts to
    TOPIC.toml.

    Without --web and --crawl, the command fetches the pages with a polite crawl, and saves the
    pages in the folder --crawl-dir.

    \b
    focuscrawl topic neighbours cycling.toml
    focuscrawl topic neighbours cycling.toml --crawl crawls/cycling --out questions.csv
    """
    _check_answer_options(out, answers)
    known = read_definition(definition)
    crawl_options["out"] = definition.stem
    pages = _find_neighbours(known, web, crawls, n, crawl_options) if answers is None else []
    judged = _get_judgements(pages, out, answers)
    if judged is None:
        return
    if not any(judged):
        click.echo(_NO_CHANGE)
        return
    updated = edit_definition(definition, lambda now: now.with_judgements(*judged), lambda: known)
    click.echo(f"{definition}: {describe_definition(updated)}")


def _find_neighbours(
    known: TopicDefinition,
    web: str | None,
    crawls: Sequence[str],
    n: int,
    crawl_options: Mapping[str, Any],
) -> list[Suggestion]:
    """Return the pages to judge; fetch pages with `crawl_options` if no web is named."""
    examples = neighbour_sources(known)
    webs = open_webs(known.web, "the definition", [web])
    graphs = []
    with ExitStack() as stack:
        for each in crawls:
            store = stack.enter_context(closing(open_store(each)))
            graphs.append(CrawlGraph.from_store(store))
            webs += open_page_webs(store.identity(), Path(each))
        if not webs:
            webs = [fetch_examples(examples, max_distance=1, **crawl_options)]
        return suggest_neighbours(known, webs, n, crawls=graphs)


def _check_answer_options(out: Path | None, answers: Path | None) -> None:
    if out is not None and answers is not None:
        raise UserError("--out and --answers cannot be combined: leave out one of them")


def _get_judgements(
    pages: Sequence[Suggestion], out: Path | None, answers: Path | None
) -> tuple[list[str], list[str]] | None:
    """Return good and bad URLs; None if the pages were written to a file for later verdicts."""
    if out is not None:
        write_questions(pages, out)
        click.echo(
            f"wrote {out}: fill in the column verdict (good or bad), then repeat the command "
            f"with --answers {out}"
        )
        return None
    return _ask_on_terminal(pages) if answers is None else read_judgements(answers)


def _ask_on_terminal(pages: Sequence[Suggestion]) -> tuple[list[str], list[str]]:
    """Ask for verdicts on the terminal; ``q`` stops early and keeps the verdicts so far."""
    judged = {True: list[str](), False: list[str]()}
    for number, page in enumerate(pages, 1):
        click.echo(f"{number}/{len(pages)}  {page.kind}, {page.reason}")
        click.echo(f"  {one_line(page.title, 90)}")
        click.echo(f"  {shorten_middle(one_line(page.url), 110)}")
        try:
            answer = click.prompt(
                "  on the topic? yes, no, skip, quit", type=click.Choice(list("ynsq")), default="s"
            )
        except click.Abort:
            if sys.stdin.isatty():
                raise
            if number > 1:
                break  # keep the verdicts so far
            raise UserError(
                "no verdict could be read from standard input: write the pages to a file with "
                "--out FILE, and read the verdicts with --answers FILE"
            ) from None
        if answer == "q":
            break
        verdict = read_verdict("?" if answer == "s" else answer)
        if verdict is not None:
            judged[verdict].append(page.url)
    return judged[True], judged[False]


def _make_teacher(endpoint: str | None, model: str | None, per_minute: int) -> Teacher | None:
    if endpoint is None:
        if model is not None:
            raise UserError("--model needs --teacher: name the address of the language model")
        return None
    if model is None or not model.strip():
        raise UserError("--teacher needs --model: name the language model")
    return Teacher(
        endpoint, model.strip(), key=os.environ.get(KEY_VARIABLE), per_minute=per_minute
    )


def _ask_teacher(
    session: TeacherSession, pages: Sequence[Suggestion], known: TopicDefinition, path: Path
) -> TopicDefinition:
    """Ask the teacher; return the definition with its verdicts, or `known` if there are none.

    Each verdict is saved before the next request, so Ctrl-C or a failing teacher loses none.
    """
    updated, tokens, found = known, 0, Counter[str]()
    with closing(session):
        try:
            for number, answer in enumerate(session.ask(pages), 1):
                tokens += answer.tokens
                word = answer.outcome if answer.outcome in ("no verdict", "unread") else ""
                word = word or _VERDICT_WORDS[answer.verdict]
                found[word] += 1
                url = shorten_middle(one_line(answer.page.url), 90)
                click.echo(f"{number}/{len(pages)}  {word:10}  {url}")
                if answer.verdict is not None:
                    updated = _save_verdict(path, known, answer.page.url, good=answer.verdict)
        except KeyboardInterrupt:
            click.echo("Interrupted: the verdicts so far are saved", err=True)
        except UserError as error:
            if updated is known:
                raise
            n = pluralize(found["good"] + found["bad"], "answer")
            raise UserError(
                f"{error}. {n} saved in {path}: apply them with `focuscrawl topic apply`"
            ) from None
        finally:
            if found:
                verdicts = ", ".join(f"{n} {word}" for word, n in found.items())
                click.echo(f"{one_line(session.model)}: {verdicts}; {tokens:,} tokens")
    return updated


def _save_verdict(path: Path, known: TopicDefinition, url: str, *, good: bool) -> TopicDefinition:
    judged = ([url], []) if good else ([], [url])
    return edit_definition(path, lambda now: now.with_judgements(*judged), lambda: known)
