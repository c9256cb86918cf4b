"""Paths to goals and fails, found by the links of a site, and the file they are kept in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.paths.training_paths import (
    PathSampling,
    SitePath,
    extract_paths,
    read_paths,
    write_paths,
)

if TYPE_CHECKING:
    from pathlib import Path

GRAPH = {
    "door": ["list", "news", "ann", "about"],
    "about": ["legal", "list"],
    "list": ["ann", "bob", "eve"],
    "news": ["bob", "old", "older"],
    "bob": ["cat"],
    "old": ["older"],
}


def test_goals_are_reached_by_shortest_ways_through_pages_with_most_goals() -> None:
    goals = {"ann", "bob", "eve"}
    found = extract_paths(
        "door",
        lambda page: GRAPH.get(page, []),
        goals,
        {"list": "people", "ann": "person", "cat": "goal"},
        sampling=PathSampling(fails=3.0),
        random_state=1,
    )
    ways = {path.pages: path.labels for path in found if path.succeeds}
    assert ways == {
        ("door", "ann"): (None, "goal"),
        ("door", "list", "bob"): (None, "people", "goal"),  # not by the news
        ("door", "list", "eve"): (None, "people", "goal"),
    }
    fails = [path for path in found if not path.succeeds]
    assert len(fails) == 9
    assert all(path.labels[-1] == "fail" for path in fails)
    # the news list a goal, so they are none; goals lead to fails, too
    assert not any(path.pages[-1] == "news" for path in fails)
    assert ("door", "list", "bob", "cat") in {path.pages for path in fails}
    for path in fails:
        assert all(
            label == "goal" for page, label in zip(*_of(path), strict=True) if page in goals
        )


def test_a_start_that_is_a_goal_is_the_start_of_paths_to_others() -> None:
    found = extract_paths(
        "door",
        lambda page: GRAPH.get(page, []),
        {"door", "ann"},
        {},
        sampling=PathSampling(fails=0.0),
        random_state=1,
    )
    assert [_of(path) for path in found] == [(("door", "ann"), (None, "goal"))]


def _of(path: SitePath) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    return path.pages, path.labels


def test_paths_come_back_from_their_file(tmp_path: Path) -> None:
    walks = [
        SitePath(("http://a.example/", "http://a.example/b"), (None, "goal")),
        SitePath(("http://a.example/", "http://a.example/c"), (None, "fail")),
    ]
    assert write_paths(walks, tmp_path / "paths.jsonl") == 2
    assert read_paths(tmp_path / "paths.jsonl") == walks


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[1]", "not an object"),
        ('{"pages": []}', "labels"),
        ('{"pages": ["http://a.example/"], "labels": []}', "one length"),
        ('{"pages": [], "labels": []}', "no page"),
        ('{"pages": ["ftp://a"], "labels": ["goal"]}', "no http"),
        ('{"pages": ["http://a.example/"], "labels": ["home"]}', "must be goal or fail"),
        ('{"pages": ["http://a.example/"], "labels": ["\\u001b"]}', "no label"),
        ('{"pages": ["http://a.example/"], "labels": ["goal"]}', "first page"),
    ],
)
def test_lines_that_are_no_paths_are_named(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "paths.jsonl"
    pages = ["http://a.example/", "http://a.example/b"]
    good = json.dumps({"pages": pages, "labels": [None, "goal"]})
    file.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(UserError, match=f"line 3: no path .*{why}"):
        read_paths(file)
