"""Static word embeddings: words of like meaning are near, without a network or a model to run.

They are those that the package ``wordllama`` has in its wheel (32,000 pieces of words, 256
dimensions, English above all): two files, which are read here; its code is not run.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"
_REMEMBERED = 200_000  # words, 100 MB


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
    """A vector for every word: the mean of its pieces'. Several threads may ask.

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
        self._lock = Lock()
        self._forget()

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of `words`, float32 (n_words, dimensions)."""
        with self._lock:
            new = [word for word in dict.fromkeys(words) if word not in self._number]
            if len(self._number) + len(new) > _REMEMBERED:
                self._forget()
                new = list(dict.fromkeys(words))
            if new:
                self._vectors.extend(self._read(new).ravel())
                self._number.update(zip(new, count(len(self._number)), strict=False))
            at = np.fromiter(map(self._number.__getitem__, words), np.intp, len(words))
            return self._vectors.data.reshape(-1, self.dimensions)[at].astype(np.float32)

    def _forget(self) -> None:
        self._number: dict[str, int] = {}
        self._vectors = GrowingArray(np.float16)

    def _read(self, words: list[str]) -> NDArray[np.float16]:
        encoded = self._tokenizer.encode_batch_fast(words, add_special_tokens=False)
        pieces = np.array([len(each.ids) for each in encoded])
        found = np.zeros((len(words), self.dimensions), np.float16)
        some = np.flatnonzero(pieces)  # a word without pieces means nothing
        if len(some):
            starts = (np.cumsum(pieces) - pieces)[some]
            rows = self._pieces[[i for each in encoded for i in each.ids]].astype(np.float32)
            found[some] = np.add.reduceat(rows, starts) / pieces[some, None]
        return found
