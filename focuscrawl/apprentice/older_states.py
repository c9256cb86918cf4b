"""What apprentices kept before they had all the inputs that there are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.dense_inputs import INPUTS, input_names, prior_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Floats

_SINCE = INPUTS.index("around")  # the input that was added last


def with_all_weights(
    state: dict[str, NDArray[np.generic]], options: Options
) -> dict[str, NDArray[np.generic]]:
    """Return the state of a learner, with what is believed of an input that it did not have."""
    width, prior = len(input_names(options)), prior_of(options)
    return {
        name: np.insert(each, _SINCE, prior[_SINCE])
        if name in ("dense", "prior") and each.shape == (width,)
        else each
        for name, each in state.items()
    }


def with_all_inputs(inputs: Floats, options: Options) -> Floats:
    """Return the inputs of n URLs, float64 (n, k), with 0 for one that they did not have."""
    if inputs.shape[1] == len(input_names(options)):
        return inputs
    return np.insert(inputs, _SINCE, 0.0, axis=1)
