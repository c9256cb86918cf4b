"""``focuscrawl apprentice``: train an apprentice on a finished crawl."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.apprentice.apprentice import FORMAT, save_apprentice
from focuscrawl.apprentice.options import Options
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import history_progress_bar
from focuscrawl.critic import load_critic
from focuscrawl.critic.critic_files import reject_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import crawl_options, train_apprentice
from focuscrawl.report.plain_text import align_columns
from focuscrawl.report.status import open_store
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web


_CV_ACCURACY = "cv-accuracy"
_BY_CROSS_VALIDATION = ("cv", _CV_ACCURACY)


@click.group()
def apprentice() -> None:
    """Train apprentices on the links of finished crawls.

    An apprentice is a link classifier, which predicts which links lead to relevant pages.
    """


@apprentice.command()
@common_options.CRAWL_DIR
@common_options.out_option("New folder for the apprentice, such as models/NAME.", "FOLDER")
@common_options.web_option("from which the command reads the pages of the crawl again.")
@click.option(
    "--critic",
    help="Critic (page classifier) that judges the pages in the recording --web.  [default: "
    "the crawl's critic]",
)
@click.option(
    "--d-max",
    metavar="N|cv|cv-accuracy",
    help="Use words as features of a link only up to this distance from the link, in text nodes. "
    "With cv, a cross-validation chooses the distance by the log loss; with cv-accuracy, "
    "by the accuracy.",
)
@click.option(
    "--options",
    "options_json",
    metavar="JSON",
    help="Options of the apprentice, as a JSON object.  [default: the options of the crawl]",
)
@click.option(
    "--groups",
    metavar="A,B,...",
    help="Names of the groups of link features to train on, separated by commas.",
)
@click.option(
    "--learner",
    metavar="NAME",
    help="Learning algorithm: logistic (logistic regression), regression (ridge regression) or "
    "nb (naive Bayes).",
)
@click.option(
    "--evidence",
    metavar="NAME",
    help="For each URL, train on all links to the URL (`all`), or only on the link that the "
    "crawl found first (`first`).",
)
def train(
    *,
    crawl_dir: str,
    out: Path,
    web: str | None,
    critic: str | None,
    d_max: str | None,
    options_json: str | None,
    groups: str | None,
    **learner_and_evidence: str | None,
) -> None:
    """Train an apprentice on the crawl in CRAWL_DIR.

    By default, the new apprentice has the same options as the apprentice of the crawl. To change
    options of the apprentice, use --options with a JSON object, as in the setting
    FOCUSCRAWL_STRATEGY_OPTIONS.

    If the crawl did not store all link features, the command reads the pages of the crawl again
    from the recording --web. Link features are missing if the crawl used another strategy than
    `apprentice`, or if --groups or --d-max selects features that the crawl did not use.

    \b
    focuscrawl apprentice train crawls/first --out models/cycling-links
    focuscrawl apprentice train crawls/first --out models/x --d-max cv --web pages.warc
    focuscrawl crawl -a apprentice=models/cycling-links ...
    """
    FORMAT.check_output(out)
    with closing(open_store(crawl_dir)) as store:
        options = _update_options(crawl_options(store) or Options(), options_json)
        changes: dict[str, Any] = {
            "groups": None if groups is None else tuple(g.strip() for g in groups.split(",")),
            "d_max": _parse_d_max(d_max),
            **learner_and_evidence,
        }
        options = replace(options, **{k: v for k, v in changes.items() if v is not None})
        identity = store.identity()
        source, judge = None, None
        if web is not None:
            source = open_web(web)
            # the store may come from somebody else and name a Python callable as critic
            name = critic or reject_callable_spec(identity["critic_name"], crawl_dir, "--critic ")
            judge = load_critic(name, identity["topic"])
        if d_max in _BY_CROSS_VALIDATION:
            if source is None or judge is None:
                raise UserError(
                    f"--d-max {d_max} reads the pages of the crawl again: name a recorded web "
                    "with --web"
                )
            by_accuracy = d_max == _CV_ACCURACY
            chosen = _choose_d_max(store, options, judge, source, by_accuracy=by_accuracy)
            options = replace(options, d_max=chosen)
        with history_progress_bar(store, "Reading") as bar:
            learned = train_apprentice(
                store, options=options, critic=judge, web=source, on_page=bar.update
            )
    about: dict[str, str | int] = {
        "topic": identity["topic"],
        "instances": learned.n_judged,
        "d_max": learned.options.d_max,
        "crawl": crawl_dir,
    }
    save_apprentice(learned.export(), out, about)
    click.echo(
        f"Saved apprentice {out}: trained on {learned.n_judged:,} judged URLs of {crawl_dir}"
    )


def _update_options(options: Options, changes_json: str | None) -> Options:
    try:
        changes = json.loads(changes_json or "{}")
    except ValueError:
        changes = None
    if not isinstance(changes, dict):
        raise UserError(
            f'--options must be a JSON object such as {{"learner": "nb"}}, not {changes_json!r}'
        )
    known = [field.name for field in fields(Options)]
    for name in changes:
        if name not in known:
            raise UserError(f"--options: unknown option {name!r}. Options: {', '.join(known)}")
    return Options.from_mapping(asdict(options) | changes)


def _parse_d_max(d_max: str | None) -> int | None:
    """Return a number; None if d_max is not given, or is chosen by cross-validation."""
    if d_max is None or d_max in _BY_CROSS_VALIDATION:
        return None
    if not d_max.isdecimal():
        raise UserError(
            f"--d-max must be cv, {_CV_ACCURACY} or an integer of at least 0, not {d_max!r}"
        )
    return int(d_max)


def _choose_d_max(
    store: CrawlStore, options: Options, critic: Critic, web: Web, *, by_accuracy: bool
) -> int:
    """Choose d_max by cross-validation; print a table of the candidates."""
    # imports scikit-learn, which takes a second
    from focuscrawl.offline.d_max_selection import (  # noqa: PLC0415
        N_FITS,
        cross_validate,
        select_d_max,
    )

    with (
        history_progress_bar(store, "Reading") as pages,
        tqdm(total=N_FITS, desc="Cross-validating", unit=" fits", disable=None) as fits,
    ):
        trials = cross_validate(
            store, options, critic=critic, web=web, on_page=pages.update, on_fit=fits.update
        )
    best = min(trials, key=lambda trial: trial.log_loss)
    d_max = select_d_max(trials, by_accuracy=by_accuracy)
    rows = [
        ["d_max", "log loss", "over least", "error", "AUC", "high", "low", "balanced", "accuracy"]
    ]
    for each in trials:
        numbers = (each.log_loss, each.excess_loss, each.error, each.auc, each.high, each.low)
        rows.append(
            [str(each.d_max), *(f"{x:.3f}" for x in (*numbers, each.balanced, each.accuracy))]
        )
    click.echo("\n".join(align_columns(rows, left=set())))
    reason = (
        "the smallest value with the highest accuracy"
        if by_accuracy
        else "the smallest value with a log loss within one standard error of the least "
        f"(d_max = {best.d_max})"
    )
    click.echo(f"Chosen d_max = {d_max}: {reason}")
    return d_max
