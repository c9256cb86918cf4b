"""``focuscrawl critic check`` of a critic from few examples, without labels: what it prints."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import click

from focuscrawl.cli.progress_bars import Bar
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.evaluation import Prediction
    from focuscrawl.critic.few_examples_check import Example, FewExamplesReport, JudgedPage
    from focuscrawl.critic.few_examples_estimates import Share
    from focuscrawl.webs.protocol import Web

# the critics load scikit-learn: a second that `--help` can do without
# ruff: noqa: PLC0415

_DOUBTFUL = 10
_LISTED = 20  # of the pages called relevant: somebody is to look at them
_NEAREST = 5  # if none is
_TITLE, _URL = 60, 200


def check_without_labels(spec: str, web_name: str, wrong: int | None) -> list[Prediction]:
    """Check a critic from few examples, print what is found, and return every page's verdict.

    Parameters
    ----------
    spec : folder of the critic, or its name under ``models/``
    web_name : recorded web
    wrong : how many of the pages that it lists as called relevant are not; None if nobody looked

    Raises
    ------
    UserError
        The critic was learned from labels, or the web does not have its pages, or fewer than
        `wrong` pages are listed.
    """
    from focuscrawl.critic.callable_critic import is_callable_spec
    from focuscrawl.critic.evaluation import Prediction
    from focuscrawl.critic.few_examples_check import (
        check_few_examples,
        read_examples,
    )
    from focuscrawl.critic.files import read_critic
    from focuscrawl.critic.loading import find_model
    from focuscrawl.critic.phrase_model import OFF_TOPIC
    from focuscrawl.critic.trained import is_from_little
    from focuscrawl.webs import open_web

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


def _distinct(examples: Sequence[Example]) -> list[Example]:
    """Return the examples, of those that say nearly the same the first."""
    from focuscrawl.crawl.minhash import MinHashIndex, sketch
    from focuscrawl.page.words import PageWords

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
        f"Of {counted(len(report.others), 'other page')}, {len(called)} called relevant",
    ]
    bad = [page.relevance for page in report.examples if page.label != report.topic]
    if bad:
        lines.append(
            f"Of {counted(len(bad), 'bad example')}, {sum(each > 0.5 for each in bad)} called "
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
    from focuscrawl.critic.few_examples_estimates import too_few

    if report.recall is not None:
        return f"Finds {_of_ten(report.recall, 'relevant pages')}."
    return f"How many relevant pages it finds cannot be told: {too_few(good)}."


def _wrong(listed: Sequence[JudgedPage], wrong: int | None) -> str:
    from focuscrawl.critic.few_examples_estimates import share_of

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
    from focuscrawl.webs.pages import read_page

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
