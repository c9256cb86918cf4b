"""A critic of hundreds of classes, and crawls with it, on a topic tree like the pruned Dmoz.

Run: ``python benchmarks/large_taxonomy.py WEBS LABELS OUT``, with the folders of the recordings
and of their labels. Dmoz itself is no longer available. So OUT gets ``pages.warc``, the recorded
webs followed by 240,000 generated pages, and ``labels.csv`` with their topics: the recordings'
labels, split by site, folder or first heading, and generated topics with overlapping words. A
fifth of the pages is for testing. The script prunes the tree at k = 300 [A02 section 3.1], trains
and tests critics, and crawls with them. Existing files are kept.
"""

from __future__ import annotations

import argparse
import csv
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.critic.corpus import read_bags
from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.foundation.files import cache_dir
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.report.measures import load_pages
from focuscrawl.taxonomy import (
    Label,
    Taxonomy,
    choose_min_examples,
    lies_under,
    prune,
    read_labels,
)
from focuscrawl.webs import open_web
from focuscrawl.webs.synthetic.vocabulary import TOPICS, RandomStream, sentence, title

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.webs.web_protocol import Web

PAGES = 240_000  # number of generated pages
GROUPS = 24  # groups of topics in each word family of the demo web
_TESTED = 0.2  # share of test pages
BUDGET = 200  # fetches of a crawl
CRAWLED = ("/Computers/Operating_Systems", "/Computers/Artificial_Intelligence/Machine_Learning")
_A_CLASS = 20  # test pages per class
_POOL = 6_000  # generated words, each of several topics
_OWN, _SHARED = 14, 10  # words of a topic, and of a group of topics
_SENTENCES = 1_500
_HEADING = re.compile(rb'class="mw-headline"[^>]*>([^<]{1,60})')
_SYLLABLES = re.findall("..", "bacedifogulameniporusateviwoxu")
_NOT_IN_A_PATH = re.compile(r"[^\w.-]+")


def made_up(number: int) -> str:
    """Generate a word, distinct for each number."""
    word = "k"
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        word += _SYLLABLES[digit]
    return word


def name(text: str) -> str:
    """Return a text as a part of a topic's path."""
    return _NOT_IN_A_PATH.sub("_", text).strip("_.") or "Index"


class GeneratedTopics:
    """Pages of generated topics: sentences of the demo web with words of the topic.

    A topic has its own words and those of its group, all drawn from one pool, so that each word
    also belongs to other topics. Authors differ in how much they write about the topic.

    Attributes
    ----------
    paths : list[str]
        Topics.
    topic_of : NDArray[np.int64] of shape (n_pages,)
        Topic of each page.
    """

    def __init__(self, n_pages: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.paths: list[str] = []
        self._demo: list[int] = []
        self._words: list[list[str]] = []
        weights = []
        for demo, topic in enumerate(TOPICS):
            for group in range(GROUPS):
                shared = rng.integers(0, _POOL, _SHARED)
                size = rng.lognormal(0.0, 0.7)
                leaves = int(rng.integers(3, 11))
                for leaf, part in enumerate(rng.dirichlet(np.full(leaves, 0.5))):
                    words = [made_up(n) for n in [*rng.integers(0, _POOL, _OWN), *shared]]
                    above = f"/Generated{topic.path}/{made_up(int(shared[0])).title()}_{group}"
                    self.paths.append(f"{above}/{words[0].title()}_{leaf}")
                    self._demo.append(demo)
                    self._words.append(words)
                    weights.append(size * part)
        share = np.array(weights) / sum(weights)
        self.topic_of = np.sort(rng.choice(len(share), n_pages, p=share))
        self._first = np.searchsorted(self.topic_of, np.arange(len(share)))
        draws = RandomStream(seed)
        self._sentences = [
            [sentence(demo, 0.3, draws) for _ in range(_SENTENCES)] for demo in range(len(TOPICS))
        ]

    def url(self, number: int) -> str:
        """Return the URL of a page, on one of three hundred hosts with meaningless names."""
        return f"http://h{crc32(b'%d' % number) % 300}.made.example/p/{number}"

    def html(self, number: int) -> str:
        """Return a page."""
        draw = Random(number)
        topic = int(self.topic_of[number])
        own, everyday = self._words[topic], self._sentences[self._demo[topic]]
        focus = 0.02 + 0.1 * draw.random()
        words = " ".join(draw.choice(everyday) for _ in range(6)).split()
        text = " ".join(draw.choice(own) if draw.random() < focus else word for word in words)
        links = " ".join(self._link(draw, topic) for _ in range(9))
        heading = f"{title(TOPICS[self._demo[topic]], number)} {draw.choice(own)}"
        return (
            f"<!DOCTYPE html><html><head><title>{heading}</title></head>"
            f"<body><h1>{heading}</h1><p>{text}</p><p>{links}</p></body></html>"
        )

    def _link(self, draw: Random, topic: int) -> str:
        """Link to a page of the topic, of a related topic, or of any; half of the anchors tell."""
        where = draw.random()
        if where > 0.4:
            near = topic + draw.randint(-4, 4) if where < 0.6 else draw.randrange(len(self._words))
            topic = min(max(near, 0), len(self._words) - 1)
        first = int(self._first[topic])
        last = int(self._first[topic + 1]) if topic + 1 < len(self._first) else len(self.topic_of)
        if first >= last:
            first, last = 0, len(self.topic_of)
        target = draw.randrange(first, last)
        said = draw.choice(self._words[int(self.topic_of[target])])
        return f'<a href="{self.url(target)}">{said if draw.random() < 0.5 else "more"}</a>'


def record(url: str, html: str) -> bytes:
    """Return a page as a WARC record."""
    body = html.encode()
    block = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{crc32(url.encode()):012x}>\r\n"
        f"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def make_pages(webs: Path, generated: GeneratedTopics, out: Path) -> None:
    """Write the recorded webs and the generated pages to one recording."""
    draft = out.with_suffix(".part")
    with draft.open("wb") as file:
        for each in ("uci", "wikipedia", "webkb"):
            with (webs / f"{each}.warc").open("rb") as recording:
                shutil.copyfileobj(recording, file, 1 << 24)
        for number in range(PAGES):
            file.write(record(generated.url(number), generated.html(number)))
    draft.rename(out)


def topics_of(web: Web, labels: Path, generated: GeneratedTopics) -> Iterator[tuple[str, str]]:
    """Yield URL and topic of every page with a topic."""
    known: dict[str, str] = {}
    for each in ("uci", "wikipedia"):
        rows = read_labels(labels / each / "labels.csv")
        found = web.resolve([row.url for row in rows])
        known.update(
            (url, row.topic) for url, row in zip(found, rows, strict=True) if url is not None
        )
    with (labels / "webkb" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows_of_webkb = list(csv.DictReader(file))
    at = web.resolve([row["url"] for row in rows_of_webkb])
    departments = {
        url: f"/Departments/{name(row['page_class'])}/{name(row['university'])}"
        for url, row in zip(at, rows_of_webkb, strict=True)
        if url is not None
    }
    for url in web.urls():
        parts = urlsplit(url)
        folders = [name(part) for part in parts.path.split("/")[1:-1] if part][:3]
        if parts.netloc.endswith(".made.example"):
            number = int(parts.path.rpartition("/")[2])
            yield url, generated.paths[int(generated.topic_of[number])]
        elif url in departments:
            yield url, departments[url]
        elif parts.netloc == "en.wikipedia.org":
            yield url, f"{known.get(url, '/Encyclopedia')}/{_heading(web, url)}"
        elif url in known:
            yield url, "/".join([known[url], parts.netloc, *folders])
        elif parts.netloc.endswith(".uci.edu"):
            yield url, "/".join(["/Sites", parts.netloc, *folders])


def _heading(web: Web, url: str) -> str:
    """Return the first heading of an article."""
    answer = web.fetch(url)
    found = None if answer is None else _HEADING.search(answer.body)
    return name(found[1].decode("utf-8", "replace")) if found else "No_heading"


def make_labels(rows: Iterator[tuple[str, str]], out: Path) -> None:
    """Write the table of labels."""
    draft = out.with_suffix(".part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["url", "topic", "split"])
        for url, topic in rows:
            test = crc32(url.encode()) / 2**32 < _TESTED
            table.writerow([url, topic, "test" if test else "train"])
    draft.rename(out)


class Tested:
    """Test pages of the classes of a pruned tree, and their words."""

    def __init__(self, web: Web, labels: list[Label], tree: Taxonomy) -> None:
        pages: dict[str, list[str]] = {leaf: [] for leaf in tree.leaves}
        order = sorted((row for row in labels if row.split == "test"), key=_mixed)
        for row in order:
            leaf = tree.leaf_of(row.topic)
            if leaf is not None and len(pages[leaf]) < _A_CLASS:
                pages[leaf].append(row.url)
        rows = [(url, leaf) for leaf, urls in pages.items() for url in urls]
        bags = read_bags(web, [url for url, _ in rows])
        kept = [(leaf, bag) for (_, leaf), bag in zip(rows, bags, strict=True) if bag]
        self.leaves = [leaf for leaf, _ in kept]
        self.bags = [bag for _, bag in kept]

    def judge(self, trained: TrainedCritic) -> dict[str, float]:
        """Return the quality of a critic on these pages, and the time to judge a page."""
        classes = trained.model.classes
        number = {path: i for i, path in enumerate(classes)}
        kept = [i for i, leaf in enumerate(self.leaves) if leaf in number]
        truth = np.array([number[self.leaves[i]] for i in kept])
        begun = time.process_time()
        rows = [trained.model.log_posteriors([self.bags[i]])[0] for i in kept]
        seconds = time.process_time() - begun
        log = np.array(rows)
        right = log.argmax(axis=1) == truth
        made = np.array([path.startswith("/Generated") for path in classes])[truth]
        return {
            "test pages": len(kept),
            "accuracy": float(right.mean()),
            "accuracy, recorded": float(right[~made].mean()),
            "accuracy, generated": float(right[made].mean()),
            "mean AP of a class": mean_precision(log, truth),
            "mean AP, recorded": mean_precision(log, truth, ~made),
            "ms to judge a page": 1000 * seconds / len(kept),
        }


def _mixed(row: Label) -> int:
    return crc32(row.url.encode() + b"?")


def mean_precision(
    log: NDArray[np.float64], truth: NDArray[np.int64], among: NDArray[np.bool_] | None = None
) -> float:
    """Return the mean over classes of the average precision of R(u) for that class alone."""
    found = []
    for label in np.unique(truth if among is None else truth[among]):
        order = np.argsort(-log[:, label], kind="stable")
        hits = np.flatnonzero(truth[order] == label) + 1
        found.append(float((np.arange(1, len(hits) + 1) / hits).mean()))
    return float(np.mean(found))


def crawl(
    pages: Path, critic: Path, topic: str, strategy: str, labels: dict[str, str]
) -> dict[str, float]:
    """Crawl from five examples of a topic; return the harvest by the critic and by label."""
    examples = [url for url, path in read_critic(critic)[0].examples if lies_under(path, [topic])]
    seeds = examples[:: max(1, len(examples) // 5)][:5]
    with tempfile.TemporaryDirectory() as scratch:
        plan = CrawlConfig(
            topic=topic,
            seeds=",".join(seeds),
            critic=str(critic),
            strategy=strategy,
            budget=BUDGET,
            web=str(pages),
            crawl_dir=f"{scratch}/crawl",
        )
        begun = time.process_time()
        replay(open_crawl(plan))
        seconds = time.process_time() - begun
        fetched = load_pages(Path(scratch, "crawl"))
    on = [lies_under(labels.get(url, "/"), [topic]) for url in fetched["url"]]
    return {
        "harvest by the critic": float(fetched["relevance"].mean()),
        "on the topic by label": sum(on) / len(fetched),
        "fetches": len(fetched),
        "s of processor": seconds,
    }


def report(title: str, values: dict[str, float]) -> None:
    """Print one measure per line."""
    print(f"\n{title}")
    for what, value in values.items():
        print(f"  {what:<28} {value:,.3f}" if value % 1 else f"  {what:<28} {value:,.0f}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    for folder in ("webs", "labels", "out"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("--kinds", default="flat,hierarchical")
    parser.add_argument("--max-examples", type=int, default=300)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pages, table = given.out / "pages.warc", given.out / "labels.csv"
    generated = GeneratedTopics(PAGES)
    if not pages.exists():
        make_pages(given.webs, generated, pages)
    web = open_web(str(pages))
    if not table.exists():
        make_labels(topics_of(web, given.labels, generated), table)
    labels = read_labels(table)
    whole = Taxonomy.from_labels(labels)
    least = choose_min_examples(whole)
    tree = prune(whole, least, given.max_examples)
    sizes = Counter(path.split("/")[1] == "Generated" for path in tree.leaves)
    report(
        "taxonomy",
        {
            "pages with a topic": len(labels),
            "topics": len(whole.topics),
            "k": least,
            "classes": len(tree.leaves),
            "generated classes": sizes[True],
            "examples": sum(len(tree.examples(leaf)) for leaf in tree.leaves),
        },
    )
    begun = time.process_time()
    read_bags(
        web, [url for leaf in tree.leaves for url in tree.examples(leaf)], progress=NO_PROGRESS
    )
    print(f"examples read in {time.process_time() - begun:.0f} s of this process")
    tested = Tested(web, labels, tree)
    for kind in given.kinds.split(","):
        out = given.out / f"{kind}-{given.max_examples}"
        if out.exists():
            trained, values = read_critic(out)[0], {}
        else:
            begun = time.process_time()
            trained = train_critic(
                labels, web, kind=kind, min_examples=None, max_examples=given.max_examples
            )
            values = {"s to train (with 5 folds)": time.process_time() - begun}
            save_critic(trained, out, force=True)
        values["MB of the model"] = sum(f.stat().st_size for f in out.iterdir()) / 1e6
        values["classes"] = len(trained.model.classes)
        values["examples"] = len(trained.examples)
        values |= tested.judge(trained)
        values["MB of peak memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        report(f"{kind} critic, {given.max_examples} examples a class", values)
    of_page = {row.url: row.topic for row in labels}
    made = next(path for path in tree.leaves if path.startswith("/Generated"))
    for topic in (*CRAWLED, made):
        for strategy in ("breadth-first", "best-first", "apprentice"):
            report(f"{strategy}, {topic}", crawl(pages, out, topic, strategy, of_page))


if __name__ == "__main__":
    cache_dir()
    main()
