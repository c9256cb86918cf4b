"""One page for a person to judge: its title, its words, what the critic makes of it and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.word_reasons import WordReasons, word_reasons
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web

_WORDS = 1200  # of a page that are shown
_SHORTEST = 25  # words of a paragraph: shorter leaves are joined to it


@dataclass(frozen=True)
class PageCard:
    """A page as it is shown; all texts are those of a stranger.

    Attributes
    ----------
    url, title : of the page
    text : paragraphs of its words, as the critic reads them, up to 1,200 words
    cut : whether there are more
    relevance : R by the critic; None where there is none yet
    reasons : what counts, see `focuscrawl.critic.word_reasons`; None where there is no critic
    why : why it is asked about; empty where a person has named it
    """

    url: str
    title: str
    text: list[str]
    cut: bool
    relevance: float | None
    reasons: WordReasons | None
    why: str = ""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        words = None
        if self.reasons is not None:
            words = {
                "on": [each._asdict() for each in self.reasons.on],
                "off": [each._asdict() for each in self.reasons.off],
                "meaning": self.reasons.meaning,
            }
        return asdict(self) | {"reasons": words}


def page_card(
    webs: Sequence[Web], url: str, critic: FocusedCritic | None, why: str = ""
) -> PageCard | None:
    """Read a page, and judge it; None if no web has it as an HTML page with words.

    Parameters
    ----------
    webs : where it may be, in the order to look for it
    url : of the page, normalised; redirects are followed
    critic : judges it
    """
    for web in webs:
        known = read_known([web], [url]).get(url)
        view = None if known is None else read_page(web, known.url)
        if view is not None:
            return _card(url, view, critic, why)
    return None


def _card(url: str, view: PageView, critic: FocusedCritic | None, why: str) -> PageCard:
    relevance, reasons = None, None
    if critic is not None:
        bag = view.words.bag
        relevance = float(critic.judge_bags([bag]).relevance[0])
        reasons = word_reasons(critic.model, critic.marked, bag)
    cut = len(view.tokens) > _WORDS
    return PageCard(url, view.title, _paragraphs(view), cut, relevance, reasons, why)


def _paragraphs(view: PageView) -> list[str]:
    """Return the first words of a page, a text for each few leaves of its tree."""
    tokens, leaf = view.tokens[:_WORDS], view.token_leaf[:_WORDS]
    ends = (np.flatnonzero(np.diff(leaf)) + 1).tolist()
    found: list[list[str]] = [[]]
    for start, end in zip([0, *ends], [*ends, len(tokens)], strict=True):
        if len(found[-1]) >= _SHORTEST:
            found.append([])
        found[-1] += tokens[start:end]
    return [" ".join(words) for words in found if words]
