"""Which links never reach the frontier."""

from __future__ import annotations

import re

#: a link that ends in one of these leads to no HTML page
_OTHER_MEDIA = re.compile(
    r"[^?]*/[^/?]*\.(?:"
    # archives and packages
    r"7z|apk|bin|bz2|cab|deb|dmg|exe|gz|iso|jar|lz|msi|rar|rpm|tar|tgz|txz|xz|z|zip|zst|"
    # pictures, sound, film, fonts
    r"aac|avi|avif|bmp|eps|flac|flv|gif|heic|ico|jpe?g|m4[av]|mid|mkv|mov|mp[34]|mpe?g|og[gv]|"
    r"otf|png|ps|psd|svg|swf|tiff?|ttf|wav|webm|webp|wm[av]|woff2?|"
    # documents and data
    r"bib|css|csv|dat|docx?|dvi|epub|js|json|mat|od[pst]|pdf|pp[st]x?|rtf|sql|tex|xlsx?|xpi"
    r")$",
    re.IGNORECASE,
)
MAX_URL = 2083  # characters; longer URLs are what traps make


def may_be_page(url: str) -> bool:
    """Tell whether a normalised `url` may lead to an HTML page."""
    return len(url) <= MAX_URL and not _OTHER_MEDIA.match(url)
