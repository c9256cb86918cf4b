"""``focuscrawl paths``: learn link paths to goal pages; find goal pages on other sites."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
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
from focuscrawl.foundation.urls import parse_url
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
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.report.status import open_store
from focuscrawl.webs import open_web
from focuscrawl.webs.live_web import LiveWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from focuscrawl.paths.path_model import PathModel
    from focuscrawl.paths.training_paths import LinkChoice

    Command = Callable[..., None]

_TRAINING = ("farthest", "untied", "one_state", "l2", "gamma", "max_iter", "printed_rewards")
_KEYS = (
    "NUMBER: follow a link   /WORDS: show links with these words   m LABEL: mark a milestone",
    "g: mark a goal   f: mark a dead end   b: back   u: undo   q: save and quit",
)
_LINKS = 40  # links printed of a page
_WIDTH = 60  # characters of a title
_FEATURES = 6  # features printed of a label
_LISTED = 10  # goal pages printed
_STOP = 0.03  # goals per fetch


@click.group()
def paths() -> None:
    """Learn link paths to goal pages on some sites, and find goal pages on other sites.

    Goal pages are the pages that you look for, such as the home pages of professors.
    """


def label_options(command: Command) -> Command:
    """Add the options for the table of page labels and for the sampling of training paths.

    The decorated function gets the arguments ``labels``, ``column``, ``sampling`` and
    ``random_state``.
    """

    @common_options.path_option(
        "--labels",
        "CSV file of labelled pages, with a column url and a column that contains the labels.",
        required=True,
    )
    @click.option(
        "--column",
        metavar="NAME",
        default="topic",
        show_default=True,
        help="Column of the file --labels that contains the labels of the pages.",
    )
    @common_options.integer_option(
        "--paths",
        "Maximum number of paths to goal pages that the command extracts from each site.",
        PathSampling.goals,
    )
    @common_options.float_option(
        "--fails",
        "Number of paths to dead ends that the command extracts for each path to a goal page.",
        PathSampling.fails,
    )
    @common_options.random_state_option()
    @wraps(command)
    def sampled(*, paths: int, fails: float, **rest: object) -> None:
        command(sampling=PathSampling(paths, fails), **rest)

    return sampled


def training_options(command: Command) -> Command:
    """Add the options for training a path model; the command gets the values as ``training``."""

    @click.option(
        "--ends-only",
        is_flag=True,
        help="Train only on the labels of goal pages and dead ends, and ignore the labels of "
        "milestones.",
    )
    @common_options.integer_option(
        "--farthest",
        "With --ends-only: label each page with its distance from a goal page, up to N clicks.",
        TrainingOptions.farthest,
        most=50,
    )
    @click.option(
        "--untied",
        is_flag=True,
        help="With --ends-only: train separate weights for each distance from a goal page.",
    )
    @click.option(
        "--one-state",
        is_flag=True,
        help="Train a smaller model: a sequence model with one hidden state for each page label "
        "and none for links.",
    )
    @common_options.float_option(
        "--l2", "L2 penalty on the weights of the path model.", TrainingOptions.l2, min_open=True
    )
    @common_options.float_option(
        "--gamma",
        "Discount factor: each click on the way to a goal page multiplies the reward by this "
        "factor.",
        TrainingOptions.gamma,
        max=1,
        min_open=True,
    )
    @common_options.integer_option(
        "--max-iter",
        "Maximum number of iterations of the optimiser L-BFGS.",
        TrainingOptions.max_iter,
    )
    @click.option(
        "--printed-rewards",
        is_flag=True,
        help="Compute rewards exactly by equations 3 to 5 in the paper by Sarawagi and "
        "Vydiswaran.",
    )
    @wraps(command)
    def trained(*, ends_only: bool, **given: Any) -> None:
        own = {name: given.pop(name) for name in _TRAINING}
        command(training=TrainingOptions(milestones=not ends_only, **own), **given)

    return trained


@paths.command()
@click.argument("start", metavar="START_URL")
@common_options.out_option(
    "File (.jsonl) to which the command appends the recorded paths.", "FILE"
)
@common_options.web_option(
    "that contains the site, or `demo` (a synthetic web).  [default: the live Web]"
)
@common_options.path_option(
    "--warc",
    "WARC file to which the command saves the pages that you visit on the live Web.  [default: "
    "the name of --out with the ending .warc.gz]",
)
@click.option(
    "--agent",
    metavar="TEXT",
    help="User-Agent header of the requests that the command sends to the live Web.",
)
@click.option(
    "--private",
    default="",
    metavar="ADDRESSES",
    help="Private IP addresses that the command may connect to, separated by commas.",
)
def record(
    *, start: str, out: Path, web: str | None, warc: Path | None, agent: str | None, private: str
) -> None:
    """Browse a site on the terminal, and record link paths.

    The command first shows the page START_URL. Enter g to label the current page as a goal page,
    or f to label the current page as a dead end. After you enter g or f, the command saves the
    path to the current page, and returns to the previous page. Enter `m LABEL` to label the
    current page as a milestone on the path to a goal page. On similar sites, use the same label
    for milestones of the same kind.

    \b
    focuscrawl paths record https://example.org/ --out people.jsonl
    focuscrawl paths train people.jsonl --web people.warc.gz --out models/people
    """
    start_url = parse_url(start)
    earlier = read_paths(out) if out.exists() else []
    with ExitStack() as opened:
        if web is not None:
            source = open_web(web)
            (known,) = source.resolve([start_url])
            if known is None:
                raise UserError(
                    f"{start} is not in {web}: list its URLs with `focuscrawl web urls {web}`"
                )
            pages, start_url = WebPages(source), known
        else:
            networks = Networks.parse(filter(None, private.split(",")))
            recorder = opened.enter_context(
                WarcRecorder(warc or out.with_name(f"{out.name.partition('.')[0]}.warc.gz"))
            )
            pages = WebPages(LiveWeb(networks, recorder, *([] if agent is None else [agent])))
        session = _Session(pages, Walk.start_at(start_url))
        try:
            session.run()
        finally:  # an interrupt must not lose the paths so far
            saved = session.walk.saved
            if saved:
                write_paths([*earlier, *saved], out)
            click.echo(f"{pluralize(len(saved), 'path')} saved" + (f" in {out}" if saved else ""))


class _Session:
    """Prints the links of the current page and reads the user's commands."""

    def __init__(self, pages: WebPages, walk: Walk) -> None:
        self._pages = pages
        self._undo_stack: list[Walk] = []
        self._filter_words = ""
        self.walk = walk
        if pages.view(walk.current_page) is None:
            raise UserError(f"{walk.current_page} is not an HTML page: name another start URL")

    def run(self) -> None:
        """Read and execute the user's commands until the user quits or the input ends."""
        shown = self._show()
        while True:
            click.echo("> ", nl=False)
            line = sys.stdin.readline()
            if not line or line.strip() in {"q", "quit"}:
                return
            try:
                shown = self._execute(line.strip(), shown)
            except UserError as error:
                click.echo(one_line(str(error)))

    def _execute(self, line: str, shown: list[LinkChoice]) -> list[LinkChoice]:
        """Execute a command; return the links that are numbered on the screen now."""
        if line.startswith("/"):
            self._filter_words = line[1:].strip().lower()
            return self._show()
        if line == "u" and self._undo_stack:
            self.walk = self._undo_stack.pop()
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
        self._undo_stack.append(self.walk)
        self.walk, self._filter_words = walk, ""
        return self._show()

    def _follow(self, number: int, shown: list[LinkChoice]) -> Walk:
        if not 1 <= number <= len(shown):
            raise UserError(
                f"link {number} does not exist: choose a number from 1 to {len(shown)}"
            )
        url = shown[number - 1].url
        if self._pages.view(url) is None:
            raise UserError(f"{url} is not an HTML page: follow another link")
        return self.walk.follow(url)

    def _show(self) -> list[LinkChoice]:
        walk = self.walk
        view = self._pages.view(walk.current_page)
        assert view is not None
        links = [
            link
            for link in link_choices(view, self._pages.targets(walk.current_page))
            if self._filter_words in f"{link.anchor} {link.url}".lower()
        ]
        label = f"  [{walk.labels[-1]}]" if walk.labels[-1] else ""
        click.echo(f"\n{one_line(view.title, _WIDTH) or 'no title'}{label}")
        place = f"(click {len(walk.pages) - 1}, {len(walk.saved)} saved)"
        click.echo(f"{one_line(walk.current_page)}  {place}")
        for number, link in enumerate(links[:_LINKS], 1):
            click.echo(
                f"{number:>4}  {one_line(link.anchor, _WIDTH) or '-'}  {one_line(link.url)}"
            )
        if len(links) > _LINKS:
            click.echo(f"      and {len(links) - _LINKS} more: filter the links with /WORDS")
        return links


@paths.command()
@click.argument("source", metavar="WEB|CRAWL_DIR")
@click.option(
    "--goal",
    metavar="LABEL",
    required=True,
    help="Label that goal pages have in the file --labels.",
)
@click.option(
    "--starts",
    metavar="URLS|FILE",
    help="Start pages of the sites: URLs or a file of URLs.  "
    "[default: the start pages of the crawl]",
)
@click.option(
    "--site-column",
    metavar="NAME",
    help="Column of the file --labels that contains the site of each page. With --site-column, "
    "the command extracts only paths to goal pages on the site of the start page.",
)
@common_options.out_option(
    "File (.jsonl) to which the command writes the extracted paths.", "FILE"
)
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
    """Extract link paths from a recording (WARC file) or a crawl.

    The command `focuscrawl paths train` trains a path model on the extracted paths. For each goal
    page, the command extracts one of the shortest paths from the start page of the site to the
    goal page. The command also extracts paths to dead ends, which are pages from which no goal
    page can be reached. A path to a dead end branches off from a path to a goal page.

    \b
    focuscrawl paths extract pages.warc --labels labels.csv --goal /People \\
        --starts doors.txt --out people.jsonl
    """
    check_output_file(out, "--out")
    graph = None
    if (Path(source) / "crawl.db").is_file():
        with closing(open_store(source)) as store:
            graph = CrawlGraph.from_store(store)
        links, resolve = graph.links, graph.resolve
    else:
        web = open_web(source)
        links, resolve = WebPages(web).links, web.resolve
    table = read_page_labels(labels, resolve, label=column, site=site_column)
    if starts is not None:
        start_urls = [url for url in resolve(read_seeds(starts, ())) if url is not None]
    elif graph is not None:
        start_urls = graph.starts
    else:
        raise UserError("a recorded web has no start pages: name them with --starts")
    if not start_urls:
        raise UserError(f"{source} contains none of the start pages {starts}")
    found, lines = [], []
    for start_url in start_urls:
        of_site = extract_paths(
            start_url,
            links,
            table.goals(goal, start_url),
            table.labels,
            sampling=sampling,
            random_state=random_state,
        )
        goals = sum(path.succeeds for path in of_site)
        lines.append(
            f"{start_url}: {pluralize(goals, 'path')} to goals, "
            f"{len(of_site) - goals:,} to dead ends"
        )
        found += of_site
    if not found:
        raise UserError(
            f"no page with the label {goal!r} can be reached: check --goal, --starts and --column "
            f"{column}"
        )
    written = write_paths(found, out)
    click.echo("\n".join([*lines, f"{out}: {pluralize(written, 'path')}"]))


@paths.command()
@click.argument(
    "files", metavar="PATHS.jsonl...", nargs=-1, required=True, type=common_options.PATH
)
@click.option("--web", required=True, help=common_options.EXAMPLES_WEB)
@common_options.out_option("New folder for the path model, such as models/NAME.", "FOLDER")
@training_options
def train(*, files: tuple[Path, ...], web: str, out: Path, training: TrainingOptions) -> None:
    """Train a path model on the link paths in PATHS.jsonl.

    \b
    focuscrawl paths train people.jsonl --web pages.warc --out models/people
    """
    FORMAT.check_output(out)
    pages = WebPages(open_web(web))
    walks = [path for file in files for path in read_paths(file)]
    corpus = read_corpus(walks, pages, PathFeatureReader(training.reading, keep_words=True))
    with tqdm(desc="Fitting", unit=" steps", disable=None) as bar:
        model = train_model(corpus, training, on_iteration=bar.update)
    model = replace(model, calibration=calibrate(corpus, training))
    about = {"paths": len(corpus.paths), "sites": len(set(corpus.sites.tolist()))}
    save_model(model, out, about)
    skipped = len(walks) - len(corpus.paths)
    click.echo(
        f"Saved path model {out}: trained on {pluralize(len(corpus.paths), 'path')} on "
        f"{pluralize(about['sites'], 'site')}"
        + (f"; {skipped:,} skipped (a page or a link is missing in {web})" if skipped else "")
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
@common_options.out_option(
    "Folder for the data of the crawl and for the file goals.csv.", "FOLDER"
)
@common_options.web_option("that contains the sites.  [default: the live Web]")
@common_options.integer_option(
    "--budget", "Maximum number of fetches; 0: no limit.", 1000, least=0
)
@common_options.integer_option(
    "--per-site", "Maximum number of fetches on each site; 0: no limit.", 0, least=0
)
@click.option(
    "--stop",
    type=common_options.FiniteFloat(0),
    metavar="RATE",
    help="Stop crawling a site when the expected number of goal pages per fetch falls "
    f"below RATE; 0: never stop.  [default: {_STOP:g}]",
)
@click.option(
    "--printed-scores",
    is_flag=True,
    help="Compute link scores exactly by equations 6 and 7 in the paper by Sarawagi and "
    "Vydiswaran.",
)
@click.option(
    "--adapt/--no-adapt",
    default=None,
    help="In each directory of a site, multiply link scores by the ratio of found goal pages to "
    "predicted goal pages.  [default: --adapt; with --printed-scores: --no-adapt]",
)
@common_options.float_option(
    "--threshold", "Follow only links whose score is at least this number.", 0.0
)
@common_options.float_option(
    "--least",
    "Write a page to goals.csv only if the probability that it is a goal page is at least this "
    "number.",
    0.5,
    max=1,
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
    """Find goal pages on the sites that the file SITES.txt lists.

    Each line of SITES.txt is the start URL of a site. The path model MODEL chooses the links that
    the crawl follows. The command writes a list of the goal pages, with the link path to each goal
    page, to the file goals.csv in the folder --out. To resume the crawl after an interruption,
    repeat the command.

    \b
    focuscrawl paths forage models/people sites.txt --out crawls/people -s USER_AGENT="..."
    """
    trained, _ = read_model(Path(model))  # find errors before the child process starts
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
    click.echo(f"{pluralize(len(found), 'goal page')} found; pages and paths: {out / 'goals.csv'}")
