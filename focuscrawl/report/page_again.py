"""A page of a crawl, read again from where the crawl has it: its text, and its classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.page_source import webs_of
from focuscrawl.critic.callable_critic import is_callable_spec
from focuscrawl.critic.loading import load_trained
from focuscrawl.errors import UserError
from focuscrawl.page import Effort, TooMuchWorkError, parse_page
from focuscrawl.page.shown_text import shown_text
from focuscrawl.webs.pages import HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.page import PageView

_CLASSES = 10  # that are shown
_LONGEST = 20_000  # characters of text
_LARGEST = 2 << 20  # bytes of a page


@dataclass(frozen=True)
class PageAgain:
    """What a page says; all texts are those of a stranger.

    Attributes
    ----------
    title : of the page
    text : of its leaves, the short ones joined
    cut : whether there is more
    classes : (name, probability, whether it is of the topic) of the most probable classes, by
        the critic the crawl follows; empty where that gives none
    no_classes : why there are none, a sentence; "" where there are
    """

    title: str
    text: list[str]
    cut: bool
    classes: list[tuple[str, float, bool]]
    no_classes: str


def read_again(identity: Mapping[str, str], folder: Path, url: str) -> PageAgain:
    """Read a page from the recording of a crawl, or from the web that it replays.

    Parameters
    ----------
    identity, folder : of the crawl
    url : as the store has it

    Raises
    ------
    UserError
        The page is not kept, or too much work to be read here.
    """
    for web in webs_of(identity, folder):
        answer = HtmlAnswer.found(web, url)
        if answer is not None:
            break
    else:
        raise UserError("the recording has no HTML page of this URL: its text is not kept")
    if len(answer.body) > _LARGEST:
        raise UserError("the page is larger than 2 MiB: it is not shown")
    try:
        view = parse_page(answer.body, url, encoding=answer.encoding, most=Effort.LARGE)
    except TooMuchWorkError:
        raise UserError("the page takes too long to be read: it is not shown") from None
    classes, why = _classes(identity, view)
    text, cut = shown_text(answer.body, answer.encoding, _LONGEST)
    return PageAgain(view.title, text, cut, classes, why)


def _classes(
    identity: Mapping[str, str], view: PageView
) -> tuple[list[tuple[str, float, bool]], str]:
    name = identity.get("critic_name", "")
    if is_callable_spec(name) and not Path(name).exists():
        return [], "The critic is a program of its own, which is not run to show a page."
    try:
        critic = load_trained(name, identity.get("topic", ""))
    except UserError as error:
        return [], f"The critic cannot be read: {error}."
    found = critic.judge([view]).probabilities
    if found is None:
        return [], "The critic gives no probabilities of classes."
    most = np.argsort(-found[0], kind="stable")[:_CLASSES].tolist()
    return [(critic.classes[i], float(found[0, i]), bool(critic.marked[i])) for i in most], ""
