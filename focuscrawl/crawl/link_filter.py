"""Which links never reach the frontier."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from focuscrawl.foundation.urls import MAX_URL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.page import PageView

#: endings of files that are no HTML pages: archives, media, fonts, documents, data
_OTHER_MEDIA = frozenset(
    """
    7z apk bin bz2 cab deb dmg exe gz iso jar lz msi rar rpm tar tgz txz xz z zip zst
    aac avi avif bmp eps flac flv gif heic ico jpeg jpg m4a m4v mid mkv mov mp3 mp4 mpeg mpg oga
    ogg ogv otf png ps psd svg swf tif tiff ttf wav webm webp wma wmv woff woff2
    bib css csv dat doc docx dvi epub js json mat odp ods odt pdf ppsx ppt pptx rtf sql tex xls
    xlsx xpi
    """.split()  # noqa: SIM905 - a hundred quoted lines are harder to read
)
_LONGEST = max(map(len, _OTHER_MEDIA))


def fits(url: str) -> bool:
    """Tell whether a crawl can keep a normalised `url`; none that is longer is ever queued."""
    return len(url) <= MAX_URL


def may_be_page(url: str, *, pdf: bool = False) -> bool:
    """Tell whether a normalised `url` may lead to an HTML page, or to PDF if that is read."""
    if len(url) > MAX_URL:
        return False
    dot = url.rfind(".", -_LONGEST - 1)
    ending = "" if dot < 0 else url[dot + 1 :].lower()
    return ending not in _OTHER_MEDIA or (pdf and ending == "pdf") or "?" in url


def nofollow_urls(view: PageView) -> frozenset[str]:
    """Return the URLs that a page links to only where it asks robots not to follow."""
    links = view.links
    if view.nofollow:
        return frozenset(links.urls)
    refused = {url for url, no in zip(links.urls, links.nofollow.tolist(), strict=True) if no}
    return frozenset(refused.difference(compress(links.urls, ~links.nofollow)))


def followed(
    view: PageView,
    urls: Sequence[str | None],
    *,
    any_media: bool,
    obey_robots: bool,
    pdf: bool = False,
) -> dict[int, str]:
    """Return the links of a page that are followed, by their places, and where they lead.

    Parameters
    ----------
    urls : where its links lead; None: out of the crawl
    any_media : follow what promises no HTML page, too
    pdf : follow what promises PDF
    obey_robots : follow no link that the page asks robots not to follow: all of them with
        ``<meta name=robots content=nofollow>`` or X-Robots-Tag, one with ``rel=nofollow``
    """
    if obey_robots and view.nofollow:
        return {}
    if obey_robots:
        refused = view.links.nofollow.tolist()
        urls = [None if no else url for url, no in zip(urls, refused, strict=True)]
    return {
        place: url
        for place, url in enumerate(urls)
        if url is not None and (any_media or may_be_page(url, pdf=pdf))
    }
