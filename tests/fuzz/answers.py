"""HTTP answers of all kinds, most of them wrong somewhere: Hypothesis strategies."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from .raw_server import Answer

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_LONG = b"a" * 9000
_BOMB = gzip.compress(bytes(12 << 20))  # unpacks to more than is taken in
_LINKS = b"".join(b'<a href="/more%d">%d</a>' % (i, i) for i in range(3))
_HTML = b"<html><head><title>t</title></head><body><p>bicycle " + _LINKS
_BODIES = [
    *(b"", _HTML, _HTML * 50, b"\0" * 100, b"\xff\xfe<\0a\0", bytes(range(256)) * 8),
    b"word " * 9000,
    b'<base href="http://a..b/"><a href="x">x</a><a href="//[">y</a><a href="http://%00/">z</a>',
    b"<meta charset=utf-16><meta http-equiv=refresh content='0; url=/r'>",
    b"<link rel=canonical href=//><base href=//>" + _LINKS,
    b'<a href="' + _LONG + b'">long</a><link rel=canonical href="/' + _LONG + b'">',
    b"<title>" + b"long " * 20_000 + b"</title>" + _LINKS,
    b"<meta http-equiv=content-type content='text/html; charset=\0'>" + _LINKS,
]
_CODINGS: dict[bytes, list[bytes]] = {
    b"gzip": [gzip.compress(_HTML), gzip.compress(_HTML)[:-9], _BOMB, gzip.compress(b"") * 2000],
    b"deflate": [zlib.compress(_HTML), zlib.compress(_HTML)[2:-4], b"x"],
    b"br": [b"\x0b\x02\x80abcde\x03", b"x", b"\xff" * 50],
    b"zstd": [b"\x28\xb5\x2f\xfd\x04\x00", b"\x28\xb5\x2f\xfd\xe4" + b"\xff" * 12],
    b"gzip, gzip": [gzip.compress(_BOMB), gzip.compress(gzip.compress(_HTML))],
    b"gzip," * 30: [_HTML],
    b"\x80none": [_HTML],
}
_TYPES = [
    *(b"text/html", b"text/html; charset=utf-8", b"text/html; charset=hex", b"", b"text/plain"),
    *(b"text/html; charset=utf-16", b"text/html; charset=\xff", b"image/png", b"application/pdf"),
    *(b"text/html; charset*=%00", b"text/html; charset*=utf-8''x", b'text/html; charset="'),
    *(b"text/html; charset=" + _LONG, b"; ; =", b"text/html; charset=utf-7", b"*/*", b"\0/\0"),
]
_LOCATIONS = [
    *(b"/moved", b"", b"//", b"http://a..b/", b"http://[::1/", b"http://[::1]:99999/", b"?", b"#"),
    *(b"javascript:alert(1)", b"/" + _LONG, b"http://" + b"a." * 200 + b"example/", b"\xff\xfe"),
    *(b"http://user:pw@127.0.1.1/", b"https://127.0.1.1:1/", b"ftp://127.0.1.1/", b"/%00\t\x01"),
    *(b"http://0x7f000101/", b"http://xn--a/", b"http:/\\127.0.1.1\\", b"data:text/html,x", b"/p"),
]
_FAR = b"Fri, 31 Dec 9999 23:59:59 GMT"
_FIELDS: dict[bytes, list[bytes]] = {
    b"Content-Type": _TYPES,
    b"Location": _LOCATIONS,
    b"Retry-After": [b"0", b"-1", b"9" * 20, b"1e9", _FAR, b"\xff", b"nan"],
    b"Content-Length": [
        *(b"0", b"-1", b"5, 5", b"5", b"9" * 20, b"+5", b"0x5", b"\xb2", b"9" * 5000),
    ],
    b"Transfer-Encoding": [b"identity", b"gzip", b"chunked, chunked", b"\0", b"Chunked "],
    b"X-Robots-Tag": [b"noindex", b"nofollow, none", b"otherbot: all", _LONG, b"\xff,,;"],
    b"ETag": [b'"x"', _LONG, b"\x01", b"W/"],
    b"Last-Modified": [_FAR, b"yesterday", b"Mon, 01 Jan 0000 00:00:00 GMT"],
    b"Refresh": [b"0; url=/r", b"nan; url=/r", b"-1"],
    b"Set-Cookie": [b"a=b", _LONG, b"=; Expires=\xff; Domain=.."],
    b"Connection": [b"close", b"keep-alive", b"upgrade", b"\xff"],
    b"Content-Disposition": [b'attachment; filename="../../x"', b"\xff"],
    b"Date": [b"now", _FAR],
    b"X-" + _LONG: [b"x"],
    b"": [b"x"],
    b" folded": [b"x"],
}
#: numbers that are no status of HTTP
_NO_STATUS = [
    *(b"0", b"-1", b"42", b"099", b"600", b"999", b"1000", b"2147483648", b"9" * 20, b"9" * 5000),
    *(b"", b"abc", b"\xb2\xb0\xb0", b"2e2", b"0x200", b"200.5", b" 200"),
]
_VERSIONS = [
    *[b"HTTP/1.1"] * 6,
    *(b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2", b"http/1.1", b"ICY", b"HTTP/"),
]
_REASONS = [b"OK", b"", b"\x1b[31m", b"\xff\xfe", b"a" * 900, b"\xe2\x80\xae", b"OK\r"]
_CHUNKS = [
    *(b"FFFFFFFFFFFFFFFF", b"-1", b"zz", b"", b"5;" + _LONG, b"+5", b"0x5", b"00000000000000005"),
]
_ENDINGS = ["close"] * 6 + ["keep", "keep", "reset", "hold"]


def statuses() -> SearchStrategy[bytes]:
    """Return the status codes of HTTP, those that mean something more often."""
    known = [200, 200, 200, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 404, 407, 410]
    known += [416, 418, 429, 500, 502, 503, 504, 599]
    return st.one_of(st.sampled_from(known), st.integers(200, 599)).map(b"%d".__mod__)


@st.composite
def answers(draw: DrawFn) -> Answer:
    """Draw an answer, also of a status that is none of HTTP."""
    if draw(st.integers(0, 19)) == 0:
        return Answer(draw(st.binary(max_size=100)), draw(st.sampled_from(_ENDINGS)))
    codes = st.one_of(statuses(), st.sampled_from(_NO_STATUS))
    line = [draw(st.sampled_from(_VERSIONS)), draw(codes), draw(st.sampled_from(_REASONS))]
    fields: list[tuple[bytes, bytes]] = [(b"Content-Type", draw(st.sampled_from(_TYPES)))]
    body = draw(st.sampled_from(_BODIES))
    if draw(st.booleans()):
        coding = draw(st.sampled_from(sorted(_CODINGS)))
        fields.append((b"Content-Encoding", coding))
        body = draw(st.sampled_from(_CODINGS[coding]))
    names = draw(st.lists(st.sampled_from(sorted(_FIELDS)), max_size=3))
    fields += [(name, draw(st.sampled_from(_FIELDS[name]))) for name in names]
    framing = draw(st.sampled_from(["length", "length", "chunks", "wrong chunk", "none"]))
    if framing == "length":
        fields.append((b"Content-Length", b"%d" % len(body)))
    elif framing != "none":
        fields.append((b"Transfer-Encoding", b"chunked"))
        size = b"%x" % len(body)
        if framing == "wrong chunk":
            size = draw(st.sampled_from(_CHUNKS))
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    order = draw(st.permutations(fields))
    head = b"\r\n".join([b" ".join(line), *(name + b": " + value for name, value in order)])
    data = head + draw(st.sampled_from([b"\r\n\r\n"] * 8 + [b"\n\n", b"\r\n"])) + body
    if draw(st.integers(0, 9)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return Answer(data, draw(st.sampled_from(_ENDINGS)))
