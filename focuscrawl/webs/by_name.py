"""`open_web`: a recorded, synthetic or changing web, or an archive, from what the user says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.webs.changing import ChangingWeb
from focuscrawl.webs.recorded_web import RecordedWeb

if TYPE_CHECKING:
    from focuscrawl.webs.protocol import Web

_DEMO = "demo"
_VERSION = re.compile(r"(.+)@(\d+)(?:,(\d+))?")
_INDEX = re.compile(r"(.+?\.(?:cdxj|parquet)(?:\?[^,]*)?)(?:,(.+))?")
_NO_INDEX = (".cdx", ".cdx.gz", ".cdxj.gz")


def open_web(spec: str) -> Web:
    """Open the web that `spec` names.

    Parameters
    ----------
    spec : path of a ``.warc`` or ``.warc.gz`` file; path or URI of an index, which ends in
        ``.cdxj`` or ``.parquet``, or ``INDEX,BASE`` where the WARC files it names are not below
        its own folder; or ``demo`` for the synthetic web, or
        ``demo:SCALE`` for one of another size (a number; 1 is the ordinary one); any of
        these with ``@VERSION`` or ``@VERSION,STATE``, for a version of it as a web that changes

    Raises
    ------
    UserError
        If there is no such file, it is no WARC file and no index, or the scale is no number
        above 0.
    """
    changing = None if Path(spec).exists() else _VERSION.fullmatch(spec)
    if changing is not None:
        of, version, state = changing.groups()
        if int(version) < 1:
            raise UserError(f"{spec}: versions are counted from 1, as in {of}@1")
        return ChangingWeb(open_web(of), int(version), int(state or 0))
    name, colon, scale = spec.partition(":")
    if name == _DEMO and not Path(spec).exists():
        return _demo(scale if colon else "1")
    index = _INDEX.fullmatch(spec)
    if index is not None:
        with needs("parquet", "an archive"):
            from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: PLC0415 - PyArrow is slow
        return ArchiveWeb(index[1], index[2])
    if spec.endswith(_NO_INDEX):
        raise UserError(f"{spec}: an index is a sorted .cdxj, unpacked, or .parquet")
    path = Path(spec).expanduser()
    if not path.exists():
        raise UserError(
            f"no recorded web at {spec}: name a .warc or .warc.gz file, an index that ends in "
            ".cdxj or .parquet, or `demo`"
        )
    if path.is_dir():
        raise UserError(
            f"{spec} is a folder: name a .warc or .warc.gz file in it, or {path / '*.parquet'} "
            "for the tables of an index"
        )
    if path.suffix == ".xz":
        raise UserError(f"{spec} is compressed with xz: unpack it and name the .warc file")
    return RecordedWeb(path)


def _demo(scale: str) -> Web:
    from focuscrawl.webs.synthetic import SyntheticWeb  # noqa: PLC0415 - only where asked for

    try:
        value = float(scale)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UserError(f"demo:{scale} has no size: write demo:SCALE with a number above 0")
    return SyntheticWeb(scale=value)
