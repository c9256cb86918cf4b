"""A recorded web as a whole: what is within reach, and what an oracle makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.critic import load_critic
from focuscrawl.lab.whole_web import WholeWeb, whole_web
from focuscrawl.webs import open_web


@pytest.fixture
def web() -> WholeWeb:
    """0 -> 1, 2; 1 -> 3; 2 -> 4; 4 is 3 under another URL; 5 cannot be reached."""
    return WholeWeb(
        urls=[f"http://a.example/{i}" for i in range(6)],
        classes=["/A", "/A/B", "/C"],
        probabilities=np.array(
            [[0, 0, 1], [0, 0.2, 0.8], [0.6, 0.4, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], np.float32
        ),
        content=np.array([0, 1, 2, 3, 3, 5]),
        bounds=np.array([0, 2, 3, 4, 4, 4, 4]),
        targets=np.array([1, 2, 3, 4]),
    )


def test_what_is_within_reach(web: WholeWeb) -> None:
    relevance = web.relevance("/A")
    np.testing.assert_allclose(relevance, [0, 0.2, 1, 1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(web.relevance("/A/B"), [0, 0.2, 0.4, 1, 1, 0], atol=1e-6)
    reached = web.reachable([0])
    assert len(reached) == 4  # each content once
    assert 5 not in reached
    assert web.numbers(["http://a.example/2", "http://b.example/"]) == [2]


def test_the_oracle_takes_the_best_known_page(web: WholeWeb) -> None:
    # 0, then 2 (1.0), then 4 (1.0), then 1 (0.2); 3 is the content of 4 and is not fetched
    assert web.oracle_loss([0], web.relevance("/A"), 2) == pytest.approx(0.5)
    assert web.oracle_loss([0], web.relevance("/A"), 3) == pytest.approx(1 - 2 / 3)
    assert web.oracle_loss([0], web.relevance("/A"), 99) == pytest.approx(1 - 2.2 / 99)


def test_a_web_is_judged_once_for_all_topics(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path))
    demo = open_web("demo:0.05")
    first = whole_web(demo, load_critic("models/demo", "/Sports/Cycling"))
    monkeypatch.setattr(type(demo), "fetch", None)  # it is not read again
    second = whole_web(demo, load_critic("models/demo", "/Home/Cooking"))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.relevance("/Sports").max() > 0.5
