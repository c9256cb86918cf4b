"""The command ``python -m focuscrawl.webs.synthetic``, which writes labels and seeds as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from focuscrawl.taxonomy import Label
from focuscrawl.webs.synthetic.synthetic_web import SyntheticWeb

_SCALE = click.option(
    "--scale", default=1.0, show_default=True, help="Size of the web; 1 is 3,000 pages."
)
_RANDOM_STATE = click.option(
    "--random-state", default=0, show_default=True, help="Random seed of the web."
)


@click.group()
def main() -> None:
    """Write labels and start pages of the synthetic web."""


@main.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_SCALE
@_RANDOM_STATE
def labels(out: Path, scale: float, random_state: int) -> None:
    """Write the labelled pages to the CSV file OUT with the columns url, topic and split."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Label._fields)
        writer.writerows(SyntheticWeb(scale, random_state).labels())


@main.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_SCALE
@_RANDOM_STATE
def seeds(out: Path, scale: float, random_state: int) -> None:
    """Write five start pages for each topic to the CSV file OUT with columns topic and url."""
    web = SyntheticWeb(scale, random_state)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("topic", "url"))
        writer.writerows((topic, url) for topic in web.topics for url in web.seeds(topic))


main()
