"""Relevance and links of all pages of a recording, and the loss of an ideal crawl.

The critic's judgements of the pages are kept in the cache folder. Judging fifty thousand pages
takes one or two minutes.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from focuscrawl.crawl.duplicates import Duplicates, text_signature
from focuscrawl.crawl.scope import can_be_page
from focuscrawl.critic.critic_files import pack_model
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.foundation.files import cache_dir
from focuscrawl.foundation.urls import resolve_header
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.webs.web_protocol import Web


@dataclass(frozen=True)
class JudgedWeb:
    """The critic's judgements of all pages of a recording, and the links of the pages.

    Pages are numbered in the order in which the pages were recorded.

    Attributes
    ----------
    urls : list[str]
        URL of each page.
    classes : list[str]
        Topic paths of the critic.
    probabilities : NDArray[np.float32] of shape (n_pages, n_classes)
        Class probabilities; zeros for fetches of relevance 0.
    content : NDArray[np.int64] of shape (n_pages,)
        First page that the page duplicates, or the page itself.
    body : NDArray[np.int64] of shape (n_pages,)
        The same for pages with the same bytes, whose links are followed if they differ.
    bounds, targets : Ints
        The links of page i lead to ``targets[bounds[i] : bounds[i + 1]]``.
    """

    urls: list[str]
    classes: list[str]
    probabilities: NDArray[np.float32]
    content: Ints
    body: Ints
    bounds: Ints
    targets: Ints

    def links(self, page: int) -> list[int]:
        """Return the indices of the pages that `page` links to."""
        found: list[int] = self.targets[self.bounds[page] : self.bounds[page + 1]].tolist()
        return found

    def relevance(self, topic: str) -> Floats:
        """Return the relevance of every page for `topic` and the topics below `topic`."""
        marked = [lies_under(path, [topic]) for path in self.classes]
        sums: Floats = self.probabilities[:, marked].sum(axis=1, dtype=np.float64)
        return np.minimum(sums, 1.0)

    def reachable(self, seeds: list[int]) -> list[int]:
        """Return the pages that an unlimited crawl from `seeds` fetches, except duplicates."""
        stack, seen, fetched = list(seeds), set(seeds), _Fetched(self)
        reached = []
        while stack:
            page = stack.pop()
            if not fetched.is_duplicate(page):
                reached.append(page)
            elif not fetched.has_body(page):
                continue
            fetched.add(page)
            new = [target for target in self.links(page) if target not in seen]
            seen.update(new)
            stack += new
        return reached

    def oracle_loss(self, seeds: list[int], relevance: Floats, budget: int) -> float:
        """Return the loss rate of a greedy crawl that knows every page's relevance [methods.md 1].

        If the greedy crawl runs out of links, the remaining fetches of the budget count as
        irrelevant fetches.
        """
        heap = [(-np.inf, page) for page in seeds]
        seen, fetched = set(seeds), _Fetched(self)
        harvest, n = 0.0, 0
        while heap and n < budget:
            _, page = heapq.heappop(heap)
            if not fetched.is_duplicate(page):
                harvest += relevance[page]
                n += 1
            elif not fetched.has_body(page):  # the oracle knows duplicates without a fetch
                continue
            fetched.add(page)
            for target in self.links(page):
                if target not in seen:
                    seen.add(target)
                    heapq.heappush(heap, (-relevance[target], target))
        return float(1.0 - harvest / budget)

    def page_indices(self, urls: Sequence[str]) -> list[int]:
        """Return the indices of the pages with the given URLs; URLs without a page are skipped."""
        known = {url: i for i, url in enumerate(self.urls)}
        return [known[url] for url in urls if url in known]


class _Fetched:
    """Finds duplicates of the pages that were fetched."""

    def __init__(self, web: JudgedWeb) -> None:
        self._web = web
        self._contents: set[int] = set()
        self._bodies: set[int] = set()

    def is_duplicate(self, page: int) -> bool:
        return int(self._web.content[page]) in self._contents

    def has_body(self, page: int) -> bool:
        return int(self._web.body[page]) in self._bodies

    def add(self, page: int) -> None:
        self._contents.add(int(self._web.content[page]))
        self._bodies.add(int(self._web.body[page]))


def judge_web(web: Web, critic: Critic) -> JudgedWeb:
    """Judge every page of `web` with `critic`, or load earlier judgements from the cache.

    Parameters
    ----------
    web : Web
        Recording (saved web pages).
    critic : Critic
        Critic with classes; its focus does not matter.
    """
    path = (
        cache_dir()
        / "judged"
        / f"{web.fingerprint[:16]}-{_fingerprint_without_focus(critic)[:16]}.npz"
    )
    urls, classes = list(web.urls()), list(critic.classes)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part.npz")
        np.savez(unfinished, **_judge_pages(web, critic, urls))  # type: ignore[arg-type]
        unfinished.replace(path)
    with np.load(path) as kept:
        return JudgedWeb(urls, classes, **kept)


def _fingerprint_without_focus(critic: Critic) -> str:
    """Return a fingerprint that is the same for all topics in focus of a critic."""
    if not isinstance(critic, FocusedCritic):
        return critic.fingerprint
    arrays, facts = pack_model(critic.model)
    digest = hashlib.sha256(repr((critic.classes, facts, critic.calibration)).encode())
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _judge_pages(web: Web, critic: Critic, urls: list[str]) -> dict[str, NDArray[np.generic]]:
    numbers: dict[str | None, int] = {url: i for i, url in enumerate(urls)}
    probabilities = np.zeros((len(urls), len(critic.classes)), np.float32)
    content = np.arange(len(urls), dtype=np.int64)
    body, duplicates = content.copy(), Duplicates()
    bounds, targets = [0], []
    for i, url in enumerate(tqdm(urls, f"Judging all pages of {web.name}", unit="page")):
        answer = web.fetch(url)
        assert answer is not None
        found = []
        location, page = answer.header("location"), HtmlAnswer.from_answer(answer, url)
        if 300 <= answer.status < 400 and location:
            found = [resolve_header(url, location)]
        elif page is not None and (view := page.parse()) is not None:
            judged = critic.judge([view]).probabilities
            assert judged is not None
            probabilities[i] = judged[0]
            found = [link for link in view.links.urls if can_be_page(link)]
            canonical = view.canonical
            if canonical is not None:
                canonical = web.resolve([canonical])[0] or canonical
            digest, signature = Duplicates.digest(answer.body), text_signature(view.words)
            names = Duplicates.known_urls(url, canonical)
            original = duplicates.find(digest, names, signature)
            if original is None:
                duplicates.add(i, digest, names, signature)
            else:
                content[i] = original.url_id
                if original.same_bytes and canonical != urls[original.url_id]:
                    body[i] = original.url_id
        known = web.resolve([link for link in found if link is not None])
        # the traps of a synthetic web have more URLs than the web lists
        targets += [numbers[link] for link in dict.fromkeys(known) if link in numbers]
        bounds.append(len(targets))
    return {
        "probabilities": probabilities,
        "content": content,
        "body": body,
        "bounds": np.array(bounds),
        "targets": np.array(targets, dtype=np.int64),
    }
