"""Parses user input (setting values, CSV tables, TOML, URL lists); reports one-line errors."""

from __future__ import annotations

import csv
import gzip
import io
import ipaddress
import json
import math
import re
import string
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar, cast, get_type_hints
from urllib.parse import quote

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.urls import host, normalize

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic_core import CoreSchema


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_N = TypeVar("_N", int, float)

_OFF, _ON = ("0", "false"), ("1", "true")


_GZIP_MAGIC = b"\x1f\x8b"
_STORE_MAGIC = b"SQLite format 3\0"
_BESIDE_KEYS = re.compile(r"[^\w \t.\"'-]+")
_MAX_KEY_PARTS = 64  # of a dotted key; the parsing time grows with the square of the parts
MAX_PATTERNS = 1000  # of a list; the crawl searches every URL for each pattern
_NEXT_URL = re.compile(r",\s*(?=https?:|www\.)|,(?=\s)|\s(?=https?:|www\.)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_FILE = re.compile(r"^[^*]+\.(?:txt|csv|tsv|lst|list)$")  # usual file names of lists
_REGEX_SYNTAX = re.compile(r"\\|\||\^|\.[*+]")


@dataclass(frozen=True)
class ValueParser(Generic[T_co]):
    """Converts a text or an object of a settings module to a typed value.

    Attributes
    ----------
    expected : str
        Description of accepted values; completes "NAME must be ...".
    convert : callable
        Returns the value; raises ValueError or TypeError for values it does not accept.
    """

    expected: str
    convert: Callable[[Any], T_co]

    def parse(self, name: str, written: object) -> T_co:
        """Parse the value that a user wrote for the setting or option `name`.

        Raises
        ------
        UserError
            The value is not accepted.
        """
        try:
            return self.convert(written)
        except (TypeError, ValueError):
            raise UserError(f"{name} must be {self.expected}, not {written!r}") from None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Make pydantic parse a field of the type ``Annotated[T, parser]``."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - slow to import

        def convert(written: object) -> T_co:
            try:
                return self.convert(written)
            except (TypeError, ValueError):
                raise PydanticCustomError(
                    "reader", "must be {expected}", {"expected": self.expected}
                ) from None

        return core_schema.no_info_plain_validator_function(convert)


def validate(
    kind: type[T],
    given: Mapping[str, Any],
    where: str = "",
    named: Mapping[str, str] | None = None,
) -> T:
    """Return an instance of the class `kind` with a user's values for its fields.

    Parameters
    ----------
    kind : type
        A pydantic model, or a dataclass whose types pydantic can check.
    given : mapping of str to Any
    where : str
        Source of the values, such as a file, for messages.
    named : mapping of str to str, optional
        Names of fields in messages, where they differ.

    Raises
    ------
    UserError
        A field does not exist, is missing, or has an invalid value.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import

    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        field = str(wrong["loc"][0])
    if wrong["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        hint = suggest_name(field, get_type_hints(kind))
        raise UserError(f"{where} has the unknown entry {field!r}: {hint}")
    if wrong["type"] == "missing":
        raise UserError(f"{where} lacks the entry {field!r}: add it")
    name = (named or {}).get(field, f"{where}: {field}" if where else field)
    raise UserError(f"{name} {wrong['msg']}, not {wrong['input']!r}")


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message: the most similar known name, or all names."""
    names = [*known]
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(names)}"


def _flag(written: object) -> bool:
    text = str(written).lower()
    if text not in (*_ON, *_OFF):
        raise ValueError
    return text in _ON


def _text(written: object) -> str:
    return ",".join(map(str, written)) if isinstance(written, list | tuple) else str(written)


def _networks(written: Any) -> Networks:
    if isinstance(written, Networks):
        return written
    names = written.split(",") if isinstance(written, str) else list(written)
    return Networks.parse(name for name in names if name != "")


def _address(written: object) -> str:
    return str(ipaddress.ip_address(str(written)))


FLAG = ValueParser("0 or 1", _flag)
TEXT = ValueParser("a text", _text)  # a list becomes one text, separated by commas
IP_ADDRESS = ValueParser("an IP address", _address)
NETWORKS = ValueParser("addresses and networks, separated by commas", _networks)


def whole_number(lowest: int = 0, highest: int | None = None) -> ValueParser[int]:
    """Return a parser of whole numbers from `lowest` to `highest`."""

    def convert(written: object) -> int:
        text = str(written).strip()
        if not text.isdecimal():
            raise ValueError
        return _within(int(text), lowest, highest)

    return ValueParser(f"a whole number{_range(lowest, highest)}", convert)


def number(lowest: float = 0, highest: float | None = None) -> ValueParser[float]:
    """Return a parser of finite numbers from `lowest` to `highest`."""

    def convert(written: Any) -> float:
        return _within(float(written), lowest, highest)

    return ValueParser(f"a number{_range(lowest, highest)}", convert)


def one_of(*choices: str) -> ValueParser[str]:
    """Return a parser that accepts one of `choices`."""

    def convert(written: object) -> str:
        return choices[choices.index(str(written))]

    return ValueParser(f"one of {', '.join(choices)}", convert)


def json_object(example: str) -> ValueParser[Mapping[str, Any]]:
    """Return a parser of dictionaries and JSON objects; its error message shows `example`."""

    def convert(written: Any) -> Mapping[str, Any]:
        found = json.loads(written) if isinstance(written, str) else written
        if not isinstance(found, Mapping):
            raise TypeError
        return found

    return ValueParser(f"a JSON object, as in '{example}'", convert)


def file_name(standard: str, ending: str = "", *words: str) -> ValueParser[str | None]:
    """Return a parser of an optional file name; for the value 0, the parser returns None.

    Parameters
    ----------
    standard : str
        File name for the value 1.
    ending : str
        Required ending of every file name.
    *words : str
        Further accepted values.
    """

    def convert(written: object) -> str | None:
        text = str(written)
        if text.lower() in (*_OFF, ""):
            return None
        if text.lower() in _ON:
            return standard
        if text not in words and not text.endswith(ending):
            raise ValueError
        return text

    needed = f" that ends in {ending}" if ending else ""
    return ValueParser(f"{', '.join(['0', '1', *words])} or the name of a file{needed}", convert)


def _range(lowest: float, highest: float | None) -> str:
    return f", {lowest:g} or more" if highest is None else f" from {lowest:g} to {highest:g}"


def _within(value: _N, lowest: float, highest: float | None) -> _N:
    if not lowest <= value <= (math.inf if highest is None else highest) or math.isinf(value):
        raise ValueError
    return value


@contextmanager
def open_maybe_gzip(path: str | Path) -> Iterator[BinaryIO]:
    """Open a plain or gzipped file for reading; detect gzip by the first bytes.

    Raises
    ------
    UserError
        The file cannot be read, or its gzip data is damaged.
    """
    try:
        with Path(path).open("rb") as raw:
            packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            raw.seek(0)
            if packed:
                with gzip.open(raw) as unpacked:
                    yield cast("BinaryIO", unpacked)
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{path} is a damaged gzip file ({error}): download or compress it again"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def is_sqlite_file(path: Path) -> bool:
    """Return whether a path is an SQLite database, such as a crawl store or a knowledge file."""
    if not path.is_file():  # reading from a terminal or a pipe would block
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_STORE_MAGIC)) == _STORE_MAGIC
    except OSError:
        return False


def read_text(path: str | Path | Traversable) -> str:
    """Return the text of a file in UTF-8.

    Raises
    ------
    UserError
        The file cannot be read, or has another encoding.
    """
    path = Path(path) if isinstance(path, str) else path
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8 text"
        ) from None


def _unreadable(path: str | Path | Traversable, error: OSError) -> UserError:
    return UserError(f"{path} cannot be read ({error.strerror or error}): check the path")


def numbered_lines(text: str) -> dict[int, str]:
    """Return a dictionary from line numbers (from 1) to stripped lines.

    Blank lines and lines that start with ``#`` are left out.
    """
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), start=1)}
    return {number: line for number, line in lines.items() if line and not line.startswith("#")}


def csv_reader(lines: Iterable[str]) -> csv.DictReader[str]:
    """Return a reader of a CSV table; the column names are the header's names in lower case.

    The separator of the CSV table is the comma, semicolon or tab, whichever is most frequent in
    the header. Spreadsheets of some countries write semicolons.
    """
    lines = iter(lines)
    header = next(lines, "")
    separator = max(",;\t", key=header.count)
    try:
        names = next(csv.reader([header], delimiter=separator), [])
    except csv.Error:  # the line is far too long for a header
        names = []
    return csv.DictReader(lines, [name.strip().lower() for name in names], delimiter=separator)


def numbered_rows(
    rows: csv.DictReader[str], path: str | Path | Traversable
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number (from 1) and the cells of each row of a CSV table.

    Raises
    ------
    UserError
        A row is not CSV, or has more cells than the header.
    """
    try:
        for number, row in enumerate(rows, start=1):
            surplus: Any = row.get(None)
            if any(surplus or ()):
                raise UserError(
                    f"{path}, row {number} has more cells than the header: put cells that "
                    "contain commas in quotes"
                )
            yield number, row
    except csv.Error as error:
        line = rows.line_num + 1  # the reader did not count the header
        raise UserError(
            f"{path}, line {line} is not CSV ({error}): save the table as UTF-8 CSV"
        ) from error


def read_csv_rows(
    path: str | Path, columns: Sequence[str], *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number (from 1) and the cells of each row of a CSV table; skip blank lines.

    Parameters
    ----------
    path : str or Path
        UTF-8 file with a header, plain or gzipped.
    columns : sequence of str
        Required columns, in any order and case; their names are the keys of the cells.
    optional : sequence of str
        Further columns to read; their cells are empty if the table lacks them.

    Raises
    ------
    UserError
        The file cannot be read, is not CSV, or lacks a column; raised while rows are read.
    """
    needed = f"it needs the columns {','.join([*columns, *(f'[{name}]' for name in optional)])}"
    with open_maybe_gzip(path) as source:
        try:
            rows = csv_reader(io.TextIOWrapper(source, encoding="utf-8-sig", newline=""))
            if not rows.fieldnames:
                raise UserError(f"{path} is empty: {needed}")
            if not {name.lower() for name in columns} <= set(rows.fieldnames):
                raise UserError(f"{path} has the columns {','.join(rows.fieldnames)}: {needed}")
            names = [*columns, *optional]
            for number, row in numbered_rows(rows, path):
                yield number, {name: (row.get(name.lower()) or "").strip() for name in names}
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path} is not UTF-8 text ({error.reason}): save the table as UTF-8 CSV"
            ) from error


def read_regular_text(path: Path) -> str:
    """Return the text of a regular file, and refuse other kinds of files.

    Raises
    ------
    OSError
        The file cannot be read.
    UserError
        The path is not a regular file.
    ValueError
        The text is not UTF-8.
    """
    try:
        return read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = "it is not UTF-8 text; save it as UTF-8"
        raise ValueError(msg) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises
    ------
    ValueError
        The text is not TOML, or is nested far too deep; the message describes the problem.
    """
    if any(part.count(".") > _MAX_KEY_PARTS for part in _BESIDE_KEYS.split(text)):
        msg = f"a key of more than {_MAX_KEY_PARTS} parts"
        raise ValueError(msg)
    try:
        return tomllib.loads(text)
    except RecursionError:
        msg = "nested too deep"
        raise ValueError(msg) from None


def split_urls(text: str) -> list[str]:
    """Split a list of URLs at blanks and at commas between URLs; keep commas within a URL."""
    return [part.strip() for part in _NEXT_URL.split(text)]


class HostSet:
    """A set of hosts that includes all their subdomains: ``a.example`` includes ``www.a.example``.

    Parameters
    ----------
    names : iterable of str
        Hosts as `HOSTS` returns them; a name without a port includes all ports.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._most_dots = max((name.count(".") for name in self._names), default=0)

    def has(self, name: str) -> bool:
        """Return whether the set includes a host, which may have a port."""
        bare, _, port = name.rpartition(":")
        named = (name, bare) if port.isdecimal() and not bare.endswith(":") else (name,)
        return any(self._has(each.rstrip(".")) for each in named)

    def _has(self, name: str) -> bool:
        labels = name.rsplit(".", self._most_dots + 1)
        return any(".".join(labels[at:]) in self._names for at in range(len(labels)))


class UrlPatterns:
    """Patterns that match parts of URLs: ``*`` matches any characters, ``$`` the end of the URL.

    The wildcards are those of robots.txt (RFC 9309, section 2.2.3). Regular expressions are not
    supported, because a page could contain URLs on which backtracking takes minutes. The time to
    match the supported patterns grows only linearly with the length of the URL.

    Parameters
    ----------
    patterns : iterable of str
        Patterns as `URL_PATTERNS` returns them.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [
            ([part for part in each.removesuffix("$").split("*") if part], _is_anchored(each))
            for each in patterns
        ]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, url: str) -> bool:
        """Return whether a normalised URL contains one of the patterns."""
        return any(_contains(url, parts, anchored=anchored) for parts, anchored in self._patterns)


def _is_anchored(pattern: str) -> bool:
    """Return whether the last part of a pattern has to be at the end of a URL."""
    return pattern.endswith("$") and not pattern.endswith("*$")


def _contains(url: str, parts: Sequence[str], *, anchored: bool) -> bool:
    """Return whether the parts follow each other in `url`; one pass, each at its first match."""
    *before, last = parts
    at = 0
    for part in before:
        at = url.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if anchored:
        return url.endswith(last) and len(url) - len(last) >= at
    return url.find(last, at) >= 0


def _entries(written: Any) -> list[str]:
    """Return the entries of a list: a text with commas, a file with one a line, or a Python list.

    Blank lines of a file and lines that start with ``#`` are left out.

    Raises
    ------
    UserError
        The file is empty or cannot be read; or the text looks like the name of a missing file.
    """
    if not isinstance(written, str):
        found = [str(each) for each in written]
    elif "," not in written and written.strip() and Path(written).is_file():
        found = [*numbered_lines(read_text(written)).values()]
        if not found:  # an empty list would mean no limit
            raise UserError(f"{written} has no entries: write one a line, or omit the argument")
    elif "," not in written and _FILE.search(written):
        raise UserError(f"there is no file {written}: for a part of URLs write *{written}")
    else:
        found = written.split(",")
    return [*dict.fromkeys(each.strip() for each in found if each.strip())]


def _hosts(written: Any) -> tuple[str, ...]:
    return tuple(map(_host, _entries(written)))


def _host(written: str) -> str:
    url = None if re.search(r"[/@?#*\\\s]", written) else normalize(f"http://{written}/")
    if url is None:
        raise UserError(
            f"{written!r} is not a host: write it as in www.example.org, without scheme and path; "
            "subdomains are included"
        )
    return host(url).rstrip(".")


def _patterns(written: Any) -> tuple[str, ...]:
    found = _entries(written)
    for each in found:
        if _REGEX_SYNTAX.search(each):
            raise UserError(
                f"{each!r} is a regular expression: write parts of URLs, separated by commas, "
                "with * for any characters and $ for the end of the URL"
            )
        if not each.strip("*$"):
            raise UserError(f"{each!r} matches every URL: write a part that only some URLs have")
    if len(found) > MAX_PATTERNS:
        raise UserError(
            f"{len(found):,} URL patterns are too many, {MAX_PATTERNS:,} are allowed: "
            "combine similar patterns with *"
        )
    return tuple(quote(each, safe=string.punctuation) for each in found)


def _languages(written: Any) -> tuple[str, ...]:
    found = [each.lower() for each in _entries(written)]
    if not all(_LANGUAGE.fullmatch(each) for each in found):
        raise ValueError
    return tuple(found)


HOSTS = ValueParser("hosts, separated by commas, or a file with one a line", _hosts)
URL_PATTERNS = ValueParser(
    "parts of URLs, separated by commas, or a file with one a line", _patterns
)
LANGUAGES = ValueParser("language codes, separated by commas, as in en,de", _languages)


def some_of(*choices: str) -> ValueParser[tuple[str, ...]]:
    """Return a parser of lists of `choices` that removes repeats and sorts by `choices`."""

    def convert(written: Any) -> tuple[str, ...]:
        found = _entries(written)
        if not set(found) <= set(choices):
            raise ValueError
        return tuple(each for each in choices if each in found)

    return ValueParser(f"one or more of {', '.join(choices)}, separated by commas", convert)


class Progress:
    """Receives the progress of a task that reads pages; the base class shows nothing."""

    def start(self, pages: int) -> None:
        """Start a progress bar for a number of pages."""

    def advance(self, pages: int = 1) -> None:
        """Advance the progress bar by a number of pages."""


NO_PROGRESS = Progress()
