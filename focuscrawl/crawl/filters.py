"""Which links never reach the frontier."""

from __future__ import annotations

#: a link that ends in one of these leads to no HTML page
_OTHER_MEDIA = frozenset(
    # archives and packages
    [
        "7z",
        "apk",
        "bin",
        "bz2",
        "cab",
        "deb",
        "dmg",
        "exe",
        "gz",
        "iso",
        "jar",
        "lz",
        "msi",
        "rar",
        "rpm",
        "tar",
        "tgz",
        "txz",
        "xz",
        "z",
        "zip",
        "zst",
        "aac",
        "avi",
        "avif",
        "bmp",
        "eps",
        "flac",
        "flv",
        "gif",
        "heic",
        "ico",
        "jpg",
        "jpeg",
        "m4a",
        "m4v",
        "mid",
        "mkv",
        "mov",
        "mp3",
        "mp4",
        "mpg",
        "mpeg",
        "ogg",
        "ogv",
        "otf",
        "png",
        "ps",
        "psd",
        "svg",
        "swf",
        "tif",
        "tiff",
        "ttf",
        "wav",
        "webm",
        "webp",
        "wma",
        "wmv",
        "woff",
        "woff2",
        "bib",
        "css",
        "csv",
        "dat",
        "doc",
        "docx",
        "dvi",
        "epub",
        "js",
        "json",
        "mat",
        "odp",
        "ods",
        "odt",
        "pdf",
        "pps",
        "ppsx",
        "ppt",
        "pptx",
        "rtf",
        "sql",
        "tex",
        "xls",
        "xlsx",
        "xpi",
    ]
)
MAX_URL = 2083  # characters; longer URLs are what traps make


def may_be_page(url: str) -> bool:
    """Tell whether a normalised `url` may lead to an HTML page."""
    if len(url) > MAX_URL:
        return False
    if "?" in url:
        return True
    # no regular expression: this is asked of every link
    name = url[url.rfind("/") + 1 :]
    dot = name.rfind(".")
    return dot < 0 or name[dot + 1 :].lower() not in _OTHER_MEDIA
