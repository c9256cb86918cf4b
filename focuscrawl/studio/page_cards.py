"""One page for a person to judge: its title, its text, what the critic makes of it and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.word_reasons import WordReasons, word_reasons
from focuscrawl.page.shown_text import shown_text
from focuscrawl.webs.pages import HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.webs.protocol import Web

_LONGEST = 8000  # characters of a page that are shown


@dataclass(frozen=True)
class PageCard:
    """A page as it is shown; all texts are those of a stranger.

    Attributes
    ----------
    url, title : of the page
    text : paragraphs of what it shows, up to 8,000 characters
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
        answer = None if known is None else HtmlAnswer.found(web, known.url)
        if answer is not None:
            return _card(url, answer, critic, why)
    return None


def _card(url: str, answer: HtmlAnswer, critic: FocusedCritic | None, why: str) -> PageCard | None:
    view = answer.parse()
    if view is None:
        return None
    relevance, reasons = None, None
    if critic is not None:
        relevance = float(critic.judge([view]).relevance[0])
        reasons = word_reasons(critic.model, critic.marked, view.words.bag)
    text, cut = shown_text(answer.body, answer.encoding, _LONGEST)
    return PageCard(url, view.title, text, cut, relevance, reasons, why)
