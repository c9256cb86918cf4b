"""``focuscrawl critic``: train critics, check them on labelled pages, measure their quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import (
    ProgressBar,
    check_output_file,
    write_file,
)
from focuscrawl.cli.critic_examples import (
    TopicExamples,
    example_crawl_options,
    print_unread_examples,
    topic_examples_options,
    train_on_topic_examples,
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
from focuscrawl.critic.example_checks import estimate_share, too_few_message
from focuscrawl.critic.focused_critic import is_few_shot
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.critic.training import DEFAULT_KIND, train_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.page.words import PageWords
from focuscrawl.report.plain_text import format_csv, one_line, pluralize
from focuscrawl.taxonomy import (
    Label,
    choose_min_examples,
    parse_topics,
    prune,
    read_dmoz,
    read_labels,
)
from focuscrawl.taxonomy.dmoz import EXAMPLES_PER_CLASS
from focuscrawl.webs import open_web
from focuscrawl.webs.web_protocol import read_page

if TYPE_CHECKING:
    from focuscrawl.critic.assessment import CheckReport, Example
    from focuscrawl.critic.example_checks import FewExamplesReport, JudgedPage, ShareEstimate
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

_DOUBTFUL = 10  # doubtful examples printed
_RELEVANT = 20  # pages judged relevant that are printed for a person to check
_NEAREST = 5  # pages printed if no page is judged relevant
_TITLE, _URL = 60, 200  # characters
_SHOWN = 10  # confusions printed; examples of `critic quality` that may be mislabelled


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def critic() -> None:
    """Train and check critics.

    A critic is a classifier that judges whether a page is on a topic.
    """


@critic.command()
@click.argument("labels", required=False)
@click.option("--web", help=common_options.EXAMPLES_WEB)
@common_options.CRITIC_OUT
@click.option(
    "--kind",
    metavar="KIND",
    help="Kind of critic: discriminative (logistic regression), flat or hierarchical (naive "
    "Bayes), or words (trained on phrases only).  [default: discriminative]",
)
@topic_examples_options
@example_crawl_options
@click.option(
    "--min-examples",
    type=click.IntRange(min=1),
    metavar="N",
    help="In a Dmoz dump, merge topics that have fewer than N examples into their parent topics.  "
    "[default: 300 if at least 100 classes remain, otherwise 1]",
)
@common_options.integer_option(
    "--max-examples", "Maximum number of training examples for each topic.", 300
)
@click.option("--uniform-prior", is_flag=True, help="Give all classes the same prior probability.")
@click.option(
    "--calibrate", is_flag=True, help="Calibrate the probabilities that the critic predicts."
)
@common_options.random_state_option()
@click.option(
    "--force", is_flag=True, help="Replace a critic that is already in the folder --out."
)
def train(
    *,
    labels: str | None,
    out: str,
    force: bool,
    examples: TopicExamples,
    others: int,
    crawl_dir: str | None,
    settings: tuple[str, ...],
    **training: Any,
) -> None:
    """Train a critic on example pages.

    For a critic of several topics, give a file LABELS that lists example pages. LABELS is a CSV
    file with the columns url, topic and (optionally) split, or a dump of the web directory Dmoz
    (content.rdf.u8 or .gz). The command does not train on rows with the value `test` in the column
    split; `focuscrawl critic check` uses these rows.

    For a critic of a single topic, give one or more of the options --words, --description, --good,
    --bookmarks and --bad instead of LABELS.

    The command reads the example pages from the recording --web, such as a WARC file. For a critic
    of a single topic, the command uses other pages of the recording as off-topic examples. Without
    --web, the command fetches the example pages and other pages with a polite crawl, and saves the
    pages in the folder --crawl-dir.

    \b
    focuscrawl critic train labels.csv --web pages.warc --out models/mine
    focuscrawl critic train --words "bird watching" --good urls.txt --out models/birds
    focuscrawl critic train --bookmarks bookmarks.html --folder Bikes --out models/bikes
    focuscrawl critic train --words "road cycling, bicycle racing" --out models/cycling
    """
    if labels is not None and examples.given:
        raise UserError(
            "LABELS cannot be combined with options for a single topic (--words, --description, "
            "--good, --bad, --bookmarks, --name): leave out one or the other"
        )
    if labels is None and not (examples.phrases or examples.good):
        raise UserError(
            "no examples to train on: give a file LABELS, or --words, --description, --good or "
            "--bookmarks for a single topic"
        )
    FORMAT.check_output(Path(out), force=force)
    if labels is not None:
        with closing(ProgressBar("Reading")) as progress:
            trained = _train_on_labels(labels, progress=progress, **training)
    else:
        crawl = {"out": out, "others": others, "crawl_dir": crawl_dir, "settings": settings}
        trained = train_on_topic_examples(examples, crawl, **training)
    size = save_critic(trained, out, force=force)
    _print_training(trained, out, size)
    warn_of_missing_embeddings(trained)
    if training["web"] is not None:  # a crawl of the examples has printed missing pages already
        print_unread_examples([*examples.good, *examples.bad], trained)


def _train_on_labels(
    labels: str, *, web: str | None, kind: str | None, progress: Progress, **training: Any
) -> TrainedCritic:
    rows = _read_labels_or_dmoz(labels, **training)
    if ".rdf" in Path(labels).name:
        training["min_examples"] = 1  # a pruned class stays a class if the web lacks some examples
    if web is None:
        raise UserError(
            "no recorded web to read the examples from: name a .warc or .warc.gz file, or `demo`, "
            "with --web"
        )
    return train_critic(
        rows, open_web(web), kind=kind or DEFAULT_KIND, progress=progress, **training
    )


def _read_labels_or_dmoz(
    name: str, *, min_examples: int | None, max_examples: int, random_state: int, **_: Any
) -> list[Label]:
    """Read a table of labels, or the examples of a Dmoz dump after pruning (methods.md 2)."""
    if ".rdf" not in Path(name).name:
        return read_labels(name)
    click.echo(f"Reading topics of {name}", err=True)
    n_kept = max(max_examples, min_examples or EXAMPLES_PER_CLASS)
    dump = read_dmoz(name, max_examples=n_kept, random_state=random_state)
    least = choose_min_examples(dump) if min_examples is None else min_examples
    tree = prune(dump, least, max_examples, random_state)
    topics, leaves = len(dump.topics), len(tree.leaves)
    click.echo(
        f"Pruned {topics:,} topics to {leaves} classes of at least {least} examples", err=True
    )
    return [Label(url, leaf, "train") for leaf in tree.leaves for url in tree.examples(leaf)]


def _print_training(trained: TrainedCritic, out: str, size: int) -> None:
    click.echo(f"Saved critic {out}: {trained.model.kind}, {size / 1024:.0f} KiB")
    topics = [topic for _, topic in trained.examples]
    width = max(map(len, trained.model.classes))
    for path in trained.model.classes:
        count = f"{topics.count(path):>6} examples" if topics else ""
        click.echo(f"  {path:<{width}}  {count}".rstrip())
    for topic in trained.untrained_topics:
        click.echo(f"  {topic}: no example could be read, so the critic has no such class")
    skipped = _describe_skipped(trained.skipped)
    if skipped:
        click.echo(f"Skipped examples: {skipped}")
    if trained.cross_validation:
        measured = trained.cross_validation
        click.echo(
            f"Cross-validation on {len(topics)} examples, {measured['folds']:.0f} folds: "
            f"accuracy {measured['accuracy']:.3f}, mean recall {measured['mean_recall']:.3f}"
        )
    elif not trained.examples:
        click.echo(
            "Trained on phrases only: a few pages on the topic (--good) would improve the critic"
        )


@critic.command()
@click.argument("spec", metavar="CRITIC")
@click.option(
    "--labels",
    metavar="FILE",
    help="CSV file of labelled pages, with the columns url, topic and (optionally) split.",
)
@click.option("--web", required=True, help=common_options.EXAMPLES_WEB)
@click.option(
    "--topic",
    metavar="TOPICS",
    help="Topics to check, separated by commas: values of the column topic in the file --labels. "
    "With --topic, the command only checks whether the critic recognises pages on the topics "
    "that you list.",
)
@click.option(
    "--focus",
    metavar="CLASSES",
    help="Classes of the critic that count as relevant, separated by commas.  [default: the "
    "classes with the names in --topic]",
)
@click.option(
    "--calibrated/--raw",
    default=None,
    help="Use the calibrated or the raw probabilities of the critic.  [default: the choice made "
    "when the critic was trained]",
)
@click.option(
    "--wrong",
    type=click.IntRange(min=0),
    metavar="N",
    help="Without --labels: of the pages that the previous check listed as relevant, how many "
    "you found to be off-topic. The command computes the precision of the critic from "
    "the number of off-topic pages.",
)
@click.option(
    "--csv",
    "table",
    type=common_options.PATH,
    metavar="FILE",
    help="Also write the label and the predicted class of every page to this CSV file.",
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
    """Measure the accuracy of the critic CRITIC on labelled pages.

    CRITIC is the folder of a critic, a name in models/, or a Python callable (module:callable).

    The command checks the critic on the rows of the file --labels that have the value `test` in
    the column split. If no row of --labels has the value `test`, the command uses all rows that
    the critic was not trained on. With --topic, a page counts as relevant if the critic gives the
    page a relevance above 0.5.

    If the critic was trained on keywords, or on good and bad pages, you can leave out --labels.
    Without --labels, the command cross-validates the critic on its training examples.

    \b
    focuscrawl critic check models/birds --web pages.warc
    focuscrawl critic check models/mine --labels labels.csv --web pages.warc
    focuscrawl critic check mycode:judge --topic /Sports --labels labels.csv --web pages.warc
    focuscrawl critic check models/cycling --topic /Sports/Cycling --focus /good --labels ...
    """
    check_output_file(table, "--csv")
    if labels is None:
        if topic is not None or focus is not None or calibrated is not None:
            raise UserError(
                "--topic, --focus, --calibrated and --raw need --labels: name a CSV file"
            )
        predictions: Sequence[Prediction] = _check_without_labels(spec, web, wrong)
    elif wrong is not None:
        raise UserError("--wrong cannot be combined with --labels: leave out one of them")
    else:
        predictions = _check_with_labels(
            spec, labels, web, topic=topic, focus=focus, calibrated=calibrated
        )
    if table is not None:
        names = ["url", "topic", "predicted", "probability"]
        rows = [[*page[:3], f"{page.probability:.6g}"] for page in predictions]
        write_file(table, format_csv([names, *rows]).encode(), "--csv")


def _check_without_labels(spec: str, web_name: str, wrong: int | None) -> list[Prediction]:
    """Cross-validate a few-shot critic, print the results, and return the predictions."""
    if is_callable_spec(spec):
        raise UserError(f"critic {spec} has no examples to check it on: name --labels")
    trained, _ = read_critic(find_model(spec))
    if not is_few_shot(trained):
        raise UserError(f"critic {spec} is not a few-shot critic: name --labels")
    web = open_web(web_name)
    read = read_examples(trained, web)
    distinct = _remove_near_duplicates(read)
    with closing(ProgressBar("Checking")) as progress:
        report = check_few_examples(trained, distinct, web, progress=progress)
    skipped = Counter(
        {
            "near-duplicates of another example": len(read) - len(distinct),
            "missing from the web": len(trained.examples) - len(read),
        }
    )
    click.echo("\n".join(_report_lines(report, distinct, +skipped, web, wrong)))
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
    with closing(ProgressBar("Checking")) as progress:
        if topic is not None:
            topics = parse_topics(topic)
            judge = load_critic(spec, focus or topic, calibrated=calibrated)
            report = check_relevance(judge, topics, rows, open_web(web), progress=progress)
        elif is_callable_spec(spec) and not Path(spec).exists():
            raise UserError(f"critic {spec} has no classes to check: name a topic with --topic")
        else:
            folder = find_model(spec)
            trained, _ = read_critic(folder)
            if calibrated and trained.calibration is None:
                raise UserError(f"critic {folder} has no calibration: leave out --calibrated")
            if calibrated is not None:
                trained = replace(trained, calibrated=calibrated)
            report = check_classes(trained, rows, open_web(web), progress=progress)
    _print_report(report)
    return report.predictions


def _print_report(report: CheckReport) -> None:
    click.echo(f"Pages {len(report.predictions)}, accuracy {report.accuracy:.4f}")
    skipped = _describe_skipped(report.skipped)
    if skipped:
        click.echo(f"Skipped rows: {skipped}")
    width = max(len(result.topic) for result in report.classes)
    click.echo(f"\n{'':<{width}}   pages  precision  recall")
    for result in report.classes:
        click.echo(
            f"{result.topic:<{width}}  {result.pages:>6}  {_format(result.precision):>9}  "
            f"{_format(result.recall):>6}"
        )
    if report.confusions:
        click.echo("\nMost frequent confusions (label -> predicted class)")
        for label, predicted, pages in report.confusions[:_SHOWN]:
            click.echo(f"{pages:>6}  {label} -> {predicted}")
    for name, measured in report.reliability.items():
        click.echo(f"\nProbabilities ({name}): Brier {measured.brier:.4f}, ECE {measured.ece:.4f}")
        click.echo("  predicted  pages  mean  true")
        for each in measured.bins:
            click.echo(
                f"  {each.low:.1f}-{each.high:.1f}    {each.pages:>6}  {each.confidence:.2f}  "
                f"{each.frequency:.2f}"
            )


def _remove_near_duplicates(examples: Sequence[Example]) -> list[Example]:
    near = {True: MinHashIndex(), False: MinHashIndex()}
    texts: set[tuple[bool, tuple[str, ...]]] = set()
    kept = []
    for i, example in enumerate(examples):
        text = (example.good, tuple(example.tokens))
        data = sketch(PageWords(example.tokens))
        is_near = data is not None and near[example.good].find_or_add(i, data) is not None
        if not is_near and text not in texts:
            kept.append(example)
        texts.add(text)
    return kept


def _report_lines(
    report: FewExamplesReport,
    examples: Sequence[Example],
    skipped: Counter[str],
    web: Web,
    wrong: int | None,
) -> list[str]:
    called = report.called_relevant()
    listed = sorted(called[:_RELEVANT], key=lambda page: -page.relevance)
    good = sum(example.good for example in examples)
    lines = [
        f"{_describe_recall(report, good)} {_describe_precision(listed, wrong)}",
        f"Good examples: {good}, bad examples: {len(examples) - good}"
        + "".join(f"; {n} skipped ({reason})" for reason, n in skipped.items()),
        f"{len(called)} of {pluralize(len(report.others), 'other page')} judged relevant",
    ]
    bad = [page.relevance for page in report.examples if page.label != report.topic]
    if bad:
        lines.append(
            f"{sum(each > 0.5 for each in bad)} of {pluralize(len(bad), 'bad example')} judged "
            "relevant when held out"
        )
    lines += [f"Warning: {one_line(warning)}" for warning in report.warnings]
    title_of = {example.url: example.title for example in examples}
    doubtful = report.doubtful(_DOUBTFUL)
    if doubtful:
        lines += ["", "Most doubtful examples (relevance when held out)"]
        for page in doubtful:
            label = "good" if page.label == report.topic else "bad "
            title = title_of[page.url]
            lines.append(f"  {page.relevance:.2f}  {label}  {_title_and_url(page, title)}")
    lines += ["", *_list_other_pages(report, listed, web)]
    if report.words_for:
        lines += [
            "",
            "Words with the largest weights",
            f"  for the topic      {_join_words(report.words_for)}",
            f"  against the topic  {_join_words(report.words_against)}",
        ]
    return lines


def _describe_recall(report: FewExamplesReport, good: int) -> str:
    if report.recall is not None:
        return f"The critic finds {_of_ten(report.recall, 'relevant pages')}."
    return f"The recall of the critic is unknown: {too_few_message(good)}."


def _describe_precision(listed: Sequence[JudgedPage], wrong: int | None) -> str:
    if wrong is not None and wrong > len(listed):
        raise UserError(
            f"--wrong {wrong} is too large: only {len(listed)} other pages are printed as relevant"
        )
    if not listed:
        return "The critic judges no other page relevant."
    if wrong is None:
        return (
            "To measure the precision, count the off-topic pages among the "
            f"{len(listed)} other pages below, and repeat the command with --wrong N."
        )
    share = _of_ten(estimate_share(wrong, len(listed)), "pages judged relevant are off topic")
    return f"{share[0].upper()}{share[1:]}."


def _of_ten(share: ShareEstimate, pages: str) -> str:
    """Return ``about 7 of 10 relevant pages (4 to 9)``."""
    value, low, high = (round(10 * each) for each in share)
    about = {0: "hardly any", 10: "nearly all"}.get(value, f"about {value} of 10")
    return f"{about} {pages} ({low} to {high})"


def _list_other_pages(
    report: FewExamplesReport, listed: Sequence[JudgedPage], web: Web
) -> list[str]:
    heading = "Other pages judged relevant (relevance)"
    if not listed:
        heading = "Other pages nearest to the topic (relevance)"
        listed = sorted(report.others, key=lambda page: -page.relevance)[:_NEAREST]
    views = [read_page(web, page.url) for page in listed]
    return [
        heading,
        *(
            f"  {page.relevance:.2f}  {_title_and_url(page, '' if view is None else view.title)}"
            for page, view in zip(listed, views, strict=True)
        ),
    ]


def _title_and_url(page: JudgedPage, title: str) -> str:
    return f"{one_line(title, _TITLE) or '(no title)'}  {one_line(page.url, _URL)}"


def _join_words(words: Sequence[str]) -> str:
    return ", ".join(one_line(word) for word in words)


@critic.command()
@click.argument("spec", metavar="CRITIC")
@click.option(
    "--topic",
    metavar="CLASSES",
    required=True,
    help="Classes of the critic that are relevant, separated by commas.",
)
@click.option(
    "--web",
    "webs",
    multiple=True,
    help="Recording (WARC file or index) that contains the training examples of the critic; "
    "repeatable.",
)
@click.option(
    "--before",
    metavar="CRITIC",
    help="Earlier critic to compare with CRITIC. The comparison uses only examples that the "
    "earlier critic was not trained on.",
)
@common_options.path_option("--out", "Also write all results to this JSON file.")
def quality(
    *, spec: str, topic: str, webs: tuple[str, ...], before: str | None, out: Path | None
) -> None:
    """Cross-validate the critic CRITIC on its training examples.

    The command prints the precision and recall of the critic at a relevance threshold of 0.5, and
    a reliability table. The command also prints the classes that the critic confuses, the words
    with the largest weights, and examples that may be mislabelled. For a few-shot critic (trained
    on a few examples), you need no --web, because the critic stores the words of the examples. For
    any other critic, the command reads the example pages from the recording --web.

    \b
    focuscrawl critic quality models/birds --topic /good
    focuscrawl critic quality models/mine --topic /Sports --web pages.warc --out quality.json
    """
    check_output_file(out, "--out")
    trained, _ = read_critic(find_model(spec))
    marked = parse_topics(topic)
    load_critic(spec, topic)  # raises an error for unknown classes
    earlier = None if before is None else read_critic(find_model(before))[0]
    with closing(ProgressBar("Reading")) as progress:
        opened = [*map(open_web, webs)]
        measured = Quality.measure(trained, marked, opened, previous=earlier, progress=progress)
    if out is not None:
        with reporting_write_errors(out, "name another file with --out"):
            write_atomically(out, measured.json())
    reason = "the critic judges no example relevant" if measured.off else "no off-topic examples"
    click.echo(
        f"{measured.on} relevant examples, {measured.off} off-topic examples, "
        f"{measured.others} other pages\n"
        + (
            measured.why_not
            or f"precision {_interval(measured.precision, reason)}, "
            f"recall {_interval(measured.recall, reason)}"
        )
    )
    if (change := measured.change) is not None:
        click.echo(
            f"{pluralize(change.pages, 'new example')}: {change.right_before} judged right by the "
            f"earlier critic, {change.right} by this one"
        )
    for page in measured.doubtful[:_SHOWN]:
        click.echo(
            f"  {page['relevance']:.2f}  {one_line(page['label'])}  {one_line(page['url'])}"
        )


def _interval(share: ShareEstimate | None, why_not: str) -> str:
    if share is None:
        return f"unknown: {why_not}"
    return "{:.2f} ({:.2f} to {:.2f})".format(*share)


def _format(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _describe_skipped(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{pages} {reason}" for reason, pages in skipped.items() if pages)
