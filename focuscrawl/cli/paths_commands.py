"""``focuscrawl paths``: learn the paths to the pages you want, and forage other sites."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import check_output_file, run_crawl
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.offline.link_graph import CrawlGraph
from focuscrawl.paths.path_features import PathFeatureReader
from focuscrawl.paths.path_model import FORMAT, read_model, save_model
from focuscrawl.paths.path_training import TrainingOptions, WebPages, calibrate, read_corpus
from focuscrawl.paths.path_training import train as train_model
from focuscrawl.paths.states import FAIL, GOAL
from focuscrawl.paths.training_paths import (
    PathSampling,
    Walk,
    extract_paths,
    link_choices,
    read_page_labels,
    read_paths,
    write_paths,
)
from focuscrawl.report.goals import goal_pages, write_goals
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.report.status import open_store
from focuscrawl.webs import open_web
from focuscrawl.webs.live_web import LiveWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.paths.path_model import PathModel
    from focuscrawl.paths.training_paths import LinkChoice

    Command = Callable[..., None]

_TRAINING = ("farthest", "untied", "one_state", "l2", "gamma", "max_iter", "printed_rewards")
_KEYS = (
    "NUMBER: take a link   /WORDS: only links with these words   m LABEL: a milestone",
    "g: a goal   f: a dead end   b: back   u: undo   q: save and quit",
)
_LINKS = 40  # shown of a page
_WIDTH = 60  # characters of a title
_FEATURES = 6  # of a label
_LISTED = 10  # goal pages
_STOP = 0.03  # goals a fetch


@click.group()
def paths() -> None:
    """Learn the paths to the pages you want, and forage other sites for them."""


def label_options(command: Command) -> Command:
    """Add the options of a table of labels, and of the paths that are taken by it.

    The command gets ``labels``, ``column``, ``sampling``, ``random_state``.
    """

    @common_options.path_option("--labels", "CSV: url and a column of labels.", required=True)
    @click.option("--column", default="topic", help="Of --labels, the label.", show_default=True)
    @common_options.integer_option(
        "--paths", "Paths to goals, at most, of each site.", PathSampling.goals
    )
    @common_options.float_option(
        "--fails", "Paths to fails, for each of these.", PathSampling.fails
    )
    @common_options.random_state_option()
    @wraps(command)
    def sampled(*, paths: int, fails: float, **rest: object) -> None:
        command(sampling=PathSampling(paths, fails), **rest)

    return sampled


def training_options(command: Command) -> Command:
    """Add the options of a model's training; the command gets ``training``."""

    @click.option("--ends-only", is_flag=True, help="Use goal and fail alone, not the milestones.")
    @common_options.integer_option(
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
    @common_options.float_option("--l2", "Penalty on weights.", TrainingOptions.l2, min_open=True)
    @common_options.float_option(
        "--gamma",
        "Discount of a goal for each step to it.",
        TrainingOptions.gamma,
        max=1,
        min_open=True,
    )
    @common_options.integer_option("--max-iter", "Iterations of L-BFGS.", TrainingOptions.max_iter)
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


@paths.command()
@click.argument("start", metavar="START_URL")
@common_options.out_option("paths.jsonl; paths in it stay.")
@click.option("--web", help="Walk a recorded web, or `demo`.  [default: the live Web]")
@common_options.path_option(
    "--warc", "Live: where pages are recorded, to train on.  [default: beside --out, .warc.gz]"
)
@click.option("--agent", help="Live: the User-Agent to send.")
@click.option(
    "--private",
    default="",
    metavar="ADDRESSES",
    help="Live: private addresses that may be visited, comma-separated.",
)
def record(
    *, start: str, out: Path, web: str | None, warc: Path | None, agent: str | None, private: str
) -> None:
    """Walk a site, link by link, and save the paths to goals and to dead ends.

    A goal or a dead end ends a path, and you are back on the page before it. Pages on the way
    may be labelled as milestones (`m people`); sites of a kind should get the same labels.

    \b
    focuscrawl paths record https://example.org/ --out people.jsonl
    focuscrawl paths train people.jsonl --web people.warc.gz --out models/people
    """
    door = normalize(start)
    if door is None:
        raise UserError(f"{start} {no_url(start)}")
    kept = read_paths(out) if out.exists() else []
    with ExitStack() as opened:
        if web is not None:
            source = open_web(web)
            (known,) = source.resolve([door])
            if known is None:
                raise UserError(
                    f"{start} is not in {web}: `focuscrawl web urls {web}` lists what is"
                )
            pages, door = WebPages(source), known
        else:
            networks = Networks.of(filter(None, private.split(",")))
            recorder = opened.enter_context(
                WarcRecorder(warc or out.with_name(f"{out.name.partition('.')[0]}.warc.gz"))
            )
            pages = WebPages(LiveWeb(networks, recorder, *([] if agent is None else [agent])))
        session = _Session(pages, Walk.start_at(door))
        try:
            session.run()
        finally:  # an interrupt must not lose what was clicked
            saved = session.walk.saved
            if saved:
                write_paths([*kept, *saved], out)
            click.echo(f"{counted(len(saved), 'path')} saved" + (f" in {out}" if saved else ""))


class _Session:
    """Shows a page, and reads what the person does next."""

    def __init__(self, pages: WebPages, walk: Walk) -> None:
        self._pages = pages
        self._past: list[Walk] = []
        self._words = ""
        self.walk = walk
        if pages.view(walk.current_page) is None:
            raise UserError(f"{walk.current_page} is no page")

    def run(self) -> None:
        """Repeat until the person quits, or the input ends."""
        shown = self._show()
        while True:
            click.echo("> ", nl=False)
            line = sys.stdin.readline()
            if not line or line.strip() in {"q", "quit"}:
                return
            try:
                shown = self._act(line.strip(), shown)
            except UserError as error:
                click.echo(one_line(str(error)))

    def _act(self, line: str, shown: list[LinkChoice]) -> list[LinkChoice]:
        """Do what a line says; return the links that have numbers now."""
        if line.startswith("/"):
            self._words = line[1:].strip().lower()
            return self._show()
        if line == "u" and self._past:
            self.walk = self._past.pop()
            return self._show()
        walk, label = None, line.removeprefix("m ").strip()
        if line.isdecimal():
            walk = self._follow(int(line), shown)
        elif line.startswith("m ") and label not in {"", GOAL, FAIL}:
            walk = self.walk.label_page(label)
        elif line in {"g", "f"} and len(self.walk.pages) > 1:
            walk = self.walk.finish_path(goal=line == "g")
        elif line == "b":
            walk = self.walk.back()
        if walk is None:
            click.echo("\n".join(_KEYS))
            return shown
        self._past.append(self.walk)
        self.walk, self._words = walk, ""
        return self._show()

    def _follow(self, number: int, shown: list[LinkChoice]) -> Walk:
        if not 1 <= number <= len(shown):
            raise UserError(f"there is no link {number}: they go from 1 to {len(shown)}")
        to = shown[number - 1].url
        if self._pages.view(to) is None:
            raise UserError(f"{to} is no page: take another link")
        return self.walk.follow(to)

    def _show(self) -> list[LinkChoice]:
        walk = self.walk
        view = self._pages.view(walk.current_page)
        assert view is not None
        found = [
            door
            for door in link_choices(view, self._pages.targets(walk.current_page))
            if self._words in f"{door.anchor} {door.url}".lower()
        ]
        label = f"  [{walk.labels[-1]}]" if walk.labels[-1] else ""
        click.echo(f"\n{one_line(view.title, _WIDTH) or 'no title'}{label}")
        place = f"(click {len(walk.pages) - 1}, {len(walk.saved)} saved)"
        click.echo(f"{one_line(walk.current_page)}  {place}")
        for number, door in enumerate(found[:_LINKS], 1):
            click.echo(
                f"{number:>4}  {one_line(door.anchor, _WIDTH) or '-'}  {one_line(door.url)}"
            )
        if len(found) > _LINKS:
            click.echo(f"      and {len(found) - _LINKS} more: /WORDS shows those with the words")
        return found


@paths.command()
@click.argument("source", metavar="WEB|CRAWL_DIR")
@click.option("--goal", required=True, help="The label of the pages looked for.")
@click.option("--starts", help="Front doors: URLs, or a file of them.  [default: the crawl's own]")
@click.option("--site-column", help="Of --labels, whose page it is: goals are of the same site.")
@common_options.out_option("paths.jsonl.")
@label_options
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
    check_output_file(out, "--out")
    walked = None
    if (Path(source) / "crawl.db").is_file():
        with closing(open_store(source)) as store:
            walked = CrawlGraph.from_store(store)
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
@click.argument(
    "files", metavar="PATHS.jsonl...", nargs=-1, required=True, type=common_options.PATH
)
@click.option("--web", required=True, help=common_options.EXAMPLES_WEB)
@common_options.out_option("models/NAME.")
@training_options
def train(*, files: tuple[Path, ...], web: str, out: Path, training: TrainingOptions) -> None:
    """Train a model on paths, and write it to --out.

    \b
    focuscrawl paths train people.jsonl --web pages.warc --out models/people
    """
    FORMAT.check_out(out)
    pages = WebPages(open_web(web))
    walks = [path for file in files for path in read_paths(file)]
    corpus = read_corpus(walks, pages, PathFeatureReader(training.reading, keep_words=True))
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
    """Print the features with the largest weights for each label, of links and of pages."""
    for i, label in enumerate(model.states.labels):
        for kind, of_label in (("link", model.states.link_states(i)), ("page", [i])):
            weights = model.crf.state_[:, of_label].mean(axis=1)
            best = [j for j in (-weights).argsort(kind="stable")[:_FEATURES] if weights[j] > 0]
            names = ", ".join(one_line(model.vocabulary.names[j]) for j in best)
            reward = f" (reward {model.rewards[i]:.2f})" if kind == "link" else ""
            click.echo(f"  {one_line(label)}, {kind}{reward}: {names}")


@paths.command()
@click.argument("model", metavar="MODEL")
@click.argument("sites", metavar="SITES.txt")
@common_options.out_option("Folder of the forage.")
@click.option("--web", help="A recorded web to forage.  [default: the live Web]")
@common_options.integer_option("--budget", "Fetches; 0: no limit.", 1000, least=0)
@common_options.integer_option(
    "--per-site", "Fetches after which a site is given up; 0: never.", 0, least=0
)
@click.option(
    "--stop",
    type=common_options.FiniteFloat(0),
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
@common_options.float_option("--threshold", "Score below which nothing is fetched.", 0.0)
@common_options.float_option(
    "--least", "Probability from which a page is called a goal.", 0.5, max=1
)
@common_options.SETTINGS
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
    trained, _ = read_model(Path(model))  # errors are found here, not in another process
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
    run_crawl(arguments, [f"FOCUSCRAWL_STRATEGY_OPTIONS={json.dumps(of_strategy)}", *settings])
    with closing(open_store(out)) as store:
        found = goal_pages(store, least=least)
    write_goals(found, out / "goals.csv")
    for page in found[:_LISTED]:
        click.echo(f"{page.probability:.2f}  {page.path[-1]}  {one_line(page.title, 50)}")
    click.echo(f"{counted(len(found), 'goal page')}, with their paths in {out / 'goals.csv'}")
