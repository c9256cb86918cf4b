"""The interface of a critic [A02 section 1.1], and critics that users write as functions."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.page.view import PageView

RELEVANT = 0.5  #: a page is relevant if its relevance is higher (methods.md 4.4)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A critic's judgement of n pages.

    Attributes
    ----------
    relevance : NDArray[np.float64] of shape (n,)
        Relevance R(u) = Pr(c*|u) of each page, in [0, 1] (methods.md 1).
    probabilities : NDArray[np.float64] of shape (n, n_classes), or None
        Posterior probabilities of the critic's leaf classes, if the critic has classes.
    """

    relevance: Floats
    probabilities: Floats | None = None


class Critic(Protocol):
    """Maps pages to relevance and, if the critic has classes, to class probabilities.

    Attributes
    ----------
    classes : tuple of str
        Topic paths of the columns of `Judgement.probabilities`; may be empty.
    marked : NDArray[np.bool_] of shape (n_classes,)
        Which classes belong to the topics of the crawl.
    examples : tuple of str
        URLs of example pages of these topics, the default start pages; may be empty.
    fingerprint : str
        Hex digest that identifies the critic together with its topics.
    reads_words : bool, optional
        Whether the critic can judge thousands of pages that consist of a single word. If so, the
        apprentice uses its judgements of the words of links.
    judge_words : callable, optional
        Takes a sequence of words, which may be "", and returns a `Judgement`. If a critic has no
        such method, each word is judged as a page.
    marked_of_words : Bools, optional
        The same as `marked` for the columns that `judge_words` returns, if they are not `classes`.
    phrase_words, example_words : callable, optional
        Return the weights, in (0, 1], of lower-case words: of the user's phrases, and of the words
        typical of the examples.
    """

    classes: tuple[str, ...]
    marked: Bools
    examples: tuple[str, ...]
    fingerprint: str

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge pages."""
        ...


_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_callable_spec(spec: str) -> bool:
    """Return whether a critic is given in the form ``module:callable``."""
    return _SPEC.fullmatch(spec) is not None


class CustomCritic:
    """A critic that calls a user's function with a sequence of pages (`PageView`).

    The user's function returns n relevances in [0, 1], or a `Judgement`. A function that returns
    class probabilities has an attribute ``classes``, a list of topic paths. The topics of the
    crawl, and all classes below these topics, count as relevant.

    Parameters
    ----------
    function : callable
    spec : str
        Name of the function, ``module:callable``.
    topics : sequence of str
        Normalised topic paths of the crawl.
    fingerprint : str
        Hex digest that identifies the critic together with its topics.
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
        """Judge pages.

        Raises
        ------
        UserError
            If the function does not return n numbers in [0, 1] or a valid `Judgement`.
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
        return UserError(f"{what}, not {got}; correct the return value of the callable")


def load_custom(spec: str, topics: Sequence[str]) -> CustomCritic:
    """Import the critic ``module:callable``; search for the module in the current folder first.

    Raises
    ------
    UserError
        If the callable cannot be imported or called.
    """
    module_name, _, path = spec.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # importing runs the user's module, which may raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"critic {spec}: importing {module_name} failed with {type(error).__name__}: "
            f"{reason}; start the program in a folder that the module can be imported from"
        ) from error
    finally:
        sys.path.remove(here)
    code = _source_code(found)
    for name in path.split("."):
        if not hasattr(found, name):
            raise UserError(f"critic {spec}: module {module_name} has no {path}; check the name")
        found = getattr(found, name)
    if not callable(found):
        raise UserError(
            f"critic {spec}: {path} is not callable; name a function that judges pages"
        )
    digest = hashlib.sha256(code)
    digest.update("\0".join([spec, *sorted(topics)]).encode())
    return CustomCritic(found, spec, topics, digest.hexdigest())


def _source_code(module: ModuleType) -> bytes:
    """Return a module's source code, also from an archive; empty if the module has no source."""
    name = getattr(module, "__file__", None)
    read = getattr(module.__loader__, "get_data", None)
    if name is None or read is None:
        return b""
    code: bytes = read(name)
    return code
