"""`open_web`: opens a recorded, synthetic or changing web, or an archive, by its name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import refuse_link
from focuscrawl.webs.changing_web import ChangingWeb
from focuscrawl.webs.recorded_web import RecordedWeb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.webs.web_protocol import Web


_DEMO = "demo"
_VERSION = re.compile(r"(.+)@(\d{1,9})(?:,(\d{1,9}))?", re.ASCII)
_INDEX = re.compile(r"(.+?\.(?:cdxj|parquet)(?:\?[^,]*)?)(?:,(.+))?")
_SIZE = re.compile(r"\d{1,3}(\.\d{1,8})?", re.ASCII)  # of a synthetic web that a file names
_OF_THE_SYSTEM = ("/dev", "/proc", "/sys")  # to read some files there does something
_NO_INDEX = (".cdx", ".cdx.gz", ".cdxj.gz")


def open_web(spec: str, *, no_links: bool = False) -> Web:
    """Open the web that `spec` names, in words of the user; those of a file: `open_web_from_file`.

    Parameters
    ----------
    spec : path of a ``.warc`` or ``.warc.gz`` file; path or URI of an index, which ends in
        ``.cdxj`` or ``.parquet``, or ``INDEX,BASE`` where the WARC files it names are not below
        its own folder; or ``demo`` for the synthetic web, or
        ``demo:SCALE`` for one of another size (a number; 1 is the ordinary one); any of
        these with ``@VERSION`` or ``@VERSION,STATE``, for a version of it as a web that changes
    no_links : a recording is no link

    Raises
    ------
    UserError
        If there is no such file, it is no WARC file and no index, or the scale is no number
        above 0.
    """
    changing = _version_of(spec)
    if changing is not None:
        of, version, state = changing.groups()
        if int(version) < 1:
            raise UserError(f"{spec}: versions are counted from 1, as in {of}@1")
        return ChangingWeb(open_web(of, no_links=no_links), int(version), int(state or 0))
    if (scale := _scale_of(spec)) is not None:
        return _demo(scale)
    index = _INDEX.fullmatch(spec)
    if index is not None:
        with require_extra("parquet", "an archive"):
            from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: PLC0415 - PyArrow is slow
        return ArchiveWeb(index[1], index[2])
    if spec.endswith(_NO_INDEX):
        raise UserError(f"{spec}: an index is a sorted .cdxj, unpacked, or .parquet")
    path = Path(os.path.expanduser(spec))  # noqa: PTH111
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
    return RecordedWeb(path, no_links=no_links)


def open_web_from_file(spec: str, where: object) -> Web:
    """Open the web that a file names, which may be a stranger's; see `check_web_from_file`.

    Raises
    ------
    UserError
        As `open_web`, and as `check_web_from_file`.
    """
    check_web_from_file(spec, where)
    try:
        return open_web(spec, no_links=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{where} names the web {spec!r:.80}: {reason}") from None


def open_webs(of_file: str | None, where: object, typed: Iterable[str | None]) -> list[Web]:
    """Open the web that a file names, if it does, and those that the user names.

    Parameters
    ----------
    of_file, where : as for `open_web_from_file`; what the user names, too, is in words of the user
    typed : None: the user names none
    """
    named = dict.fromkeys(each for each in typed if each is not None)
    first = [] if of_file is None or of_file in named else [open_web_from_file(of_file, where)]
    return [*first, *map(open_web, named)]


def check_web_from_file(spec: str, where: object) -> None:
    """Refuse a web that a file names and that only the user may name.

    A web that a file names is read only if it is a plain file of this machine, a recording or an
    index: so no file makes the program connect to a server, or wait.

    Parameters
    ----------
    where : the file, or its folder

    Raises
    ------
    UserError
        It is elsewhere, a link or a pipe, a file of the system's, or a synthetic web of a size
        that nobody crawls.
    """
    changing = _version_of(spec)
    name = spec if changing is None else changing[1]
    if (scale := _scale_of(name)) is not None:
        if not _SIZE.fullmatch(scale or "1"):
            raise UserError(
                f"{where} names the web {spec!r:.80}: name it with --web, if you mean it"
            )
        return
    if "://" in spec:
        shown = spec if "@" not in spec else f"{spec.partition('://')[0]}://..."
        raise UserError(
            f"{where} names the web {shown:.200}, which is on another machine: name it with "
            "--web, if you trust it"
        )
    if (changing is not None and _version_of(name)) or "\0" in name:
        raise UserError(f"{where} names the web {spec!r:.80}, which is none")
    index = _INDEX.fullmatch(name)
    for each in (name,) if index is None else (index[1], index[2] or "."):
        path = os.path.expanduser(each)  # noqa: PTH111 - that of a Path fails for some names
        refuse_link(path)
        at = Path(os.path.realpath(path))
        if any(at.is_relative_to(system) for system in _OF_THE_SYSTEM):
            raise UserError(f"{where} names the web {each!r:.200}, which is no recording")


def _version_of(spec: str) -> re.Match[str] | None:
    return None if _is_there(spec) else _VERSION.fullmatch(spec)


def _scale_of(spec: str) -> str | None:
    name, colon, scale = spec.partition(":")
    return (scale if colon else "1") if name == _DEMO and not _is_there(spec) else None


def _is_there(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - that of a Path fails for some names


def _demo(scale: str) -> Web:
    from focuscrawl.webs.synthetic import SyntheticWeb  # noqa: PLC0415 - only where asked for

    try:
        value = float(scale)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UserError(f"demo:{scale} has no size: write demo:SCALE with a number above 0")
    return SyntheticWeb(scale=value)
