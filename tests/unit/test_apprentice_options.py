"""Options of an apprentice, and what switching a group of features changes."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.evidence import FetchOutcomes
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.instances import N_FEATURES, link_margins, make_instances
from focuscrawl.apprentice.link_features import HASH_SIZE
from focuscrawl.apprentice.link_table import LinkTable, PageFeatures
from focuscrawl.apprentice.options import (
    GROUPS,
    INPUT_GROUPS,
    INPUTS,
    LINK_GROUPS,
    PAGE_GROUPS,
    URL_GROUPS,
    Options,
    active_inputs,
    input_names,
    prior_weights,
)
from focuscrawl.apprentice.scorer import Scorer, new_learner
from focuscrawl.errors import UserError
from focuscrawl.page import parse_page
from focuscrawl.strategies import StrategyContext, find_strategy, make_strategy

from .toy_crawl import Crawl, Pages, toy_critic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.hashing import SparseRows

PAGE = b"""<title>All boats</title><h1>Sailing <i>far</i></h1><p>read
<a href=/knots/>many knots</a> and <a href=/sea/knots/reef.html>reef</a></p><h2>Money</h2>
<ul><li>pay <a href=http://other.example/tax?year=1997><img alt="the tax"></a></ul>"""

OF_INPUTS = {
    "relevance": {"mean_relevance", "best_relevance", "links"},
    "reading": {"reading"},
    "rates": {"prefix", "pattern", "alias", "alias_query"},
    "surroundings": {"around"},
}


def read(options: Options, page: bytes, likely: float = 0.7) -> PageFeatures:
    view = parse_page(page, "http://boats.example/sea/index.html")
    links = np.arange(len(view.links))
    return FeatureExtractor(toy_critic(), options).extract(
        view,
        links,
        links + 1,
        np.ones(len(links), bool),
        relevance=0.9,
        probabilities=np.array([likely, 1.0 - likely]),
    )


@cache
def features(*groups: str) -> PageFeatures:
    return read(Options(groups=groups, d_max=3), PAGE)


def bags_of(rows: SparseRows) -> list[Counter[int]]:
    return [Counter(rows.take(np.array([i])).indices.tolist()) for i in range(len(rows))]


def without(group: str) -> tuple[str, ...]:
    return tuple(name for name in GROUPS if name != group)


# -- groups of features ------------------------------------------------------------------------


def test_groups_tell_their_kinds() -> None:
    kinds = [LINK_GROUPS, PAGE_GROUPS, URL_GROUPS, INPUT_GROUPS]
    assert sum(len(kind) for kind in kinds) == len(GROUPS)
    assert set(OF_INPUTS) | {"cocitation"} == set(INPUT_GROUPS)
    assert set.union(*OF_INPUTS.values()) == set(INPUTS)


OF_PAGE = {"title": 2, "headings": 3, "classes": 3, "probabilities": 2}  # features


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_adds_its_own_features_and_nothing_else(group: str) -> None:
    alone, rest, all_on = features(group), features(*without(group)), features(*GROUPS)
    mine, others, both = (bags_of(each.links) for each in (alone, rest, all_on))
    assert all(mine) == (group in LINK_GROUPS)
    assert [one + other for one, other in zip(mine, others, strict=True)] == both
    if group == "section":
        assert [sum(bag.values()) for bag in mine] == [2, 2, 1]
    pages = [Counter(each.page_indices.tolist()) for each in (alone, rest, all_on)]
    assert pages[0].total() == OF_PAGE.get(group, 0)
    assert pages[0] + pages[1] == pages[2]
    assert bool(len(alone.urls.indices)) == (group == "url") != bool(len(rest.urls.indices))
    assert alone.reading.all() == (group == "reading") != rest.reading.any()
    assert alone.around.all() == (group == "surroundings") != rest.around.any()
    for name in ("position", "url_keys", "own_keys"):
        assert np.array_equal(getattr(rest, name), getattr(all_on, name))


def test_probabilities_are_values_and_all_else_on_the_page_is_one() -> None:
    read = features("title", "probabilities")
    assert read.page_values.tolist() == pytest.approx([1.0, 1.0, 0.7, 0.3])
    assert not len(features("title", "classes").page_values)
    assert (
        PageFeatures.from_bytes(read.to_bytes()).page_values.tolist() == read.page_values.tolist()
    )
    table = LinkTable()
    table.add(0, features("title"))
    table.add(5, read)
    rows = table.pages.rows(2)
    assert rows.values is not None
    assert rows.values.tolist() == pytest.approx([1.0] * 4 + [0.7, 0.3])
    learned, _ = make_instances(
        table,
        len(table),
        np.array([1]),
        np.zeros((1, 0)),
        unit_length=False,
        each_link=True,
        max_links=9,
    )
    assert sorted(learned.values.tolist())[:2] == pytest.approx([0.3, 0.7])
    weights = np.zeros(N_FEATURES)
    weights[2 * HASH_SIZE + read.page_indices[2:]] = [1.0, 10.0]
    by_link, by_page, links = (
        weights[:HASH_SIZE].astype(np.float32),
        weights[2 * HASH_SIZE :],
        range(6),
    )
    for unit_length, norm in ((False, 1.0), (True, np.sqrt(2.0 + 0.49 + 0.09))):
        margins = link_margins(by_link, by_page, table, links, unit_length=unit_length)
        assert margins.tolist() == pytest.approx([0.0] * 3 + [3.7 / norm] * 3)


@pytest.mark.parametrize(("likely", "features"), [(0.7, 3), (0.95, 2)])  # "/" is of both
def test_unlikely_classes_are_not_named(likely: float, features: int) -> None:
    found = read(Options(groups=("classes",)), PAGE, likely).page_indices
    assert len(set(found.tolist())) == features


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, 3),
        ({"counts": True}, 42),
        ({"counts": True, "tokens": 0}, 92),
        ({"counts": True, "tokens": 5}, 7),
    ],
)
def test_counts_and_tokens_change_what_is_taken_of_the_words_around(
    given: dict[str, Any], words: int
) -> None:
    page = b"<p>" + b"reef reef knots " * 30 + b"<a href=1>boats boats</a></p>"
    assert read(Options(groups=("context",), **given), page).links.lengths.tolist() == [words]


def test_surroundings_are_read_in_and_around_a_link_and_not_farther() -> None:
    far = b"boats knots reef <a href=1>tax</a>" + b" word" * 10 + b" <a href=2>year</a>"
    around = read(Options(groups=("surroundings",)), far).around
    assert around[0] > 0.0 > around[1]


def test_a_link_is_in_the_section_of_the_heading_it_begins() -> None:
    page = b"<a href=1>a</a><h2><a href=2>first</a></h2><a href=3>b</a><h3></h3><a href=4>c</a>"
    assert read(Options(groups=("section",)), page).links.lengths.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("links_into", [1, 3, 0])
def test_so_many_links_into_a_url_are_learned_from(links_into: int) -> None:
    options = Options(learner="nb", evidence="first", links_into=links_into, batch=1000)
    crawl = Crawl(Pages(options), Apprentice(options)).run(60)
    table = crawl.apprentice.table
    judged = crawl.apprentice.memory.buffer.judged
    expanded = table.expansion.data[table.page.data]
    into = np.array(
        [
            np.sum((table.target.data == url) & (expanded < n_pages))
            for url, n_pages in zip(judged.urls, judged.n_pages, strict=True)
        ]
    )
    assert into.max() > 3
    training = crawl.apprentice.learn()
    assert training.instances == np.minimum(into, links_into or into.max()).sum()


# -- inputs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crawled() -> Crawl:
    options = Options(batch=10, groups=tuple(GROUPS))
    return Crawl(Pages(options), Apprentice(options)).run(40)


def inputs_with(crawl: Crawl, *groups: str) -> dict[str, NDArray[np.float64]]:
    options = Options(groups=groups)
    known, fetched = crawl.apprentice.table, FetchOutcomes()
    for u in crawl.order:
        fetched.observe(known.keys(np.array([u]))[0], float(crawl.web.relevance[u]))
    scorer = Scorer(new_learner(options), options, known, fetched)
    scorer.rebuild_evidence(len(known), known.y.data)
    inputs = scorer.inputs(scorer.evidence.urls())
    return dict(zip(input_names(options), inputs.T, strict=True))


@pytest.mark.parametrize("group", OF_INPUTS)
def test_a_group_of_inputs_is_those_inputs(group: str, crawled: Crawl) -> None:
    all_on, alone = inputs_with(crawled, *GROUPS), inputs_with(crawled, group)
    rest = inputs_with(crawled, *without(group))
    assert alone.keys() == set(INPUTS)
    for name in INPUTS:
        on, off = (alone, rest) if name in OF_INPUTS[group] else (rest, alone)
        assert np.array_equal(on[name], all_on[name])
        assert not off[name].any()
        if name not in {"alias", "alias_query"}:  # the toy has none but what was fetched itself
            assert on[name].any()


def test_cocitation_has_inputs_of_its_own(crawled: Crawl) -> None:
    all_on, alone = inputs_with(crawled, *GROUPS), inputs_with(crawled, "cocitation")
    assert all_on.keys() == alone.keys() > set(INPUTS)
    own = alone.keys() - set(INPUTS)
    assert own == {f"({level},{d:+d})" for level in ("HIGH", "LOW") for d in range(-5, 6)}
    assert not any(alone[name].any() for name in INPUTS)
    assert all(np.array_equal(alone[name], all_on[name]) for name in own)
    assert alone["(HIGH,+2)"].any()
    assert not alone["(HIGH,+0)"].any()


def test_the_prior_is_of_inputs_that_are_on() -> None:
    assert not any(prior_weights(Options(groups=("context",)))[:-1])
    options = Options(groups=("reading", "cocitation"), d_max=1)
    prior = dict(zip([*input_names(options), "intercept"], prior_weights(options), strict=True))
    assert {name for name, weight in prior.items() if weight} == {"reading", "intercept"}
    assert len(active_inputs(options)) == len(INPUTS) + 6


# -- values ------------------------------------------------------------------------------------

BAD: list[tuple[str, list[Any], str]] = [
    ("groups", [["contxt"]], "did you mean context"),
    ("groups", [["zzz"]], "available: context"),
    ("groups", ["context", [1], 5, None], "list of names"),
    (
        "groups",
        [["context", gone] for gone in ("paths", "ancestors", "hubs")],
        "has no feature group",
    ),
    ("learner", ["svm", None], "learner must be one of logistic"),
    ("evidence", ["last"], "evidence must be one of all, first"),
    ("batch", [0, 2.5, True], "batch"),
    ("memory", [0, "9"], "memory"),
    ("d_max", [-1], "d_max"),
    ("growth", [-0.1, "1", float("nan"), float("inf")], "growth"),
    ("tunnel", ["no"], "tunnel"),
    ("graded", [1], "graded"),
    ("contrast", [0.0, 1.5, float("nan"), True], "contrast"),
]


@pytest.mark.parametrize(
    ("name", "value", "said"), [(name, value, said) for name, some, said in BAD for value in some]
)
def test_what_cannot_be_is_refused_in_one_line(name: str, value: object, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        Options.from_mapping({name: value})
    assert "\n" not in str(error.value)


def test_the_strategy_has_the_options_and_no_others() -> None:
    signature = inspect.signature(find_strategy("apprentice"))
    defaults = {each.name: each.default for each in [*signature.parameters.values()][1:]}
    assert defaults == {each.name: each.default for each in fields(Options)} | {"begin_with": None}
    context = StrategyContext(toy_critic(), 0, None)
    make_strategy("apprentice", context, {"batch": 7, "groups": ["url"]})
    with pytest.raises(UserError, match="has no option 'batches': available: batch, growth, "):
        make_strategy("apprentice", context, {"batches": 7})
    with pytest.raises(UserError, match="begin_with must be a folder, not 5"):
        make_strategy("apprentice", context, {"begin_with": 5})


def test_the_documented_defaults_are_those_of_the_options() -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "apprentice.md").read_text(
        encoding="utf-8"
    )
    table = text.partition("## Options")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \|.* \| ([^|]*) \|$", table, re.MULTILINE))
    for field in fields(Options):
        if field.name != "groups":
            shown = documented[field.name].strip("`")
            value = field.default if isinstance(field.default, str) else json.dumps(field.default)
            assert shown in {value, value.removesuffix(".0")}, field.name


def test_of_takes_what_it_knows() -> None:
    given = {"groups": ["url"], "d_max": 0, "begin_with": "model", "strategy": "apprentice"}
    assert Options.from_mapping(given) == Options(groups=("url",), d_max=0)
    assert Options.from_mapping({}) == Options()


def test_following_keeps_what_the_weights_are_for() -> None:
    weights_are_for: dict[str, Any] = {"d_max": 2, "learner": "nb", "evidence": "first"}
    kept = {"groups": ["url", "section"], **weights_are_for, "batch": 99, "contrast": 0.5}
    own: dict[str, Any] = {"batch": 7, "memory": 8, "growth": 0.5, "contrast": 0.9}
    expected = Options(**own, tunnel=False, groups=("url", "section"), **weights_are_for)
    assert Options(**own, tunnel=False).with_model_options(kept) == expected
