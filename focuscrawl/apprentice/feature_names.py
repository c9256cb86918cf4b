"""Names of hashed features: what they may stand for is hashed again and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.feature_extraction import (
    ANCHOR,
    CLASS,
    HEADING,
    PROBABILITY,
    SECTION,
    TITLE,
    class_prefixes,
)
from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.instances import SPACE
from focuscrawl.apprentice.link_context import OFFSET_SALT
from focuscrawl.apprentice.page_facts import BITS
from focuscrawl.apprentice.url_features import PREFIX, PREFIXES, WORD, address_keys, address_words
from focuscrawl.apprentice.url_relations import RELATIONS, SITE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options

_LINK, _URL, _PAGE = 0, SPACE, 2 * SPACE


def name_features(
    features: NDArray[np.integer],
    *,
    url: str,
    words: Sequence[str],
    classes: Sequence[str],
    options: Options,
) -> dict[int, str]:
    """Find out what hashed features stand for, by hashing again all that they may stand for.

    Parameters
    ----------
    features : numbers in the space of `focuscrawl.apprentice.instances.make_instances`
    url : the URL they are features of
    words : of the pages that link to it
    classes : of the critic
    options : of the apprentice

    Returns
    -------
    Names by feature; what was seen under another vocabulary has none
    """
    wanted = np.unique(features)
    names: dict[int, str] = {}

    def note(space: int, salt: int, texts: Sequence[str], form: str) -> None:
        if not len(texts):
            return
        numbers = bucket(WordHashes()(texts), salt, BITS) + space
        for at in np.flatnonzero(np.isin(numbers, wanted)).tolist():
            names.setdefault(int(numbers[at]), form.format(texts[at]))

    for space, salt, form in _word_forms(options):
        note(space, salt, words, form)
    note(_PAGE, CLASS, [*dict.fromkeys(_prefixes(classes))], "on a page of {}")
    note(_PAGE, PROBABILITY, classes, "on a page that may be of {}")
    note(_URL, WORD, address_words([url])[0], "'{}' in the URL")
    for number, prefix in _prefixes_of(url):
        names.setdefault(
            int(bucket(np.array([number], np.uint64), PREFIX, BITS)[0]) + _URL, prefix
        )
    relations = bucket(np.arange(len(RELATIONS), dtype=np.uint64), SITE, BITS)
    for feature, relation in zip(relations.tolist(), RELATIONS, strict=True):
        names.setdefault(feature, f"link to {relation}")
    return {feature: names[feature] for feature in wanted.tolist() if feature in names}


def _word_forms(options: Options) -> Iterable[tuple[int, int, str]]:
    on = options.groups
    for group, space, salt, form in (
        ("anchor", _LINK, ANCHOR, "'{}' in the anchor"),
        ("section", _LINK, SECTION, "'{}' in the heading above"),
        ("title", _PAGE, TITLE, "'{}' in the page's title"),
        ("headings", _PAGE, HEADING, "'{}' in a heading"),
    ):
        if group in on:
            yield space, salt, form
    if "context" in on:
        for d in sorted(range(-options.d_max, options.d_max + 1), key=abs):
            where = "in the link" if d == 0 else f"{abs(d)} {'before' if d < 0 else 'after'}"
            yield _LINK, OFFSET_SALT + d, f"'{{}}' {where}"


def _prefixes(classes: Sequence[str]) -> Iterable[str]:
    for name in classes:
        yield from class_prefixes(name)


def _prefixes_of(url: str) -> Iterable[tuple[int, str]]:
    address = url.partition("//")[2].partition("?")[0]
    parts = address.split("/")
    for i, number in enumerate(address_keys(url)[:PREFIXES]):
        if number:
            yield number, "on " + "/".join(parts[: i + 1])
