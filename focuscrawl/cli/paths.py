"""``focuscrawl paths``: learn the paths to the pages you want, and forage other sites for them."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from focuscrawl.cli import options
from focuscrawl.cli.crawling import crawl
from focuscrawl.cli.output import check_file
from focuscrawl.cli.paths_options import labelled
from focuscrawl.cli.paths_options import training as training_options
from focuscrawl.cli.paths_record import record
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.errors import UserError
from focuscrawl.offline.link_graph import CrawlGraph
from focuscrawl.paths.extraction import extract_paths
from focuscrawl.paths.features import PathReader
from focuscrawl.paths.files import FORMAT, read_model, save_model
from focuscrawl.paths.left_out_sites import calibrate
from focuscrawl.paths.page_labels import read_page_labels
from focuscrawl.paths.site_path import read_paths, write_paths
from focuscrawl.paths.training import observe
from focuscrawl.paths.training import train as train_model
from focuscrawl.paths.web_pages import WebPages
from focuscrawl.report.goals import goal_pages, write_goals
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.report.stores import open_store
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.paths.extraction import PathSampling
    from focuscrawl.paths.model import PathModel
    from focuscrawl.paths.training import TrainingOptions

_SHOWN = 6  # features of a label
_LISTED = 10  # goal pages
_STOP = 0.03  # goals a fetch


@click.group()
def paths() -> None:
    """Learn the paths to the pages you want, and forage other sites for them."""


paths.add_command(record)


@paths.command()
@click.argument("source", metavar="WEB|CRAWL_DIR")
@click.option("--goal", required=True, help="The label of the pages looked for.")
@click.option("--starts", help="Front doors: URLs, or a file of them.  [default: the crawl's own]")
@click.option("--site-column", help="Of --labels, whose page it is: goals are of the same site.")
@options.out("paths.jsonl.")
@labelled
def extract(
    *,
    source: str,
    labels: Path,
    goal: str,
    starts: str | None,
    column: str,
    site_column: str | None,
    sampling: PathSampling,
    random_state: int,
    out: Path,
) -> None:
    """Take paths out of a recorded web, or out of a crawl, whose pages are labelled.

    To each goal one of the shortest ways from the front door, and ways that leave these for
    pages with no goal behind them.

    \b
    focuscrawl paths extract pages.warc --labels labels.csv --goal /People \\
        --starts doors.txt --out people.jsonl
    """
    check_file(out, "--out")
    walked = None
    if (Path(source) / "crawl.db").is_file():
        with closing(open_store(source)) as store:
            walked = CrawlGraph.of(store)
        links, resolve = walked.links, walked.resolve
    else:
        web = open_web(source)
        links, resolve = WebPages(web).links, web.resolve
    table = read_page_labels(labels, resolve, label=column, site=site_column)
    if starts is not None:
        doors = [url for url in resolve(read_seeds(starts, ())) if url is not None]
    elif walked is not None:
        doors = walked.starts
    else:
        raise UserError("where do sites begin? Name their front doors with --starts")
    if not doors:
        raise UserError(f"{source} has none of the front doors {starts}")
    found, said = [], []
    for door in doors:
        of_site = extract_paths(
            door,
            links,
            table.goals(goal, door),
            table.labels,
            sampling=sampling,
            random_state=random_state,
        )
        ends = sum(path.succeeds for path in of_site)
        said.append(f"{door}: {counted(ends, 'path')} to goals, {len(of_site) - ends:,} to fails")
        found += of_site
    if not found:
        raise UserError(f"no page labelled {goal!r} can be reached: is {column} the right column?")
    written = write_paths(found, out)
    click.echo("\n".join([*said, f"{out}: {counted(written, 'path')}"]))


@paths.command()
@click.argument("files", metavar="PATHS.jsonl...", nargs=-1, required=True, type=options.PATH)
@click.option("--web", required=True, help=options.EXAMPLES_WEB)
@options.out("models/NAME.")
@training_options
def train(
    *,
    files: tuple[Path, ...],
    web: str,
    out: Path,
    training: TrainingOptions,
) -> None:
    """Train a model on paths, and write it to --out.

    \b
    focuscrawl paths train people.jsonl --web pages.warc --out models/people
    """
    FORMAT.check_out(out)
    pages = WebPages(open_web(web))
    walks = [path for file in files for path in read_paths(file)]
    corpus = observe(walks, pages, PathReader(training.reading, forgets=False))
    with tqdm(desc="Fitting", unit=" steps", disable=None) as bar:
        model = train_model(corpus, training, on_iteration=bar.update)
    model = replace(model, calibration=calibrate(corpus, training))
    about = {"paths": len(corpus.paths), "sites": len(set(corpus.sites.tolist()))}
    save_model(model, out, about)
    left = len(walks) - len(corpus.paths)
    click.echo(
        f"{out}: learned from {counted(len(corpus.paths), 'path')} on "
        f"{counted(about['sites'], 'site')}"
        + (f"; {left:,} left out, for a page or a link that {web} lacks" if left else "")
    )
    _print_model(model)


def _print_model(model: PathModel) -> None:
    """Say what speaks most for each label: of links, of pages."""
    for i, label in enumerate(model.states.labels):
        for kind, of_label in (("link", model.states.link_states(i)), ("page", [i])):
            weights = model.crf.state_[:, of_label].mean(axis=1)
            best = [j for j in (-weights).argsort(kind="stable")[:_SHOWN] if weights[j] > 0]
            names = ", ".join(one_line(model.vocabulary.names[j]) for j in best)
            reward = f" (reward {model.rewards[i]:.2f})" if kind == "link" else ""
            click.echo(f"  {one_line(label)}, {kind}{reward}: {names}")


@paths.command()
@click.argument("model", metavar="MODEL")
@click.argument("sites", metavar="SITES.txt")
@options.out("Folder of the forage.")
@click.option("--web", help="A recorded web to forage.  [default: the live Web]")
@options.number("--budget", "Fetches; 0: no limit.", 1000, least=0)
@options.number("--per-site", "Fetches after which a site is given up; 0: never.", 0, least=0)
@click.option(
    "--stop",
    type=options.Number(0),
    help=f"Goals a fetch below which a site is given up; 0: never.  [default: {_STOP:g}]",
)
@click.option(
    "--printed-scores",
    is_flag=True,
    help="Scores by the paper's equations 6 and 7 to the letter: every path by itself.",
)
@click.option(
    "--adapt/--no-adapt",
    default=None,
    help="Scores go by what the directories of the site brought, too.  [default: adapt, "
    "but for --printed-scores]",
)
@options.share("--threshold", "Score below which nothing is fetched.", 0.0)
@options.share("--least", "Probability from which a page is called a goal.", 0.5, max=1)
@options.SETTINGS
def forage(
    *,
    model: str,
    sites: str,
    out: Path,
    web: str | None,
    budget: int,
    per_site: int,
    stop: float | None,
    printed_scores: bool,
    adapt: bool | None,
    threshold: float,
    least: float,
    settings: tuple[str, ...],
) -> None:
    """Forage sites for goal pages; SITES.txt has the front door of each, one a line.

    Writes goals.csv into --out, where the crawl is kept, too: each goal page with the path that
    led to it. The same command goes on with a forage that was interrupted.

    \b
    focuscrawl paths forage models/people sites.txt --out crawls/people -s USER_AGENT="..."
    """
    trained, _ = read_model(Path(model))  # a slip ends here, not in another process
    read_seeds(sites, ())
    arguments = {
        "critic": model,
        "topic": "/goal",
        "strategy": "paths",
        "seeds": sites,
        "budget": str(budget),
        "crawl_dir": str(out),
        "web": web,
    }
    if stop is None:
        stop = 0.0 if trained.calibration is None else _STOP
    of_strategy = {"threshold": threshold, "per_site": per_site, "stop": stop}
    if printed_scores:
        of_strategy["printed_scores"] = True
    if adapt or (adapt is None and not printed_scores):
        of_strategy["adapt"] = True
    crawl(arguments, [f"FOCUSCRAWL_STRATEGY_OPTIONS={json.dumps(of_strategy)}", *settings])
    with closing(open_store(out)) as store:
        found = goal_pages(store, least=least)
    write_goals(found, out / "goals.csv")
    for page in found[:_LISTED]:
        click.echo(f"{page.probability:.2f}  {page.path[-1]}  {one_line(page.title, 50)}")
    click.echo(f"{counted(len(found), 'goal page')}, with their paths in {out / 'goals.csv'}")
