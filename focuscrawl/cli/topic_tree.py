"""``focuscrawl topic tree``: the taxonomy that a person starts from."""

from __future__ import annotations

import click

from focuscrawl.cli import options
from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.taxonomy import ROOT, normalise
from focuscrawl.topics.class_tree import class_tree, pages_below

_WIDTH = 100  # characters of a URL


@click.command()
@click.argument("critic", metavar="CRITIC")
@click.option("--under", help="Only this class and those below it.")
@options.number("--examples", "Example URLs shown of a class.", 2, least=0)
def tree(*, critic: str, under: str | None, examples: int) -> None:
    """List the classes of CRITIC, a folder or a name in models/: what can be marked.

    Each with the number of the pages that it was learned from, those below it included, and
    some of them. Of a critic that was learned from little, the phrases as well.

    \b
    focuscrawl topic tree models/demo
    focuscrawl topic tree models/dmoz --under /Sports --examples 5
    """
    trained, _ = read_critic(find_model(critic))
    classes = class_tree(trained)
    top = ROOT if under is None else normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"{critic} has no class {top}; near it: {', '.join(near)}")
    shown = [path for path in (top, *classes.descendants(top)) if path != ROOT]
    pages = pages_below(classes)
    leaves = len(classes.leaves_under(top))
    click.echo(
        f"{critic}: {trained.model.kind}, {counted(leaves, 'topic')}, "
        f"{counted(pages[top], 'example')}"
    )
    if trained.phrases:
        said = ", ".join(" ".join(phrase) for phrase in trained.phrases)
        click.echo(f"phrases: {one_line(said, 200)}")
    least = min((path.count("/") for path in shown), default=0)
    for path in shown:
        indent = "  " * (path.count("/") - least)
        count = f"  {pages[path]:,}" if trained.examples else ""
        click.echo(f"{indent}{one_line(path)}{count}")
        for url in classes.examples(path)[:examples]:
            click.echo(f"{indent}    {middle(one_line(url), _WIDTH)}")
    for path in trained.absent:
        click.echo(f"{one_line(path)}: had no example that could be read; it cannot be marked")
    if not trained.examples:
        click.echo("learned from words alone: there is no example")
