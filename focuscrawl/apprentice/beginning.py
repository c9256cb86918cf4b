"""An apprentice at its first day, or one that was an apprentice before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.apprentice.company import CompanyApprentice
from focuscrawl.apprentice.files import read_apprentice
from focuscrawl.apprentice.packing import options_in

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options


def make_apprentice(options: Options, begin_with: str | None = None) -> CompanyApprentice:
    """Make an apprentice.

    Parameters
    ----------
    options : what can be set of it
    begin_with : folder of one trained on an earlier crawl; it goes on with the features and the
        learner it has, whatever `options` say of these

    Raises
    ------
    UserError
        `begin_with` holds no apprentice.
    """
    if begin_with is None:
        return CompanyApprentice(options)
    graduate = read_apprentice(Path(begin_with))
    apprentice = CompanyApprentice(options.following(options_in(graduate)))
    apprentice.begin_with(graduate)
    return apprentice
