"""What a file in a crawl's folder, which may be a stranger's, says in the meta of requests.

A spider's own keys are nobody's business. But some decide by what way a request goes, how it is
made, or how much is taken in: a proxy of the stranger's would see and change all pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: of Scrapy
_STEERING = (
    *("proxy", "_auth_proxy", "bindaddress", "ftp_user", "ftp_password"),
    *("dont_obey_robotstxt", "download_maxsize"),
)
#: of handlers and middlewares that take the place of Scrapy's; what each key does is up to them
_HANDLERS = ("playwright", "splash", "zyte_api", "impersonate", "scrapfly", "crawlera")
#: politeness and patience are those of the crawl; what is ours is put there when a link is due
_SET_ANEW = ("download_slot", "download_timeout", "focuscrawl_")


def kept_meta(meta: Mapping[str, Any], trusted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the meta of a request is kept for a resumed crawl.

    Parameters
    ----------
    trusted : keys and values that the project itself sets

    Raises
    ------
    ValueError
        It says by what way the request goes, and the project does not say the same.
    """
    for key, value in meta.items():
        steers = key in _STEERING or key.startswith(_HANDLERS)
        if steers and not (key in trusted and trusted[key] == value):
            msg = f"a file may not set {key}, unless FOCUSCRAWL_META says the same"
            raise ValueError(msg)
    return {key: value for key, value in meta.items() if not key.startswith(_SET_ANEW)}
