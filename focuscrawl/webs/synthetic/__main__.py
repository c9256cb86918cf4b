"""``python -m focuscrawl.webs.synthetic``: labels to train a critic from, seeds to start at."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from focuscrawl.taxonomy import Label
from focuscrawl.webs.synthetic.synthetic_web import SyntheticWeb

_SCALE = click.option("--scale", default=1.0, show_default=True, help="1 is 3,000 pages.")
_RANDOM_STATE = click.option("--random-state", default=0, show_default=True)


@click.group()
def main() -> None:
    """Look into the synthetic web."""


@main.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_SCALE
@_RANDOM_STATE
def labels(out: Path, scale: float, random_state: int) -> None:
    """Write the labels to OUT as CSV: url,topic,split."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Label._fields)
        writer.writerows(SyntheticWeb(scale, random_state).labels())


@main.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_SCALE
@_RANDOM_STATE
def seeds(out: Path, scale: float, random_state: int) -> None:
    """Write five start URLs a topic to OUT as CSV: topic,url."""
    web = SyntheticWeb(scale, random_state)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("topic", "url"))
        writer.writerows((topic, url) for topic in web.topics for url in web.seeds(topic))


main()
