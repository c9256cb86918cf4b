"""Topics with names like one that is not known, for messages (did you mean?)."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from focuscrawl.taxonomy.topic_path import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALIKE = 0.6  # difflib's own threshold for a close match


def nearest(topic: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return up to `n` of `known` that are most like `topic`, best first.

    Two paths are as alike as their whole paths or their last components are, whichever is
    more: both a slip of the hand in a long path and a bare name find their topic. Upper and
    lower case, blanks and underscores are not told apart.

    Parameters
    ----------
    topic, known : normalised paths
    n : how many to return, at most; fewer when fewer are alike
    """
    whole = SequenceMatcher(b=_fold(topic), autojunk=False)
    last = SequenceMatcher(b=_fold(topic.rpartition("/")[2]), autojunk=False)
    scored = []
    for path in known:
        if path != ROOT:
            folded = _fold(path)
            ratios = (_ratio(whole, folded), _ratio(last, folded.rpartition("/")[2]))
            if max(ratios) >= _ALIKE:
                # among equals the other ratio decides, then the shorter path
                scored.append((-max(ratios), -min(ratios), len(path), path))
    return [path for *_, path in sorted(scored)[:n]]


def _fold(path: str) -> str:
    return path.casefold().replace(" ", "_")


def _ratio(matcher: SequenceMatcher[str], text: str) -> float:
    """Return the likeness of `text`, or 0 when a cheap upper bound already rules it out."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    return matcher.ratio()
