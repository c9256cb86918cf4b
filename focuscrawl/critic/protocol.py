"""What the program knows of a critic: a black box [A02 section 1.1]; a user's callable."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from focuscrawl.page.view import PageView

RELEVANT = 0.5  #: a page counts as relevant above (methods 4.4)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The critic's judgement on n pages.

    Attributes
    ----------
    relevance : float64 (n,), R(u) = Pr(c*|u) in [0, 1] (methods 1)
    probabilities : float64 (n, n_classes), posteriors of the critic's leaf classes, or None
        from a critic that has none
    """

    relevance: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None


class Critic(Protocol):
    """Maps pages to relevance and, if it can, to class probabilities.

    Attributes
    ----------
    classes : names of the columns of `Judgement.probabilities`: topic paths; () if none
    marked : bool (n_classes,), the leaves the user's focus covers
    examples : example URLs of the focus topics, the default seeds; may be empty
    fingerprint : hex digest that tells this critic with this focus from any other
    reads_words : optional; True of a critic so fast that it may be asked about thousands of
        pages of a single word, and to which these mean something. The apprentice then has it
        read the words of links
    judge_words : optional, of one that reads words otherwise than as pages of one word: takes a
        sequence of words, "" among them, and returns a `Judgement`
    marked_of_words : optional, beside `judge_words`, if its columns are others than `classes`:
        which of them the focus covers
    phrase_words, example_words : optional, of one that can tell the words of its topic: each
        returns their weights above 0, 1 at most, by word in lower case; the first those by which
        the user has named the topic, the second those that the examples have
    """

    classes: tuple[str, ...]
    marked: NDArray[np.bool_]
    examples: tuple[str, ...]
    fingerprint: str

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        ...


_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_callable_spec(spec: str) -> bool:
    """Return whether `spec` is written ``module:callable``."""
    return _SPEC.fullmatch(spec) is not None


class CustomCritic:
    """A `Critic` over a callable that takes a sequence of `PageView`.

    It returns n relevances in [0, 1], or a `Judgement`. One that gives class probabilities
    names its classes, topic paths, in an attribute ``classes``; the topics it is asked for then
    mark those at or below them.

    Parameters
    ----------
    function : the callable
    spec : how the user named it
    topics : the focus, normalised topic paths
    fingerprint : tells this critic with this focus from any other

    Attributes
    ----------
    classes, marked, examples, fingerprint : as `Critic` has them; no examples
    """

    def __init__(
        self,
        function: Callable[[Sequence[PageView]], Any],
        spec: str,
        topics: Sequence[str],
        fingerprint: str,
    ) -> None:
        self._function = function
        self._spec = spec
        self.classes: tuple[str, ...] = tuple(map(str, getattr(function, "classes", ())))
        self.marked = np.array(
            [lies_under(path, topics) for path in self.classes],
            dtype=np.bool_,
        )
        self.examples: tuple[str, ...] = ()
        self.fingerprint = fingerprint

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`.

        Raises
        ------
        UserError
            If what the callable returned is not n numbers in [0, 1], nor a `Judgement` of them.
        """
        returned = self._function(pages)
        judgement = returned if isinstance(returned, Judgement) else Judgement(returned)
        n = len(pages)
        relevance = self._validate("relevance", judgement.relevance, (n,))
        if judgement.probabilities is None:
            return Judgement(relevance)
        shape = (n, len(self.classes))
        return Judgement(
            relevance, self._validate("probabilities", judgement.probabilities, shape)
        )

    def _validate(self, name: str, values: object, shape: tuple[int, ...]) -> Any:
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._error(name, shape, f"a {type(values).__name__}") from None
        if array.shape != shape:
            raise self._error(name, shape, f"shape {array.shape}")
        if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):  # catches NaN too
            raise self._error(name, shape, f"values from {array.min():g} to {array.max():g}")
        return array

    def _error(self, name: str, shape: tuple[int, ...], got: str) -> UserError:
        what = f"critic {self._spec}: {name} must have shape {shape} and values in [0, 1]"
        return UserError(f"{what}, not {got}; correct what the callable returns")


def load_custom(spec: str, topics: Sequence[str]) -> CustomCritic:
    """Import the callable that ``module:callable`` names, the current directory searched first.

    Raises
    ------
    UserError
        If it cannot be imported or called.
    """
    module_name, _, path = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # whatever the user's module raises while it is run
        reason = " ".join(str(error).split())
        raise UserError(
            f"critic {spec}: importing {module_name} failed with {type(error).__name__}: "
            f"{reason}; it must be importable from here"
        ) from error
    finally:
        sys.path.remove(here)
    code = _source_code(found)
    for name in path.split("."):
        if not hasattr(found, name):
            raise UserError(f"critic {spec}: {module_name} has no {path}; check the name")
        found = getattr(found, name)
    if not callable(found):
        raise UserError(f"critic {spec}: {path} is not callable; name a function of pages")
    digest = hashlib.sha256(code)
    digest.update("\0".join([spec, *sorted(topics)]).encode())
    return CustomCritic(found, spec, topics, digest.hexdigest())


def _source_code(module: ModuleType) -> bytes:
    """Return a module's source as it is kept, in an archive perhaps; nothing if it has none."""
    name = getattr(module, "__file__", None)
    read = getattr(module.__loader__, "get_data", None)
    if name is None or read is None:
        return b""
    code: bytes = read(name)
    return code
