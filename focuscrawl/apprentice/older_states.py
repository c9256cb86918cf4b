"""What apprentices kept when they had other inputs than they have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.dense_inputs import INPUTS, input_names, prior_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Floats, Ints

#: the inputs there were, in their order; at first without the last
_EARLIER = (
    *("mean_relevance", "best_relevance", "links", "reading", "read_relevance", "agreement"),
    *("prefix", "hub", "siblings", "prefix_fetches", "best_hub", "relevant_links"),
    *("first_relevance", "alias", "alias_query", "pattern", "around"),
)


def with_todays_weights(
    state: dict[str, NDArray[np.generic]], options: Options
) -> dict[str, NDArray[np.generic]]:
    """Return the state of a learner; what it knew no weight of has that of the prior."""
    if "dense" not in state or (at := _places(len(state["dense"]) - 1, options)) is None:
        return state
    at, prior = np.append(at, len(state["dense"]) - 1), prior_of(options)
    changed = {name: np.where(at < 0, prior, state[name][at]) for name in ("dense", "prior")}
    return {**state, **changed}


def with_todays_inputs(inputs: Floats, options: Options) -> Floats:
    """Return the inputs of n URLs, float64 (n, k), with 0 for one that they did not have."""
    at = _places(inputs.shape[1], options)
    return inputs if at is None else np.where(at < 0, 0.0, inputs[:, at])


def _places(width: int, options: Options) -> Ints | None:
    """Return where each input is among `width` earlier ones, int64 (k,), -1 for nowhere.

    None if they are today's, or none that there ever were.
    """
    names = input_names(options)
    n = width - (len(names) - len(INPUTS))
    if not len(_EARLIER) - 1 <= n <= len(_EARLIER):
        return None
    earlier = (*_EARLIER[:n], *names[len(INPUTS) :])
    return np.array([earlier.index(name) if name in earlier else -1 for name in names])
