"""Quality and speed of libraries for main-text extraction, measured against `text_truth.json`.

Run: ``python benchmarks/bench_text.py [--rounds N] [--pages]``. Words are compared as multisets.
Times are user CPU seconds, which other processes affect little; the fastest round counts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from resource import RUSAGE_SELF, getrusage
from statistics import fmean, median
from typing import Any

import numpy as np
import trafilatura
from resiliparse.extract.html2text import extract_plain_text
from text_truth import PARTS, Truth, blocks, tokens, truths

from focuscrawl.text import EXTRACTORS as OURS
from focuscrawl.text import extract_text

ROUNDS = 5
DRAWS = 10_000
SEED = 1
ENOUGH = 10  # minimum number of words of a part of a page
DEFAULT = "trafilatura"
URL = "http://a.example/"  # URL of every page, since the truth does not depend on URLs
KINDS = ("text", "list", "links")


def _trafilatura(page: str, **options: Any) -> str:
    return trafilatura.extract(page, **options) or ""


def _resiliparse(page: str, *, main_content: bool) -> str:
    # the truth has neither descriptions of images nor numbers of list items
    return extract_plain_text(page, main_content=main_content, alt_texts=False, list_bullets=False)


def _visible(page: str) -> str:
    return "\n".join(block.text for block in blocks(page))


def _product(page: str, extractor: str) -> str:
    """Extract text, metadata and language from a page, as `focuscrawl collect` does."""
    return extract_text(page.encode(), URL, encoding="utf-8", extractor=extractor).text


EXTRACTORS: dict[str, Callable[[str], str]] = {
    "all visible text": _visible,
    "resiliparse, all text": lambda page: _resiliparse(page, main_content=False),
    "resiliparse": lambda page: _resiliparse(page, main_content=True),
    "trafilatura": _trafilatura,
    "trafilatura, fast": lambda page: _trafilatura(page, fast=True),
    "trafilatura, recall": lambda page: _trafilatura(page, favor_recall=True),
    "trafilatura, recall, fast": lambda page: _trafilatura(page, favor_recall=True, fast=True),
    **{f"collect, {name}": partial(_product, extractor=name) for name in OURS},
    "trafilatura, precision": lambda page: _trafilatura(page, favor_precision=True),
}


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 of words; 0 without common words."""

    precision: float
    recall: float

    @classmethod
    def of(cls, found: Sequence[str], wanted: Sequence[str]) -> Score:
        common = (Counter(found) & Counter(wanted)).total()
        return cls(common / len(found) if found else 0.0, common / len(wanted))

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|---{'|--:' * (len(head) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def quality(pages: Sequence[Truth], found: dict[str, list[list[str]]]) -> Iterator[str]:
    """Yield F1, precision and recall by web and by kind of page."""
    scores = {
        name: [Score.of(words, page.content) for words, page in zip(texts, pages, strict=True)]
        for name, texts in found.items()
    }
    webs = dict.fromkeys(page.web for page in pages)
    for web in ("all", *webs):
        mine = [i for i, page in enumerate(pages) if web in {"all", page.web}]
        rows = []
        for name in found:
            some = [scores[name][i] for i in mine]
            rows.append(
                [
                    name,
                    f"{fmean(s.f1 for s in some):.3f}",
                    f"{median(s.f1 for s in some):.3f}",
                    f"{fmean(s.precision for s in some):.3f}",
                    f"{fmean(s.recall for s in some):.3f}",
                    f"{min(s.f1 for s in some):.3f}",
                    str(sum(not found[name][i] for i in mine)),
                ]
            )
        yield f"{web}, {len(mine)} pages"
        head = [web, "F1", "median", "precision", "recall", "lowest F1", "empty"]
        yield from table(head, rows)
    rows = []
    for name in found:
        row = [name]
        for kind in KINDS:
            some = [s for s, page in zip(scores[name], pages, strict=True) if page.kind == kind]
            row += [f"{fmean(s.f1 for s in some):.3f}", f"{fmean(s.recall for s in some):.3f}"]
        rows.append(row)
    counts = Counter(page.kind for page in pages)
    yield f"by kind: {dict(counts)}"
    head = [part for kind in KINDS for part in (f"{kind}: F1", "recall")]
    yield from table(["extractor", *head], rows)


def apparatus(pages: Sequence[Truth], found: dict[str, list[list[str]]]) -> Iterator[str]:
    """Yield F1 for pages with and without references and lists of further links."""
    mine = [i for i, page in enumerate(pages) if page.apparatus]
    rows = []
    for name, texts in found.items():
        wanted = [fmean(Score.of(texts[i], pages[i].content).f1 for i in mine)]
        without = [
            list((Counter(pages[i].content) - Counter(pages[i].apparatus)).elements())
            for i in mine
        ]
        wanted.append(
            fmean(Score.of(texts[i], rest).f1 for i, rest in zip(mine, without, strict=True))
        )
        rows.append([name, *(f"{value:.3f}" for value in wanted)])
    yield f"references and further links, {len(mine)} pages that have them"
    yield from table(["extractor", "F1 with them", "F1 without"], rows)


def parts(pages: Sequence[Truth], found: dict[str, list[list[str]]]) -> Iterator[str]:
    """Yield recall of words that occur in one part of a page only, with `ENOUGH` words."""
    names = [*PARTS, "text"]
    having = {part: [len(page.parts.get(part, ())) >= ENOUGH for page in pages] for part in names}
    rows = []
    for name, texts in found.items():
        row = [name]
        for part in names:
            recalls = [
                Score.of(words, page.parts[part]).recall
                for words, page, has in zip(texts, pages, having[part], strict=True)
                if has
            ]
            row.append(f"{fmean(recalls):.3f}")
        rows.append(row)
    counts = {part: sum(having[part]) for part in names}
    yield f"recall of words that stand nowhere else on the page; pages: {counts}"
    yield from table(["extractor", *names], rows)


def certainty(pages: Sequence[Truth], found: dict[str, list[list[str]]]) -> Iterator[str]:
    """Yield the mean difference of F1 to `DEFAULT` by page, with a bootstrap interval."""
    marks = {
        name: np.array(
            [Score.of(words, page.content).f1 for words, page in zip(texts, pages, strict=True)]
        )
        for name, texts in found.items()
    }
    drawn = np.random.default_rng(SEED).integers(len(pages), size=(DRAWS, len(pages)))
    rows = []
    for name in found:
        gain = marks[name] - marks[DEFAULT]
        low, high = np.percentile(gain[drawn].mean(axis=1), (2.5, 97.5))
        rows.append([name, f"{gain.mean():+.3f}", f"{low:+.3f} to {high:+.3f}"])
    yield f"F1 less that of {DEFAULT}, all pages, 95 % of {DRAWS:,} bootstrap draws"
    yield from table(["extractor", "difference", "interval"], rows)


def speed(pages: Sequence[Truth], rounds: int) -> Iterator[str]:
    """Yield user CPU milliseconds per page by web; all webs have equal weights."""
    webs = dict.fromkeys(page.web for page in pages)
    took: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name, extract in EXTRACTORS.items():
            for web in webs:
                mine = [page.page for page in pages if page.web == web]
                began = getrusage(RUSAGE_SELF).ru_utime
                for page in mine:
                    extract(page)
                spent = getrusage(RUSAGE_SELF).ru_utime - began
                took.setdefault((name, web), []).append(1e3 * spent / len(mine))
    rows = []
    for name in EXTRACTORS:
        least = [min(took[name, web]) for web in webs]
        rows.append([name, *(f"{value:.2f}" for value in (*least, fmean(least)))])
    yield f"user CPU, ms a page, least of {rounds} rounds"
    yield from table(["extractor", *webs, "mean"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare extracted text with manual truth.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of timed rounds")
    parser.add_argument("--pages", action="store_true", help="list F1 page by page")
    options = parser.parse_args()
    pages = list(truths())
    found = {
        name: [tokens(extract(page.page)) for page in pages]
        for name, extract in EXTRACTORS.items()
    }
    print("\n".join(quality(pages, found)))
    print("\n".join(apparatus(pages, found)))
    print("\n".join(parts(pages, found)))
    print("\n".join(certainty(pages, found)))
    if options.pages:
        rows = []
        for i, page in enumerate(pages):
            marks = [f"{Score.of(texts[i], page.content).f1:.2f}" for texts in found.values()]
            rows.append([page.url, page.kind, str(len(page.content)), *marks])
        print("\n".join(table(["page", "kind", "words", *found], rows)))
    print("\n".join(speed(pages, options.rounds)))


if __name__ == "__main__":
    main()
