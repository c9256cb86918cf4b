"""Naive Bayes, flat and hierarchical, against scikit-learn and against the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import DictVectorizer
from sklearn.naive_bayes import MultinomialNB

from focuscrawl.critic.bag_of_words import ClassCounts, TrainingRows, Vocabulary
from focuscrawl.critic.classifiers import (
    HierarchicalNaiveBayes,
    NaiveBayes,
    log_theta,
    sibling_groups,
)

BAGS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 2000), max_size=8)
TOPICS = ("/A/B", "/A/C/D", "/A/C/E", "/F")


def all_words(bags: list[dict[str, int]], topics: list[str]) -> ClassCounts:
    return TrainingRows.from_bags(bags, topics).count(min_df=1, max_df=1.0)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[dict[str, int]], list[str]]:
    topics = [*TOPICS, *draw(st.lists(st.sampled_from(TOPICS), max_size=6))]
    bags = draw(st.lists(BAGS, min_size=len(topics), max_size=len(topics)))
    bags[0] = {"a": 1}  # not all pages empty
    return bags, topics


@settings(max_examples=60, deadline=None)
@given(corpora(), st.lists(BAGS, min_size=1, max_size=4))
def test_flat_judges_as_scikit_learn(
    corpus: tuple[list[dict[str, int]], list[str]], pages: list[dict[str, int]]
) -> None:
    bags, topics = corpus
    vectorizer = DictVectorizer()
    learner = MultinomialNB(alpha=1.0).fit(vectorizer.fit_transform(bags), topics)
    expected = learner.predict_joint_log_proba(vectorizer.transform(pages))
    expected -= np.logaddexp.reduce(expected, axis=1, keepdims=True)
    model = NaiveBayes(all_words(bags, topics))
    assert model.classes == tuple(learner.classes_)
    np.testing.assert_allclose(model.log_posteriors(pages), expected, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(corpora(), st.lists(BAGS, min_size=1, max_size=4))
def test_chain_rule(
    corpus: tuple[list[dict[str, int]], list[str]], pages: list[dict[str, int]]
) -> None:
    """The posterior of /A/C/D is Pr(/A|u) Pr(/A/C|u,/A) Pr(/A/C/D|u,/A/C), each a flat NB."""
    bags, topics = corpus
    counts = all_words(bags, topics)
    by_path = dict(
        zip(counts.classes, zip(counts.counts.T, counts.pages, strict=True), strict=True)
    )

    def step(children: list[str], child: str) -> np.ndarray:
        def below(node: str) -> list[str]:
            return [path for path in by_path if f"{path}/".startswith(f"{node}/")]

        ordered = sorted(children)
        flat = NaiveBayes(
            ClassCounts(
                tuple(ordered),
                counts.words,
                np.column_stack([sum(by_path[leaf][0] for leaf in below(n)) for n in ordered]),
                np.array([sum(by_path[leaf][1] for leaf in below(n)) for n in ordered]),
            )
        )
        return np.asarray(flat.log_posteriors(pages)[:, ordered.index(child)])

    expected = (
        step(["/A", "/F"], "/A") + step(["/A/B", "/A/C"], "/A/C")
        + step(["/A/C/D", "/A/C/E"], "/A/C/D")
    )  # fmt: skip
    model = HierarchicalNaiveBayes(counts)
    found = model.log_posteriors(pages)
    np.testing.assert_allclose(found[:, model.classes.index("/A/C/D")], expected, atol=1e-6)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, atol=1e-9)


def test_smoothing_by_hand() -> None:
    theta = np.exp(log_theta(np.array([[2, 0], [1, 0], [0, 5]])))
    np.testing.assert_allclose(theta, [[3 / 6, 1 / 8], [2 / 6, 1 / 8], [1 / 6, 6 / 8]])


def test_prior_is_the_share_of_pages_or_uniform() -> None:
    counts = all_words([{"a": 1}, {"a": 1}, {"b": 1}], ["/X", "/X", "/Y"])
    page = [{"unheard": 5}]
    np.testing.assert_allclose(np.exp(NaiveBayes(counts).log_posteriors(page)), [[2 / 3, 1 / 3]])
    uniform = NaiveBayes(counts, uniform_prior=True)
    np.testing.assert_allclose(np.exp(uniform.log_posteriors(page)), [[0.5, 0.5]])


def test_long_pages_neither_overflow_nor_underflow() -> None:
    counts = all_words([{"a": 10}, {"b": 10}], ["/X", "/Y"])
    found = NaiveBayes(counts).log_posteriors([{"a": 10**6}])
    assert np.isfinite(found).all()
    assert np.exp(found[0, 0]) == 1.0


def test_words_rare_or_common_to_all_classes_are_cut() -> None:
    bags = [{"the": 5, "bird": 1, "x": 1}, {"the": 2, "bird": 2}, {"the": 1, "code": 1}] * 2
    topics = ["/Birds", "/Birds", "/Code"] * 2
    rows = TrainingRows.from_bags(bags, topics)
    # `bird` is on most pages, but not of every class
    assert rows.count(min_df=3).words == ("bird",)
    assert rows.count().words == ("bird", "code", "x")


def test_siblings_leave_out_only_children() -> None:
    found = sibling_groups(("/A/B/C", "/A/B/D", "/E/F"))
    assert [each.tolist() for each in found] == [
        [[True, True, False], [False, False, True]],
        [[True, False, False], [False, True, False]],
    ]


@pytest.mark.parametrize(
    ("classes", "counts", "pages"),
    [
        (("/B", "/A"), np.zeros((1, 2)), [1, 1]),
        (("/A", "/A"), np.zeros((1, 2)), [1, 1]),
        (("/A", "/A-B", "/A/B"), np.zeros((1, 3)), [1, 1, 1]),
        (("/A", "/B"), np.zeros((2, 2)), [1, 1]),
        (("/A", "/B"), -np.ones((1, 2)), [1, 1]),
        (("/A", "/B"), np.zeros((1, 2)), [1, 0]),
    ],
)
def test_counts_that_do_not_fit_are_refused(
    classes: tuple[str, ...], counts: np.ndarray, pages: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"class|count"):
        ClassCounts(classes, ("word",), counts.astype(np.int64), np.array(pages))


def test_rows_know_their_lengths() -> None:
    rows = Vocabulary(["a", "b"]).transform([{"a": 2, "z": 9}, {}, {"b": 1, "a": 3}])
    assert rows.lengths().tolist() == [2.0, 0.0, 4.0]
