"""The command ``python -m studies paths``: cross-validation of path models by site."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import write_files
from focuscrawl.cli.paths_commands import label_options, training_options
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.processes import process_pool
from focuscrawl.paths.forager import EVIDENCE_MODES
from focuscrawl.report.plain_text import align_columns, one_line
from focuscrawl.webs import open_web
from studies.leave_one_site_out import CONTENDERS, Experiment, leave_out

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.webs import Web
    from studies.forages import Forage
    from studies.leave_one_site_out import Fold


_RECALLS = (0.5, 0.8, 0.9)
_MEASURES = ["macro", "micro", "goal_f1"]


@click.command()
@click.argument("web", metavar="WEB")
@click.option("--goal", "goals", required=True, multiple=True, help="Goal label; may be repeated.")
@click.option("--starts", required=True, help="Start pages of the sites: URLs, or a file of URLs.")
@click.option("--site-column", required=True, help="Column of --labels that names a page's site.")
@click.option(
    "--against",
    multiple=True,
    type=click.Choice([*CONTENDERS, "none"]),
    help="Strategy to compare with; may be repeated.  [default: all]",
)
@click.option(
    "--domain",
    is_flag=True,
    help="Also forage without the domain as a factor, and as chosen on the training sites.",
)
@click.option(
    "--bound",
    type=common_options.FiniteFloat(0, 1, min_open=True),
    help="Also forage by an oracle that knows all goals and paths, for this share of the goals.",
)
@click.option(
    "--adapt",
    is_flag=True,
    help="Also forage with scores that adapt to the rewards of the site's directories.",
)
@click.option(
    "--rivals",
    is_flag=True,
    help="Also forage by Q-values and context graphs trained on the same paths.",
)
@click.option(
    "--printed",
    is_flag=True,
    help="Also use one state per label, and rewards and scores by the paper's equations.",
)
@click.option(
    "--bars",
    is_flag=True,
    help="Also predict goals by a threshold on Pr(goal), chosen on the training sites.",
)
@click.option("--labels-only", is_flag=True, help="Predict labels without foraging.")
@click.option("--unseen", help="Start pages of sites that are foraged but not trained on.")
@common_options.integer_option("--budget", "Number of fetches on each site.", 500)
@click.option(
    "--stop",
    "stops",
    multiple=True,
    type=common_options.FiniteFloat(0, min_open=True),
    help="Also stop a site below this number of expected goals per fetch; may be repeated.",
)
@click.option("--evidence", default="sum", show_default=True, type=click.Choice(EVIDENCE_MODES))
@common_options.integer_option("--processes", "Number of sites at a time.", 1)
@common_options.out_option("Folder for the results.", "FOLDER")
@label_options
@training_options
def check(
    *,
    web: str,
    labels: Path,
    goals: tuple[str, ...],
    starts: str,
    against: tuple[str, ...],
    unseen: str | None,
    budget: int,
    processes: int,
    out: Path,
    **design: Any,
) -> None:
    r"""Cross-validate models of paths by site on a labelled recorded web.

    For each site the command trains on the paths of all other sites and forages the site. It
    writes forages.csv, labels.csv and recall-GOAL.png into --out: goals found by the model of
    paths and by other strategies at equal fetches, and the accuracy of predicted labels. With
    --stop the tables also show the goals found until the model stops, and the share of pages
    fetched.

    \b
    python -m studies paths pages.warc --labels labels.csv --goal /People \\
        --starts doors.txt --site-column site --out results/paths
    """
    with require_extra("lab", "python -m studies paths"):
        import pandas as pd  # noqa: PLC0415

        from focuscrawl.report.figures import png  # noqa: PLC0415
        from studies.forages import recall_figure  # noqa: PLC0415
    opened = open_web(web)
    doors = _doors(opened, starts)
    if len(doors) < 3:
        raise UserError(
            f"{starts}: cross-validation by site needs three sites, {web} has {len(doors)}: "
            "add start pages"
        )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is not a folder: give another folder with --out")
    experiment = Experiment(
        web=web,
        labels=str(labels),
        starts=tuple(doors),
        against=tuple(each for each in against or CONTENDERS if each != "none"),
        unseen=() if unseen is None else tuple(_doors(opened, unseen)),
        budget=budget,
        **design,
    )
    folds = _run(experiment, goals, processes)
    forages = [each for fold in folds for each in fold.forages]
    scores = pd.DataFrame([score for fold in folds for score in fold.labels])
    files = {"labels.csv": _label_csv(scores)}
    if forages:
        click.echo("\n".join([*_forage_table(forages), ""]))
        files["forages.csv"] = _forage_csv(pd.DataFrame(forages))
    click.echo("\n".join(_label_table(scores)))
    for goal in goals if forages else ():
        of_goal = [each for each in forages if each.goal == goal and not each.stop]
        by_strategy = {
            name: [each for each in of_goal if each.strategy == name]
            for name in dict.fromkeys(each.strategy for each in of_goal)
        }
        name = goal.strip("/").replace("/", "-")
        files[f"recall-{name}.png"] = png(recall_figure(by_strategy, goal, budget))
    click.echo(f"\nwrote {', '.join(map(str, write_files(out, files)))}")


def _doors(web: Web, starts: str) -> list[str]:
    """Return the start pages that the web contains."""
    return [url for url in web.resolve(read_seeds(starts, ())) if url is not None]


def _run(experiment: Experiment, goals: Sequence[str], processes: int) -> list[Fold]:
    tasks = [(goal, site) for goal in goals for site in (*experiment.starts, *experiment.unseen)]
    with (
        tqdm(total=len(tasks), desc="Foraging", unit=" sites", disable=None) as bar,
        process_pool(processes) as pool,
    ):
        running = {pool.submit(leave_out, experiment, *task): task for task in tasks}
        done = {}
        for finished in as_completed(running):
            done[running[finished]] = finished.result()
            bar.update()
    return [done[task] for task in tasks]


def _forage_table(forages: Sequence[Forage]) -> list[str]:
    head = ["goal", "site", "strategy", "reachable", "found", "fetches", "of all", "of own"]
    head += ["harvest", "on the way", "recall"]
    rows = [[*head, *(f"to {recall}" for recall in _RECALLS)]]
    for each in forages:
        name = f"{each.strategy}, stop {each.stop:g}" if each.stop else each.strategy
        found = len(each.found)
        shares = [
            each.fetches / max(each.pages, 1),
            each.fetches / max(each.own, 1),
            found / each.fetches,
            each.on_the_way / each.fetches,
            found / max(each.reachable, 1),
        ]
        rows.append(
            [one_line(each.goal), one_line(each.site), name]
            + [str(number) for number in (each.reachable, found, each.fetches)]
            + [f"{share:.3f}" for share in shares]
            + ["-" if (n := each.until(share)) is None else str(n) for share in _RECALLS]
        )
    return align_columns(rows, left={0, 1, 2})


def _label_table(scores: pd.DataFrame) -> list[str]:
    """Return the mean F1 over sites for each goal and model."""
    rows = [["goal", "labels by", "macro F1", "right", "goal F1"]]
    means = scores.groupby(["goal", "model"], sort=False)[_MEASURES].mean()
    for goal, model, *numbers in means.reset_index().itertuples(index=False):
        rows.append([one_line(goal), model, *(f"{mean:.3f}" for mean in numbers)])
    return align_columns(rows, left={0, 1})


def _forage_csv(forages: pd.DataFrame) -> bytes:
    frame = forages.rename(columns={"found": "found_at"})
    frame["found_at"] = [" ".join(map(str, found)) for found in frame["found_at"]]
    return frame.to_csv(index=False).encode()


def _label_csv(scores: pd.DataFrame) -> bytes:
    frame = scores.rename(columns={"macro": "macro_f1", "micro": "right"})
    return frame.to_csv(index=False, float_format="%.6f").encode()
