"""Opens a web by name, such as a recording, an archive or the synthetic web."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import refuse_link
from focuscrawl.webs.changing_web import ChangingWeb
from focuscrawl.webs.recorded_web import RecordedWeb

if TYPE_CHECKING:
    from focuscrawl.webs.web_protocol import Web


_DEMO = "demo"
_VERSION = re.compile(r"(.+)@(\d{1,9})(?:,(\d{1,9}))?", re.ASCII)
_INDEX = re.compile(r"(.+?\.(?:cdxj|idx|parquet)(?:\?[^,]*)?)(?:,(.+))?")
_SIZE = re.compile(
    r"\d{1,3}(\.\d{1,8})?", re.ASCII
)  # accepted sizes of a synthetic web that a file names
_SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")  # reading some of these files has side effects
_NO_INDEX = (".cdx", ".cdx.gz", ".cdxj.gz")


def open_web(spec: str, *, no_links: bool = False) -> Web:
    """Open a web that the user has named, such as the path of a WARC file.

    Parameters
    ----------
    spec : str
        One of: path of a ``.warc``, ``.warc.gz`` or ``.wacz`` file; path or URI of an index
        (``.cdxj`` or ``.parquet``), or ``INDEX,BASE`` if the WARC files are not below the folder
        of the index; ``demo`` for the synthetic web, or ``demo:SCALE`` for another
        size (1 is the default size).
        A suffix ``@VERSION`` or ``@VERSION,STATE`` opens a version of the web as a changing web.
    no_links : bool
        Refuse a recording that is a symbolic link.

    Raises
    ------
    UserError
        The file does not exist or is neither a recording nor an index, or the scale is not a
        number above 0.
    """
    changing = _version_of(spec)
    if changing is not None:
        of, version, state = changing.groups()
        if int(version) < 1:
            raise UserError(f"{spec}: the first version is {of}@1, there is no version {version}")
        return ChangingWeb(open_web(of, no_links=no_links), int(version), int(state or 0))
    if (scale := _scale_of(spec)) is not None:
        return _demo(scale)
    index = _INDEX.fullmatch(spec)
    if index is not None:
        with require_extra("parquet", "reading an archive"):
            from focuscrawl.webs.archive_web import ArchiveWeb  # noqa: PLC0415 - PyArrow is slow
        return ArchiveWeb(index[1], index[2])
    if spec.endswith(_NO_INDEX):
        raise UserError(
            f"{spec} is not a supported index: name a sorted, uncompressed .cdxj file, the .idx "
            "file of compressed blocks, or .parquet"
        )
    path = Path(os.path.expanduser(spec))  # noqa: PTH111
    if not path.exists():
        raise UserError(
            f"there is no recorded web {spec}: name a .warc, .warc.gz or .wacz file, an index "
            "that ends in .cdxj or .parquet, or `demo`"
        )
    if path.is_dir():
        raise UserError(
            f"{spec} is a folder: name a .warc, .warc.gz or .wacz file in it, or "
            f"{path / '*.parquet'} for the tables of an index"
        )
    if path.suffix == ".xz":
        raise UserError(
            f"{spec} is compressed with xz: decompress the file and name the .warc file"
        )
    return RecordedWeb(path, no_links=no_links)


def open_web_from_file(spec: str, where: object) -> Web:
    """Open a web that is named in a file; the file may come from an untrusted person.

    Raises
    ------
    UserError
        `check_web_from_file` refuses the web, or `open_web` fails.
    """
    check_web_from_file(spec, where)
    try:
        return open_web(spec, no_links=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{where} names the web {spec!r:.80}, which cannot be read: {reason}"
        ) from None


def open_webs(of_file: str | None, where: object, typed: Iterable[str | None]) -> list[Web]:
    """Open the web that is named in a file, if any, and the webs that the user has named.

    Parameters
    ----------
    of_file, where : str or None, object
        Name of the web in the file, and the file, see `open_web_from_file`. A web that the user
        named, too, is trusted.
    typed : iterable of str or None
        Names from the user; None values are skipped.
    """
    named = dict.fromkeys(each for each in typed if each is not None)
    first = [] if of_file is None or of_file in named else [open_web_from_file(of_file, where)]
    return [*first, *map(open_web, named)]


def check_web_from_file(spec: str, where: object) -> None:
    """Raise `UserError` if a file names a web that only the user may name.

    A file may name only webs that are regular local files (recordings or indexes), so an untrusted
    file cannot make the program connect to a server or wait forever.

    Parameters
    ----------
    where : object
        The file that names the web, or its folder, for messages.

    Raises
    ------
    UserError
        The web is on another machine, a link, a pipe or a system file, or a synthetic web of an
        extreme size.
    """
    changing = _version_of(spec)
    name = spec if changing is None else changing[1]
    if (scale := _scale_of(name)) is not None:
        if not _SIZE.fullmatch(scale or "1"):
            raise UserError(
                f"{where} names the web {spec!r:.80} of unusual size: confirm the web with --web"
            )
        return
    if "://" in spec:
        shown = spec if "@" not in spec else f"{spec.partition('://')[0]}://..."
        raise UserError(
            f"{where} names the web {shown:.200}, which is on another machine: name the web with "
            "--web if you trust it"
        )
    if (changing is not None and _version_of(name)) or "\0" in name:
        raise UserError(
            f"{where} names the web {spec!r:.80}, which is not a valid name: name a web with --web"
        )
    index = _INDEX.fullmatch(name)
    for each in (name,) if index is None else (index[1], index[2] or "."):
        path = os.path.expanduser(each)  # noqa: PTH111 - Path.expanduser fails for some names
        refuse_link(path)
        at = Path(os.path.realpath(path))
        if any(at.is_relative_to(system) for system in _SYSTEM_FOLDERS):
            raise UserError(
                f"{where} names the web {each!r:.200}, a system file: name a recording with --web"
            )


def _version_of(spec: str) -> re.Match[str] | None:
    return None if _exists(spec) else _VERSION.fullmatch(spec)


def _scale_of(spec: str) -> str | None:
    name, colon, scale = spec.partition(":")
    return (scale if colon else "1") if name == _DEMO and not _exists(spec) else None


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists fails for some names


def _demo(scale: str) -> Web:
    from focuscrawl.webs.synthetic import SyntheticWeb  # noqa: PLC0415 - only if needed

    try:
        value = float(scale)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UserError(
            f"demo:{scale} is not a web: write demo:SCALE with a number above 0, as in demo:2"
        )
    return SyntheticWeb(scale=value)
