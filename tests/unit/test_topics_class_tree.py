"""Marking classes of a tree in a definition, and taking marks back."""

from __future__ import annotations

import pytest

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Taxonomy
from focuscrawl.topics import TopicDefinition
from focuscrawl.topics.definition import marking, pages_below, unmarking

TREE = Taxonomy(
    {
        "/A/B/C": ["http://a.example/"],
        "/A/B/D": ["http://b.example/", "http://c.example/"],
        "/A/E": [],
        "/F": ["http://d.example/"],
    }
)


def marked(*topics: str) -> TopicDefinition:
    return TopicDefinition(critic="x", topics=topics)


def test_a_class_is_marked_with_all_below_it() -> None:
    assert marking(marked("/A/B/C", "/F"), "/A/B").topics == ("/F", "/A/B")


def test_a_mark_is_taken_back_with_those_below() -> None:
    assert unmarking(marked("/A/B/C", "/A/B/D", "/F"), "/A", TREE).topics == ("/F",)


def test_of_a_class_above_the_others_stay_marked() -> None:
    assert unmarking(marked("/A", "/F"), "/A/B/C", TREE).topics == ("/A/E", "/A/B/D", "/F")


def test_something_stays_marked() -> None:
    with pytest.raises(UserError, match="mark another"):
        unmarking(marked("/A"), "/A", TREE)


def test_examples_count_for_the_classes_above() -> None:
    counts = pages_below(TREE)
    assert {path: counts[path] for path in ("/", "/A", "/A/B", "/A/E", "/F")} == {
        "/": 4,
        "/A": 3,
        "/A/B": 3,
        "/A/E": 0,
        "/F": 1,
    }
