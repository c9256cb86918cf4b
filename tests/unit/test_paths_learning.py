"""From pages to paths and their file, from paths to a model: states, training, its folder."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack
from scipy.special import logsumexp

from focuscrawl.errors import UserError
from focuscrawl.page import parse_page
from focuscrawl.paths.crf import Sequences
from focuscrawl.paths.path_features import PathFeatureReader, ReadingLimits
from focuscrawl.paths.path_model import (
    TOPIC,
    is_path_model,
    load_path_critic,
    read_model,
    save_model,
)
from focuscrawl.paths.path_training import (
    TrainingOptions,
    WebPages,
    allowed_path_states,
    choose_features,
    estimate_off_domain_share,
    feature_sequences,
    read_corpus,
    train,
    training_examples,
)
from focuscrawl.paths.states import PathStates
from focuscrawl.paths.training_paths import (
    PathSampling,
    SitePath,
    extract_paths,
    read_page_labels,
    read_paths,
    write_paths,
)
from focuscrawl.webs import open_web
from studies.leave_one_site_out import page_weights, score_labels

from . import departments
from .forages import forage

if TYPE_CHECKING:
    from focuscrawl.paths.path_model import PathModel
    from focuscrawl.paths.path_training import Corpus

    from .departments import Departments


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Departments:
    return departments.make(tmp_path_factory.mktemp("departments"))


@pytest.fixture(scope="module")
def corpus(web: Departments) -> Corpus:
    pages = WebPages(open_web(str(web.warc)))
    table = read_page_labels(
        web.labels, open_web(str(web.warc)).resolve, label="kind", site="site"
    )
    walks = [
        path
        for door in web.doors[:3]
        for path in extract_paths(
            door,
            pages.links,
            table.goals("professor", door),
            table.labels,
            sampling=PathSampling(),
            random_state=0,
        )
    ]
    return read_corpus(walks, pages, PathFeatureReader(ReadingLimits(), keep_words=True))


@pytest.fixture(scope="module", params=[True, False], ids=["milestones", "ends"])
def model(request: pytest.FixtureRequest, corpus: Corpus) -> PathModel:
    return train(corpus, TrainingOptions(milestones=request.param, max_iter=40))


def test_distances_are_told_apart_up_to_the_farthest_and_share_features() -> None:
    states = PathStates.partially_supervised(4)
    assert states.labels == ("goal", "fail", "1", "2", "3", "4")
    groups = {frozenset(np.flatnonzero(row).tolist()) for row in states.groups}
    assert groups == {
        *(frozenset([i]) for i in range(6)),
        *map(frozenset, [{2, 3}, {4, 5}, {2, 3, 4, 5}]),
    }
    known = states.allowed_states([None] * 6 + ["goal"], [6, 5, 4, 3, 2, 1, 0])
    pages = [np.flatnonzero(row).tolist() for row in known[::2]]
    assert pages == [[5], [5], [5], [4], [3], [2], [0]]
    assert states.structure.edges[3, 6 + 2]  # from 2 a link to 1
    assert not states.structure.edges[2, 6 + 3]  # and not back


def test_a_page_that_looks_like_a_fail_does_not_hide_the_goal_behind_it(
    corpus: Corpus, model: PathModel
) -> None:
    observed = feature_sequences(corpus, model.vocabulary).observed
    ends = [path.pages[-1].rpartition("/")[2] for path in corpus.paths]
    stray = observed[[corpus.bounds[ends.index("notice1.html") + 1] - 1]]
    number = next(i for i, path in enumerate(corpus.paths) if path.succeeds)
    door, _, people, _, _, link, home = range(*corpus.bounds[number : number + 2])
    bare = csr_array(stray.shape)
    places = vstack(
        [observed[[door, door + 1, people, people + 1]], stray, observed[[link, home]]]
    ).tocsr()
    told = model.crf.predict(Sequences(places, np.array([0, 7])))
    assert told[-1] == 0
    # and alone it is one
    dead = vstack([observed[[door]], bare, stray]).tocsr()
    assert model.crf.predict(Sequences(dead, np.array([0, 3])))[-1] == 1


def test_a_page_that_many_paths_leave_does_not_count_once_for_each(corpus: Corpus) -> None:
    found = training_examples(corpus, choose_features(corpus), PathStates.partially_supervised(3))
    ends = found.sequences.bounds[1:] - 1
    whole = np.diff(found.sequences.observed.indptr)[ends] > 0  # others end in a page not yet seen
    assert whole.sum() == len(corpus.paths)
    leaving = Counter(path.pages[:-1] for path in corpus.paths)
    expected = [1.0 / leaving[path.pages[:-1]] for path in corpus.paths]
    np.testing.assert_allclose(found.weight[whole], expected)


def test_pages_weigh_as_much_for_the_rivals_of_the_chain(corpus: Corpus, model: PathModel) -> None:
    weights = page_weights(corpus)
    assert len(weights) == sum(len(path.pages) for path in corpus.paths)
    # the ends of all paths that leave the same pages count 1 together
    ends = np.cumsum([len(path.pages) for path in corpus.paths]) - 1
    left = {path.pages[:-1] for path in corpus.paths}
    assert weights[ends].sum() == pytest.approx(len(left))
    training = TrainingOptions(milestones=not model.states.distances, max_iter=10)
    chains = {"CRF": model}
    scored = score_labels(chains, corpus, corpus, goal="/goal", site="s", bars=training)
    scores = {row["model"]: row for row in scored}
    assert float(str(scores["CRF, goal above a bar"]["goal_f1"])) > 0.5
    assert all(0.0 <= float(str(row["macro"])) <= 1.0 for row in scores.values())


def test_pages_and_links_score_what_they_do_in_training(
    web: Departments, corpus: Corpus, model: PathModel
) -> None:
    pages, reader = WebPages(open_web(str(web.warc))), PathFeatureReader(model.reading)
    learned = feature_sequences(corpus, model.vocabulary)
    potentials, k = learned.observed @ model.crf.state_, len(model.states)
    path, first = corpus.paths[0], int(corpus.bounds[0])
    view = pages.view(path.pages[1])
    assert view is not None
    np.testing.assert_allclose(
        model.page_potentials(reader, view, path.start),
        potentials[first + 2, :k],
        rtol=1e-9,
        atol=1e-12,
    )
    to = np.flatnonzero(np.array(pages.targets(path.pages[1])) == path.pages[2])
    links = model.link_potentials(reader, view, path.start, to)
    np.testing.assert_allclose(links[0], potentials[first + 3, k:], rtol=1e-9, atol=1e-12)


def test_a_page_on_a_way_to_goals_is_as_far_from_them_on_other_paths(corpus: Corpus) -> None:
    states = PathStates.partially_supervised(5)
    for path, known in zip(corpus.paths, allowed_path_states(corpus, states), strict=True):
        first = np.flatnonzero(known[0])
        assert first.tolist() == [4], path  # three clicks: people, faculty, professor


def test_how_often_goals_are_on_another_domain(corpus: Corpus) -> None:
    goals = {path.pages[-1] for path in corpus.paths if path.labels[-1] == "goal"}
    assert estimate_off_domain_share(corpus) == pytest.approx(0.5 / (len(goals) + 1))
    moved = [
        replace(path, pages=("http://elsewhere.example/", *path.pages[1:]))
        if path.pages[-1] == min(goals)
        else path
        for path in corpus.paths
    ]
    assert estimate_off_domain_share(corpus._replace(paths=moved)) == pytest.approx(
        1.5 / (len(goals) + 1)
    )


def test_links_that_leave_the_domain_keep_little(model: PathModel) -> None:
    urls = ["/x", "http://lib.example.org/", "http://example.net/", "http://example.com/"]
    anchors = "".join(f'<a href="{url}">to</a>' for url in urls)
    view = parse_page(anchors.encode(), "http://www.example.org/p")
    every = np.arange(4)
    kept = model.domain_factors(view, "http://www.example.org/", every)
    np.testing.assert_array_equal(kept, [1.0, 1.0, model.off_domain_share, model.off_domain_share])
    assert 0.0 < model.off_domain_share < 0.05
    # also where the page itself is away, and the way back is not
    kept = model.domain_factors(view, "http://www.example.net/start", every)
    np.testing.assert_array_equal(
        kept, [model.off_domain_share, model.off_domain_share, 1.0, model.off_domain_share]
    )


def test_a_model_finds_the_way_on_a_site_it_has_never_seen(
    web: Departments, model: PathModel, tmp_path: Path
) -> None:
    save_model(model, tmp_path / "m", {})
    fetched = forage(web, tmp_path / "m", tmp_path / "c", web.doors[3], budget=14)
    assert web.professors[web.doors[3]] <= set(fetched)


def test_training_takes_both_ends_and_gives_the_same_model_twice(corpus: Corpus) -> None:
    goals = [path for path in corpus.paths if path.succeeds]
    with pytest.raises(UserError, match=r"none of the .* readable paths ends at a fail"):
        train(corpus._replace(paths=goals), TrainingOptions())
    one, two = (train(corpus, TrainingOptions(max_iter=8)) for _ in range(2))
    np.testing.assert_array_equal(one.crf.state_, two.crf.state_)


def test_with_one_state_a_label_links_are_transitions(corpus: Corpus) -> None:
    model = train(corpus, TrainingOptions(one_state=True, max_iter=20))
    k = len(model.states)
    assert model.crf.structure.states == k + k * k
    weights, edge = model.crf.state_, model.crf.edge_
    seen = feature_sequences(corpus, model.vocabulary)
    at = np.arange(seen.bounds[0], seen.bounds[1])
    nodes = seen.observed[at] @ weights
    n = (len(at) + 1) // 2
    ways = {}
    for labels in product(range(k), repeat=n):  # sums over labels of pages alone
        score = -np.inf if labels[0] < 2 else float(nodes[0, labels[0]])
        for i, (a, b) in enumerate(pairwise(labels), 1):
            transition = k + k * a + b
            score += edge[a, transition] + nodes[2 * i - 1, transition] + edge[transition, b]
            score += nodes[2 * i, b]
        ways[labels] = score
    expected = np.zeros((n, k))
    for labels, score in ways.items():
        expected[range(n), labels] += np.exp(score - logsumexp(list(ways.values())))
    said = model.crf.marginals(seen)[at]
    np.testing.assert_allclose(said[::2, :k], expected, atol=1e-9)
    # a link is told step by step as it is by sums over all paths to it
    front = model.start_label_probabilities(nodes[0, :k])
    link = model.link_label_probabilities(front, nodes[1:2, k:])[0]
    unseen = csr_array((1, len(model.vocabulary)))
    prefix = Sequences(vstack([seen.observed[at[:2]], unseen], format="csr"), np.array([0, 3]))
    np.testing.assert_allclose(link, model.crf.marginals(prefix)[2, :k], atol=1e-9)


def test_models_come_back_from_their_folder(model: PathModel, tmp_path: Path) -> None:
    save_model(model, tmp_path / "m", {"paths": 3})
    again, digest = read_model(tmp_path / "m")
    assert again.states.labels == model.states.labels
    assert again.vocabulary.names == model.vocabulary.names
    np.testing.assert_allclose(again.crf.state_, model.crf.state_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(again.crf.edge_, model.crf.edge_)
    np.testing.assert_array_equal(again.rewards, model.rewards)
    assert is_path_model(str(tmp_path / "m"))
    critic = load_path_critic(str(tmp_path / "m"), "/goal")
    assert critic.fingerprint == digest
    assert critic.classes[critic.marked.argmax()] == TOPIC
    with pytest.raises(UserError, match="exists already"):
        save_model(model, tmp_path / "m", {})
    with pytest.raises(UserError, match="topic=/goal"):
        load_path_critic(str(tmp_path / "m"), "/people")


def test_distances_may_share_no_features(corpus: Corpus, tmp_path: Path) -> None:
    options = TrainingOptions(milestones=False, untied=True, max_iter=5)
    model = train(corpus, options)
    np.testing.assert_array_equal(model.crf.state_, model.crf.shared_)  # a weight a state
    tied = train(corpus, replace(options, untied=False))
    assert tied.crf.shared_.shape[1] > model.crf.shared_.shape[1]
    assert not np.allclose(tied.crf.state_, model.crf.state_)
    save_model(model, tmp_path / "m", {})
    again, _ = read_model(tmp_path / "m")
    assert not again.states.tied
    np.testing.assert_allclose(again.crf.state_, model.crf.state_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("what", ["manifest", "arrays", "labels"])
def test_damaged_models_are_refused(model: PathModel, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "m"
    save_model(model, folder, {})
    if what == "arrays":
        content = (folder / "model.npz").read_bytes()
        (folder / "model.npz").write_bytes(content[:-40])
    elif what == "manifest":
        (folder / "manifest.json").write_text("{")
    else:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["labels"][1] = "\x1b[2J"
        (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"paths train|train it again"):
        read_model(folder)


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
        labelled = zip(path.pages, path.labels, strict=True)
        assert all(label == "goal" for page, label in labelled if page in goals)


def test_a_start_that_is_a_goal_is_the_start_of_paths_to_others() -> None:
    found = extract_paths(
        "door",
        lambda page: GRAPH.get(page, []),
        {"door", "ann"},
        {},
        sampling=PathSampling(fails=0.0),
        random_state=1,
    )
    assert found == [SitePath(("door", "ann"), (None, "goal"))]


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
        ('{"pages": ["http://a.example/"], "labels": []}', "equal length"),
        ('{"pages": [], "labels": []}', "pages must not be empty"),
        ('{"pages": ["ftp://a"], "labels": ["goal"]}', "not an http"),
        ('{"pages": ["http://a.example/"], "labels": ["home"]}', "must be goal or fail"),
        ('{"pages": ["http://a.example/"], "labels": ["\\u001b"]}', "is not a label"),
        ('{"pages": ["http://a.example/"], "labels": ["goal"]}', "start page"),
    ],
)
def test_lines_that_are_no_paths_are_named(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "paths.jsonl"
    pages = ["http://a.example/", "http://a.example/b"]
    good = json.dumps({"pages": pages, "labels": [None, "goal"]})
    file.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(UserError, match=f"line 3 is not a path: .*{why}"):
        read_paths(file)
