"""Parses robots rules, such as noindex, in pages and in X-Robots-Tag header fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

DEFAULT_AGENT = "focuscrawl"  #: product token of the default ``USER_AGENT``

_MAX_LENGTH = 20_000  # characters of a header field or element that are read

# RFC 9309 section 2.2.1 allows letters, "-" and "_"; many names also have digits.
_PRODUCT_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_BROWSER = re.compile(r"Mozilla/\S+\s*\(compatible;\s*", re.IGNORECASE)

# A word of a date, such as "Wed", "03", "15:00:00" or "GMT", but not the name of a crawler.
# Possessive quantifiers prevent backtracking, which would take quadratic time.
_DATE_WORD = r"""(?:
    [+-]?\d[\w.+-]*+ (?: :\d[\w.+-]*+ )*+
    | (?: mon|tue|wed|thu|fri|sat|sun
        | jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec ) [a-z]*+ \.?
    | (?: [ap]\.?m | gmt | utc? | z | [a-z]{0,2}[sd]t | ce?t ) \b \.?
) (?! \s*+: )"""
# A rule with a value, or a word that may be the name of a crawler
_RULE = re.compile(
    rf"""(unavailable_after | max-[a-z-]++) \s*+ [:=] \s*+
            ( {_DATE_WORD} (?:[\s,]++ {_DATE_WORD})* | [\w-]++ )?
        | (\* | [\w./-]++) (\s*+ :)?""",
    re.VERBOSE,
)
# Rules without a value. Any other word before a colon is the name of a crawler.
_PLAIN_RULES = frozenset(
    {"all", "follow", "index", "noarchive", "nofollow", "noindex", "none", "nosnippet"}
)


def product_token(agent: str | bytes) -> str:
    """Return the name by which robots.txt refers to a user agent, in lower case.

    Parameters
    ----------
    agent : a ``User-Agent`` header, or the value of a ``user-agent`` line; the product token is
        its first word, or the first word after ``Mozilla/5.0 (compatible;``

    Returns
    -------
    The product token without version; "" if `agent` has none.
    """
    agent = (agent.decode("latin-1") if isinstance(agent, bytes) else agent).strip()
    browser = _BROWSER.match(agent)
    token = _PRODUCT_TOKEN.match(agent, browser.end() if browser else 0)
    return token[0].lower() if token else ""


def read_robots_rules(texts: Iterable[str], agent: str = DEFAULT_AGENT) -> tuple[bool, bool]:
    """Return whether rules forbid indexing a page, and whether rules forbid following its links.

    Parameters
    ----------
    texts : X-Robots-Tag header fields and contents of ``meta`` elements; the strictest counts
    agent : product token of the crawler, in lower case; rules for other crawlers are ignored
    """
    found = [_read_text(text[:_MAX_LENGTH], agent) for text in texts]
    return any(noindex for noindex, _ in found), any(nofollow for _, nofollow in found)


@lru_cache(maxsize=64)  # few different texts are common
def _read_text(text: str, agent: str) -> tuple[bool, bool]:
    rules = {rule for name, rule in split_rules(text) if name in ("", agent)}
    none = "none" in rules
    return none or "noindex" in rules, none or "nofollow" in rules


def split_rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield the robots rules of a header field or a ``meta`` element, in lower case.

    Robots rules are separated by commas, semicolons or white space. After the name of a crawler
    and a colon, all rules up to the next name are for that crawler.

    Yields
    ------
    The product token of the crawler, "" for all crawlers; and the rule with its value.
    """
    agent = ""
    for found in _RULE.finditer(text[:_MAX_LENGTH].lower()):
        rule, value, word, colon = found.groups()
        if rule is not None:
            yield agent, f"{rule}: {value}" if value else rule
        elif colon and word not in _PLAIN_RULES:
            agent = "" if word in ("*", "robots") else product_token(word)
        else:
            yield agent, word
