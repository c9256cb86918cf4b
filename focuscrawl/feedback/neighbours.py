"""Pages around the examples of a topic, proposed as further examples [F99 section 2]."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.link_filter import may_be_page
from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.loading import load_trained
from focuscrawl.errors import UserError
from focuscrawl.feedback.suggestions import Suggestion
from focuscrawl.report.plain_text import counted
from focuscrawl.taxonomy import lies_under
from focuscrawl.topics import train_definition
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.offline.link_graph import CrawlGraph
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.protocol import Web

KIND = "neighbour"
_READ = 1000  # neighbours that are read at most, those of the most examples first


def examples_of(definition: TopicDefinition) -> list[str]:
    """Return the pages whose neighbours are looked at: the good ones and the seeds.

    Raises
    ------
    UserError
        There are none.
    """
    examples = list(dict.fromkeys([*definition.good, *definition.seeds]))
    if not examples:
        raise UserError("neighbours of which pages? Add some: focuscrawl topic add --good URL")
    return examples


def neighbours(
    definition: TopicDefinition,
    webs: Sequence[Web],
    n: int = 20,
    *,
    crawls: Sequence[CrawlGraph] = (),
) -> list[Suggestion]:
    """Choose pages that examples link to, or that link to them: the most relevant.

    They are judged by the critic of the definition, or one that is learned from what it says. Of
    equals come first those next to the most examples.

    Parameters
    ----------
    webs : where pages are read, in the order to look for one
    n : how many, at most
    crawls : that know which pages link to the examples

    Raises
    ------
    UserError
        There is no example, or none that can be read; or no neighbour of one.
    """
    examples = examples_of(definition)
    cited, citing = _around(examples, webs, crawls)
    around = cited + citing
    for url in definition.judged | set(examples):
        del around[url]
    wanted = [url for url, _ in sorted(around.items(), key=lambda item: (-item[1], item[0]))]
    known = read_known(webs, wanted[:_READ])
    first = {page.url: url for url, page in reversed(known.items())}  # of several to one page
    read = {url: page for url, page in known.items() if first[page.url] == url}
    if not read:
        raise UserError(f"no neighbour of {counted(len(examples), 'example')} can be read")
    judged = _critic(definition, webs).judge_bags([page.bag for page in read.values()])
    relevance = dict(zip(read, judged.relevance.tolist(), strict=True))
    order = sorted(read, key=lambda url: (-round(relevance[url], 6), -around[url], url))
    found = []
    for url in order[:n]:
        page = next(filter(None, (read_page(web, read[url].url) for web in webs)), None)
        said = [
            *([f"{counted(cited[url], 'example')} link to it"] if cited[url] else []),
            *([f"it links to {counted(citing[url], 'example')}"] if citing[url] else []),
        ]
        reason = f"R {relevance[url]:.2f}, {', '.join(said)}"
        title = "" if page is None else page.title
        found.append(Suggestion(url, title, relevance[url], KIND, reason))
    return found


def _around(
    examples: Sequence[str], webs: Sequence[Web], crawls: Sequence[CrawlGraph]
) -> tuple[Counter[str], Counter[str]]:
    """Return how many examples link to each page, and to how many it links."""
    cited, citing = Counter[str](), Counter[str]()
    for url, page in read_known(webs, examples).items():
        view = next(filter(None, (read_page(web, page.url) for web in webs)), None)
        links = [] if view is None else view.links.urls
        around = {to for to in links if may_be_page(to)}
        cited.update(around - {url, page.url})
    for crawl in crawls:
        for source, targets in crawl.targets.items():
            reached = len(set(examples) & set(targets) - {source})
            if reached:
                citing[source] = max(citing[source], reached)
    return cited, citing


def _critic(definition: TopicDefinition, webs: Sequence[Web]) -> FocusedCritic:
    if definition.critic is not None:
        return load_trained(definition.critic, ",".join(definition.topics))
    trained, topics = train_definition(definition, webs)
    classes = trained.model.classes
    marked = np.array([lies_under(path, topics) for path in classes])
    return FocusedCritic(trained.model, marked, (), "", trained.calibration)
