"""Pages as vectors: TF-IDF of their words and static embeddings of what these mean."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.critic.bag_of_words import BagRows, Vocabulary
from focuscrawl.critic.languages import ENGLISH, everyday_words, page_frequency, to_terms
from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.languages import LanguageShares


#: two files of the package ``wordllama``, whose code is not run
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
#: the document frequency of a word is counted as if so many pages of its language had been read
_PRIOR_PAGES = 100.0
_MIN_PAGES = 2  # words on fewer pages are left out
_FEW_PAGES = 100  # pages; of fewer, every word is kept


def word_vectors_installed() -> bool:
    """Return whether the extra ``embeddings`` is there."""
    return all(find_spec(name) for name in ("wordllama", "safetensors", "tokenizers"))


@lru_cache(maxsize=1)
def load_word_vectors() -> WordVectors:
    """Return those of this process: they are read once.

    Raises
    ------
    UserError
        The extra ``embeddings`` is not installed.
    """
    return WordVectors()


class Subwords(NamedTuple):
    """What words are made of.

    Attributes
    ----------
    ids : integer (n_subwords,), numbers of subwords, word after word
    starts : int64 (n_words + 1,), word i has ``ids[starts[i]:starts[i + 1]]``
    """

    ids: NDArray[np.integer]
    starts: NDArray[np.int64]

    @classmethod
    def from_lengths(cls, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> Subwords:
        """Divide `ids` among words that have so many each."""
        return cls(ids, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


class WordVectors:
    """A vector for every word, the mean of its subwords': words of like meaning are near.

    They are static embeddings of 32,000 subwords of words in 256 dimensions, of English above all.

    Raises
    ------
    UserError
        The extra ``embeddings`` is not installed.

    Attributes
    ----------
    n_subwords : whose vectors are known
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
        self._subword_vectors = vectors  # float16 (n_subwords, dimensions)
        self.n_subwords, self.dimensions = vectors.shape

    def embed(self, words: Sequence[str]) -> NDArray[np.float16]:
        """Return the vectors of `words`, float16 (n_words, dimensions); some 20 us a word."""
        return self.embed_subwords(self.split(words))

    def split(self, words: Sequence[str]) -> Subwords:
        """Take `words` to subwords, which is nearly all of those 20 us."""
        encoded = self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
        ids = np.array([i for each in encoded for i in each.ids], np.int64)
        return Subwords.from_lengths(ids, np.array([len(each.ids) for each in encoded], np.int64))

    def embed_subwords(self, subwords: Subwords) -> NDArray[np.float16]:
        """Return the vectors of words in subwords, float16 (n_words, dimensions)."""
        lengths = np.diff(subwords.starts)
        order = np.argsort(-lengths)  # the words with the most subwords first
        starts, lengths = subwords.starts[order], lengths[order]
        distinct, number = np.unique(subwords.ids, return_inverse=True)
        vectors = self._subword_vectors[distinct].astype(np.float32)
        total = np.zeros((len(lengths), self.dimensions), np.float32)
        for place in range(lengths.max(initial=0)):  # few words have more than three
            n = np.count_nonzero(lengths > place)
            total[:n] += vectors[number[starts[:n] + place]]
        total /= np.maximum(lengths, 1)[:, None]  # a word without subwords means nothing
        means = np.empty(total.shape, np.float16)
        means[order] = total
        return means

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        with needs("embeddings", "a critic with word embeddings"):
            from tokenizers import Tokenizer  # noqa: PLC0415 - an extra
        return Tokenizer.from_file(str(self._folder / _TOKENIZER))


class PageRows(NamedTuple):
    """Pages as vectors, in two parts.

    Attributes
    ----------
    words : TF-IDF, each row of unit length (or 0): (1 + log n(u,t)) idf(t)
    meaning : float32 (n_rows, dimensions), mean embedding of the words of a page less the
        centre, each row of unit length (or 0); 0 columns without embeddings
    """

    words: BagRows
    meaning: NDArray[np.float32]


class PageVectors:
    """Makes vectors of bags of words.

    Parameters
    ----------
    words : the vocabulary, distinct; subwords of words in languages other than English. Where the
        commonest come first, pages are read faster
    idf : float32 (n_words,), inverse document frequencies
    centre : float32 (dimensions,), mean embedding of pages; None for vectors without embeddings
    languages : that pages are in
    subwords : that the words are made of; None: to be found out, where there are embeddings
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
        """Learn document frequencies and the centre of meaning.

        The vocabulary is that of `bags` but for the rarest words, and everyday words,
        whose meaning is known without a page that has them.

        Parameters
        ----------
        bags : pages, a sample of what will be read
        kept : words that are kept, however rare
        embeddings : whether to use them, on pages that are in English above all; they must be
            installed
        languages : that pages are in
        """
        read = to_terms(bags, languages)
        (known,) = to_terms([dict.fromkeys(kept, 1)], languages)
        pages_with = Counter(chain.from_iterable(read))
        least = _MIN_PAGES if len(bags) >= _FEW_PAGES else 1
        common = {word for word, pages in pages_with.items() if pages >= least}
        words = sorted(common.union(known, everyday_words(languages)))
        df = np.array([pages_with[word] for word in words])
        df = df + _PRIOR_PAGES * page_frequency(words, languages)
        order = np.argsort(-df, kind="stable")  # what a page looks up lies together in memory
        words, df = [words[i] for i in order.tolist()], df[order]
        idf = np.log((1.0 + len(bags) + _PRIOR_PAGES) / (1.0 + df)) + 1.0
        found = cls(words, idf.astype(np.float32), None, languages)
        if embeddings and languages[0][0] == "en":  # they know no other language well
            found._embeddings = _Embeddings(found.words)
            found.centre = found._embeddings.means(found._vocabulary.transform(read)).mean(axis=0)
        return found

    @property
    def dimensions(self) -> int:
        """Columns of `PageRows.meaning`."""
        return 0 if self.centre is None else len(self.centre)

    def transform(self, bags: Sequence[Bag]) -> PageRows:
        """Return the vectors of n pages."""
        rows = self._vocabulary.transform(to_terms(bags, self.languages))
        return PageRows(tf_idf(rows, self.idf), self._meaning(rows))

    def _meaning(self, rows: BagRows) -> NDArray[np.float32]:
        if self._embeddings is None or self.centre is None:
            return np.zeros((len(rows), 0), np.float32)
        mean = self._embeddings.means(rows)
        for row in (rows.starts[1:] > rows.starts[:-1]).nonzero()[0].tolist():
            mean[row] -= self.centre  # a page of no words means nothing
        norm = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
        mean /= np.maximum(norm, 1e-12)
        return mean


def tf_idf(rows: BagRows, idf: NDArray[np.floating]) -> BagRows:
    """Weigh words by (1 + log n(u,t)) idf(t), and make each row of unit length, or 0.

    scikit-learn's `TfidfTransformer` adds up squares in another order, which would change the last
    digits of every judgement, and takes dozens of times as long for a single page.

    Parameters
    ----------
    rows : n(u,t)
    idf : (n_words,), inverse document frequencies
    """
    data = (1.0 + np.log(rows.counts)) * idf.take(rows.ids)
    for start, end in pairwise(rows.starts.tolist()):  # a page is the same among others
        data[start:end] /= max(sqrt(data[start:end].dot(data[start:end])), 1e-12)
    return BagRows(rows.ids, data, rows.starts)


class _Embeddings:
    """The embeddings of a vocabulary.

    Those of words whose subwords are known are made at once. It takes longer to find the subwords,
    so that other words are looked up when a page first has them.
    """

    def __init__(self, words: Sequence[str], subwords: Subwords | None = None) -> None:
        self._words = words
        self._source = load_word_vectors()
        # the source has float16, which would be converted for every page
        self._vectors = np.zeros((len(words), self._source.dimensions), np.float32)
        self._unknown = None if subwords is not None else np.ones(len(words), np.bool_)
        if subwords is not None:
            self._vectors[:] = self._source.embed_subwords(subwords)

    def _load_missing(self, rows: BagRows, unknown: NDArray[np.bool_]) -> None:
        new = rows.ids[unknown[rows.ids]]
        if len(rows) > 1:  # that of a page has no word twice
            new = np.unique(new)
        if len(new):
            self._vectors[new] = self._source.embed([self._words[i] for i in new.tolist()])
            unknown[new] = False  # after them: another thread may be reading

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
