"""Undoes content codings: leniently, and never to more than a crawl takes in.

Whoever packed a body chooses what it unpacks to: 98 kB of brotli may stand for a gigabyte. So
every library is asked for no more than there is room for.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from typing import TYPE_CHECKING, Any

from focuscrawl.webs.limits import LARGEST_BODY, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake
_MOST_MEMBERS = 1000  # of a gzip or zstd body; each costs as much as some kilobytes of text
_STEP = 4096  # bytes; an error costs what was to be had of one step, not what precedes it
_WINDOW_LOG = 23  # of zstd, 8 MiB, which is what RFC 9659 allows


def unpack(coding: str, body: bytes) -> bytes | None:
    """Undo one content coding.

    Parameters
    ----------
    coding : as in Content-Encoding, in lower case

    Returns
    -------
    None if the coding is not known here. Of a body that breaks off what precedes the break; a
    body that was recorded unpacked, under its old header, comes back as it is.

    Raises
    ------
    TooLargeError
        The body unpacks to more than `LARGEST_BODY`.
    """
    if coding in {"gzip", "x-gzip"}:
        unpacked = _inflate(body, 31)
    elif coding == "deflate":
        # The standard says zlib; some servers send bare deflate.
        unpacked = _inflate(body, 15)
        if unpacked is None:
            unpacked = _inflate(body, -15)
    elif coding == "br" and (brotli := _module("brotli")) and _has_limit(brotli):
        unpacked = _unbrotli(brotli, body)
    elif coding == "zstd" and (zstd := _module(_ZSTD)):
        unpacked = _unzstd(zstd, body)
    else:
        return None
    return body if unpacked is None else unpacked


_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _has_limit(brotli: Any) -> bool:
    return hasattr(brotli.Decompressor, "can_accept_more_data")  # since 1.2


def _inflate(body: bytes, wbits: int) -> bytes | None:
    return _members(body, lambda: zlib.decompressobj(wbits), zlib.error)


def _unzstd(zstd: Any, body: bytes) -> bytes | None:
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return _members(body, lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError)


def _members(body: bytes, new: Callable[[], Any], error: type[Exception]) -> bytes | None:
    """Unpack one member after another, up to a cut or an error; None if not even the start."""
    unpacked = bytearray()
    at = 0
    for _ in range(_MOST_MEMBERS):
        if at >= len(body):
            break
        stream = new()
        try:
            while at < len(body) and not stream.eof:
                step = body[at : at + _STEP]
                unpacked += stream.decompress(step, _room(unpacked))
                _check(unpacked)  # so all of the step was taken
                at += len(step)
            at -= len(stream.unused_data)
        except error:
            return bytes(unpacked) or None
    return bytes(unpacked)


def _unbrotli(brotli: Any, body: bytes) -> bytes | None:
    stream = brotli.Decompressor()
    unpacked = bytearray()
    for start in range(0, len(body), _STEP):
        step = body[start : start + _STEP]
        try:
            unpacked += stream.process(step, output_buffer_limit=_room(unpacked))
            while not stream.can_accept_more_data():
                _check(unpacked)
                unpacked += stream.process(b"", output_buffer_limit=_room(unpacked))
        except brotli.error:
            return bytes(unpacked) or None
        _check(unpacked)
    return bytes(unpacked)


def _room(unpacked: bytearray) -> int:
    return LARGEST_BODY + 1 - len(unpacked)


def _check(unpacked: bytearray) -> None:
    if len(unpacked) > LARGEST_BODY:
        raise TooLargeError(f"more than {LARGEST_BODY >> 20} MiB unpacked")
