"""Options of an apprentice and their checks; groups of features; dense inputs of a URL."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from focuscrawl.apprentice.link_features import MAX_TOKENS
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    Init = TypeVar("Init", bound=Callable[..., None])

#: groups of hashed features of a link from page u to URL v
LINK_GROUPS = {
    "context": "words around the link by DOM offset [A02 section 2.2.2]",
    "anchor": "words of the anchor, without offsets",
    "section": "words of the heading above the link",
    "site": "relation of v to u: another host, same host, same directory, below or above",
}
#: groups of hashed features of the page u
PAGE_GROUPS = {
    "title": "words of the title of u",
    "headings": "words of the headings of u",
    "classes": "top classes of u and all prefixes of their paths [A02 section 3.8]",
    "probabilities": "the probability of every class of u, as a value [A02 section 2.2.3]",
}
#: groups that need the probabilities of the critic
CLASS_GROUPS = frozenset({"classes", "probabilities"})
#: groups of hashed features of v
URL_GROUPS = {"url": "words of the URL of v, its host and directories"}
#: groups of dense inputs, see `INPUTS`
INPUT_GROUPS = {
    "relevance": "mean and maximum of R(u) over the links into v; number of the links",
    "reading": "critic's score of the words of the links and of the URL of v",
    "surroundings": "critic's score of the words around the links",
    "rates": "relevance of earlier fetches in the directory and URL pattern of v; fetched aliases",
    "cocitation": "(HIGH|LOW, d): relevance of fetched links within d_max [A02 section 2.2.3]",
}
GROUPS = {**LINK_GROUPS, **PAGE_GROUPS, **URL_GROUPS, **INPUT_GROUPS}
DEFAULT_GROUPS = ("context", "url", "title", "relevance", "reading", "surroundings", "rates")
LEARNERS = ("logistic", "regression", "nb")
EVIDENCE = ("all", "first")
BUCKETS = ("half", "equal")
#: largest number of links into a URL in an instance, to limit the cost of popular URLs
MAX_LINKS = 16
_MINIMUM = {"batch": 1, "memory": 1, "links": 1, "d_max": 0, "tokens": 0, "links_into": 0}

#: the dense inputs of a URL, in order
INPUTS = (
    "mean_relevance",  # log-odds of the shrunken mean of R(u) over the links
    "best_relevance",  # maximum of R(u), the score of best-first
    "links",  # log of the number of links
    "reading",  # mean log-odds of the critic by the words of the links and the URL
    "prefix",  # rate of relevance in the directory
    "alias",  # whether a URL that is probably the same page was fetched
    "alias_query",  # as "alias", for URLs that differ in the query
    "pattern",  # rate of relevance of URLs with the same pattern
    "around",  # mean log-odds of the critic by the words around the links
)
_GROUP_OF = {
    "reading": "reading",
    "prefix": "rates",
    "pattern": "rates",
    "alias": "rates",
    "alias_query": "rates",
    "around": "surroundings",
}  # all other inputs belong to the group "relevance"

#: prior weights of the inputs: best-first, corrected by the mean over all links, by the words of
#: the links and by the rate of the URL pattern
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
    """Names, defaults and checks of the options of an apprentice.

    Parameters
    ----------
    batch : smallest number of fetches between two trainings
    growth : number of fetches between two trainings, as a share of all fetches, if larger than
        `batch`. The cost of a training grows with the number of links.
    memory : number of latest judged URLs in a training
    links : approximate limit of the links in memory. Beyond the limit, pages with the
        lowest-scored targets are forgotten (`focuscrawl.apprentice.evidence`).
    groups : names of the active feature groups, from `GROUPS`
    d_max : largest DOM offset on either side of a link
    learner : ``logistic``, ``regression`` (continuous [A02 section 4]) or ``nb`` (naive Bayes with
        two classes [A02 section 2.3])
    buckets : boundary of the two classes of ``nb``: relevance 1/2 (``half``), or the median of the
        labels (``equal``), as in the paper
    evidence : ``all`` known links into a URL, or only the ``first`` link as in the paper
    contrast : share of the instances used for training: those with the largest difference of R(v)
        and R(u) [A02 section 4]
    tunnel : whether the label of an irrelevant page includes a reward for relevant pages found
        through the page (`TunnelRewards`)
    graded : whether labels depend on the log-odds of relevance while irrelevant pages are rare
        (`Labels`)
    counts : whether a word around a link counts as often as a leaf has the word, as in the paper
    tokens : largest number of words before, inside and after a link; 0: all words within `d_max`,
        as in the paper
    links_into : largest number of links into a URL in an instance; 0: no limit

    Raises
    ------
    UserError
        An option has an invalid value.
    """

    batch: int = 10
    growth: float = 0.01
    memory: int = 3000
    links: int = 1_000_000
    groups: tuple[str, ...] = DEFAULT_GROUPS
    d_max: int = 5
    learner: str = "logistic"
    buckets: str = "half"
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
                hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(GROUPS)}"
                raise UserError(f"the apprentice has no feature group {name!r}: {hint}")
        for name, value, known in (
            ("learner", self.learner, LEARNERS),
            ("buckets", self.buckets, BUCKETS),
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
        """Maximum number of links to a URL that contribute to the training instance of the URL."""
        return self.links_into or sys.maxsize

    @property
    def page_options(self) -> tuple[object, ...]:
        """The options that determine which features of a page are stored."""
        return frozenset(self.groups), self.d_max, self.counts, self.tokens

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Options:
        """Create the options from a mapping; ignore entries of the mapping that are no options."""
        return cls(**{each.name: given[each.name] for each in fields(cls) if each.name in given})

    def with_model_options(self, kept: Mapping[str, Any]) -> Options:
        """Return a copy; its options that determine the model are taken from `kept`."""
        names = ("groups", "d_max", "counts", "tokens", "learner", "buckets", "evidence")
        return replace(self, **{name: getattr(Options.from_mapping(kept), name) for name in names})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def with_options_signature(init: Init) -> Init:
    """Replace ``**options`` in the signature of an ``__init__`` by the fields of `Options`.

    The signature of a strategy serves to check and to document the options that a user gives.
    """
    original = signature(init)
    *first, begin_with, _ = original.parameters.values()
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(Options)
    ]
    init.__signature__ = original.replace(  # type: ignore[attr-defined]
        parameters=[*first, *options, begin_with]
    )
    return init


def input_names(options: Options) -> tuple[str, ...]:
    """Return the names of the k dense inputs that an apprentice with the given options uses."""
    if "cocitation" not in options.groups:
        return INPUTS
    offsets = range(-options.d_max, options.d_max + 1)
    return (
        *INPUTS,
        *(f"({level},{d:+d})" for level in ("HIGH", "LOW") for d in offsets),
    )


def active_inputs(options: Options) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return 1 for each dense input of an active feature group, 0 for each other input, (k,)."""
    on = [_GROUP_OF.get(name, "relevance") in options.groups for name in INPUTS]
    extra = len(input_names(options)) - len(INPUTS)
    return np.array([*on, *[True] * extra], np.float64)


def prior_weights(options: Options) -> list[float]:
    """Return the prior weights of the k dense inputs, and last the weight of the intercept."""
    names = input_names(options)
    weights = np.array([PRIOR_WEIGHTS.get(name, 0.0) for name in names])
    return [*(weights * active_inputs(options)).tolist(), PRIOR_INTERCEPT]
