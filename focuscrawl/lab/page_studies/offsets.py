"""Where around a link the telling words are: figures 8 and 9 of [A02]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.page_studies.instances import D_MAX
from focuscrawl.lab.page_studies.tags import leaf_tags

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.lab.page_studies.instances import Instances
    from focuscrawl.lab.whole_web import WholeWeb
    from focuscrawl.webs.protocol import Web

_SEEN = 5  # links that a word has to be near at an offset, to be counted there
_PAGES = 200  # whose tags are looked at


def gain_table(instances: Instances) -> pd.DataFrame:
    """Return how much a word at an offset tells of the target [A02 figure 8].

    The mutual information, in bits, of "word t is at offset d of the link" and "the target is
    relevant", over the links. It does not depend on how far one looks (d_max).

    Returns
    -------
    One row an offset: ``terms``, words that at least five links have there; ``gain``, the mean
    over them; ``total``, the sum.
    """
    high = instances.high
    owner = np.repeat(np.arange(len(instances)), np.diff(instances.tokens.indptr))
    offset = (instances.tokens.offsets + D_MAX).astype(np.uint64)
    keys, feature = np.unique(
        (instances.tokens.words << np.uint64(8)) | offset, return_inverse=True
    )
    once = np.unique(feature.astype(np.int64) * (len(instances) + 1) + owner)
    feature, owner = once // (len(instances) + 1), once % (len(instances) + 1)
    present = np.bincount(feature, minlength=len(keys))
    in_high = np.bincount(feature, high[owner], len(keys))
    gain = mutual_information(present, in_high, len(high), int(high.sum()))
    at = (keys & np.uint64(255)).astype(np.int64)
    counted = present >= _SEEN
    terms = np.bincount(at[counted], minlength=2 * D_MAX + 1)
    total = np.bincount(at[counted], gain[counted], 2 * D_MAX + 1)
    return pd.DataFrame(
        {
            "offset": np.arange(-D_MAX, D_MAX + 1),
            "terms": terms,
            "gain": total / np.maximum(terms, 1),
            "total": total,
        }
    )


def mutual_information(
    present: NDArray[np.integer], in_high: NDArray[np.number], n: int, n_high: int
) -> NDArray[np.float64]:
    """Return the information, in bits, that each word's presence has of the bucket.

    Parameters
    ----------
    present, in_high : (k,), of the n instances those with the word, and of these the high ones
    n, n_high : all instances, and the high ones
    """
    total = np.zeros(len(present))
    for with_word, word in ((True, present), (False, n - present)):
        for is_high, bucket in ((True, n_high), (False, n - n_high)):
            both = in_high if is_high else present - in_high
            if not with_word:
                both = bucket - both
            joint = both / max(n, 1)
            apart = word / max(n, 1) * (bucket / max(n, 1))
            some = joint > 0
            total[some] += joint[some] * np.log2(joint[some] / apart[some])
    return np.maximum(total, 0.0)


def rate_table(instances: Instances) -> pd.DataFrame:
    """Return how much of the text around links is at each offset [A02 figure 9a].

    Returns
    -------
    One row an offset: ``rate``, the sum of theta(t, d) over t, the share of all words within
    `D_MAX` leaves that are at d.
    """
    count = np.bincount(instances.tokens.offsets + D_MAX, minlength=2 * D_MAX + 1)
    return pd.DataFrame(
        {"offset": np.arange(-D_MAX, D_MAX + 1), "rate": count / max(int(count.sum()), 1)}
    )


def tag_table(web: Web, whole: WholeWeb, instances: Instances) -> pd.DataFrame:
    """Return which elements the leaves around links are of [A02 figure 9b].

    Returns
    -------
    One row an offset and tag: ``share`` of the leaves at that offset that are of that element;
    ``empty``: the part of it that are leaves without text, as of ``br`` and ``img``. The
    first 200 pages are looked at.
    """
    counts: dict[tuple[int, str], list[int]] = {}
    at = np.arange(-D_MAX, D_MAX + 1)
    leaves = np.zeros(len(at), np.int64)
    pages = list(dict.fromkeys(instances.source.tolist()))[:_PAGES]
    for page in pages:
        answer = web.fetch(whole.urls[page])
        assert answer is not None
        tags, texts = leaf_tags(answer.body)
        of_page = instances.source == page
        left, right = instances.left[of_page], instances.right[of_page]
        place = np.where(at[:, None] < 0, left + at[:, None], right + at[:, None])
        inside = (place >= 0) & (place < len(tags))
        leaves += inside.sum(axis=1)
        names, number = np.unique(tags, return_inverse=True)
        offset, link = np.nonzero(inside)
        leaf = place[offset, link]
        shape = (len(at), len(names))
        flat = offset * len(names) + number[leaf]
        seen = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
        silent = np.bincount(flat, ~texts[leaf], shape[0] * shape[1]).reshape(shape)
        for i, j in zip(*np.nonzero(seen), strict=True):
            pair = counts.setdefault((int(at[i]), str(names[j])), [0, 0])
            pair[0] += int(seen[i, j])
            pair[1] += int(silent[i, j])
    total = dict(zip(at.tolist(), np.maximum(leaves, 1).tolist(), strict=True))
    rows = [
        (offset, tag, seen / total[offset], silent / total[offset])
        for (offset, tag), (seen, silent) in sorted(counts.items())
    ]
    return pd.DataFrame(rows, columns=["offset", "tag", "share", "empty"])
