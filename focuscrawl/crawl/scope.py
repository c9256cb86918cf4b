"""The scope of a crawl (hosts, URL patterns, depth, languages), and reading of start pages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.critic.critic_files import model_file
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL_LENGTH, host, parse_url
from focuscrawl.foundation.user_input import (
    HostSet,
    UrlPatterns,
    csv_reader,
    numbered_lines,
    numbered_rows,
    read_text,
    split_urls,
)
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.taxonomy import lies_under, normalise
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    import csv

    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.page import PageView


OTHER_LANGUAGE = "language"  # kind of the event that a page is in another language
_MAX_SHOWN = 200  # characters of a list that is stored, and of a URL in a message


class Scope:
    """Rules that restrict which URLs a crawl follows, and the languages of relevant pages.

    Raises
    ------
    UserError
        Language detection is not installed, or does not support a language of the configuration.
    """

    def __init__(self, config: CrawlConfig) -> None:
        self._hosts = HostSet(config.hosts) if config.hosts else None
        self._deny = UrlPatterns(config.deny)
        self._max_depth = config.max_depth
        self.languages = LanguageFilter(config.languages)

    @property
    def admits_all(self) -> bool:
        """True if the scope does not exclude any URL."""
        return self._hosts is None and not self._deny

    def admits(self, url: str) -> bool:
        """Tell whether the host of a normalised URL is allowed and the URL is not denied."""
        if self._hosts is not None and not self._hosts.has(host(url)):
            return False
        return not self._deny.match(url)

    def follows_links_at(self, depth: int) -> bool:
        """Tell whether the links of pages that are ``depth`` links from a seed are followed."""
        return self._max_depth is None or depth < self._max_depth

    def filter_seeds(self, seeds: Sequence[str]) -> list[str]:
        """Return those start pages that are in the scope of the crawl.

        Raises
        ------
        UserError
            No start page is in the scope.
        """
        found = [seed for seed in seeds if self.admits(seed)]
        if seeds and not found:
            raise UserError(
                f"none of the {len(seeds)} start pages is in the scope of the crawl (the first is "
                f"{seeds[0]}): change -a hosts or -a deny, or name other start pages"
            )
        return found


def scope_identity(config: CrawlConfig) -> Mapping[str, str]:
    """Return the settings of scope and discovery that must not change when a crawl is resumed."""
    return {
        "hosts": _shorten(config.hosts),
        "deny": _shorten(config.deny),
        "languages": ",".join(config.languages),
        "discover": ",".join(config.discover),
        "max_depth": "" if config.max_depth is None else str(config.max_depth),
    }


def _shorten(names: Sequence[str]) -> str:
    text = ",".join(sorted(names))
    if len(text) <= _MAX_SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:_MAX_SHOWN]}... ({len(names)}, {digest})"


# file name extensions of archives, media, fonts, documents and data
_FILE_EXTENSIONS = frozenset(
    """
    7z apk bz2 dmg exe gz lz msi rar tar tgz txz xz z zst
    aac avi avif bmp eps flac flv gif heic ico jpeg jpg m4a m4v mkv mp3 mp4 mpeg mpg oga
    ogg ogv otf png ps psd svg tif tiff ttf wav webm webp wma wmv woff woff2
    docx dvi epub odp ods odt pdf ppsx ppt pptx rtf xls xlsx xpi
    """.split()  # noqa: SIM905 - a hundred quoted lines are harder to read
)
# Extensions that names of pages also end with, as in /wiki/Node.js and /people/john.doc. They
# belong to files in folders of assets. Elsewhere, the download ends if the headers name a file.
_NAME_EXTENSIONS = frozenset(
    "bib bin cab css csv dat deb doc iso jar js json mat mid mov rpm sql swf tex zip".split()  # noqa: SIM905
)
_ASSET_FOLDERS = frozenset(
    """
    _static asset assets attachment attachments bower_components css dist download downloads
    file files js lib media node_modules script scripts static style styles theme themes upload
    uploads vendor wp-content wp-includes
    """.split()  # noqa: SIM905
)
_EXTENSIONS = _FILE_EXTENSIONS | _NAME_EXTENSIONS
_MAX_EXTENSION = max(map(len, _EXTENSIONS))


def has_allowed_length(url: str) -> bool:
    """Tell whether a normalised URL is short enough to be queued."""
    return len(url) <= MAX_URL_LENGTH


def can_be_page(url: str, *, pdf: bool = False) -> bool:
    """Tell whether a normalised URL can be a page, judging by its file extension and its folders.

    Parameters
    ----------
    pdf : bool
        Accept PDF, too.
    """
    if len(url) > MAX_URL_LENGTH:
        return False
    dot = url.rfind(".", -_MAX_EXTENSION - 1)
    extension = "" if dot < 0 else url[dot + 1 :].lower()
    if extension not in _EXTENSIONS or (pdf and extension == "pdf") or "?" in url:
        return True
    *folders, name = url.lower().split("/")[3:]
    if extension in _NAME_EXTENSIONS:
        return _ASSET_FOLDERS.isdisjoint(folders)
    # a name of a page has no stem, as in /wiki/.gz, or a namespace, as in /wiki/File:Cat.jpg
    return name == f".{extension}" or ":" in name or "%3a" in name


def nofollow_urls(view: PageView) -> frozenset[str]:
    """Return the link targets of a page to which only links marked ``nofollow`` lead."""
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
    """Return the URLs to which the followed links of a page lead, by position of the link.

    Parameters
    ----------
    urls : sequence of (str or None)
        Target of each link; None for a target that the crawl may not fetch.
    any_media, pdf : bool
        Follow URLs with any file name extension, or with the extension of PDF.
    obey_robots : bool
        Skip links with ``rel=nofollow``, and all links of a page with ``nofollow`` in
        ``<meta name=robots>`` or ``X-Robots-Tag``.
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


def read_seeds(source: str, topics: tuple[str, ...], name: str = "seeds") -> list[str]:
    """Read pages from the value of the argument ``seeds`` or ``targets``.

    Parameters
    ----------
    source : str
        URLs separated by commas or blanks; or a file with one URL a line, in which blank lines
        and lines that start with ``#`` are skipped; or a CSV file with the columns ``topic`` and
        ``url``; or a topic definition (``.toml``). A file ``models/...`` can be part
        of the package.
    topics : tuple of str
        Topics whose rows of a CSV file are read, including their subtopics; without topics, all
        rows must have the same topic.
    name : str
        Name of the argument, and of the key in a topic definition.

    Returns
    -------
    list of str
        Normalised URLs without duplicates, in the original order.

    Raises
    ------
    UserError
        The file is missing, has no URL for the topics, or has an invalid URL.
    """
    if _HTTP.match(source):
        return _check_urls([(part, name) for part in split_urls(source)])
    if source.endswith(".toml"):
        defined: tuple[str, ...] = getattr(read_definition(source), name)
        if not defined:
            raise UserError(
                f"{name}: the topic definition {source} has no {name}: add {name} = [...] to the "
                "file"
            )
        return _check_urls([(url, f"{source}, {name}") for url in defined])
    path = Path(source) if Path(source).exists() else model_file(source)
    if path is None:
        raise UserError(
            f"{name}: {_shown(source)} is neither a file nor an http(s) URL: check the path"
        )
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    rows = csv_reader(text.splitlines())
    if "url" in (rows.fieldnames or ()):
        found = _from_csv(rows, source, topics, name)
    else:
        found = [
            (line, f"{source}, line {number}") for number, line in numbered_lines(text).items()
        ]
    if not found:
        raise UserError(f"{name}: {source} contains no URL: add one URL a line")
    return _check_urls(found)


def _from_csv(
    rows: csv.DictReader[str], source: str, topics: tuple[str, ...], name: str
) -> list[tuple[str, str]]:
    of_topics = "topic" in (rows.fieldnames or ())
    numbered = [*numbered_rows(rows, source)]
    if of_topics and not topics:
        topics = tuple(sorted({normalise(row["topic"] or "") for _, row in numbered}))
        if len(topics) > 1:
            raise UserError(
                f"{name}: {source} has rows of {len(topics)} topics ({', '.join(topics[:2])}, "
                "...): remove the rows of other topics, or the column topic"
            )
    found = [
        (row["url"] or "", f"{source}, row {number}")
        for number, row in numbered
        if not of_topics or lies_under(normalise(row["topic"] or ""), topics)
    ]
    if numbered and not found:
        raise UserError(
            f"{name}: {source} has no row for the topic {', '.join(topics)}: add rows, or change "
            "-a topic"
        )
    return found


def _shown(text: str) -> str:
    """Return a shortened text without a possible password, for a message."""
    _, at, rest = text.rpartition("@")
    text = f"...{at}{rest}" if at else text
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")


def _check_urls(found: list[tuple[str, str]]) -> list[str]:
    seeds: dict[str, None] = {}
    for text, where in found:
        url = parse_url(text.strip(), f"{where}: {_shown(text.strip())}")
        if not has_allowed_length(url):
            raise UserError(
                f"{where}: {_shown(url)} has {len(url):,} characters, more than "
                f"{MAX_URL_LENGTH:,}: remove this URL"
            )
        seeds[url] = None
    return list(seeds)
