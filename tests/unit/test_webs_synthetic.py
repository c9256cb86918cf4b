"""The synthetic web as a whole: size, determinism, what can be reached, what is learnable."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.page import parse_page
from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.synthetic.layout import AddressKind, page_url, parse_url
from focuscrawl.webs.synthetic.vocabulary import hash_ints

from .archives import fetched

if TYPE_CHECKING:
    from focuscrawl.webs.web_protocol import Web

# Of 300 answers of scale 1, random state 0. If it changes, raise VERSION and train
# models/demo again (docs/explanation/demo-web.md).
CONTENT = "aaff1ede00367ed31ebb14cb54ad053b"


@pytest.fixture(scope="module")
def web() -> SyntheticWeb:
    return SyntheticWeb()


def test_is_a_web(web: SyntheticWeb) -> None:
    as_web: Web = web
    assert as_web.name == "demo"
    assert as_web.fetch("https://nowhere.example/") is None


def test_has_3000_pages_on_60_hosts(web: SyntheticWeb) -> None:
    urls = list(web.urls())
    assert len(urls) == len(set(urls)) == len(web) == 3000
    assert len({host(url) for url in urls}) == 60
    assert urls == [normalize(url) for url in urls]
    assert web.resolve(urls) == urls


def test_content_is_what_it_was(web: SyntheticWeb) -> None:
    """In whatever order and process it is asked for."""
    urls = [*islice(web.urls(), 0, None, 10)]
    answers = {url: SyntheticWeb().fetch(url) for url in reversed(urls)}
    digest = blake2b(digest_size=16)
    for url in urls:
        digest.update(repr(answers[url]).encode())
    assert digest.hexdigest() == CONTENT


def test_scale_and_random_state_make_another_web(web: SyntheticWeb) -> None:
    others = [SyntheticWeb(2.0), SyntheticWeb(random_state=1), SyntheticWeb(1e-9)]
    assert len({web.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert SyntheticWeb().fingerprint == web.fingerprint
    assert [len(other) for other in others] == [6000, 3000, 1000]
    assert list(others[1].urls()) != list(web.urls())


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_a_scale_that_is_none(scale: float) -> None:
    with pytest.raises(UserError, match="scale"):
        SyntheticWeb(scale)


def test_every_page_can_be_reached_from_every_topic(web: SyntheticWeb) -> None:
    leads_on = {
        AddressKind.PAGE,
        AddressKind.COPY,
        AddressKind.MOVED,
        AddressKind.TRACKED,
        AddressKind.OLD,
    }  # to one page of the web
    graph = {}
    for url in web.urls():
        answer = fetched(web, url)
        assert answer.status == 200
        addresses = [
            parse_url(link, web._places) for link in parse_page(answer.body, url).links.urls
        ]
        graph[url] = [
            page_url(web._places.page_at(address.host, address.number))
            for address in addresses
            if address and address.kind in leads_on
        ]
    for topic in web.topics:
        seen = set(web.seeds(topic))
        todo = list(seen)
        while todo:
            fresh = set(graph.get(todo.pop(), ())) - seen
            seen |= fresh
            todo += fresh
        relevant = {label.url for label in web.labels() if label.topic == topic}
        assert len(relevant) > 40
        assert relevant <= seen


def test_every_link_is_known_or_leads_out_of_the_web(web: SyntheticWeb) -> None:
    for url in islice(web.urls(), 0, None, 29):
        answer = fetched(web, url)
        found = parse_page(answer.body, url).links.urls
        lost = [link for link, known in zip(found, web.resolve(found), strict=True) if not known]
        assert {host(link) for link in lost} <= {"share.example"}
        assert all(web.fetch(known) for known in web.resolve(found) if known)


def test_labels_are_articles_of_the_web(web: SyntheticWeb) -> None:
    labels = list(web.labels())
    urls = [label.url for label in labels]
    assert web.resolve(urls) == urls
    assert len(set(urls)) == len(urls)
    assert 0.35 * len(web) < len(urls) < 0.5 * len(web)
    assert {label.topic for label in labels} == set(web.topics)
    splits = Counter((label.topic, label.split) for label in labels)
    for topic in web.topics:
        assert splits[topic, "train"] >= 20
        assert splits[topic, "test"] >= 10


def test_seeds_are_training_examples(web: SyntheticWeb) -> None:
    train = {(label.topic, label.url) for label in web.labels() if label.split == "train"}
    for topic in web.topics:
        seeds = web.seeds(topic)
        assert len(set(seeds)) == 5
        assert {(topic, url) for url in seeds} <= train
    with pytest.raises(UserError, match="/Sports/Chess"):
        web.seeds("/Sports/Chess")


@pytest.mark.long
def test_three_million_pages_take_no_memory() -> None:
    web = SyntheticWeb(1000.0)
    assert len(web) == 3_000_000
    places = [hash_ints(3, n) % len(web) for n in range(150)]
    tracemalloc.start()
    try:
        for number in places:
            url = page_url(web._places.page(number))
            fetched(web, url)
            assert web.resolve([url]) == [url]
        assert len(web.seeds("/Science/Geology")) == 5
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # the bounded caches
