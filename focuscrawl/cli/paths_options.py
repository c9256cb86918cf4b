"""Options that commands of ``focuscrawl paths`` have in common."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.paths.extraction import PathSampling
from focuscrawl.paths.training import TrainingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., None]


def labelled(command: Command) -> Command:
    """Add the options of a table of labels, and of the paths that are taken by it.

    The command gets ``labels``, ``column``, ``sampling``, ``random_state``.
    """

    @wraps(command)
    def sampled(*, paths: int, fails: float, **rest: object) -> None:
        command(sampling=PathSampling(paths, fails), **rest)

    for option in (
        click.option(
            "--random-state", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True
        ),
        click.option(
            "--fails",
            default=PathSampling.fails,
            type=click.FloatRange(0),
            help="Paths to fails, for each of these.",
            show_default=True,
        ),
        click.option(
            "--paths",
            default=PathSampling.goals,
            type=click.IntRange(1),
            help="Paths to goals, at most, of each site.",
            show_default=True,
        ),
        click.option(
            "--column", default="topic", help="Of --labels, the label.", show_default=True
        ),
        click.option(
            "--labels",
            required=True,
            type=click.Path(path_type=Path),
            help="CSV: url and a column of labels.",
        ),
    ):
        sampled = option(sampled)
    return sampled


def training(command: Command) -> Command:
    """Add the options of a model's training; the command gets ``training``."""

    @wraps(command)
    def trained(
        *,
        ends_only: bool,
        farthest: int,
        l2: float,
        gamma: float,
        max_iter: int,
        **rest: object,
    ) -> None:
        chosen = TrainingOptions(not ends_only, farthest, l2, gamma, max_iter)
        command(training=chosen, **rest)

    for option in (
        click.option(
            "--max-iter",
            default=TrainingOptions.max_iter,
            type=click.IntRange(1),
            help="Iterations of L-BFGS.",
            show_default=True,
        ),
        click.option(
            "--gamma",
            default=TrainingOptions.gamma,
            type=click.FloatRange(0, 1, min_open=True),
            help="Discount of a goal for each step to it.",
            show_default=True,
        ),
        click.option(
            "--l2",
            default=TrainingOptions.l2,
            type=click.FloatRange(0, min_open=True),
            help="Penalty on weights.",
            show_default=True,
        ),
        click.option(
            "--farthest",
            default=TrainingOptions.farthest,
            type=click.IntRange(1, 50),
            help="With --ends-only: clicks from a goal that are told apart.",
            show_default=True,
        ),
        click.option(
            "--ends-only", is_flag=True, help="Use goal and fail alone, not the milestones."
        ),
    ):
        trained = option(trained)
    return trained
