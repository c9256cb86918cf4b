"""Reading the pages that a critic is learned from by `focuscrawl.critic.from_little`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.corpus import read_bags, read_known, resolve
from focuscrawl.critic.from_little import learn_from_little, learn_from_query
from focuscrawl.critic.kept_pages import KeptPages
from focuscrawl.critic.languages import languages_of
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, refuse_everyday
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.critic.written import written_pages
from focuscrawl.errors import UserError
from focuscrawl.foundation.progress_listener import SILENT
from focuscrawl.foundation.urls import normalize
from focuscrawl.taxonomy import ROOT, lies_under, normalise

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.written import Shares
    from focuscrawl.foundation.progress_listener import Progress
    from focuscrawl.webs.protocol import Web

_NOTHING = "none of the good pages can be read: name others, or where they are recorded, or words"
OTHERS = 300  # pages drawn from the web
_LEAST = 60
#: of the pages drawn, as many for one that is probably on the topic
_OTHERS_EACH = 9


def topic_name(name: str | None) -> str:
    """Return the class that a name stands for; ``/good`` for None.

    Raises
    ------
    UserError
        It is the name of the pages off the topic, or none that ``-a topic=`` could be given.
    """
    path = ON_TOPIC if name is None else normalise(name)
    if name is not None and not name.strip():
        raise UserError("name is empty: take one like /Birds")
    if "," in path:
        raise UserError(f"name {name}: commas stand between topics; take another, like /Birds")
    if path == ROOT or lies_under(path, [OFF_TOPIC]):
        raise UserError(f"name {name}: that is what is off the topic; take another, like /Birds")
    return path


def train_from_little(
    phrases: Sequence[Sequence[str]],
    good: Sequence[str],
    bad: Sequence[str],
    webs: Sequence[Web],
    *,
    topic: str = ON_TOPIC,
    relevant: Collection[str] = (),
    before: TrainedCritic | None = None,
    random_state: int = 0,
    progress: Progress = SILENT,
) -> TrainedCritic:
    """Train a critic from phrases, URLs of pages on the topic, and of pages that are not.

    Parameters
    ----------
    phrases : words of each phrase
    good, bad : URLs; those that no web has, or not as HTML, are counted
    webs : where they are, asked in this order, and the pages that stand for all others; none:
        phrases alone
    topic : name of the class of the topic
    relevant : URLs of pages that are probably on the topic, like those that a focused crawl has
        judged to be: few of these are taken to stand for all others
    before : a critic of the topic that was learned from little; its pages are at hand where no web
        has them, and the others that it was learned from stand for all others again
    random_state : seed of the sample of other pages
    progress : told how many pages will be read, and of every few that were

    Raises
    ------
    UserError
        Neither a phrase nor a good page that can be read; a phrase of everyday words; or a page is
        both good and bad.
    """
    good, bad = (list(dict.fromkeys(map(_normal, urls))) for urls in (good, bad))
    both = set(good) & set(bad)
    if both:
        raise UserError(f"{min(both)} is both good and bad; take it out of one")
    kept, others = _kept_pages(before)
    if not webs and not kept and phrases:
        languages = languages_of((), (), phrases)
        refuse_everyday(phrases, languages)
        model = learn_from_query(
            phrases, topic=topic, embeddings=word_vectors_installed(), languages=languages
        )
        return TrainedCritic(
            model=model, phrases=_kept(phrases), skipped=_unread(len(good) + len(bad))
        )
    there = [*kept, *(url for web in webs for url in resolve(web, good))]
    if not phrases and not any(there):
        raise UserError(_NOTHING)
    labelled = [*good, *bad]
    left = 0 if others else OTHERS
    progress.start(min(len(labelled) + left, sum(1 for web in webs for _ in web.urls())))
    pages = read_known(webs, labelled, progress=progress)
    bags = kept | {url: page.bag for url, page in pages.items()}
    if not phrases and not any(url in bags for url in good):
        raise UserError(_NOTHING)
    if not others:
        known = {page.url for page in pages.values()}
        drawn = draw_other_pages(
            webs, known, relevant, random_state=random_state, progress=progress
        )
        others = [bag for _, bag in drawn]
    on, off = ([bags[url] for url in urls if url in bags] for urls in (good, bad))
    languages = languages_of(others, [*on, *off], phrases)
    refuse_everyday(phrases, languages)
    model = learn_from_little(
        phrases,
        on,
        off,
        [*others, *missing_others(len(others), random_state, languages)],
        topic=topic,
        embeddings=word_vectors_installed(),
        languages=languages,
    )
    labels = [(url, topic) for url in good] + [(url, OFF_TOPIC) for url in bad]
    examples = tuple(pair for pair in labels if pair[0] in bags)
    return TrainedCritic(
        model=model,
        examples=examples,
        phrases=_kept(phrases),
        random_state=random_state,
        skipped=_unread(len(labelled) - len(examples)),
        pages=KeptPages.of([*on, *off, *others]),
    )


def _kept_pages(before: TrainedCritic | None) -> tuple[dict[str, Bag], list[Bag]]:
    """Return the words of a critic's examples by URL, and of the others that it learned from."""
    if before is None:
        return {}, []
    bags = before.pages.bags()
    urls = [url for url, _ in before.examples][: len(bags)]
    return dict(zip(urls, bags, strict=False)), bags[len(urls) :]


def draw_other_pages(
    webs: Sequence[Web],
    known: Collection[str],
    relevant: Collection[str] = (),
    *,
    random_state: int,
    progress: Progress = SILENT,
) -> list[tuple[str, Bag]]:
    """Draw pages that stand for all others: of the first web, then of the next.

    Parameters
    ----------
    known : URLs that are examples
    relevant : URLs of pages that are probably on the topic, of which few are drawn
    random_state : seed
    progress : told of every few pages read

    Returns
    -------
    URLs and words of 300 pages, or as many as there are
    """
    generator = np.random.default_rng(random_state)
    drawn: list[tuple[str, Bag]] = []
    for web in webs:
        urls = [url for url in web.urls() if url not in known]
        others = [url for url in urls if url not in relevant]
        mixed = _mixed([url for url in urls if url in relevant], generator)
        mixed = _mixed(others + mixed[: len(others) // _OTHERS_EACH], generator)
        while mixed and len(drawn) < OTHERS:  # not every URL is of a page
            batch, mixed = mixed[:OTHERS], mixed[OTHERS:]
            bags = read_bags(web, batch, progress=progress)
            drawn += [(url, bag) for url, bag in zip(batch, bags, strict=True) if bag]
    return drawn[:OTHERS]


def missing_others(found: int, random_state: int, languages: Shares) -> list[Bag]:
    """Return pages of everyday words where there are too few others to tell what stands out.

    Drawn word by word they are more alike than pages are: among many of them all pages stand out.
    """
    return written_pages(_LEAST - found, random_state, languages) if found < _LEAST else []


def _normal(url: str) -> str:
    """Return a URL as crawls write it; what is none stays, for no web has it."""
    return normalize(url) or url


def _unread(n: int) -> dict[str, int]:
    return {"that cannot be read": n} if n else {}


def _kept(phrases: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase) for phrase in phrases)


def _mixed(urls: Sequence[str], generator: np.random.Generator) -> list[str]:
    return [urls[i] for i in generator.permutation(len(urls)).tolist()]
