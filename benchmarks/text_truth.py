"""Main text marked by hand: the visible words of a page, and which of them are content.

The marks are `text_truth.json`, which holds positions and no text: a page's words are read again
from the recording. How the pages were drawn and marked is in docs/research/benchmarks.md.

Run: ``python benchmarks/text_truth.py WEB`` shows the drawn pages, block by block, to mark more.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from lxml import etree, html
from replays import WEBS, recording

from focuscrawl.crawl.duplicates import MIN_RESEMBLANCE, sketch
from focuscrawl.foundation.urls import host
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.words import PageWords
from focuscrawl.webs import RecordedWeb
from focuscrawl.webs.web_protocol import HtmlAnswer

_T = TypeVar("_T")

TRUTH = Path(__file__).with_suffix(".json")
PAGES = 20  # drawn of each web
FEWEST = 30  # words; what says less has no text to extract
SEED = 1
#: what the pages of a web are drawn from in turn: hosts, or a column of its labels
GROUPS = {"uci": "host", "wikipedia": "topic", "webkb": "page_class"}

#: tags of blocks
PARTS = {
    "headings": {"h1", "h2", "h3", "h4", "h5", "h6"},
    "table cells": {"td", "th", "caption"},
    "list items": {"li", "dt", "dd"},
}

_TOKEN = re.compile(r"\w+")
_UNSEEN = {"head", "script", "style", "noscript", "template", "iframe", "svg"}
_INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del"),
    *("dfn", "em", "font", "i", "img", "ins", "kbd", "label", "mark", "q", "s", "samp", "small"),
    *("span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "nobr"),
}


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _TOKEN.findall(text.lower())


class Block(NamedTuple):
    """Visible text between two ends of block-level elements."""

    tag: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the whole visible text of a page, in document order, without empty blocks."""
    root = html.document_fromstring(page, parser=html.HTMLParser(huge_tree=True))
    found: list[tuple[str, list[str]]] = [("body", [])]
    for tag, text in _pieces(root):
        if tag is None:
            found[-1][1].append(text)
        else:
            found.append((tag, [text]))
    joined = (Block(tag, " ".join("".join(parts).split())) for tag, parts in found)
    return [block for block in joined if tokens(block.text)]


def _pieces(root: html.HtmlElement) -> Iterator[tuple[str | None, str]]:
    """Yield the texts; with a tag where a block begins."""
    unseen = None
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event in {"comment", "pi"}:
            if event == "comment" and unseen is None:
                yield None, node.tail or ""
            continue
        inline = node.tag in _INLINE
        if event == "start":
            if unseen is None and _hidden(node):
                unseen = node
            if unseen is None:
                yield None if inline else str(node.tag), node.text or ""
            continue
        if unseen is node:
            unseen = None
        if unseen is None:
            parent = node.getparent()
            tag = None if inline or parent is None else str(parent.tag)
            yield tag, node.tail or ""


def _hidden(node: etree._Element) -> bool:
    style = (node.get("style") or "").replace(" ", "").lower()
    return node.tag in _UNSEEN or node.get("hidden") is not None or "display:none" in style


@dataclass(frozen=True)
class Truth:
    """A page and what of it is content.

    Attributes
    ----------
    kind : "text", "list" or "links", by what most of the content is
    page : decoded HTML
    visible : all visible words
    content : those that are content
    apparatus : those of the content that are references, notes, or lists of further links
    parts : by part of a page (`PARTS`, the rest is "text"), those of the content that stand
        nowhere else on the page
    """

    web: str
    url: str
    kind: str
    page: str
    visible: list[str]
    content: list[str]
    apparatus: list[str]
    parts: dict[str, list[str]]


def truths() -> Iterator[Truth]:
    """Read the marked pages from the recordings.

    Raises
    ------
    SystemExit
        A page is not the one that was marked, or its words are counted otherwise now.
    """
    webs = {name: RecordedWeb(recording(name)) for name in GROUPS}
    for row in json.loads(TRUTH.read_text(encoding="utf-8")):
        answer = HtmlAnswer.from_answer(webs[row["web"]].fetch(row["url"]))
        if answer is None or sha256(answer.body).hexdigest() != row["sha256"]:
            raise SystemExit(f"{row['url']} is not the page that was marked")
        page = decoded(answer)
        words = [(token, _part(block)) for block in blocks(page) for token in tokens(block.text)]
        visible = [token for token, _ in words]
        if len(visible) != row["tokens"]:
            raise SystemExit(
                f"{row['url']} has {len(visible)} visible words; {row['tokens']} when marked"
            )
        yield Truth(
            row["web"],
            row["url"],
            row["kind"],
            page,
            visible,
            _within(visible, row["content"]),
            _within(visible, row["apparatus"]),
            _parts(words, row["content"]),
        )


def _within(words: list[_T], ranges: Iterable[tuple[int, int]]) -> list[_T]:
    return [word for first, end in ranges for word in words[first:end]]


def _part(block: Block) -> str:
    return next((part for part, tags in PARTS.items() if block.tag in tags), "text")


def _parts(
    words: list[tuple[str, str]], ranges: Iterable[tuple[int, int]]
) -> dict[str, list[str]]:
    seen: dict[str, set[str]] = {}
    for word, part in words:
        seen.setdefault(word, set()).add(part)
    found: dict[str, list[str]] = {}
    for word, part in _within(words, ranges):
        if seen[word] == {part}:
            found.setdefault(part, []).append(word)
    return found


def decoded(answer: HtmlAnswer) -> str:
    """Return the page as characters."""
    return to_utf8(answer.body, answer.encoding)[0].decode()


def draw(name: str) -> Iterator[HtmlAnswer]:
    """Draw the pages of a web: from its groups in turn, each page of another host if there are.

    Left out: pages of fewer than `FEWEST` words, near-duplicates of what was drawn, and pages
    that name another URL as their canonical one.
    """
    web = RecordedWeb(recording(name))
    groups: dict[str, list[str]] = {}
    for url, group in _grouped(name, web):
        groups.setdefault(group, []).append(url)
    chance = random.Random(SEED)
    order = sorted(groups)
    chance.shuffle(order)
    for group in order:
        groups[group].sort()
        chance.shuffle(groups[group])
    several = len(web.hosts) > 1
    hosts: set[str] = set()
    sketches: list[bytes] = []
    drawn = 0
    for turn in count():
        waiting = groups[order[turn % len(order)]]
        while waiting:
            url = waiting.pop()
            page = HtmlAnswer.from_answer(web.fetch(url))
            if page is None or (several and host(url) in hosts):
                continue
            if _fits(page, sketches):
                hosts.add(host(url))
                yield page
                drawn += 1
                break
        if drawn == PAGES:
            return


def _grouped(name: str, web: RecordedWeb) -> Iterator[tuple[str, str]]:
    if GROUPS[name] == "host":
        yield from ((url, host(url)) for url in web.urls())
        return
    with (WEBS / name / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["url"], row[GROUPS[name]]) for row in csv.DictReader(file)]
    found = web.resolve([url for url, _ in rows])
    yield from ((url, group) for url, (_, group) in zip(found, rows, strict=True) if url)


def _fits(page: HtmlAnswer, sketches: list[bytes]) -> bool:
    view = page.parse()
    if view is None or view.canonical not in {None, page.url}:
        return False
    words = [token for block in blocks(decoded(page)) for token in tokens(block.text)]
    if len(words) < FEWEST:
        return False
    mine = sketch(PageWords(words))
    if mine is None:
        return True
    for other in sketches:
        same = sum(mine[i : i + 4] == other[i : i + 4] for i in range(0, len(mine), 4))
        if same >= MIN_RESEMBLANCE * len(mine) / 4:
            return False
    sketches.append(mine)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the drawn pages of a web by blocks.")
    parser.add_argument("web", choices=sorted(GROUPS))
    for page in draw(parser.parse_args().web):
        print(f"\n=== {page.url}")
        for number, block in enumerate(blocks(decoded(page))):
            print(f"{number} {block.tag}: {block.text}")


if __name__ == "__main__":
    main()
