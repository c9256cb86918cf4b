"""Two crawls beside each other: the sums, and all pages that one of them has, or both."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.report.two_crawls import PARTS, SHOWN, pages_of_part

if TYPE_CHECKING:
    from focuscrawl.studio.exploring.background import Background, Sum

_KEPT = 32  # pairs whose pages are at hand: as many as `Background` has sums


class Compared:
    """Pairs of crawls that are compared; their pages are in files that go with the studio."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-studio-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def ask(self, a: Path, b: Path) -> Sum:
        """Return what is known by now; see `focuscrawl.report.two_crawls.two_crawls`."""
        lists = self._lists(a, b)
        found = self._background.ask("compare", a, b, option=str(lists))
        kept = sorted(self._folder.glob("*.db"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-_KEPT]:
            if old != lists:
                old.unlink(missing_ok=True)
        return found

    def pages(self, a: Path, b: Path, part: str, start: str) -> dict[str, Any]:
        """Return some pages of a part, and where the next begin.

        Parameters
        ----------
        part : one of `PARTS`
        start : place of the first

        Returns
        -------
        ``rows``, and ``next``, a place or None

        Raises
        ------
        UserError
            There is no such part, or the crawls have not been compared.
        """
        if part not in PARTS or not (start.isascii() and start.isdecimal() and len(start) < 10):
            raise UserError(f"part is one of {', '.join(PARTS)}, and start a place, from 0")
        lists = self._lists(a, b)
        if not lists.exists():
            raise UserError("these two crawls have not been compared yet: do that first")
        rows = pages_of_part(lists, part, int(start), SHOWN + 1)
        more = len(rows) > SHOWN
        return {"rows": rows[:SHOWN], "next": int(start) + SHOWN if more else None}

    def _lists(self, a: Path, b: Path) -> Path:
        name = sha256("\n".join(map(str, (a, b))).encode()).hexdigest()
        return self._folder / f"{name}.db"
