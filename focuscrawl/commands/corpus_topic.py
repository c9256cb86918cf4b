"""Finds start pages of a corpus by search, trains the critic, and writes the topic definition."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.cli.critic_examples import (
    REDIRECTS_PER_PAGE,
    fetch_examples,
    print_unread_examples,
    split_at_commas,
    warn_of_missing_embeddings,
)
from focuscrawl.collection.corpus_folder import LEAST_TO_HOLD_OUT
from focuscrawl.commands.anywhere import project_settings
from focuscrawl.commands.plan import parse_pairs
from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import load_trained, save_critic
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_atomically
from focuscrawl.foundation.urls import host
from focuscrawl.report.crawl_plan import start_pages
from focuscrawl.report.outcomes import PAGE, stop_reason
from focuscrawl.report.plain_text import format_csv, one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.search import (
    Candidate,
    JudgedCandidate,
    ask_queries,
    choose_candidates,
    judge_candidates,
    make_tuples,
)
from focuscrawl.search.queries import propose_queries, read_titles
from focuscrawl.topics import TopicDefinition, edit_definition, read_definition, train_definition
from focuscrawl.topics.definition import write_definition
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.collection.corpus_folder import CorpusFolder, CorpusOrder
    from focuscrawl.webs.web_protocol import Web

_SHOWN, _WIDTH = 10, 90  # refused candidates printed, characters of a URL
_TARGET_PAGE = "target page"  # why a candidate is no start page


class CorpusTopic:
    """Finds start pages, trains the critic, and writes the topic definition of a corpus.

    Parameters
    ----------
    settings : sequence of str
        Scrapy settings of crawls, each ``NAME=VALUE``.
    """

    def __init__(self, order: CorpusOrder, files: CorpusFolder, settings: Sequence[str]) -> None:
        self._order, self._files, self._settings = order, files, settings
        scrapy_settings = project_settings()
        scrapy_settings.update(parse_pairs(settings), priority="cmdline")
        self._agent = str(scrapy_settings["USER_AGENT"])
        self._examples, self._targets = order.split_pages()

    def check_given_pages(self) -> None:
        """Raise `UserError` if the recording is unusable, or has none of the given pages."""
        order = self._order
        if order.web is None or self._files.topic.exists():
            return
        web = open_web(order.web)
        if order.search is None and not find_pages([web], self._examples):
            raise UserError(
                f"{order.web} contains none of the given start pages, such as "
                f"{one_line(self._examples[0], _WIDTH)}: correct the URLs, or name another "
                "recording with --web"
            )

    def define(self) -> None:
        """Find start pages, train the critic, and write the topic definition."""
        order, files = self._order, self._files
        if files.topic.exists() and files.critics():
            critic = files.crawl_critic()
            click.echo(f"Topic of {files.topic}, critic {critic}")
            if critic != files.critics()[-1]:
                apply = shlex.join(
                    ["focuscrawl", "topic", "apply", f"{files.crawl}", f"{files.topic}"]
                )
                click.echo(
                    "The crawl started with this critic. To use later judgements in the crawl: "
                    f"{apply}",
                    err=True,
                )
            return
        if order.urls:
            click.echo(self._describe_targets())
        candidates, refused = list[Candidate](), list[JudgedCandidate]()
        if order.search is not None:
            phrases = [" ".join(words) for words in parse_phrases(order.keywords)]
            tuples = make_tuples(
                parse_phrases(order.keywords), order.tuples, order.tuple_size, order.random_state
            )
            candidates, refused = self._search(order.search, phrases, tuples)
        pages = [*self._examples, *(each.url for each in candidates)]
        definition = TopicDefinition(
            web=order.web if order.web and "://" not in order.web else None,
            words=split_at_commas(order.keywords),
            seeds=tuple(self._examples),
            good=tuple(self._examples),
            targets=tuple(self._targets),
            name=order.topic,
        )
        webs, errors = self._fetch(pages, files.examples(1), others=order.others)
        folder = files.path / "critic-1"
        self._train(definition, webs, folder, relevant=pages)
        if candidates:
            judged = self._judge(candidates, webs, errors)
            accepted = [each.url for each in judged if not each.reason]
            table = self._report_candidates([*judged, *refused])
            if not accepted and not order.urls:
                raise UserError(
                    f"none of {pluralize(len(judged), 'candidate')} is on the topic: see {table}; "
                    "use other keywords, or give URLs of pages on the topic"
                )
            seeds = dict.fromkeys([*self._examples, *accepted])
            definition = replace(definition, seeds=tuple(seeds))
        write_definition(definition, files.topic)

    def _describe_targets(self) -> str:
        """Describe which of the given pages are held out, or why none is."""
        held, given = len(self._targets), len(self._order.urls)
        if self._order.targets:
            return f"{pluralize(held, 'target page')} certify the recall"
        if held:
            return (
                f"{held} of {given} given pages are target pages: they are no start pages and no "
                "examples, and certify the recall. To use all pages as examples, add "
                "--all-examples"
            )
        why = (
            "all given pages are start pages and examples"
            if self._order.all_examples
            else f"fewer than {LEAST_TO_HOLD_OUT} pages are given"
        )
        return f"No target pages certify the recall: {why}"

    def _search(
        self, source: str, phrases: Sequence[str], tuples: Sequence[str]
    ) -> tuple[list[Candidate], list[JudgedCandidate]]:
        """Ask the source for candidates; return the chosen and the refused candidates."""
        with closing(ProgressBar(f"Asking {source}", unit="queries")) as progress:
            asked = ask_queries(
                source,
                phrases,
                tuples,
                self._order.results,
                record=self._files.answers,
                agent=self._agent,
                progress=progress,
            )
        for problem in asked.problems:
            click.echo(f"Warning: {one_line(problem)}", err=True)
        found, refused = choose_candidates(asked.answers, self._order.per_site)
        chosen = [each for each in found if each.url not in self._targets]
        refused += [(each, _TARGET_PAGE) for each in found if each.url in self._targets]
        if not chosen:
            raise UserError(
                f"{source} found nothing for {pluralize(len(asked.queries), 'query')}: use "
                "other keywords, or give URLs of pages on the topic"
            )
        return chosen, [
            JudgedCandidate(each.url, each.title, None, reason) for each, reason in refused
        ]

    def _fetch(
        self, pages: Sequence[str], folder: Path, **options: Any
    ) -> tuple[list[Web], dict[str, str]]:
        """Return the webs that have the pages, and why pages could not be fetched."""
        if self._order.web is not None:
            return [open_web(self._order.web)], {}
        try:
            fetched = fetch_examples(
                pages,
                out=str(self._files.path),
                crawl_dir=str(folder),
                settings=self._settings,
                random_state=self._order.random_state,
                resume=True,
                **options,
            )
        finally:  # an interruption may be the cause of an error
            _check_not_interrupted(folder)
        with closing(open_store(folder)) as store:
            errors = {page.url: page.outcome for page in start_pages(store)}
        return [fetched], {url: why for url, why in errors.items() if why != PAGE}

    def _train(
        self,
        definition: TopicDefinition,
        webs: Sequence[Web],
        folder: Path,
        *,
        relevant: Iterable[str],
    ) -> None:
        with closing(ProgressBar("Training the critic")) as progress:
            trained, _ = train_definition(
                definition, webs, relevant=frozenset(relevant), progress=progress
            )
        save_critic(trained, folder, force=True)
        print_unread_examples(definition.good, trained)
        warn_of_missing_embeddings(trained)

    def _judge(
        self, candidates: Sequence[Candidate], webs: Sequence[Web], errors: Mapping[str, str]
    ) -> list[JudgedCandidate]:
        """Judge candidates with the latest critic; target pages do not become start pages."""
        critic = load_trained(str(self._files.critics()[-1]), self._order.topic)
        return [
            each._replace(reason=_TARGET_PAGE) if each.url in self._targets else each
            for each in judge_candidates(candidates, webs, critic, errors)
        ]

    def _report_candidates(self, judged: Sequence[JudgedCandidate]) -> Path:
        """Print the refused candidates, and write all candidates to a new CSV file."""
        table = self._files.candidates()
        accepted = [each for each in judged if not each.reason]
        hosts = {host(each.url) for each in accepted}
        click.echo(
            f"{pluralize(len(accepted), 'start page')} on {pluralize(len(hosts), 'host')} of "
            f"{pluralize(len(judged), 'candidate')}; refused ({table}):"
        )
        refused = [each for each in judged if each.reason]
        for each in refused[:_SHOWN]:
            shown = "-   " if each.relevance is None else f"{each.relevance:.2f}"
            click.echo(f"  {shown}  {shorten_middle(one_line(each.url), _WIDTH)}  ({each.reason})")
        if len(refused) > _SHOWN:
            click.echo(f"  and {len(refused) - _SHOWN} more")
        rows = [["url", "title", "relevance", "refused"]]
        for each in judged:
            value = "" if each.relevance is None else f"{each.relevance:.3f}"
            rows.append([each.url, each.title, value, each.reason])
        write_atomically(table, format_csv(rows))
        return table

    def search_again(self, source: str) -> bool:
        """Search with words of the relevant pages; return whether new start pages were found."""
        files = self._files
        known = read_definition(files.topic)
        with closing(open_store(files.crawl)) as store:
            queries = propose_queries(read_titles(store))
            fetched = {url for (url,) in store.rows("SELECT url FROM pages")}
        if not queries:
            return False
        click.echo(f"Searching for {'; '.join(queries)}", err=True)
        try:
            candidates, refused = self._search(source, queries, ())
        except UserError as error:  # the crawl has found enough for an export
            click.echo(f"Warning: {error}", err=True)
            return False
        new = [each for each in candidates if each.url not in fetched.union(known.seeds)]
        if not new:
            return False
        webs, errors = self._fetch(
            [each.url for each in new],
            files.next_examples(),
            others=REDIRECTS_PER_PAGE * len(new),
            max_distance=0,
        )
        judged = self._judge(new, webs, errors)
        accepted = [each.url for each in judged if not each.reason]
        self._report_candidates([*judged, *refused])
        if not accepted:
            return False

        def with_seeds(now: TopicDefinition) -> TopicDefinition:
            return replace(now, seeds=tuple(dict.fromkeys([*now.seeds, *accepted])))

        edit_definition(files.topic, with_seeds)
        return True


def _check_not_interrupted(folder: Path) -> None:
    """Raise `KeyboardInterrupt` if the crawl in a folder was interrupted."""
    if CrawlFolder(folder).exists:
        with closing(open_store(folder)) as store:
            if stop_reason(store) in ("interrupted", "stopped"):
                raise KeyboardInterrupt
