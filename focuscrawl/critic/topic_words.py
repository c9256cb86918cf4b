"""The words of a topic as a trained critic knows it: the user's own, and those of its examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.naive_bayes import NaiveBayes
from focuscrawl.critic.phrase_model import WordsModel
from focuscrawl.critic.pieces import is_part
from focuscrawl.critic.written import COMMON, frequency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.focused_critic import TopicModel

MOST = 50
_LONGEST = 40  # characters: what is longer is no word


def words_of_phrases(model: TopicModel, phrases: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the words by which the user has named the topic, all of weight 1."""
    if isinstance(model, WordsModel):
        phrases = model.phrases
    return {word: 1.0 for phrase in phrases for word in phrase}


def words_of_examples(model: TopicModel, marked: NDArray[np.bool_]) -> dict[str, float]:
    """Return the words that tell the examples of the topic from all others.

    The weight is p log(p/q), as of the keywords that crawls learn (`focuscrawl.knowledge`), with
    p and q the shares of a word among those of the marked classes and of the others. The others
    are pages of the same web, so no language is taken for granted.

    Parameters
    ----------
    marked : bool (n_classes,), the classes on the topic

    Returns
    -------
    `MOST` words at most, the greatest weight 1; none of a model that has no examples
    """
    reader = model
    if isinstance(model, LogisticModel):
        reader, marked = model.reader, model.marked_of_reader(marked)
    if not isinstance(reader, NaiveBayes) or marked.all() or not marked.any():
        return {}
    counts, words = reader.counts.counts, reader.counts.words
    inside = counts[:, marked].sum(axis=1)
    outside = counts.sum(axis=1) - inside
    p = inside / max(inside.sum(), 1)
    q = (1.0 + outside) / (len(words) + outside.sum())
    with np.errstate(divide="ignore"):
        weight = np.where(inside > 1, p * np.log(np.where(inside > 0, p, 1.0) / q), 0.0)
    found: dict[str, float] = {}
    for i in np.argsort(-weight, kind="stable").tolist():
        if weight[i] <= 0.0 or len(found) == MOST:
            break
        if _may_be_one(words[i]) and frequency(words[i], reader.languages) < COMMON:
            found[words[i]] = float(weight[i])
    top = max(found.values(), default=1.0)
    return {word: each / top for word, each in found.items()}


def _may_be_one(word: str) -> bool:
    return 1 < len(word) <= _LONGEST and not word.isdecimal() and not is_part(word)
