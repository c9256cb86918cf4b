"""A user's own critic: any callable that maps pages to relevance [A02 section 1.1]."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from focuscrawl.page.view import PageView

_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_callable_spec(spec: str) -> bool:
    """Tell whether `spec` is written ``module:callable``."""
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
        answer = self._function(pages)
        verdict = answer if isinstance(answer, Judgement) else Judgement(answer)
        n = len(pages)
        relevance = self._checked("relevance", verdict.relevance, (n,))
        if verdict.probabilities is None:
            return Judgement(relevance)
        shape = (n, len(self.classes))
        return Judgement(relevance, self._checked("probabilities", verdict.probabilities, shape))

    def _checked(self, name: str, values: object, shape: tuple[int, ...]) -> Any:
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
    code = _code(found)
    for name in path.split("."):
        if not hasattr(found, name):
            raise UserError(f"critic {spec}: {module_name} has no {path}; check the name")
        found = getattr(found, name)
    if not callable(found):
        raise UserError(f"critic {spec}: {path} is not callable; name a function of pages")
    digest = hashlib.sha256(code)
    digest.update("\0".join([spec, *sorted(topics)]).encode())
    return CustomCritic(found, spec, topics, digest.hexdigest())


def _code(module: ModuleType) -> bytes:
    """Return a module's source as it is kept, in an archive perhaps; nothing if it has none."""
    name = getattr(module, "__file__", None)
    read = getattr(module.__loader__, "get_data", None)
    if name is None or read is None:
        return b""
    code: bytes = read(name)
    return code
