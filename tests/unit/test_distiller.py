"""The distiller against networkx, against a dense reference, and on graphs done on paper."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from focuscrawl.distiller import (
    SITE_RULES,
    Distiller,
    HubScores,
    LinkGraph,
    Sites,
    registered_domain,
    resolve_aliases,
    top_pages,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEVER = 10_000  # rounds, or fewer if the order settles; it never does for so long


def graph(
    links: list[tuple[int, int]], relevance: list[float], site: list[int] | None = None
) -> LinkGraph:
    """A graph of `links`; without `site` every page is a site of its own."""
    pairs = np.array(links, np.int64).reshape(-1, 2)
    sites = np.arange(len(relevance)) if site is None else np.array(site, np.int64)
    return LinkGraph(pairs[:, 0], pairs[:, 1], sites, np.array(relevance))


@st.composite
def graphs(draw: st.DrawFn) -> LinkGraph:
    n = draw(st.integers(1, 10))
    page = st.integers(0, n - 1)
    number = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, np.nan])
    links = draw(st.lists(st.tuples(page, page), max_size=40))
    relevance = draw(st.lists(number, min_size=n, max_size=n))
    site = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    # pages that were not fetched have no links
    links = [(u, v) for u, v in links if not np.isnan(relevance[u])]
    return graph(links, relevance, site)


def dense(
    links: LinkGraph, threshold: float, *, damp: bool, rounds: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """methods.md 7 with full matrices, cell by cell."""
    n = links.n_pages
    there = np.zeros((n, n), bool)
    there[links.source, links.target] = True
    there &= links.site[:, None] != links.site[None, :]
    forward, backward = np.zeros((n, n)), np.zeros((n, n))
    for u, v in zip(*np.nonzero(there), strict=True):
        if not links.relevance[v] > threshold:
            continue
        k = there[links.site == links.site[u], v].sum() if damp else 1
        to_site = there[u] & (links.site == links.site[v]) & (links.relevance > threshold)
        forward[u, v] = links.relevance[v] / k
        backward[u, v] = links.relevance[u] / (to_site.sum() if damp else 1)
    hubs, authorities = np.ones(n), np.zeros(n)
    for _ in range(rounds):
        authorities = forward.T @ hubs
        authorities /= np.linalg.norm(authorities) or 1.0
        hubs = backward @ authorities
        hubs /= np.linalg.norm(hubs) or 1.0
    return hubs, authorities


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from([0.0, 0.2]), st.booleans(), st.integers(1, 30))
@example(graph([(0, 1), (1, 0), (2, 1)], [0.1, 0.1, 0.0], [3, 0, 1]), 0.0, True, 1)
def test_as_the_dense_reference(
    links: LinkGraph, threshold: float, damp: bool, rounds: int
) -> None:
    scores = Distiller(links, threshold=threshold, damp=damp).distill(
        rounds=rounds, stable_rounds=NEVER
    )
    assert scores.rounds == rounds
    hubs, authorities = dense(links, threshold, damp=damp, rounds=rounds)
    assert_allclose(scores.hubs, hubs, atol=1e-12)
    assert_allclose(scores.authorities, authorities, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_as_networkx_with_unit_weights(seed: int) -> None:
    web = nx.gnp_random_graph(60, 0.08, seed=seed, directed=True)
    links = graph(list(web.edges), [1.0] * 60)
    scores = Distiller(links, damp=False).distill(rounds=2000, stable_rounds=NEVER)
    hubs, authorities = nx.hits(web, max_iter=5000, tol=1e-12)
    for ours, theirs in ((scores.hubs, hubs), (scores.authorities, authorities)):
        assert_allclose(ours / ours.sum(), [theirs[page] for page in range(60)], atol=1e-7)


def test_links_within_a_site_count_for_nothing() -> None:
    links = [(0, 1), (1, 0), (0, 2)]
    scores = Distiller(graph(links, [1.0, 1.0, 1.0], site=[0, 0, 1])).distill()
    assert_allclose(scores.hubs, [1.0, 0.0, 0.0])
    assert_allclose(scores.authorities, [0.0, 0.0, 1.0])
    nothing = Distiller(graph(links[:2], [1.0, 1.0], site=[0, 0])).distill()
    assert not nothing.hubs.any()
    assert not nothing.authorities.any()
    assert nothing.stable


def test_prestige_does_not_leak() -> None:
    """Page 0 is a hub of relevant and of other pages; page 1, not relevant, links to the same."""
    links = [(u, v) for u in (0, 1) for v in (2, 3, 4)]
    scores = Distiller(graph(links, [0.9, 0.05, 0.9, 0.8, 0.1])).distill()
    assert scores.hubs[0] > 10 * scores.hubs[1] > 0
    assert scores.authorities[2] > scores.authorities[3] > 0
    assert scores.authorities[4] == 0  # not above rho


def test_a_site_has_one_voice() -> None:
    """Page 5 has links from three pages of one site, page 6 from two of different sites."""
    links = [(0, 5), (1, 5), (2, 5), (3, 6), (4, 6)]
    relevance, site = [1.0] * 7, [0, 0, 0, 1, 2, 3, 4]
    damped = Distiller(graph(links, relevance, site)).distill(rounds=1)
    assert damped.authorities[6] == pytest.approx(2 * damped.authorities[5])
    plain = Distiller(graph(links, relevance, site), damp=False).distill(rounds=1)
    assert plain.authorities[5] == pytest.approx(1.5 * plain.authorities[6])


def test_what_is_unknown_makes_no_hub_but_is_promised_something() -> None:
    unknown = float("nan")
    links = [(0, 2), (0, 4), (1, 2), (1, 3), (1, 4), (1, 5)]
    distiller = Distiller(graph(links, [1.0, 1.0, 0.9, 0.8, unknown, unknown]))
    scores = distiller.distill()
    without = [link for link in links if link[1] < 4]
    known = Distiller(graph(without, [1.0, 1.0, 0.9, 0.8, unknown, unknown])).distill()
    assert_allclose(scores.hubs, known.hubs)
    assert_allclose(scores.authorities, known.authorities)
    hubs = scores.hubs
    assert_allclose(distiller.score_unfetched(scores), [0, 0, 0, 0, hubs[0] + hubs[1], hubs[1]])
    assert_allclose(distiller.score_unfetched(scores, 1), [0, 0, 0, 0, hubs[1], hubs[1]])


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_promise_is_the_authority_it_would_have(links: LinkGraph) -> None:
    """As the pages not fetched turned out relevant, one round later and not yet scaled."""
    distiller = Distiller(links, damp=False)
    scores = distiller.distill(rounds=5, stable_rounds=NEVER)
    later = np.where(np.isnan(links.relevance), 1.0, links.relevance)
    n = links.n_pages
    there = np.zeros((n, n))
    there[links.source, links.target] = 1.0
    there[links.site[:, None] == links.site[None, :]] = 0.0
    expected = np.where(np.isnan(links.relevance), later * (there.T @ scores.hubs), 0.0)
    assert_allclose(distiller.score_unfetched(scores), expected, atol=1e-12)


def power_law(seed: int, links: int, pages: int = 600) -> LinkGraph:
    rng = np.random.default_rng(seed)
    source = (pages * rng.random(links) ** 2).astype(np.int64)
    target = rng.permutation(pages)[(pages * rng.random(links) ** 3).astype(np.int64)]
    relevance = rng.random(pages)
    return LinkGraph(source, target, rng.integers(0, 40, pages), relevance)


@pytest.mark.parametrize("seed", range(3))
def test_stops_when_the_top_has_settled(seed: int) -> None:
    distiller = Distiller(power_law(seed, 5000))
    scores, exact = distiller.distill(), distiller.distill(rounds=500, stable_rounds=NEVER)
    assert scores.stable
    assert scores.rounds < 100
    assert not exact.stable
    for some, all_ in ((scores.hubs, exact.hubs), (scores.authorities, exact.authorities)):
        assert len(set(top_pages(some, 100)) & set(top_pages(all_, 100))) > 95
        assert_array_equal(top_pages(some, 10), top_pages(all_, 10))


@pytest.mark.parametrize("seed", range(3))
def test_goes_on_from_earlier_scores(seed: int) -> None:
    whole = power_law(seed, 5000)
    before = 400  # pages known then, and the links between them
    early = (whole.source < before) & (whole.target < before)
    earlier = LinkGraph(
        whole.source[early], whole.target[early], whole.site[:before], whole.relevance[:before]
    )
    distiller = Distiller(whole)
    cold = distiller.distill()
    warm = distiller.distill(cold)
    assert warm.rounds < cold.rounds
    grown = distiller.distill(Distiller(earlier).distill())
    for scores in (warm, grown):
        assert scores.stable
        assert_array_equal(top_pages(scores.hubs, 100), top_pages(cold.hubs, 100))
        assert_array_equal(top_pages(scores.authorities, 100), top_pages(cold.authorities, 100))


def test_what_had_no_score_can_still_rise() -> None:
    """All of the first graph is overtaken by pages that were not there."""
    small, large = [(0, 1)], [(u, v) for u in range(2, 8) for v in range(8, 14)]
    first = Distiller(graph(small, [1.0, 1.0])).distill()
    later = Distiller(graph(small + large, [1.0] * 14)).distill(
        first, rounds=500, stable_rounds=50
    )
    assert later.hubs[2] > 0.1
    assert later.hubs[0] < 1e-6
    nothing = HubScores(np.zeros(2), np.zeros(2), 1, True)
    assert_allclose(Distiller(graph(small, [1.0, 1.0])).distill(nothing).hubs, [1.0, 0.0])


def test_best_breaks_ties_by_number() -> None:
    scores = np.array([0.0, 0.5, 0.7, 0.5, 0.5 + 1e-15, 0.0])
    assert top_pages(scores, 2).tolist() == [2, 1]
    assert top_pages(scores, 4).tolist() == [2, 1, 3, 4]
    assert top_pages(scores, 10).tolist() == [2, 1, 3, 4]
    assert top_pages(scores, 0).tolist() == []


# -- sites, and the several URLs of one page --------------------------------------------------

HOSTS = ["www.a.org", "a.org:8080", "b.org"]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("deep.down.example.org:8080", "example.org"),
        ("jo.github.io", "jo.github.io"),
        ("co.uk", "co.uk"),
        ("localhost:6800", "localhost:6800"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:80", "[::1]:80"),
    ],
)
def test_registered_domains(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_domains_are_told_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert registered_domain("never-asked-before.example.co.jp") == "example.co.jp"


def test_rules() -> None:
    host = np.array([0, 0, 1, 2])
    sites = {rule: Sites.by_rule(rule, host, HOSTS).of_pages.tolist() for rule in SITE_RULES}
    assert sites["host"] == [0, 0, 1, 2]
    assert sites["domain"] == [0, 0, 0, 1]
    assert sites["none"] == [0, 1, 2, 3]


def test_a_crawl_of_one_host_has_no_rule() -> None:
    host = np.array([0, 0, 1])
    within, across = (np.array([0]), np.array([1])), (np.array([0, 1]), np.array([1, 2]))
    assert Sites.by_host_or_none(*within, host).rule == "none"
    assert Sites.by_host_or_none(*across, host).rule == "host"
    nothing = np.zeros(0, np.int64)
    assert Sites.by_host_or_none(nothing, nothing, host).rule == "none"


@pytest.mark.parametrize(
    ("duplicate_of", "referrer", "source", "expected"),
    [
        # 0 links to 1, which leads to 2, which leads to 3; 4 repeats 3; 5 is an error; 6 waits
        ([-1, -1, -1, -1, 3, -1], [-1, 0, 1, 2, 0, 0, 3], [0, 0, 0, 3], [0, 3, 3, 3, 3, 5, 6]),
        ([-1, -1, 0], [-1, 0, 1], [0], [0, 0, 0]),  # a redirect to a duplicate
        ([], [-1, 0], [], [0, 1]),  # nothing stands for what waits
    ],
)
def test_duplicates_and_redirects_stand_for_other_urls(
    duplicate_of: list[int], referrer: list[int], source: list[int], expected: list[int]
) -> None:
    arrays = (np.array(each, np.int64) for each in (duplicate_of, referrer, source))
    assert resolve_aliases(np.arange(len(duplicate_of)), *arrays).tolist() == expected
