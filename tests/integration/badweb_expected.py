"""What becomes of the front page of each host of the bad web, as the summary counts it."""

from __future__ import annotations

#: without the hosts whose front page is not the trouble: busy ones, traps, redirects
OUTCOMES = {
    **dict.fromkeys(("silent", "slow-headers", "slow-body"), "timed out"),
    **dict.fromkeys(("endless-headers", "endless-header", "endless-continue"), "too large"),
    **dict.fromkeys(("reset", "empty"), "hung up"),
    **dict.fromkeys(("reset-in-body", "half", "half-chunk"), "cut short"),
    **dict.fromkeys(("wrong-length", "no-http"), "no HTTP"),
    "longer": "page",
    **dict.fromkeys(("endless-chunks", "endless-body", "large", "large-unsaid"), "too large"),
    **dict.fromkeys(("gzip-bomb", "brotli-bomb", "deflate-bomb", "million-links"), "too large"),
    **dict.fromkeys(("gzip-often", "gzip-not", "brotli-not"), "cannot be unpacked"),
    **dict.fromkeys(("gzip-half", "gzip-members", "many-links", "many-words"), "page"),
    **dict.fromkeys(("many-elements", "deep", "deeper"), "page"),
    **dict.fromkeys(("binary", "picture", "binary-unsaid"), "no HTML"),
    **dict.fromkeys(("charset-wrong", "charset-unknown", "charset-missing"), "page"),
    **dict.fromkeys(("charset-unsaid", "charset-twice", "charset-hex", "type-missing"), "page"),
    "to-itself": "redirect loop",
    **dict.fromkeys(("robots-slow", "robots-silent"), "timed out"),
    "robots-broken": "robots.txt",
    "robots-bomb": "too large",
    **dict.fromkeys(("robots-huge", "robots-endless", "robots-wrong"), "page"),
    **dict.fromkeys(("robots-page", "robots-loop", "robots-waiting"), "page"),
    **dict.fromkeys(("tls-good", "tls-expired", "tls-self-signed", "tls-wrong-host"), "page"),
    "tls-not": "no TLS",
    "tls-silent": "timed out",
}
SLOW = ("silent", "slow-headers", "slow-body", "robots-slow", "robots-silent", "tls-silent")
HEAVY = (
    *("endless-chunks", "endless-body", "large", "large-unsaid", "million-links"),
    *("gzip-bomb", "brotli-bomb", "deflate-bomb", "gzip-often", "gzip-members"),
    *("many-links", "many-words", "many-elements", "deep", "deeper"),
)
#: sites without an end: what bounds them is the budget
TRAPS = ("calendar", "sessions", "segments", "permutations", "soft-404", "near-duplicates")
