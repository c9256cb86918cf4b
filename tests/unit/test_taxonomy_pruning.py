from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import (
    OTHER,
    ROOT,
    Sampling,
    Taxonomy,
    ancestors,
    choose_min_examples,
    parent,
    prune,
)
from focuscrawl.taxonomy.topic_tree import MAX_LEVELS

if TYPE_CHECKING:
    from random import Random

ALL = 10_000  # more examples than any topic here has
TOPICS = st.lists(st.sampled_from(["A", "B", "C", OTHER]), max_size=4).map(
    lambda p: "/" + "/".join(p)
)
URLS = st.sets(st.integers(0, 60).map("http://x/{}".format), max_size=12)
TREES = st.dictionaries(TOPICS, URLS, max_size=12).map(
    lambda examples: {topic: sorted(urls) for topic, urls in examples.items()}
)
SIZES = st.integers(1, 12)


def contents(tree: Taxonomy) -> dict[str, list[str]]:
    return {topic: tree.examples(topic) for topic in tree.topics if tree.examples(topic)}


def literally(examples: Mapping[str, list[str]], k: int) -> dict[str, set[str]]:
    """methods.md 2 word for word: look for a small leaf until there is none, then add Others."""
    tree: dict[str, set[str]] = {ROOT: set()}
    for topic, urls in examples.items():
        for path in [*ancestors(topic), topic]:
            tree.setdefault(path, set())
        tree[topic].update(urls)

    def is_leaf(topic: str) -> bool:
        return not any(parent(other) == topic for other in tree if other != ROOT)

    while small := [t for t in tree if t != ROOT and is_leaf(t) and len(tree[t]) < k]:
        tree[parent(small[0])].update(tree.pop(small[0]))
    while mixed := [t for t in tree if not is_leaf(t) and tree[t]]:
        other = f"{mixed[0].rstrip('/')}/{OTHER}"
        tree.setdefault(other, set()).update(tree[mixed[0]])
        tree[mixed[0]] = set()
    return {topic: urls for topic, urls in tree.items() if urls}


@given(examples=TREES, k=SIZES)
def test_does_what_the_paper_does_step_by_step(examples: dict[str, list[str]], k: int) -> None:
    pruned = prune(Taxonomy(examples), k, ALL)
    assert {t: set(urls) for t, urls in contents(pruned).items()} == literally(examples, k)
    assert set(pruned.leaves) == set(contents(pruned))


@given(examples=TREES, k=SIZES)
def test_no_example_is_lost_and_each_stays_within_its_topics(
    examples: dict[str, list[str]], k: int
) -> None:
    pruned = prune(Taxonomy(examples), k, ALL)
    held = {(leaf, url) for leaf in pruned.leaves for url in pruned.examples(leaf)}
    assert held == {
        (pruned.leaf_of(topic), url) for topic, urls in examples.items() for url in urls
    }
    for topic in filter(examples.get, examples):
        home = str(pruned.leaf_of(topic))
        while home.endswith(f"/{OTHER}"):
            home = parent(home)
        assert home in [*ancestors(topic), topic]


@given(examples=TREES, k=SIZES, more=st.integers(0, 5), seed=st.integers(-3, 1 << 70))
def test_pruning_twice_changes_nothing(
    examples: dict[str, list[str]], k: int, more: int, seed: int
) -> None:
    once = prune(Taxonomy(examples), k, k + more, seed)
    twice = prune(once, k, k + more, seed)
    assert contents(twice) == contents(once)
    assert twice.sampling == once.sampling


@given(examples=TREES, k=SIZES, most=SIZES, order=st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(
    examples: dict[str, list[str]], k: int, most: int, order: Random
) -> None:
    shuffled = {topic: order.sample(urls, len(urls)) for topic, urls in examples.items()}
    topics = order.sample(list(shuffled), len(shuffled))
    mixed = Taxonomy({topic: shuffled[topic] for topic in topics})
    assert contents(prune(mixed, k, most)) == contents(prune(Taxonomy(examples), k, most))


@given(examples=TREES, k=SIZES, seed=st.integers(0, 5))
def test_samples_drawn_while_reading_give_the_sample_of_all(
    examples: dict[str, list[str]], k: int, seed: int
) -> None:
    sampling = Sampling(k, seed)
    read = Taxonomy({t: sampling.draw(urls) for t, urls in examples.items()}, sampling)
    assert contents(prune(read, k, k, seed)) == contents(prune(Taxonomy(examples), k, k, seed))


def test_a_sample_is_uniform_and_depends_on_the_seed_alone() -> None:
    urls = [f"http://x/{n}" for n in range(100)]
    assert Sampling(20, 7).draw(urls) == Sampling(20, 7).draw(urls[::-1])
    drawn = [url for seed in range(200) for url in Sampling(20, seed).draw(urls)]
    times = [drawn.count(url) for url in urls]
    # each is drawn 40 times on average, with a standard deviation of 5.7
    assert sum((n - 40) ** 2 for n in times) / 100 < 2 * 5.7**2
    assert min(times) > 15
    assert max(times) < 65


def test_leaf_of() -> None:
    tree = prune(Taxonomy({"/A/B/C": ["c"], "/A/B": ["b"], "/A/D": ["d", "e"]}), 2)
    assert tree.leaves == ("/A/B", "/A/D")
    assert tree.leaf_of("Top/A/B/C") == "/A/B"  # merged
    assert tree.leaf_of("/A/B/Never_Seen") == "/A/B"  # would have been
    assert tree.leaf_of("/A") is None  # internal, and nothing was labelled with it
    assert tree.leaf_of("/Nowhere") is None


def test_a_deep_chain_and_a_wide_tree_take_one_pass() -> None:
    deep = "/".join(["", *["x"] * MAX_LEVELS])
    wide = {f"/w/{n}": [f"http://w/{n}"] for n in range(20_000)}
    tree = prune(Taxonomy({deep: ["d"], **wide}), 2, ALL)
    assert tree.leaves == ("/Other", "/w")
    assert len(tree.examples("/w")) == 10_000


@pytest.mark.parametrize(("fewest", "most", "seed"), [(3, 2, 0), (2, 3, 0), (2, 2, 1)])
def test_a_sample_that_does_not_fit_is_refused(fewest: int, most: int, seed: int) -> None:
    read = Taxonomy({"/A": ["a", "b"]}, Sampling(2, 0))
    with pytest.raises(UserError, match=r"read them again with max_examples=[23], random_state="):
        prune(read, fewest, most, seed)


def test_bounds_must_be_at_least_one() -> None:
    for bounds in ((0, 3), (3, 0)):
        with pytest.raises(UserError, match="must be"):
            prune(Taxonomy({"/A": ["a"]}), *bounds)


def test_a_large_tree_is_pruned_as_the_paper_does_and_a_small_one_is_not() -> None:
    def tree(classes: int, pages: int) -> Taxonomy:
        urls = {
            f"/T{i}/A": [f"http://h{i}.example/{n}" for n in range(pages)] for i in range(classes)
        }
        return Taxonomy({**urls, "/T0/B": ["http://few.example/"]})

    assert choose_min_examples(tree(100, 300)) == 300
    assert choose_min_examples(tree(98, 330)) == 1  # 99 would be left, an Other among them
    assert choose_min_examples(tree(150, 299)) == 1  # all would end in the root
    assert choose_min_examples(Taxonomy({})) == 1
