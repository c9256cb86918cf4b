"""An apprentice at its first day, or one that was an apprentice before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.apprentice.distributed import DistributedApprentice
from focuscrawl.apprentice.files import read_apprentice
from focuscrawl.apprentice.serialization import options_in

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options


def make_apprentice(
    options: Options, begin_with: str | None = None, graduate: bytes | None = None
) -> DistributedApprentice:
    """Make an apprentice.

    Parameters
    ----------
    options : what can be set of it
    begin_with : folder of one trained on an earlier crawl; it goes on with the features and the
        learner it has, whatever `options` say of these
    graduate : what that one has learned, if it is in no folder of its own

    Raises
    ------
    UserError
        `begin_with` holds no apprentice.
    """
    if begin_with is not None:
        graduate = read_apprentice(Path(begin_with))
    if graduate is None:
        return DistributedApprentice(options)
    apprentice = DistributedApprentice(options.following(options_in(graduate)))
    apprentice.begin_with(graduate)
    return apprentice
