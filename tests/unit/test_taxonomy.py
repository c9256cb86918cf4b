from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label, Taxonomy, ancestors, normalise, parent

TREE = Taxonomy(
    {
        "/Computers/Artificial_Intelligence/Machine_Learning": [
            "http://a.org/1",
            "http://a.org/2",
        ],
        "/Computers/Operating_Systems/Linux": ["http://b.org/"],
        "/Computers/Operating_Systems": ["http://c.org/"],
        "/Science/Biology": ["http://d.org/", "http://d.org/"],
    }
)
PATHS = st.lists(st.text(st.characters(codec="utf-8"), max_size=6), max_size=5).map("/".join)


@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("Top/Arts/Movies", "/Arts/Movies"),
        ("Top", "/"),
        ("/Top/Hats", "/Top/Hats"),
        ("Topology/Knots", "/Topology/Knots"),
        (" /Arts//Movies/ ", "/Arts/Movies"),
        ("Arts", "/Arts"),
        ("", "/"),
        ("///", "/"),
    ],
)
def test_paths_have_one_spelling(spelled: str, path: str) -> None:
    assert normalise(spelled) == path


@given(PATHS)
def test_normalising_twice_changes_nothing(spelled: str) -> None:
    path = normalise(spelled)
    assert normalise(path) == path
    assert path == "/" or all(part == part.strip() != "" for part in path[1:].split("/"))


@given(PATHS.map(normalise))
def test_ancestors_are_the_chain_of_parents(path: str) -> None:
    chain = [*ancestors(path), path]
    assert chain[0] == "/"
    assert [parent(below) for below in chain[1:]] == chain[:-1]


def test_topics_above_those_named_belong_to_the_tree() -> None:
    assert TREE.children("/") == ["/Computers", "/Science"]
    assert TREE.children("/Computers") == [
        "/Computers/Artificial_Intelligence",
        "/Computers/Operating_Systems",
    ]
    assert TREE.leaves == (
        "/Computers/Artificial_Intelligence/Machine_Learning",
        "/Computers/Operating_Systems/Linux",
        "/Science/Biology",
    )
    assert "Top/Computers" in TREE
    assert "/Computers/Linux" not in TREE


def test_a_topic_below_all_depths_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^the topic .* has 8,000 levels; use at most 100"):
        Taxonomy({"/x" * 8000: ["http://x/"]})


def test_examples_are_a_topics_own_and_count_once() -> None:
    assert TREE.examples("/Science/Biology/") == ["http://d.org/"]
    assert TREE.examples("/Computers/Operating_Systems") == ["http://c.org/"]
    assert TREE.examples("/Computers") == []
    assert TREE.examples("/Nowhere") == []


def test_two_spellings_are_one_topic() -> None:
    tree = Taxonomy({"Top/Arts": ["http://a/"], "/Arts/": ["http://b/", "http://a/"]})
    assert tree.topics == ("/", "/Arts")
    assert tree.examples("Arts") == ["http://a/", "http://b/"]


def test_what_lies_below() -> None:
    assert TREE.descendants("/Computers") == [
        "/Computers/Artificial_Intelligence",
        "/Computers/Artificial_Intelligence/Machine_Learning",
        "/Computers/Operating_Systems",
        "/Computers/Operating_Systems/Linux",
    ]
    systems = "/Computers/Operating_Systems"
    assert TREE.leaves_under(systems, f"{systems}/Linux") == [f"{systems}/Linux"]
    assert TREE.leaves_under("/Nowhere") == []


@given(st.lists(PATHS, max_size=8))
def test_a_tree_is_consistent(topics: list[str]) -> None:
    tree = Taxonomy({topic: [f"http://{n}/"] for n, topic in enumerate(topics)})
    assert set(tree.topics) == {
        path for topic in map(normalise, topics) for path in [*ancestors(topic), topic]
    }
    for topic in tree.topics:
        assert all(parent(below) == topic for below in tree.children(topic))
        assert (topic in tree.leaves) == (not tree.children(topic))
    assert sorted(tree.descendants("/")) == list(tree.topics[1:])
    assert tree.leaves_under("/") == list(tree.leaves)


def test_an_empty_tree_has_no_leaves() -> None:
    empty = Taxonomy({})
    assert empty.leaves == ()
    assert empty.leaves_under("/") == []
    assert empty.leaf_of("/A") is None
    assert Taxonomy({"/": []}).leaves == ("/",)


def test_only_training_rows_are_examples() -> None:
    tree = Taxonomy.from_labels(
        [
            Label("http://a/", "/A", "train"),
            Label("http://b/", "/A", "test"),
            Label("http://c/", "/B", "test"),
        ]
    )
    assert tree.leaves == ("/A",)
    assert tree.examples("/A") == ["http://a/"]


def test_labels_without_any_to_learn_from() -> None:
    with pytest.raises(UserError, match="are of the split test, valid"):
        Taxonomy.from_labels([Label("u", "/A", "valid"), Label("v", "/A", "test")])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("machine learning", "/Computers/Artificial_Intelligence/Machine_Learning"),
        (
            "/computers/artificial_intelligence/machine_learnign",
            "/Computers/Artificial_Intelligence/Machine_Learning",
        ),
        ("LINUX", "/Computers/Operating_Systems/Linux"),
        ("/Computers/Linux", "/Computers/Operating_Systems/Linux"),
        ("/Sciences/Biology", "/Science/Biology"),
    ],
)
def test_nearest_topic_comes_first(typed: str, meant: str) -> None:
    assert TREE.nearest(typed)[0] == meant


def test_nearest_names_no_more_than_asked_and_none_that_are_not_alike() -> None:
    assert len(TREE.nearest("/Computers/Operating_System", n=2)) == 2
    assert TREE.nearest("/Zymurgy") == []


@given(st.sampled_from(TREE.topics[1:]))
def test_a_known_topic_is_nearest_to_itself(topic: str) -> None:
    assert TREE.nearest(topic.upper())[0] == topic
