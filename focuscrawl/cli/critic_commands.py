"""``focuscrawl critic``: train and check critics."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import Bar, check_file, write_file, writing
from focuscrawl.cli.critic_examples import (
    FewExamples,
    few_examples_options,
    live_options,
    print_unread,
    train_few_examples,
    warn_of_missing_embeddings,
)
from focuscrawl.crawl.duplicates import MinHashIndex, sketch
from focuscrawl.critic.assessment import (
    Prediction,
    Quality,
    check_classes,
    check_few_examples,
    check_relevance,
    read_examples,
)
from focuscrawl.critic.critic_files import (
    FORMAT,
    find_model,
    load_critic,
    read_critic,
    save_critic,
)
from focuscrawl.critic.example_checks import share_of, too_few
from focuscrawl.critic.focused_critic import is_from_little
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.critic.training import DEFAULT_KIND, train_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_whole
from focuscrawl.page.words import PageWords
from focuscrawl.report.plain_text import escape_csv_cell, one_line, pluralize
from focuscrawl.taxonomy import (
    Label,
    fitting_minimum,
    prune,
    read_dmoz,
    read_labels,
    read_topics,
)
from focuscrawl.taxonomy.pruning import ENOUGH
from focuscrawl.webs import open_web
from focuscrawl.webs.web_protocol import read_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.critic.assessment import CheckReport, Example
    from focuscrawl.critic.example_checks import FewExamplesReport, JudgedPage, Share
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

_DOUBTFUL = 10  # examples listed
_LISTED = 20  # pages called relevant that are listed, for a person to look at
_NEAREST = 5  # if none is
_TITLE, _URL = 60, 200  # characters
_SHOWN = 10  # confusions; examples of `critic quality` that look mislabelled


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def critic() -> None:
    """Train and check critics: they judge whether a page is on the topic."""


@critic.command()
@click.argument("labels", required=False)
@click.option("--web", help=common_options.EXAMPLES_WEB)
@click.option("--out", required=True, help="Folder to write, like models/NAME.")
@click.option("--kind", help="discriminative (usual), flat, hierarchical or words.")
@few_examples_options
@live_options
@click.option(
    "--min-examples",
    type=click.IntRange(min=1),
    help="Topics with fewer are merged into the topic above; usual: 300 where that leaves a "
    "hundred classes or more, else 1.",
)
@common_options.number("--max-examples", "Topics with more are sampled down.", 300)
@click.option("--uniform-prior", is_flag=True, help="Hold every class for equally likely.")
@click.option("--calibrate", is_flag=True, help="Let the critic's judgements be calibrated.")
@common_options.random_state()
@click.option("--force", is_flag=True, help="Replace an existing critic.")
def train(
    *,
    labels: str | None,
    out: str,
    force: bool,
    few: FewExamples,
    others: int,
    crawl_dir: str | None,
    settings: tuple[str, ...],
    **learning: Any,
) -> None:
    """Train a critic, and write it to --out.

    From LABELS, a CSV file url,topic[,split] or a Dmoz dump (content.rdf.u8 or .gz); rows of the
    split `test` are left for `check`. Or from what you have of one topic: --words, a
    --description, pages that are --good or --bookmarks, pages that are --bad, any of them
    together. --web is where the pages are, and others to tell them from; without it they are
    fetched, by a polite crawl that is kept.

    \b
    focuscrawl critic train labels.csv --web pages.warc --out models/mine
    focuscrawl critic train --words "bird watching" --good urls.txt --out models/birds
    focuscrawl critic train --bookmarks bookmarks.html --folder Bikes --out models/bikes
    focuscrawl critic train --words "road cycling, bicycle racing" --out models/cycling
    """
    if labels is not None and few.given:
        raise UserError(
            "LABELS have the topics: leave out what is of one topic, like --words and --good"
        )
    if labels is None and not (few.phrases or few.good):
        raise UserError(
            "learn from what? Give LABELS, or of one topic --words, --description, --good or "
            "--bookmarks, or several of these"
        )
    FORMAT.check_out(Path(out), force=force)
    if labels is not None:
        with closing(Bar("Reading")) as shown:
            trained = _from_labels(labels, progress=shown, **learning)
    else:
        live = {"out": out, "others": others, "crawl_dir": crawl_dir, "settings": settings}
        trained = train_few_examples(few, live, **learning)
    size = save_critic(trained, out, force=force)
    _print_training(trained, out, size)
    warn_of_missing_embeddings(trained)
    if learning["web"] is not None:  # where pages are fetched, that has named them
        print_unread([*few.good, *few.bad], trained)


def _from_labels(
    labels: str,
    *,
    web: str | None,
    kind: str | None,
    progress: Progress,
    **learning: Any,
) -> TrainedCritic:
    rows = _labels(labels, **learning)
    if ".rdf" in Path(labels).name:
        learning["min_examples"] = 1  # a pruned class that the web has half of stays a class
    if web is None:
        raise UserError("no --web to read the examples from: name a .warc, .warc.gz, or `demo`")
    return train_critic(
        rows, open_web(web), kind=kind or DEFAULT_KIND, progress=progress, **learning
    )


def _labels(
    name: str, *, min_examples: int | None, max_examples: int, random_state: int, **_: Any
) -> list[Label]:
    """Read a table of labels, or the examples of a Dmoz dump after pruning (methods 2)."""
    if ".rdf" not in Path(name).name:
        return read_labels(name)
    click.echo(f"Reading topics of {name}", err=True)
    held = max(max_examples, min_examples or ENOUGH)
    dump = read_dmoz(name, max_examples=held, random_state=random_state)
    least = fitting_minimum(dump) if min_examples is None else min_examples
    tree = prune(dump, least, max_examples, random_state)
    topics, leaves = len(dump.topics), len(tree.leaves)
    click.echo(f"{topics:,} topics pruned at {least} examples: {leaves} classes", err=True)
    return [Label(url, leaf, "train") for leaf in tree.leaves for url in tree.examples(leaf)]


def _print_training(trained: TrainedCritic, out: str, size: int) -> None:
    click.echo(f"{out}: {trained.model.kind} critic, {size / 1024:.0f} KiB")
    topics = [topic for _, topic in trained.examples]
    width = max(map(len, trained.model.classes))
    for path in trained.model.classes:
        count = f"{topics.count(path):>6} examples" if topics else ""
        click.echo(f"  {path:<{width}}  {count}".rstrip())
    for topic in trained.absent:
        click.echo(f"  {topic}: no example could be read, the critic does not know it")
    left_out = _listed(trained.skipped)
    if left_out:
        click.echo(f"Examples left out: {left_out}")
    if trained.cross_validation:
        measured = trained.cross_validation
        click.echo(
            f"Cross-validation on {len(topics)} examples, {measured['folds']:.0f} folds: "
            f"accuracy {measured['accuracy']:.3f}, mean recall {measured['mean_recall']:.3f}"
        )
    elif not trained.examples:
        click.echo("Learned from words alone: a few pages on the topic, --good, would tell more")


@critic.command()
@click.argument("spec", metavar="CRITIC")
@click.option("--labels", help="CSV file url,topic[,split].")
@click.option("--web", required=True, help=common_options.EXAMPLES_WEB)
@click.option("--topic", help="Check relevance to these topics of LABELS instead of classes.")
@click.option("--focus", help="Topics to mark in the critic, if they have other names there.")
@click.option("--calibrated/--raw", default=None, help="Which probabilities to show.")
@click.option(
    "--wrong",
    type=click.IntRange(min=0),
    help="Without LABELS: how many pages of those listed as called relevant are not.",
)
@click.option(
    "--csv",
    "table",
    type=common_options.PATH,
    help="Write every page's label and verdict to this file.",
)
def check(
    *,
    spec: str,
    labels: str | None,
    web: str,
    topic: str | None,
    focus: str | None,
    calibrated: bool | None,
    wrong: int | None,
    table: Path | None,
) -> None:
    """Check CRITIC, a folder, a name in models/ or module:callable, on labelled pages.

    The `test` rows are used; without any, those that it has not learned from. With --topic the
    question is whether R > 1/2 on the pages of that topic and nowhere else. A critic learned from
    words, good and bad pages needs no --labels: its examples are held out in turn.

    \b
    focuscrawl critic check models/birds --web pages.warc
    focuscrawl critic check models/mine --labels labels.csv --web pages.warc
    focuscrawl critic check mycode:judge --topic /Sports --labels labels.csv --web pages.warc
    focuscrawl critic check models/cycling --topic /Sports/Cycling --focus /good --labels ...
    """
    check_file(table, "--csv")
    if labels is None:
        if topic is not None or focus is not None or calibrated is not None:
            raise UserError("--topic, --focus, --calibrated and --raw go with --labels")
        predictions: Sequence[Prediction] = _check_without_labels(spec, web, wrong)
    elif wrong is not None:
        raise UserError("--wrong goes without --labels")
    else:
        predictions = _check_with_labels(
            spec, labels, web, topic=topic, focus=focus, calibrated=calibrated
        )
    if table is not None:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["url", "topic", "predicted", "probability"])
        writer.writerows(
            (*map(escape_csv_cell, prediction[:3]), f"{prediction.probability:.6g}")
            for prediction in predictions
        )
        write_file(table, text.getvalue().encode(), "--csv")


def _check_without_labels(spec: str, web_name: str, wrong: int | None) -> list[Prediction]:
    """Check a critic from few examples, print what is found, and return every page's verdict."""
    if is_callable_spec(spec):
        raise UserError(f"critic {spec} has no examples to be checked with: name --labels")
    trained, _ = read_critic(find_model(spec))
    if not is_from_little(trained):
        raise UserError(f"critic {spec} was not learned from few examples: name --labels")
    web = open_web(web_name)
    read = read_examples(trained, web)
    distinct = _distinct(read)
    with closing(Bar("Checking")) as shown:
        report = check_few_examples(trained, distinct, web, progress=shown)
    left_out = Counter(
        {
            "nearly identical to another": len(read) - len(distinct),
            "no longer in the web": len(trained.examples) - len(read),
        }
    )
    click.echo("\n".join(_lines(report, distinct, +left_out, web, wrong)))
    return [
        Prediction(url, label, report.topic, relevance)
        if relevance > 0.5
        else Prediction(url, label, OFF_TOPIC, 1.0 - relevance)
        for url, label, relevance in (*report.examples, *report.others)
    ]


def _check_with_labels(
    spec: str,
    labels: str,
    web: str,
    *,
    topic: str | None,
    focus: str | None,
    calibrated: bool | None,
) -> Sequence[Prediction]:
    rows = read_labels(labels)
    with closing(Bar("Checking")) as shown:
        if topic is not None:
            asked = read_topics(topic)
            judge = load_critic(spec, focus or topic, calibrated=calibrated)
            report = check_relevance(judge, asked, rows, open_web(web), progress=shown)
        elif is_callable_spec(spec) and not Path(spec).exists():
            raise UserError(f"critic {spec} has no classes to check: add --topic")
        else:
            folder = find_model(spec)
            trained, _ = read_critic(folder)
            if calibrated and trained.calibration is None:
                raise UserError(f"{folder}: has no calibration; leave out --calibrated")
            if calibrated is not None:
                trained = replace(trained, calibrated=calibrated)
            report = check_classes(trained, rows, open_web(web), progress=shown)
    _print_report(report)
    return report.predictions


def _print_report(report: CheckReport) -> None:
    click.echo(f"Pages {len(report.predictions)}, accuracy {report.accuracy:.4f}")
    left_out = _listed(report.skipped)
    if left_out:
        click.echo(f"Rows left out: {left_out}")
    width = max(len(result.topic) for result in report.classes)
    click.echo(f"\n{'':<{width}}   pages  precision  recall")
    for result in report.classes:
        click.echo(
            f"{result.topic:<{width}}  {result.pages:>6}  {_share(result.precision):>9}  "
            f"{_share(result.recall):>6}"
        )
    if report.confusions:
        click.echo("\nMost frequent confusions (label -> verdict)")
        for label, verdict, pages in report.confusions[:_SHOWN]:
            click.echo(f"{pages:>6}  {label} -> {verdict}")
    for name, measured in report.reliability.items():
        click.echo(f"\nProbabilities ({name}): Brier {measured.brier:.4f}, ECE {measured.ece:.4f}")
        click.echo("  said      pages  mean  true")
        for each in measured.bins:
            click.echo(
                f"  {each.low:.1f}-{each.high:.1f}  {each.pages:>6}  {each.confidence:.2f}  "
                f"{each.frequency:.2f}"
            )


def _distinct(examples: Sequence[Example]) -> list[Example]:
    """Return the examples without near-duplicates of earlier ones."""
    near = {True: MinHashIndex(), False: MinHashIndex()}
    texts: set[tuple[bool, tuple[str, ...]]] = set()
    kept = []
    for number, example in enumerate(examples):
        text = (example.good, tuple(example.tokens))
        data = sketch(PageWords(example.tokens))
        known = data is not None and near[example.good].find_or_add(number, data) is not None
        if not known and text not in texts:
            kept.append(example)
        texts.add(text)
    return kept


def _lines(
    report: FewExamplesReport,
    examples: Sequence[Example],
    left_out: Counter[str],
    web: Web,
    wrong: int | None,
) -> list[str]:
    called = report.called()
    listed = sorted(called[:_LISTED], key=lambda page: -page.relevance)
    good = sum(example.good for example in examples)
    lines = [
        f"{_found(report, good)} {_wrong(listed, wrong)}",
        f"Good examples: {good}, bad ones: {len(examples) - good}"
        + "".join(f"; {n} {reason}, left out" for reason, n in left_out.items()),
        f"Of {pluralize(len(report.others), 'other page')}, {len(called)} called relevant",
    ]
    bad = [page.relevance for page in report.examples if page.label != report.topic]
    if bad:
        lines.append(
            f"Of {pluralize(len(bad), 'bad example')}, {sum(each > 0.5 for each in bad)} called "
            "relevant when held out"
        )
    lines += [f"Warning: {one_line(warning)}" for warning in report.warnings]
    title_of = {example.url: example.title for example in examples}
    doubtful = report.doubtful(_DOUBTFUL)
    if doubtful:
        lines += ["", "Most doubtful examples (R when held out)"]
        for page in doubtful:
            label = "good" if page.label == report.topic else "bad "
            lines.append(f"  {page.relevance:.2f}  {label}  {_line(page, title_of[page.url])}")
    lines += ["", *_others(report, listed, web)]
    if report.words_for:
        lines += [
            "",
            "Words that weigh most",
            f"  for      {_words(report.words_for)}",
            f"  against  {_words(report.words_against)}",
        ]
    return lines


def _found(report: FewExamplesReport, good: int) -> str:
    if report.recall is not None:
        return f"Finds {_of_ten(report.recall, 'relevant pages')}."
    return f"How many relevant pages it finds cannot be told: {too_few(good)}."


def _wrong(listed: Sequence[JudgedPage], wrong: int | None) -> str:
    if wrong is not None and wrong > len(listed):
        raise UserError(f"--wrong {wrong}: of other pages, {len(listed)} are listed as relevant")
    if not listed:
        return "Calls no other page relevant."
    if wrong is None:
        return (
            "How much of what it calls relevant is not, only you can tell: count those among the "
            f"{len(listed)} other pages below, and say --wrong N."
        )
    share = _of_ten(share_of(wrong, len(listed)), "pages that it calls relevant are not")
    return f"{share[0].upper()}{share[1:]}."


def _of_ten(share: Share, pages: str) -> str:
    """Return ``about 7 of 10 relevant pages (4 to 9)``."""
    value, low, high = (round(10 * each) for each in share)
    about = {0: "hardly any", 10: "nearly all"}.get(value, f"about {value} of 10")
    return f"{about} {pages} ({low} to {high})"


def _others(report: FewExamplesReport, listed: Sequence[JudgedPage], web: Web) -> list[str]:
    heading = "Other pages called relevant (R)"
    if not listed:
        heading = "Other pages nearest to the topic (R)"
        listed = sorted(report.others, key=lambda page: -page.relevance)[:_NEAREST]
    views = [read_page(web, page.url) for page in listed]
    return [
        heading,
        *(
            f"  {page.relevance:.2f}  {_line(page, '' if view is None else view.title)}"
            for page, view in zip(listed, views, strict=True)
        ),
    ]


def _line(page: JudgedPage, title: str) -> str:
    return f"{one_line(title, _TITLE) or '(no title)'}  {one_line(page.url, _URL)}"


def _words(words: Sequence[str]) -> str:
    return ", ".join(one_line(word) for word in words)


@critic.command()
@click.argument("spec", metavar="CRITIC")
@click.option("--topic", required=True, help="Classes that are on the topic, comma-separated.")
@click.option("--web", "webs", multiple=True, help="Where its examples are; may be repeated.")
@click.option("--before", help="A critic to compare with, on what it has not learned from.")
@common_options.path("--out", "Write all of it to this JSON file.")
def quality(
    *, spec: str, topic: str, webs: tuple[str, ...], before: str | None, out: Path | None
) -> None:
    """Tell from the examples of CRITIC how good it is: each is judged by what the others teach.

    Precision and recall of R > 1/2, a reliability table, confusions, the words that weigh most,
    examples that look mislabelled. A critic from words, good and bad pages has kept their words;
    the pages of another are read from --web.

    \b
    focuscrawl critic quality models/birds --topic /good
    focuscrawl critic quality models/mine --topic /Sports --web pages.warc --out quality.json
    """
    check_file(out, "--out")
    trained, _ = read_critic(find_model(spec))
    marked = read_topics(topic)
    load_critic(spec, topic)  # refuses classes that it has not
    earlier = None if before is None else read_critic(find_model(before))[0]
    with closing(Bar("Reading")) as shown:
        opened = [*map(open_web, webs)]
        found = Quality.of(trained, marked, opened, before=earlier, progress=shown)
    if out is not None:
        with writing(out, "name another file with --out"):
            write_whole(out, found.json())
    without = "it calls none relevant" if found.off else "there are no examples off the topic"
    click.echo(
        f"{found.on} examples on the topic, {found.off} off it, {found.others} other pages\n"
        + (
            found.why_not
            or f"precision {_interval(found.precision, without)}, "
            f"recall {_interval(found.recall, without)}"
        )
    )
    if found.change is not None:
        change = found.change
        click.echo(
            f"of {pluralize(change.pages, 'new example')}, {change.right_before} were judged "
            f"right before, {change.right} are now"
        )
    for page in found.doubtful[:_SHOWN]:
        click.echo(
            f"  {page['relevance']:.2f}  {one_line(page['label'])}  {one_line(page['url'])}"
        )


def _interval(share: Share | None, why_not: str) -> str:
    if share is None:
        return f"unknown: {why_not}"
    return "{:.2f} ({:.2f} to {:.2f})".format(*share)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _listed(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{pages} {reason}" for reason, pages in skipped.items() if pages)
