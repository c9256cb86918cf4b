"""Answers that a crawl got, read again where it has kept them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.webs.protocol import Answer, Web


def answer_of(webs: Sequence[Web], url: str) -> Answer | None:
    """Return what came of a URL, the first answer with a status of 2xx; None: nothing is kept.

    Parameters
    ----------
    webs : that hold the pages as they came, in the order to look for one
    """
    for web in webs:
        (known,) = web.resolve([url])
        answer = None if known is None else web.fetch(known)
        if answer is not None and 200 <= answer.status < 300:
            return answer
    return None
