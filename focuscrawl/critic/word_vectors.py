"""Static word embeddings: words of like meaning are near, without a network or a model to run.

They are those that the package ``wordllama`` has in its wheel (32,000 pieces of words, 256
dimensions, English above all): two files, which are read here; its code is not run.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"


def word_vectors_installed() -> bool:
    """Tell whether the extra ``embeddings`` is there."""
    return all(find_spec(name) for name in ("wordllama", "safetensors", "tokenizers"))


@lru_cache(maxsize=1)
def word_vectors() -> WordVectors:
    """Return those of this process: they are read once.

    Raises
    ------
    UserError
        The extra ``embeddings`` is not installed.
    """
    return WordVectors()


class WordVectors:
    """A vector for every word: the mean of its pieces'.

    Raises
    ------
    UserError
        The extra ``embeddings`` is not installed.

    Attributes
    ----------
    dimensions : of a vector
    """

    def __init__(self) -> None:
        with needs("embeddings", "a critic with word embeddings"):
            from safetensors.numpy import load_file  # noqa: PLC0415 - an extra
            from tokenizers import Tokenizer  # noqa: PLC0415

            spec = find_spec("wordllama")
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(name="wordllama")
            folder = Path(spec.submodule_search_locations[0])
        (pieces,) = load_file(folder / _WEIGHTS).values()
        self._pieces = pieces  # float16 (n_pieces, dimensions)
        self._tokenizer = Tokenizer.from_file(str(folder / _PIECES))
        self.dimensions = int(pieces.shape[1])

    def of(self, words: Sequence[str]) -> NDArray[np.float16]:
        """Return the vectors of `words`, float16 (n_words, dimensions); some 20 us a word."""
        encoded = self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
        pieces = np.array([len(each.ids) for each in encoded])
        found = np.zeros((len(words), self.dimensions), np.float16)
        some = np.flatnonzero(pieces)  # a word without pieces means nothing
        if len(some):
            starts = (np.cumsum(pieces) - pieces)[some]
            rows = self._pieces[[i for each in encoded for i in each.ids]].astype(np.float32)
            found[some] = np.add.reduceat(rows, starts) / pieces[some, None]
        return found
