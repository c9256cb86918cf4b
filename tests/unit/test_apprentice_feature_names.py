"""Names of hashed features, against a model that weighs each of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_extraction import FeatureExtractor, WordReader, name_features
from focuscrawl.apprentice.instances import SPACE
from focuscrawl.apprentice.link_table import unpack_words
from focuscrawl.apprentice.options import EVIDENCE, GROUPS, LEARNERS, Options
from focuscrawl.page import parse_page
from focuscrawl.report.why import Reasons

from .toy_crawl import Crawl, Pages, toy_critic

if TYPE_CHECKING:
    from focuscrawl.apprentice.link_table import PageFacts

HERE = "http://boats.example/sea/index.html"
THERE = "http://boats.example/sea/far/reef%20knots.php?n=1"
PAGE = f"""<title>All boats</title><h1>Sailing <i>far</i></h1><div><p>read of
<b><a href="{THERE}">many <i>knots</i></a></b> today</p></div><h2>Money</h2><p>and tax
<a href="http://other.example/"><img alt="a picture"></a></p>"""

NAMES = {
    "context": {
        *("'many' in the link", "'knots' in the link", "'today' 1 after", "'read' 1 before"),
        *("'of' 1 before", "'far' 2 before", "'money' 2 after"),
    },
    "anchor": {"'many' in the anchor", "'knots' in the anchor"},
    "section": {"'sailing' in the heading above", "'far' in the heading above"},
    "site": {"link to directory below"},
    "title": {"'all' in the page's title", "'boats' in the page's title"},
    "headings": {"'sailing' in a heading", "'far' in a heading", "'money' in a heading"},
    "classes": {"on a page of /", "on a page of /Boats"},
    "probabilities": {"on a page that may be of /Boats", "on a page that may be of /Money"},
    "url": {
        *("'reef' in the URL", "'knots' in the URL", "'php' in the URL", "'n' in the URL"),
        *("'1' in the URL", "'sea' in the URL", "'far' in the URL"),
        *("on boats.example", "on boats.example/sea", "on boats.example/sea/far"),
        "on boats.example/sea/far/reef%20knots.php",
    },
}


def read(groups: tuple[str, ...], page: str = PAGE) -> PageFacts:
    view = parse_page(page.encode(), HERE)
    critic = toy_critic()
    reader = FeatureExtractor(WordReader(critic), groups=groups, d_max=2, classes=critic.classes)
    n = len(view.links)
    return reader.read(
        view,
        np.arange(n),
        np.arange(1, n + 1),
        np.ones(n, bool),
        relevance=1.0,
        probabilities=np.array([0.95, 0.05]),
    )


def names_of(facts: PageFacts, link: int, url: str, groups: tuple[str, ...]) -> dict[int, str]:
    at = np.array([link])
    features = np.concatenate(
        [
            facts.links.take(at).indices,
            facts.urls.take(at).indices + SPACE,
            facts.page_indices + 2 * SPACE,
        ]
    )
    names = name_features(
        features,
        url=url,
        words=unpack_words(facts.vocabulary),
        classes=toy_critic().classes,
        options=Options(groups=groups, d_max=2),
    )
    assert names.keys() == set(features.tolist())  # each has one
    return names


@pytest.mark.parametrize("groups", [*((name,) for name in GROUPS), tuple(GROUPS)])
def test_every_feature_has_its_name(groups: tuple[str, ...]) -> None:
    names = names_of(read(groups), 0, THERE, groups)
    expected = {name for group in groups for name in NAMES.get(group, ())}
    assert set(names.values()) == expected
    assert len(names) == len(expected)


def test_words_that_stand_in_for_an_image_have_names() -> None:
    names = names_of(read(("anchor", "site")), 1, "http://other.example/", ("anchor", "site"))
    assert set(names.values()) == {
        *("'a' in the anchor", "'picture' in the anchor", "link to another host"),
    }


def test_a_place_is_named_as_deep_as_it_is_told() -> None:
    url = f"http://h.example/{'/'.join('abcdefghijk')}/x.html?q"
    page = f"<a href={url}>x</a>"
    names = set(names_of(read(("url",), page), 0, url, ("url",)).values())
    places = {name for name in names if name.startswith("on ")}
    assert len(places) == 9
    assert max(places, key=len) == "on h.example/a/b/c/d/e/f/g/h"


def test_what_nobody_has_said_has_no_name() -> None:
    found = name_features(
        np.array([3, SPACE + 3]), url=HERE, words=["a"], classes=[], options=Options()
    )
    assert found == {}
    assert name_features(np.zeros(0, int), url=HERE, words=[], classes=[], options=Options()) == {}


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_weights_of_features_add_up_to_what_words_say(learner: str, evidence: str) -> None:
    options = Options(batch=10, learner=learner, evidence=evidence, groups=tuple(GROUPS))
    crawl = Crawl(Pages(options), Apprentice(options)).run(30)
    apprentice = crawl.apprentice
    said = 0.0
    for url in [u for u in crawl.queue if apprentice.scorer.evidence.has_links(u)]:
        features, weights = apprentice.scorer.features(url)
        assert len(features) == len(set(features.tolist())) == len(weights)
        parts = apprentice.scorer.explain(url)
        words = parts["links (words)"] + parts["address (words)"]
        assert weights.sum() == pytest.approx(words, abs=1e-4)
        address = (features >= SPACE) & (features < 2 * SPACE)
        assert weights[address].sum() == pytest.approx(parts["address (words)"], abs=1e-9)
        score = apprentice.scorer.learner.response(np.array([sum(parts.values())]))
        assert score[0] == pytest.approx(crawl.queue[url], abs=1e-6)
        said += abs(words)
    assert said > 0.1


def test_reasons_are_told_strongest_first_and_the_negligible_not_at_all() -> None:
    parts = {
        "best_relevance": 0.5,
        "prefix": 1.25,
        "pattern": -0.75,
        "links": 0.01,
        "intercept": -2.0,
    }
    words = {f"'w{i}' in the link": 0.1 * i for i in range(-7, 8)}
    lines = Reasons(parts, words, 0.2689).lines()
    assert lines == [
        ("for", "its directory +1.25, best page that links to it +0.50"),
        ("against", "URLs that look alike -0.75"),
        ("words for", ", ".join(f"'w{i}' in the link +0.{i}0" for i in (7, 6, 5, 4, 3))),
        ("words against", ", ".join(f"'w-{i}' in the link -0.{i}0" for i in (7, 6, 5, 4, 3))),
        ("together", "-0.99, a score of 0.269"),
    ]
    bare = Reasons({"intercept": -1.0}, {}, 0.25).lines()
    assert [side for side, _ in bare] == ["together"]
    assert re.fullmatch(r"-1\.00, a score of 0\.250", bare[0][1])
