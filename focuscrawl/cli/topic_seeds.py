"""``focuscrawl topic seeds``: start URLs out of a list, or of a search engine's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.cli.topic_text import in_words
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.topics import edit_definition, read_definition

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.knowledge import Keywords
    from focuscrawl.topics import TopicDefinition

# scikit-learn comes with critics: a second that `--help` can do without
# ruff: noqa: PLC0415

_QUERY = 8  # keywords that a callable is asked with


@click.command("seeds")
@options.DEFINITION
@click.option(
    "--candidates",
    required=True,
    help="A JSON file of an engine's answers, a CSV of url,title,description, or module:callable.",
)
@click.option("--query", help="What a callable is asked with; usual: the topic's first words.")
@options.number("--n", "Start URLs to take.", 20)
def seeds_command(*, definition: Path, candidates: str, query: str | None, n: int) -> None:
    """Take the start URLs of TOPIC.toml from candidates: those most like the topic's words.

    Words are those of the definition, and those that tell the examples of its critic from others;
    a candidate is as like them as its title and description are.

    \b
    focuscrawl topic seeds cycling.toml --candidates answers.json
    focuscrawl topic seeds cycling.toml --candidates mysearch:ask --query "road cycling"
    """
    from focuscrawl.knowledge.candidates import ranked, read_candidates

    known = read_definition(definition)
    keywords = _keywords(known)
    if not keywords.weights:
        raise UserError(
            f"{definition} has no words to rank by: add words = [...] or a description to it"
        )
    asked = query or " ".join([*keywords.weights][:_QUERY])
    found = read_candidates(candidates, asked)
    best = ranked(found, keywords)
    if not best:
        words = ", ".join([*keywords.weights][:_QUERY])
        raise UserError(
            f"none of {counted(len(found), 'candidate')} has a word of the topic ({words}): "
            "give it more words, or other candidates"
        )
    for each, score in best[:n]:
        click.echo(f"{score:.2f}  {middle(one_line(each.url), 90)}  {one_line(each.title, 60)}")
    urls = [each.url for each, _ in best[:n]]

    def with_seeds(now: TopicDefinition) -> TopicDefinition:
        return replace(now, seeds=tuple(dict.fromkeys([*now.seeds, *urls])))

    made = edit_definition(definition, with_seeds)
    click.echo(f"{definition}: {in_words(made)}")


def _keywords(known: TopicDefinition) -> Keywords:
    from focuscrawl.critic import load_critic
    from focuscrawl.critic.phrase_model import phrases_of, words_of
    from focuscrawl.knowledge import Keywords

    phrases = phrases_of(", ".join(known.words)) if known.words else []
    if known.description is not None:
        phrases.append(words_of(known.description))
    sources = [dict.fromkeys((word for phrase in phrases for word in phrase), 1.0)]
    if known.critic is not None and known.topics:
        critic = load_critic(known.critic, ",".join(known.topics))
        sources += [getattr(critic, of, dict)() for of in ("phrase_words", "example_words")]
    if not any(sources):
        sources.append(Keywords.of_topics([*known.topics, known.name or ""]).weights)
    return Keywords.of_all(*sources)
