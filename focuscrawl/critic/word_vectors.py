"""Static word embeddings: words of like meaning are near, without a network or a model to run.

They are those that the package ``wordllama`` has in its wheel (32,000 pieces of words, 256
dimensions, English above all): two files, which are read here; its code is not run.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

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


class Pieces(NamedTuple):
    """What words are made of.

    Attributes
    ----------
    ids : integer (n_pieces,), numbers of pieces, word after word
    starts : int64 (n_words + 1,), word i has ``ids[starts[i]:starts[i + 1]]``
    """

    ids: NDArray[np.integer]
    starts: NDArray[np.int64]

    @classmethod
    def of_lengths(cls, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> Pieces:
        """Divide `ids` among words that have so many each."""
        return cls(ids, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


class WordVectors:
    """A vector for every word: the mean of its pieces'.

    Raises
    ------
    UserError
        The extra ``embeddings`` is not installed.

    Attributes
    ----------
    n_pieces : whose vectors are known
    dimensions : of a vector
    """

    def __init__(self) -> None:
        with needs("embeddings", "a critic with word embeddings"):
            from safetensors.numpy import load_file  # noqa: PLC0415 - an extra

            spec = find_spec("wordllama")
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(name="wordllama")
            self._folder = Path(spec.submodule_search_locations[0])
        (vectors,) = load_file(self._folder / _WEIGHTS).values()
        self._of_pieces = vectors  # float16 (n_pieces, dimensions)
        self.n_pieces, self.dimensions = vectors.shape

    def of(self, words: Sequence[str]) -> NDArray[np.float16]:
        """Return the vectors of `words`, float16 (n_words, dimensions); some 20 us a word."""
        return self.of_pieces(self.pieces(words))

    def pieces(self, words: Sequence[str]) -> Pieces:
        """Take `words` to pieces, which is nearly all of those 20 us."""
        encoded = self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
        ids = np.array([i for each in encoded for i in each.ids], np.int64)
        return Pieces.of_lengths(ids, np.array([len(each.ids) for each in encoded], np.int64))

    def of_pieces(self, pieces: Pieces) -> NDArray[np.float16]:
        """Return the vectors of words in pieces, float16 (n_words, dimensions)."""
        lengths = np.diff(pieces.starts)
        order = np.argsort(-lengths)  # the words with the most pieces first
        starts, lengths = pieces.starts[order], lengths[order]
        distinct, number = np.unique(pieces.ids, return_inverse=True)
        of_pieces = self._of_pieces[distinct].astype(np.float32)
        total = np.zeros((len(lengths), self.dimensions), np.float32)
        for place in range(lengths.max(initial=0)):  # few words have more than three
            n = np.count_nonzero(lengths > place)
            total[:n] += of_pieces[number[starts[:n] + place]]
        total /= np.maximum(lengths, 1)[:, None]  # a word without pieces means nothing
        means = np.empty(total.shape, np.float16)
        means[order] = total
        return means

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        with needs("embeddings", "a critic with word embeddings"):
            from tokenizers import Tokenizer  # noqa: PLC0415 - an extra
        return Tokenizer.from_file(str(self._folder / _PIECES))
