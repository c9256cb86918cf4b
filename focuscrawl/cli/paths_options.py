"""Options that commands of ``focuscrawl paths`` have in common."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import options
from focuscrawl.paths.extraction import PathSampling
from focuscrawl.paths.training import TrainingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., None]

_TRAINING = ("farthest", "untied", "one_state", "l2", "gamma", "max_iter", "printed_rewards")


def labelled(command: Command) -> Command:
    """Add the options of a table of labels, and of the paths that are taken by it.

    The command gets ``labels``, ``column``, ``sampling``, ``random_state``.
    """

    @options.path("--labels", "CSV: url and a column of labels.", required=True)
    @click.option("--column", default="topic", help="Of --labels, the label.", show_default=True)
    @options.number("--paths", "Paths to goals, at most, of each site.", PathSampling.goals)
    @options.share("--fails", "Paths to fails, for each of these.", PathSampling.fails)
    @options.random_state()
    @wraps(command)
    def sampled(*, paths: int, fails: float, **rest: object) -> None:
        command(sampling=PathSampling(paths, fails), **rest)

    return sampled


def training(command: Command) -> Command:
    """Add the options of a model's training; the command gets ``training``."""

    @click.option("--ends-only", is_flag=True, help="Use goal and fail alone, not the milestones.")
    @options.number(
        "--farthest",
        "With --ends-only: clicks from a goal that are told apart.",
        TrainingOptions.farthest,
        most=50,
    )
    @click.option(
        "--untied", is_flag=True, help="With --ends-only: no features shared by distances."
    )
    @click.option(
        "--one-state",
        is_flag=True,
        help="One state a label, and words of links on the ways from one to another.",
    )
    @options.share("--l2", "Penalty on weights.", TrainingOptions.l2, min_open=True)
    @options.share(
        "--gamma",
        "Discount of a goal for each step to it.",
        TrainingOptions.gamma,
        max=1,
        min_open=True,
    )
    @options.number("--max-iter", "Iterations of L-BFGS.", TrainingOptions.max_iter)
    @click.option(
        "--printed-rewards",
        is_flag=True,
        help="Rewards of labels by the paper's equations 3 to 5 to the letter.",
    )
    @wraps(command)
    def trained(*, ends_only: bool, **given: Any) -> None:
        own = {name: given.pop(name) for name in _TRAINING}
        command(training=TrainingOptions(milestones=not ends_only, **own), **given)

    return trained
