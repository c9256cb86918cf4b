"""A few of the crawls that ``make fuzz FUZZ=live`` makes by the hundred."""

from __future__ import annotations

import pytest

from .live import AnyAnswer, run


@pytest.mark.long
def test_no_answer_ends_a_crawl() -> None:
    run(AnyAnswer, 1, 6)
