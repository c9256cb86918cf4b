"""`WarcSeries`: a recording in files of about one size, for crawls that last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    import os

_ENDING = ".warc.gz"


class WarcSeries:
    """Records to ``pages-00001.warc.gz``, and when that is full to ``pages-00002.warc.gz``.

    One behind the other in the order of their names, the files are one recording.

    Parameters
    ----------
    path : a name that ends in ``.warc.gz``; numbers are put before the ending
    size : bytes from which on a file is full; the last exchange is in it as a whole

    Raises
    ------
    UserError
        See `WarcRecorder`; the last file that is there is continued.
    """

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        self._path, self._size = Path(path), size
        name = re.compile(rf"{re.escape(self._stem)}-(\d{{5,}}){re.escape(_ENDING)}")
        beside = self._path.parent.glob(f"*{_ENDING}")
        numbers = [int(found[1]) for each in beside if (found := name.fullmatch(each.name))]
        self._number = max(numbers, default=1)
        self._recorder = self._open()

    def record(self, **exchange: Any) -> None:
        """Append one exchange, see `WarcRecorder.record`."""
        if self._recorder.path.stat().st_size >= self._size:
            self._recorder.close()
            self._number += 1
            self._recorder = self._open()
        self._recorder.record(**exchange)

    def close(self) -> None:
        """Close the file; it is complete without it."""
        self._recorder.close()

    @property
    def _stem(self) -> str:
        return self._path.name.removesuffix(_ENDING)

    def _open(self) -> WarcRecorder:
        return WarcRecorder(self._path.with_name(f"{self._stem}-{self._number:05}{_ENDING}"))
