"""The dense inputs of a URL: their names, the groups they belong to, and their prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options

#: the dense inputs of a URL, in their order
INPUTS = (
    "mean_relevance",  # log-odds of the shrunken mean of R(u) over the links
    "best_relevance",  # the greatest R(u): the baseline's score
    "links",  # log of their number
    "reading",  # the critic's log-odds by the words of the links and the URL, mean
    "prefix",  # rate of the directory
    "alias",  # a URL that is probably the same page was fetched
    "alias_query",  # the same, but for its query
    "pattern",  # rate of URLs that look alike
    "around",  # the critic's log-odds by the words around the links, mean
)
_GROUP_OF = {
    "reading": "reading",
    "prefix": "rates",
    "pattern": "rates",
    "alias": "rates",
    "alias_query": "rates",
    "around": "surroundings",
}  # all others: relevance

#: what is believed of them before anything is learned: the baseline, tempered by the evidence of
#: many links, by the words of the link, and by how URLs that look alike have done
PRIOR_WEIGHTS = {
    "mean_relevance": 2.0,
    "best_relevance": 1.0,
    "reading": 2.0,
    "alias": -2.0,
    "pattern": 1.0,
    "around": 2.0,
}
PRIOR_INTERCEPT = -1.0


def input_names(options: Options) -> tuple[str, ...]:
    """Return the names of the inputs of an apprentice with these options; k of them."""
    if "cocitation" not in options.groups:
        return INPUTS
    offsets = range(-options.d_max, options.d_max + 1)
    return (
        *INPUTS,
        *(f"({level},{d:+d})" for level in ("HIGH", "LOW") for d in offsets),
    )


def switched_on(options: Options) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return float64 (k,): 1 for the inputs whose group is on, 0 for the others."""
    on = [_GROUP_OF.get(name, "relevance") in options.groups for name in INPUTS]
    extra = len(input_names(options)) - len(INPUTS)
    return np.array([*on, *[True] * extra], np.float64)


def prior_of(options: Options) -> list[float]:
    """Return the prior weights of the inputs, then that of the intercept: k + 1."""
    names = input_names(options)
    weights = np.array([PRIOR_WEIGHTS.get(name, 0.0) for name in names])
    return [*(weights * switched_on(options)).tolist(), PRIOR_INTERCEPT]
