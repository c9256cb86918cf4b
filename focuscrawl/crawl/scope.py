"""The scope of a crawl: hosts, URLs, languages, links that are followed; and its seeds."""

from __future__ import annotations

import hashlib
import re
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.critic.critic_files import model_file
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL, host, no_url, normalize
from focuscrawl.foundation.user_input import (
    Hosts,
    UrlPatterns,
    lines_of,
    numbered,
    read_text,
    split_urls,
    table_of,
)
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.taxonomy import lies_under, normalise
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    import csv
    from collections.abc import Mapping, Sequence

    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.page import PageView


OTHER_LANGUAGE = "language"  # kind of the event that a page is in another language
_SHOWN = 200  # characters of a list as it is stored with the crawl


class Scope:
    """Which URLs a crawl follows, from which pages, and in which languages a page counts.

    Parameters
    ----------
    config : its `hosts`, `deny`, `max_depth` and `languages`

    Raises
    ------
    UserError
        The detection of languages is not installed, or does not know one of them.
    """

    def __init__(self, config: CrawlConfig) -> None:
        self._hosts = Hosts(config.hosts) if config.hosts else None
        self._deny = UrlPatterns(config.deny)
        self._max_depth = config.max_depth
        self.languages = LanguageFilter(config.languages)

    @property
    def admits_all(self) -> bool:
        """Tell whether it admits every URL."""
        return self._hosts is None and not self._deny

    def admits(self, url: str) -> bool:
        """Tell whether a normalised URL is on one of the hosts, and not denied."""
        if self._hosts is not None and not self._hosts.has(host(url)):
            return False
        return not self._deny.match(url)

    def follows_links_at(self, depth: int) -> bool:
        """Tell whether links of pages at a depth, in clicks from a seed, are followed."""
        return self._max_depth is None or depth < self._max_depth

    def confine(self, seeds: Sequence[str]) -> list[str]:
        """Return the seeds that are in it.

        Raises
        ------
        UserError
            None is.
        """
        found = [seed for seed in seeds if self.admits(seed)]
        if seeds and not found:
            raise UserError(
                f"none of the {len(seeds)} seeds is in the scope of the crawl, as {seeds[0]}: "
                "change hosts or deny, or name other seeds"
            )
        return found


def scope_identity(config: CrawlConfig) -> Mapping[str, str]:
    """Return the part of a crawl's identity that is its scope, and what it discovers."""
    return {
        "hosts": _in_short(config.hosts),
        "deny": _in_short(config.deny),
        "languages": ",".join(config.languages),
        "discover": ",".join(config.discover),
        "max_depth": "" if config.max_depth is None else str(config.max_depth),
    }


def _in_short(names: Sequence[str]) -> str:
    text = ",".join(sorted(names))
    if len(text) <= _SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:_SHOWN]}... ({len(names)}, {digest})"


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


def has_allowed_length(url: str) -> bool:
    """Tell whether a normalised `url` is short enough to be queued."""
    return len(url) <= MAX_URL


def can_be_page(url: str, *, pdf: bool = False) -> bool:
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


def select_links(
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
        if url is not None and (any_media or can_be_page(url, pdf=pdf))
    }


_HTTP = re.compile(r"\s*https?:", re.IGNORECASE)


def read_seeds(source: str, topics: tuple[str, ...]) -> list[str]:
    """Read seeds as a user names them.

    Parameters
    ----------
    source : URLs with commas or blanks between; or a file with one URL a line (blank lines and
        lines that begin with ``#`` are skipped); or a CSV file with the columns ``topic`` and
        ``url``; or a definition of a topic (``.toml``), for the seeds in it. A file
        ``models/...`` may be one that comes with the package
    topics : of a CSV file, the rows of these topics and of topics below them are taken

    Returns
    -------
    Normalised URLs in the order given, each once

    Raises
    ------
    UserError
        No such file, nothing in it for the topics, or something that is no URL.
    """
    if _HTTP.match(source):
        return _checked([(part, "seeds") for part in split_urls(source)])
    if source.endswith(".toml"):
        defined = read_definition(source).seeds
        if not defined:
            raise UserError(f"seeds: {source} names no seeds: add seeds = [...] to it")
        return _checked([(seed, f"{source}, seeds") for seed in defined])
    path = Path(source) if Path(source).exists() else model_file(source)
    if path is None:
        raise UserError(f"seeds: {_shown(source)} is neither a file nor an http(s) URL")
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"seeds: {error}") from None
    rows = table_of(text.splitlines())
    if "url" in (rows.fieldnames or ()):
        found = _from_csv(rows, source, topics)
    else:
        found = [(line, f"{source}, line {number}") for number, line in lines_of(text).items()]
    if not found:
        raise UserError(f"seeds: {source} holds no URL")
    return _checked(found)


def _from_csv(
    rows: csv.DictReader[str], source: str, topics: tuple[str, ...]
) -> list[tuple[str, str]]:
    of_topics = "topic" in (rows.fieldnames or ())
    found = [
        (row["url"] or "", f"{source}, row {number}")
        for number, row in numbered(rows, source)
        if not of_topics or lies_under(normalise(row["topic"] or ""), topics)
    ]
    if not found and of_topics:
        raise UserError(f"seeds: {source} has no row for topic {', '.join(topics)}")
    return found


def _shown(text: str) -> str:
    """Return what a user wrote for a URL, short and without what may be a password."""
    _, at, rest = text.rpartition("@")
    text = f"...{at}{rest}" if at else text
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _checked(found: list[tuple[str, str]]) -> list[str]:
    seeds: dict[str, None] = {}
    for text, where in found:
        url = normalize(text.strip())
        if url is None:
            raise UserError(f"{where}: {_shown(text.strip())} {no_url(text)}")
        if not has_allowed_length(url):
            raise UserError(
                f"{where}: {_shown(url)} has {len(url):,} characters, and a crawl keeps URLs of "
                f"at most {MAX_URL:,}: leave it out"
            )
        seeds[url] = None
    return list(seeds)
