"""The pages of a web with labels: read once, whatever number of topics they are studied for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.corpus import read_bags, resolve
from focuscrawl.critic.files import read_critic
from focuscrawl.errors import UserError
from focuscrawl.lab.planning import critic_of_labels, sample
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.webs.protocol import Web

MOST_TESTED = 2000
_UNLABELLED = 300


class LabelledPages(NamedTuple):
    """What the topics of a web share.

    Attributes
    ----------
    train, test : topic and words of pages
    unlabelled : by draw, words of pages as a crawl meets them; none of them is a test page
    """

    train: Sequence[tuple[str, Bag]]
    test: Sequence[tuple[str, Bag]]
    unlabelled: Sequence[Sequence[Bag]]

    @property
    def tested(self) -> list[Bag]:
        """The words of the test pages."""
        return [bag for _, bag in self.test]

    def truth(self, topic: str) -> Bools:
        """Tell which test pages are on a topic."""
        return np.array([lies_under(label, [topic]) for label, _ in self.test], np.bool_)


@lru_cache(maxsize=1)  # a process does the topics of a web one after the other
def read_labelled(recording: str, labels: str, draws: int) -> LabelledPages:
    """Read the pages of a label table: of ``test`` rows at most 2,000, each topic by its share.

    Parameters
    ----------
    recording : of the web
    labels : CSV file
    draws : samples of unlabelled pages, 300 each

    Raises
    ------
    UserError
        No page is there to test on.
    """
    web, rows = open_web(recording), read_labels(labels)
    there = [
        (url, row)
        for url, row in zip(resolve(web, [row.url for row in rows]), rows, strict=True)
        if url is not None
    ]
    train = [(row.topic, url) for url, row in there if row.split != "test"]
    test = by_share([(row.topic, url) for url, row in there if row.split == "test"], MOST_TESTED)
    if not test:
        raise UserError(f"{labels}: none of its rows in {recording} has test in the column split")
    tested = {url for _, url in test}
    others = [url for url in web.urls() if url not in tested]
    return LabelledPages(
        _with_words(web, train),
        _with_words(web, test),
        [_unlabelled(web, others, draw) for draw in range(draws)],
    )


def by_share(pages: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """Draw `most` pages, (topic, URL), so that every topic keeps its share; or return all."""
    if len(pages) <= most:
        return list(pages)
    mixed = np.random.default_rng(0).permutation(len(pages)).tolist()
    in_order = sorted(mixed, key=lambda i: pages[i][0])
    return [pages[in_order[i * len(pages) // most]] for i in range(most)]


@lru_cache(maxsize=2)  # kinds
def judged_by_labels(
    recording: str, labels: str, draws: int, kind: str
) -> tuple[tuple[str, ...], Floats]:
    """Judge the test pages by the critic of all training rows.

    Parameters
    ----------
    recording, labels, draws : as `read_labelled` takes them
    kind : of critic

    Returns
    -------
    Its classes, and the probability of each, float64 (n_pages, n_classes)
    """
    model = read_critic(str(critic_of_labels(labels, open_web(recording), kind)))[0].model
    pages = read_labelled(recording, labels, draws)
    return model.classes, np.exp(model.log_posteriors(pages.tested))


def _with_words(web: Web, pages: Sequence[tuple[str, str]]) -> list[tuple[str, Bag]]:
    bags = read_bags(web, [url for _, url in pages])
    return [(topic, bag) for (topic, _), bag in zip(pages, bags, strict=True) if bag]


def _unlabelled(web: Web, urls: Sequence[str], draw: int) -> list[Bag]:
    drawn = sample(urls, 2 * _UNLABELLED, draw)
    return [bag for bag in read_bags(web, drawn) if bag][:_UNLABELLED]
