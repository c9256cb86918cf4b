"""Options of the apprentice, checked; the groups of features; the dense inputs of a URL."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from focuscrawl.apprentice.link_features import MAX_TOKENS
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Init = TypeVar("Init", bound=Callable[..., None])

#: hashed features of a link (u, v)
LINK_GROUPS = {
    "context": "words around the link by DOM offset [A02 section 2.2.2]",
    "anchor": "words of the anchor, wherever they stand",
    "section": "words of the heading above the link",
    "site": "v on the same host as u, in its directory, below or above it",
}
#: hashed features of the page u
PAGE_GROUPS = {
    "title": "words of the title of u",
    "headings": "words of the headings of u",
    "classes": "top classes of u and all prefixes of their paths [A02 section 3.8]",
    "probabilities": "the probability of every class of u, as a value [A02 section 2.2.3]",
}
#: those of them that take the critic's probabilities
CLASS_GROUPS = frozenset({"classes", "probabilities"})
#: hashed features of v
URL_GROUPS = {"url": "words of v's URL, its host and directories"}
#: numbers, see `INPUTS`
INPUT_GROUPS = {
    "relevance": "R(u) over the links: mean, greatest; their number",
    "reading": "what the critic says of the words of the links and the URL",
    "surroundings": "what the critic says of the words around the links",
    "rates": "how the fetches in v's directory and of URLs of v's pattern went; aliases of v",
    "cocitation": "(HIGH|LOW, d): followed links within d_max leaves [A02 section 2.2.3]",
}
GROUPS = {**LINK_GROUPS, **PAGE_GROUPS, **URL_GROUPS, **INPUT_GROUPS}
DEFAULT_GROUPS = ("context", "url", "title", "relevance", "reading", "surroundings", "rates")
LEARNERS = ("logistic", "regression", "nb")
EVIDENCE = ("all", "first")
#: links into a URL that are learned from, the first found: bounds the cost of popular URLs
MAX_LINKS = 16
_MINIMUM = {"batch": 1, "memory": 1, "links": 1, "d_max": 0, "tokens": 0, "links_into": 0}

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

#: weights of the inputs before anything is learned: the baseline, tempered by the evidence of
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


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an apprentice: the only place of their names, defaults and checks.

    Parameters
    ----------
    batch, growth : fetches from one lesson to the next: `batch`, and later `growth` times those
        made, since a lesson costs in proportion to the links known
    memory : judged URLs learned from, the latest: bounds the cost of a lesson
    links : links known, about: when there are more, the least promising pages are forgotten, see
        `focuscrawl.apprentice.evidence`; bounds memory, and again the cost of a lesson
    groups : names of `GROUPS`, the kinds of features looked at
    d_max : DOM offsets looked at on either side of a link
    learner : ``logistic``, ``regression`` (continuous [A02 section 4]) or ``nb`` (two buckets, the
        paper's own [A02 section 2.3])
    evidence : ``all`` known links into a URL, or its ``first`` one only, as the paper has it
    contrast : learn only from this share of the instances, those whose R(v) differs most from
        R(u) [A02 section 4]
    tunnel : what an irrelevant page opened counts as its value, see `TunnelRewards`
    graded : while hardly a fetch goes wrong, relevance is learned by its log-odds, see `Labels`
    counts : a word around a link counts as often as a leaf has it, as in the paper, not once
    tokens : words before, inside and after a link that are looked at, the nearest; 0: all within
        `d_max`, as in the paper
    links_into : links into a URL that are learned from, the first found; 0: all

    Raises
    ------
    UserError
        A value that cannot be.
    """

    batch: int = 10
    growth: float = 0.01
    memory: int = 3000
    links: int = 1_000_000
    groups: tuple[str, ...] = DEFAULT_GROUPS
    d_max: int = 5
    learner: str = "logistic"
    evidence: str = "all"
    contrast: float = 1.0
    tunnel: bool = True
    graded: bool = True
    counts: bool = False
    tokens: int = MAX_TOKENS
    links_into: int = MAX_LINKS

    def __post_init__(self) -> None:
        groups: object = self.groups
        if not isinstance(groups, list | tuple) or not all(isinstance(n, str) for n in groups):
            raise UserError(f"groups must be a list of names, not {groups!r}")
        object.__setattr__(self, "groups", tuple(groups))
        for name in self.groups:
            if name not in GROUPS:
                near = difflib.get_close_matches(name, GROUPS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(GROUPS)}"
                raise UserError(f"the apprentice has no group of features {name!r}: {hint}")
        for name, value, known in (
            ("learner", self.learner, LEARNERS),
            ("evidence", self.evidence, EVIDENCE),
        ):
            if value not in known:
                raise UserError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        for name, least in _MINIMUM.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UserError(f"{name} must be a whole number, {least} or more, not {value!r}")
        if not _is_number(self.growth) or not 0.0 <= self.growth < float("inf"):
            raise UserError(f"growth must be a number, 0 or more, not {self.growth!r}")
        if not _is_number(self.contrast) or not 0.0 < self.contrast <= 1.0:
            raise UserError(f"contrast must be above 0 and at most 1, not {self.contrast!r}")
        for name in ("tunnel", "graded", "counts"):
            switch = getattr(self, name)
            if not isinstance(switch, bool):
                raise UserError(f"{name} must be true or false, not {switch!r}")

    @property
    def max_links_per_url(self) -> int:
        """Links into a URL that are learned from, at most."""
        return self.links_into or sys.maxsize

    @property
    def page_options(self) -> tuple[object, ...]:
        """The options that what is kept of a page depends on."""
        return frozenset(self.groups), self.d_max, self.counts, self.tokens

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Options:
        """Return the options among the names in `given`, as a crawl's identity has them."""
        return cls(**{each.name: given[each.name] for each in fields(cls) if each.name in given})

    def with_model_options(self, kept: Mapping[str, Any]) -> Options:
        """Return these options, but those `kept` that the weights of an apprentice are for."""
        names = ("groups", "d_max", "counts", "tokens", "learner", "evidence")
        return replace(self, **{name: getattr(Options.from_mapping(kept), name) for name in names})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def with_options_signature(init: Init) -> Init:
    """Give an ``__init__`` a signature with the fields of `Options` in place of its ``**options``.

    Users' options are checked against the signature of a strategy, and documented by it.
    """
    written = signature(init)
    *first, begin_with, _ = written.parameters.values()
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(Options)
    ]
    init.__signature__ = written.replace(  # type: ignore[attr-defined]
        parameters=[*first, *options, begin_with]
    )
    return init


def input_names(options: Options) -> tuple[str, ...]:
    """Return the names of the inputs of an apprentice with these options; k of them."""
    if "cocitation" not in options.groups:
        return INPUTS
    offsets = range(-options.d_max, options.d_max + 1)
    return (
        *INPUTS,
        *(f"({level},{d:+d})" for level in ("HIGH", "LOW") for d in offsets),
    )


def active_inputs(options: Options) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return float64 (k,): 1 for the inputs whose group is on, 0 for the others."""
    on = [_GROUP_OF.get(name, "relevance") in options.groups for name in INPUTS]
    extra = len(input_names(options)) - len(INPUTS)
    return np.array([*on, *[True] * extra], np.float64)


def prior_weights(options: Options) -> list[float]:
    """Return the prior weights of the inputs, then that of the intercept: k + 1."""
    names = input_names(options)
    weights = np.array([PRIOR_WEIGHTS.get(name, 0.0) for name in names])
    return [*(weights * active_inputs(options)).tolist(), PRIOR_INTERCEPT]
