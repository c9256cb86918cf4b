"""Pages in Chinese, Japanese, Arabic and German, made of sentences that were written for them.

A page on a topic has sentences of it, everyday ones, and now and then one of another topic. The
words of topics share characters and parts with those of others, as they do where people write.
"""

from __future__ import annotations

import html
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LANGUAGES = ("zh", "ja", "ar", "de")
TOPICS = ("cycling", "astronomy", "banking", "railways", "cooking")
NO_TOPIC = "other"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class WrittenPage:
    """A page, before it is HTML.

    Attributes
    ----------
    topic : one of `TOPICS`, or `NO_TOPIC`
    sentences : the first is the title
    """

    url: str
    topic: str
    sentences: list[str]


class LanguagePages:
    """The pages of one language.

    Parameters
    ----------
    language : one of `LANGUAGES`
    each : pages a topic
    others : pages that are on none
    half : 0 or 1, for pages that have no sentence with those of the other in common but words
    """

    def __init__(
        self,
        language: str,
        *,
        each: int = 40,
        others: int = 100,
        half: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.language = language
        self._part = slice(None) if half is None else slice(half, None, 2)
        with (_FOLDER / f"{language}.toml").open("rb") as file:
            self._written: dict[str, Any] = tomllib.load(file)
        self.charset: str = self._written["charset"]
        self._random = np.random.default_rng(random_state)
        topics = [topic for topic in TOPICS for _ in range(each)] + [NO_TOPIC] * others
        self.pages = [
            self._write(f"http://{language}.example/{number}", topics[i])
            for number, i in enumerate(self._random.permutation(len(topics)).tolist())
        ]

    def phrase(self, topic: str) -> str:
        """Return what a topic is called."""
        return str(self._written["topics"][topic]["phrase"])

    def text(self, page: WrittenPage) -> str:
        """Return the text of a page."""
        return "".join(f"{sentence}{self._written['stop']} " for sentence in page.sentences)

    def markup(self, page: WrittenPage, links: list[tuple[str, str]] | None = None) -> bytes:
        """Return a page as HTML in the language's old charset, named in the page."""
        items = "".join(
            f'<li><a href="{url}">{html.escape(text)}</a></li>' for url, text in links or []
        )
        text = "".join(f"<p>{html.escape(s)}{self._written['stop']}</p>" for s in page.sentences)
        return (
            f'<html><head><meta charset="{self.charset}"><title>'
            f"{html.escape(page.sentences[0])}</title></head><body>{text}<ul>{items}</ul></body>"
        ).encode(self.charset, "xmlcharrefreplace")

    def web(self) -> dict[str, bytes]:
        """Return the pages as HTML, each with eight links; half of a topic's lead to the same."""
        alike = {topic: [page for page in self.pages if page.topic == topic] for topic in TOPICS}
        found = {}
        for page in self.pages:
            pools = [self.pages, alike.get(page.topic, self.pages)]
            drawn = [pools[i % 2][int(self._random.integers(len(pools[i % 2])))] for i in range(8)]
            links = [(to.url, to.sentences[0]) for to in drawn if to is not page]
            found[page.url] = self.markup(page, links)
        return found

    def _write(self, url: str, topic: str) -> WrittenPage:
        n = int(self._random.integers(8, 22))
        sentences = [self._topical(topic) if topic != NO_TOPIC else self._everyday()]
        terms = self._terms(topic) if topic != NO_TOPIC else []
        for _ in range(n):
            draw = self._random.random()
            if draw < 0.45 and topic != NO_TOPIC:
                sentences.append(self._topical(topic, terms))
            elif draw > 0.95:
                sentences.append(self._topical(str(self._random.choice(TOPICS))))
            else:
                sentences.append(self._everyday())
        return WrittenPage(url, topic, sentences)

    def _terms(self, topic: str) -> list[str]:
        """Draw what a page on a topic is about in particular."""
        terms = self._written["topics"][topic]["terms"]
        return [str(term) for term in self._random.choice(terms, 5, replace=False)]

    def _topical(self, topic: str, terms: list[str] | None = None) -> str:
        written = self._written["topics"][topic]
        sentence = str(self._random.choice(written["sentences"][self._part]))
        return sentence.format(t=self._random.choice(terms or written["terms"]))

    def _everyday(self) -> str:
        sentence = str(self._random.choice(self._written["everyday"][self._part]))
        return sentence.format(
            who=self._random.choice(self._written["who"]),
            where=self._random.choice(self._written["where"]),
        )
