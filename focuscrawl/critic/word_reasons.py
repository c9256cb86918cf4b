"""Why a critic judges a page as it does: what each of its words counts, for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.pieces import is_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TopicModel


class WordReason(NamedTuple):
    """A word of a page, and by how much it moves the log-odds of the topic."""

    word: str
    weight: float


class WordReasons(NamedTuple):
    """The words of a page that weigh most, the weightiest first.

    Attributes
    ----------
    on, off : what speaks for the topic (weights above 0), and against it (below)
    meaning : what the mean meaning of the words adds; 0 where there are no embeddings
    """

    on: list[WordReason]
    off: list[WordReason]
    meaning: float


def word_reasons(
    model: TopicModel, marked: NDArray[np.bool_], bag: Bag, most: int = 12
) -> WordReasons:
    """Return the words of a page that speak for the topic and against it.

    The odds are those of the marked class that is most probable on this page against the one
    that is most probable of the others. A discriminative model adds up words; of any other, a
    word counts what it says as often as it is there, but alone.

    Parameters
    ----------
    marked : bool (n_classes,), the classes on the topic
    bag : words of the page
    most : words on either side
    """
    log = model.log_posteriors([bag])[0]
    if marked.all() or not marked.any() or not bag:
        return WordReasons([], [], 0.0)
    on = int(np.argmax(np.where(marked, log, -np.inf)))
    off = int(np.argmax(np.where(marked, -np.inf, log)))
    if isinstance(model, LogisticModel):
        weights = model.linear.weights
        towards = weights[:, on] - weights[:, off] if weights.shape[1] > 1 else weights[:, 0]
        if weights.shape[1] == 1 and on == 0:
            towards = -towards
        rows = model.vectors.read([bag])
        known = model.vectors.words
        words = [known[i] for i in rows.words.ids.tolist()]
        adds = rows.words.counts * towards[rows.words.ids]
        meaning = float(rows.meaning[0] @ towards[len(known) :])
    else:
        words, meaning = list(bag), 0.0
        alone = model.log_posteriors([{}, *({word: bag[word]} for word in words)])
        odds = alone[:, on] - alone[:, off]
        adds = odds[1:] - odds[0]
    return WordReasons(_best(words, adds, most), _best(words, -adds, most, sign=-1.0), meaning)


def _best(
    words: Sequence[str], adds: NDArray[np.float64], most: int, sign: float = 1.0
) -> list[WordReason]:
    """Return the words that add most, of those that add anything."""
    order = np.argsort(-adds, kind="stable").tolist()
    whole = [i for i in order if adds[i] > 0.0 and not is_part(words[i])]
    return [WordReason(words[i], sign * float(adds[i])) for i in whole[:most]]
