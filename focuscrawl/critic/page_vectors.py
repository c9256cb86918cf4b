"""Page vectors: the TF-IDF of the words of a page, and the mean static embedding of the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.critic.bag_of_words import BagRows, Vocabulary
from focuscrawl.critic.languages import ENGLISH, everyday_words, page_frequency, to_terms
from focuscrawl.foundation.extras import require_extra

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.foundation.arrays import Bools, Ints


#: two data files of the package ``wordllama``; its code is not run
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
#: number of average pages of a language that are added to the document frequencies
_PRIOR_PAGES = 100.0
_MIN_PAGES = 2  # words on fewer pages are left out
_FEW_PAGES = 100  # with fewer pages, every word is kept


def word_vectors_installed() -> bool:
    """Return whether the extra ``embeddings`` is installed."""
    return all(find_spec(name) for name in ("wordllama", "safetensors", "tokenizers"))


@lru_cache(maxsize=1)
def load_word_vectors() -> WordVectors:
    """Return the word vectors, loaded once per process; raises the errors of `WordVectors`."""
    return WordVectors()


class Subwords(NamedTuple):
    """Words divided into subwords.

    Attributes
    ----------
    ids : integer (n_subwords,), indices of subwords, word after word
    starts : int64 (n_words + 1,); word i has ``ids[starts[i]:starts[i + 1]]``
    """

    ids: NDArray[np.integer]
    starts: Ints

    @classmethod
    def from_lengths(cls, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> Subwords:
        """Divide subword `ids` among words; `lengths` (n_words,) has each word's subword count."""
        return cls(ids, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


class WordVectors:
    """Static word embeddings, mainly for English; a word's vector is its subwords' mean vector.

    Raises
    ------
    UserError
        If the extra ``embeddings`` is not installed.

    Attributes
    ----------
    n_subwords : number of subwords with a vector, about 32,000
    dimensions : number of dimensions of a vector, 256
    """

    def __init__(self) -> None:
        with require_extra("embeddings", "a critic with word embeddings"):
            from safetensors.numpy import load_file  # noqa: PLC0415 - an extra

            spec = find_spec("wordllama")
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(name="wordllama")
            self._folder = Path(spec.submodule_search_locations[0])
        (vectors,) = load_file(self._folder / _WEIGHTS).values()
        self._subword_vectors = vectors  # float16 (n_subwords, dimensions)
        self.n_subwords, self.dimensions = vectors.shape

    def embed(self, words: Sequence[str]) -> NDArray[np.float16]:
        """Return the embeddings of `words`, float16 (n_words, dimensions), in 20 µs per word."""
        return self.embed_subwords(self.split(words))

    def split(self, words: Sequence[str]) -> Subwords:
        """Split `words` into subwords; the split takes nearly all of the time of `embed`."""
        encoded = self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
        ids = np.array([i for each in encoded for i in each.ids], np.int64)
        return Subwords.from_lengths(ids, np.array([len(each.ids) for each in encoded], np.int64))

    def embed_subwords(self, subwords: Subwords) -> NDArray[np.float16]:
        """Return the embeddings of words, given as subwords, float16 (n_words, dimensions)."""
        lengths = np.diff(subwords.starts)
        order = np.argsort(-lengths)  # the words with the most subwords first
        starts, lengths = subwords.starts[order], lengths[order]
        distinct, index = np.unique(subwords.ids, return_inverse=True)
        vectors = self._subword_vectors[distinct].astype(np.float32)
        total = np.zeros((len(lengths), self.dimensions), np.float32)
        for place in range(lengths.max(initial=0)):  # few words have more than three
            n = np.count_nonzero(lengths > place)
            total[:n] += vectors[index[starts[:n] + place]]
        total /= np.maximum(lengths, 1)[:, None]  # a word without subwords has the vector 0
        means = np.empty(total.shape, np.float16)
        means[order] = total
        return means

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        with require_extra("embeddings", "a critic with word embeddings"):
            from tokenizers import Tokenizer  # noqa: PLC0415 - an extra
        return Tokenizer.from_file(str(self._folder / _TOKENIZER))


class PageRows(NamedTuple):
    """Vectors of pages: the TF-IDF of words, and mean word embeddings.

    Attributes
    ----------
    words : TF-IDF (1 + log n(u,t)) idf(t); each row has unit length, or is 0
    meaning : float32 (n_rows, dimensions), mean embedding of the words of a page minus the
        centre; each row has unit length, or is 0. No columns without embeddings
    """

    words: BagRows
    meaning: NDArray[np.float32]


class PageVectors:
    """Transforms bags of words into page vectors.

    Parameters
    ----------
    words : vocabulary of distinct words, or n-grams in languages other than English. Pages are
        transformed faster if the most frequent words come first
    idf : float32 (n_words,), inverse document frequencies
    centre : float32 (dimensions,), mean embedding of pages; None for vectors without embeddings
    languages : languages of the pages
    subwords : subwords of `words`; None to compute them if the vectors have embeddings
    """

    def __init__(
        self,
        words: Sequence[str],
        idf: NDArray[np.float32],
        centre: NDArray[np.float32] | None,
        languages: LanguageShares = ENGLISH,
        subwords: Subwords | None = None,
    ) -> None:
        self.words = tuple(words)
        self.idf = idf
        self.centre = centre
        self.languages = languages
        self._vocabulary = Vocabulary(self.words)
        self._embeddings = None if centre is None else _Embeddings(self.words, subwords)

    @classmethod
    def fit(
        cls,
        bags: Sequence[Bag],
        kept: Collection[str] = (),
        *,
        embeddings: bool,
        languages: LanguageShares = ENGLISH,
    ) -> Self:
        """Fit the vocabulary, the document frequencies and the mean embedding to pages.

        The vocabulary consists of everyday words of `languages` and of all words of `bags` except
        the rarest.

        Parameters
        ----------
        bags : sample of the pages that will be transformed
        kept : words that are kept even if they are rare
        embeddings : whether to use embeddings if most pages are in English; the extra
            ``embeddings`` must be installed
        languages : languages of the pages
        """
        read = to_terms(bags, languages)
        (known,) = to_terms([dict.fromkeys(kept, 1)], languages)
        pages_with = Counter(chain.from_iterable(read))
        least = _MIN_PAGES if len(bags) >= _FEW_PAGES else 1
        common = {word for word, pages in pages_with.items() if pages >= least}
        words = sorted(common.union(known, everyday_words(languages)))
        df = np.array([pages_with[word] for word in words])
        df = df + _PRIOR_PAGES * page_frequency(words, languages)
        order = np.argsort(-df, kind="stable")  # keeps frequent words together in memory
        words, df = [words[i] for i in order.tolist()], df[order]
        idf = np.log((1.0 + len(bags) + _PRIOR_PAGES) / (1.0 + df)) + 1.0
        found = cls(words, idf.astype(np.float32), None, languages)
        if embeddings and languages[0][0] == "en":  # embeddings of other languages are poor
            found._embeddings = _Embeddings(found.words)
            found.centre = found._embeddings.means(found._vocabulary.transform(read)).mean(axis=0)
        return found

    @property
    def dimensions(self) -> int:
        """Number of columns of `PageRows.meaning`."""
        return 0 if self.centre is None else len(self.centre)

    def transform(self, bags: Sequence[Bag]) -> PageRows:
        """Return the vectors of pages."""
        rows = self._vocabulary.transform(to_terms(bags, self.languages))
        return PageRows(tf_idf(rows, self.idf), self._meaning(rows))

    def _meaning(self, rows: BagRows) -> NDArray[np.float32]:
        if self._embeddings is None or self.centre is None:
            return np.zeros((len(rows), 0), np.float32)
        mean = self._embeddings.means(rows)
        for row in (rows.starts[1:] > rows.starts[:-1]).nonzero()[0].tolist():
            mean[row] -= self.centre  # a page without words keeps the vector 0
        norm = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
        mean /= np.maximum(norm, 1e-12)
        return mean


def tf_idf(rows: BagRows, idf: NDArray[np.floating]) -> BagRows:
    """Return TF-IDF vectors of unit length; the weight of a word is idf * (1 + log(frequency)).

    The class `TfidfTransformer` of scikit-learn adds squares in another order, which would change
    the last digits of every judgement. For a single page, scikit-learn's `TfidfTransformer` takes
    dozens of times as long.
    """
    data = (1.0 + np.log(rows.counts)) * idf.take(rows.ids)
    for start, end in pairwise(rows.starts.tolist()):  # the result is independent of other rows
        data[start:end] /= max(sqrt(data[start:end].dot(data[start:end])), 1e-12)
    return BagRows(rows.ids, data, rows.starts)


class _Embeddings:
    """The embeddings of a vocabulary.

    With known subwords, all embeddings are computed at once. Otherwise dividing words takes long,
    so the embedding of a word is computed when a page first has the word.
    """

    def __init__(self, words: Sequence[str], subwords: Subwords | None = None) -> None:
        self._words = words
        self._source = load_word_vectors()
        # float16, as in the source, would have to be converted for every page
        self._vectors = np.zeros((len(words), self._source.dimensions), np.float32)
        self._unknown = None if subwords is not None else np.ones(len(words), np.bool_)
        if subwords is not None:
            self._vectors[:] = self._source.embed_subwords(subwords)

    def _load_missing(self, rows: BagRows, unknown: Bools) -> None:
        new = rows.ids[unknown[rows.ids]]
        if len(rows) > 1:  # a single row has no duplicates
            new = np.unique(new)
        if len(new):
            self._vectors[new] = self._source.embed([self._words[i] for i in new.tolist()])
            unknown[new] = False  # set last, because another thread may be reading

    def means(self, rows: BagRows) -> NDArray[np.float32]:
        """Return the mean embedding of the words of each row, float32 (n_rows, dimensions)."""
        if self._unknown is not None:
            self._load_missing(rows, self._unknown)
        means = np.zeros((len(rows), self._vectors.shape[1]), np.float32)
        weights = rows.counts.astype(np.float32)
        for row, (start, end) in enumerate(pairwise(rows.starts.tolist())):
            if end > start:
                counts = weights[start:end]
                means[row] = counts @ self._vectors.take(rows.ids[start:end], 0) / counts.sum()
        return means
