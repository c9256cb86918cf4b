"""What a definition says of its topic, for a model: classes, phrases, titles of examples."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, WordsModel
from focuscrawl.errors import UserError
from focuscrawl.feedback.teacher_prompt import Prompt, title_words
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.page import PageView
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.protocol import Web

_EXAMPLES = 5  # titles a side
_LOOKED_AT = 10  # judged pages a side, and as many of the critic, that may have one


def prompt_of(
    definition: TopicDefinition, webs: Sequence[Web], taught: Mapping[str, bool]
) -> Prompt:
    """Say what a topic is.

    Parameters
    ----------
    webs : where judged pages and examples of the definition's critic may be
    taught : verdicts of a teacher, by URL. These are no examples to one: it would learn its own
        mistakes, and each answer would make another question of the next

    Raises
    ------
    UserError
        Nothing says what the topic is.
    """
    phrases = list(definition.words)
    good = [url for url in definition.good if taught.get(url) is not True]
    bad = [url for url in definition.bad if taught.get(url) is not False]
    judged = {*good, *bad}
    good, bad = _spread(good), _spread(bad)
    if definition.critic is not None:
        base, _ = read_critic(find_model(definition.critic))
        if isinstance(base.model, WordsModel):
            phrases += [" ".join(phrase) for phrase in base.model.phrases]
        on, off = _examples(definition, base)
        good += _spread([url for url in on if url not in judged])
        bad += _spread([url for url in off if url not in judged])
    classes = [path for path in definition.topics if path not in (ON_TOPIC, OFF_TOPIC)]
    titles = _titles(webs, good)
    if not (classes or phrases or titles):
        raise UserError(
            "nothing says what the topic is: say it in a definition (focuscrawl topic new, with "
            "--words), and give that with --topic"
        )
    return Prompt(classes, phrases, titles, _titles(webs, bad))


def find_page(webs: Sequence[Web], url: str) -> PageView | None:
    """Read a page where it is found first; None if no web has it."""
    pages = (read_page(web, url) for web in webs)
    return next((page for page in pages if page is not None), None)


def _examples(definition: TopicDefinition, base: TrainedCritic) -> tuple[list[str], list[str]]:
    """Return the URLs of a critic's examples, as the definition moves them: on and off topic."""
    moved = {url: path for path, urls in definition.classes.items() for url in urls}
    on, off = list[str](), list[str]()
    for url, path in {**dict(base.examples), **moved}.items():
        (on if lies_under(path, definition.topics) else off).append(url)
    return on, off


def _spread(urls: Sequence[str]) -> list[str]:
    """Return a few of some URLs, from all over them."""
    step = max(len(urls) / _LOOKED_AT, 1.0)
    return [urls[int(i * step)] for i in range(min(len(urls), _LOOKED_AT))]


def _titles(webs: Sequence[Web], urls: Sequence[str]) -> list[str]:
    """Return the first few titles of pages."""
    read = (find_page(webs, url) for url in urls)
    titles = (title_words(page.title) for page in read if page is not None)
    return [*islice(filter(None, titles), _EXAMPLES)]
