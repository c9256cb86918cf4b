"""Checks that every critic must pass."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.page import parse_page
from focuscrawl.testing.strategy_checks import run_checks
from focuscrawl.testing.tiny_web import example_web

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.critic.protocol import Critic, Judgement
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.page import PageView

_PRECISION = 1e-9
_STRANGE = (
    "",
    "   ",
    "<title></title>",
    "<p>7",
    "<p>\u6f22\u5b57 \u0645\u0631\u062d\u0628\u0627 \U0001f375",
    "<p>" + "tea " * 5000,
    "<p>" + "\u00e9" * 300,
    "<a href=x></a>" * 50,
    "<p>a\x00b\x1f",
)


def critic_checks(
    critic: Critic, *, pages: Sequence[PageView] = ()
) -> list[tuple[str, Callable[[], None]]]:
    """Return a name and a function for each check of a critic.

    For pytest::

        @pytest.mark.parametrize(("name", "check"), critic_checks(MyCritic()))
        def test_my_critic(name, check):
            check()

    Parameters
    ----------
    critic : Critic
        Critic with its topics. For a plain callable, pass
        ``focuscrawl.critic.protocol.load_custom("module:callable", ["/Topic"])``.
    pages : Sequence[PageView]
        Pages to judge in addition to those of a small web and some malformed pages.
    """
    web = example_web()
    answers = [web.fetch(url) for url in web.urls()]
    ordinary = [parse_page(each.body, each.url) for each in answers[:12] if each is not None]
    strange = [
        parse_page(html.encode(), f"http://strange.example/{i}") for i, html in enumerate(_STRANGE)
    ]
    judged = [*pages, *ordinary, *strange]

    def run(check: Callable[[Critic, Sequence[PageView]], None]) -> None:
        check(critic, copy.deepcopy(judged))  # so a critic that changes pages fails one check only

    return [(check.__name__.removeprefix("_"), partial(run, check)) for check in _CHECKS]


def check_critic(critic: Critic, *, pages: Sequence[PageView] = ()) -> None:
    """Run all checks of `critic_checks`, with the same parameters.

    Raises
    ------
    AssertionError
        A check fails; a note names the check.
    """
    run_checks(critic_checks(critic, pages=pages), critic)


def _attributes_have_their_types(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check the types of `classes`, `marked`, `examples` and `fingerprint`."""
    assert isinstance(critic.classes, tuple)
    assert all(isinstance(name, str) and name for name in critic.classes)
    assert len(set(critic.classes)) == len(critic.classes)
    marked = np.asarray(critic.marked)
    assert marked.dtype == np.bool_
    assert marked.shape == (len(critic.classes),)
    assert isinstance(critic.examples, tuple)
    assert isinstance(critic.fingerprint, str)
    assert critic.fingerprint


def _relevance_is_a_probability(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that `relevance` is float64 (n,) in [0, 1] for any page."""
    relevance = critic.judge(pages).relevance
    assert relevance.dtype == np.float64
    assert relevance.shape == (len(pages),)
    assert ((relevance >= 0.0) & (relevance <= 1.0)).all()  # fails for NaN


def _probabilities_sum_to_one(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that `probabilities`, if any, are float64 (n, n_classes) that sum to 1."""
    probabilities = critic.judge(pages).probabilities
    if probabilities is None:
        return
    assert critic.classes, "the critic has probabilities but no classes"
    assert probabilities.dtype == np.float64
    assert probabilities.shape == (len(pages), len(critic.classes))
    assert (probabilities >= 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)


def _batch_and_order_do_not_matter(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that a page has the same judgement alone, in a batch, and in any order."""
    together = critic.judge(pages)
    backwards = critic.judge([*reversed(pages)])
    _same(together, backwards, np.arange(len(pages))[::-1])
    for i, page in enumerate(pages):
        _same(together, critic.judge([page]), np.array([i]))


def _empty_batch_is_accepted(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that an empty batch of pages has an empty judgement."""
    judgement = critic.judge([])
    assert judgement.relevance.shape == (0,)
    assert judgement.probabilities is None or len(judgement.probabilities) == 0


def _judgements_can_be_repeated(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that judging the same pages again gives bit-identical results."""
    one, other = critic.judge(pages), critic.judge(pages)
    np.testing.assert_array_equal(one.relevance, other.relevance)
    if one.probabilities is not None and other.probabilities is not None:
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


def _pages_are_not_modified(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that judging does not modify the pages, which other components also read."""
    mine = copy.deepcopy([*pages])
    critic.judge(mine)
    for page, before in zip(mine, pages, strict=True):
        for of in ("tokens", "title", "headings"):
            assert getattr(page, of) == getattr(before, of)
        assert page.links.urls == before.links.urls
        assert page.links.anchors == before.links.anchors
        np.testing.assert_array_equal(page.token_leaf, before.token_leaf)


def _same(together: Judgement, other: Judgement, at: Ints) -> None:
    """Assert that `other` equals the judgements of `together` at the indices `at`."""
    np.testing.assert_allclose(other.relevance, together.relevance[at], atol=_PRECISION)
    assert (together.probabilities is None) == (other.probabilities is None)
    if together.probabilities is not None and other.probabilities is not None:
        expected = together.probabilities[at]
        np.testing.assert_allclose(other.probabilities, expected, atol=_PRECISION)


_CHECKS: Sequence[Callable[[Critic, Sequence[PageView]], None]] = (
    _attributes_have_their_types,
    _relevance_is_a_probability,
    _probabilities_sum_to_one,
    _batch_and_order_do_not_matter,
    _empty_batch_is_accepted,
    _judgements_can_be_repeated,
    _pages_are_not_modified,
)
