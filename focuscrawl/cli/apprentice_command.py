"""``focuscrawl apprentice``: train an apprentice on a crawl that is over."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.apprentice.apprentice import FORMAT, save_apprentice
from focuscrawl.apprentice.options import Options
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import reading
from focuscrawl.critic import load_critic
from focuscrawl.critic.critic_files import refuse_program
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import learn_from, options_of
from focuscrawl.report.plain_text import align_columns
from focuscrawl.report.status import open_store
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


@click.group()
def apprentice() -> None:
    """Train apprentices on crawls that are over."""


@apprentice.command()
@common_options.CRAWL_DIR
@common_options.out("models/NAME.")
@click.option("--web", help="Where the pages are, if they have to be read again.")
@click.option("--critic", help="Who reads links and pages then.  [default: the crawl's own]")
@click.option("--d-max", metavar="N|cv", help="DOM offsets looked at; cv: by cross-validation.")
@click.option("--options", "given", metavar="JSON", help="Options of the apprentice.")
@click.option("--groups", metavar="A,B,...", help="Kinds of features looked at.")
@click.option("--learner", metavar="NAME", help="logistic, regression or nb.")
@click.option("--evidence", metavar="NAME", help="all links into a URL, or the first.")
def train(
    *,
    crawl_dir: str,
    out: Path,
    web: str | None,
    critic: str | None,
    d_max: str | None,
    given: str | None,
    groups: str | None,
    **named: str | None,
) -> None:
    """Train an apprentice on the crawl in CRAWL_DIR and write it to --out.

    Its options are those the crawl's own apprentice had, or else the defaults; --options says
    others, as FOCUSCRAWL_STRATEGY_OPTIONS does. What that has not kept of the pages takes --web:
    after a crawl of another strategy, for other --groups, for another --d-max.

    \b
    focuscrawl apprentice train crawls/first --out models/cycling-links
    focuscrawl apprentice train crawls/first --out models/x --d-max cv --web pages.warc
    focuscrawl crawl -a apprentice=models/cycling-links ...
    """
    FORMAT.check_out(out)
    with closing(open_store(crawl_dir)) as store:
        options = _changed(options_of(store) or Options(), given)
        changes: dict[str, Any] = {
            "groups": None if groups is None else tuple(g.strip() for g in groups.split(",")),
            "d_max": None if d_max in {None, "cv"} else _whole_number(d_max),
            **named,
        }
        options = replace(options, **{k: v for k, v in changes.items() if v is not None})
        identity = store.identity()
        source, judge = None, None
        if web is not None:
            source = open_web(web)
            # the crawl may be a stranger's, and name a program
            own = critic or refuse_program(identity["critic_name"], crawl_dir, "--critic ")
            judge = load_critic(own, identity["topic"])
        if d_max == "cv":
            if source is None or judge is None:
                raise UserError(
                    "--d-max cv reads the pages of the crawl again: name their web with --web"
                )
            options = replace(options, d_max=_choose(store, options, judge, source))
        with reading(store, "Reading") as bar:
            learned = learn_from(
                store, options=options, critic=judge, web=source, on_page=bar.update
            )
    about: dict[str, str | int] = {
        "topic": identity["topic"],
        "instances": learned.n_judged,
        "d_max": learned.options.d_max,
        "crawl": crawl_dir,
    }
    save_apprentice(learned.export(), out, about)
    click.echo(f"{out}: learned from {learned.n_judged:,} URLs of {crawl_dir}")


def _changed(options: Options, given: str | None) -> Options:
    """Return the options with the changes in the JSON `given`."""
    try:
        changes = json.loads(given or "{}")
    except ValueError:
        changes = None
    if not isinstance(changes, dict):
        raise UserError(f'--options must be JSON like {{"learner": "nb"}}, not {given!r}')
    known = [field.name for field in fields(Options)]
    for name in changes:
        if name not in known:
            raise UserError(f"--options: there is no {name!r}: options are {', '.join(known)}")
    return Options.of(asdict(options) | changes)


def _whole_number(d_max: str) -> int:
    if not d_max.isdecimal():
        raise UserError(f"--d-max must be cv or a whole number, 0 or more, not {d_max!r}")
    return int(d_max)


def _choose(store: CrawlStore, options: Options, critic: Critic, web: Web) -> int:
    """Choose d_max by cross-validation, and print what was compared."""
    # it imports scikit-learn, which takes a second
    from focuscrawl.offline.d_max_selection import (  # noqa: PLC0415
        FITS,
        chosen,
        try_windows,
    )

    with (
        reading(store, "Reading") as pages,
        tqdm(total=FITS, desc="Comparing", unit=" fits", disable=None) as fits,
    ):
        trials = try_windows(
            store, options, critic=critic, web=web, on_page=pages.update, on_fit=fits.update
        )
    best, d_max = min(trials, key=lambda trial: trial.log_loss), chosen(trials)
    rows = [["d_max", "log loss", "over least", "error", "AUC", "high", "low", "balanced"]]
    for each in trials:
        numbers = (each.log_loss, each.behind, each.error, each.auc, each.high, each.low)
        rows.append([str(each.d_max), *(f"{x:.3f}" for x in (*numbers, each.balanced))])
    click.echo("\n".join(align_columns(rows, left=set())))
    click.echo(
        f"d_max = {d_max}: the smallest within a standard error of the least log loss "
        f"(at {best.d_max})"
    )
    return d_max
