"""What users write: values of settings, tables, TOML, lists of URLs, with one-line errors."""

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
from collections.abc import Callable, Mapping
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
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.resources.abc import Traversable

    from pydantic_core import CoreSchema


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_N = TypeVar("_N", int, float)

_OFF, _ON = ("0", "false"), ("1", "true")


_GZIP_MAGIC = b"\x1f\x8b"
_STORE_MAGIC = b"SQLite format 3\0"
_BESIDE_KEYS = re.compile(r"[^\w \t.\"'-]+")
_DEEPEST = 64  # parts of a dotted key; what reading one takes grows with their square
MOST_PATTERNS = 1000  # of a list; each is looked for in every URL
_NEXT_URL = re.compile(r",\s*(?=https?:|www\.)|,(?=\s)|\s(?=https?:|www\.)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_FILE = re.compile(r"^[^*]+\.(?:txt|csv|tsv|lst|list)$")  # what lists are called
_NO_WILDCARD = re.compile(r"\\|\||\^|\.[*+]")  # what regular expressions are written with


@dataclass(frozen=True)
class Reader(Generic[T_co]):
    """Reads what was written, a text or what a settings module holds.

    Attributes
    ----------
    accepts : completes "NAME must be ..."
    value_of : returns the value; raises ValueError or TypeError for what it does not accept
    """

    accepts: str
    value_of: Callable[[Any], T_co]

    def read(self, name: str, written: object) -> T_co:
        """Return the value that a user gave to `name`.

        Raises
        ------
        UserError
            It is not accepted.
        """
        try:
            return self.value_of(written)
        except (TypeError, ValueError):
            raise UserError(f"{name} must be {self.accepts}, not {written!r}") from None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Let pydantic read a field of the type ``Annotated[T, reader]``."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - slow to import

        def value_of(written: object) -> T_co:
            try:
                return self.value_of(written)
            except (TypeError, ValueError):
                raise PydanticCustomError(
                    "reader", "must be {accepts}", {"accepts": self.accepts}
                ) from None

        return core_schema.no_info_plain_validator_function(value_of)


def validated(
    kind: type[T],
    given: Mapping[str, Any],
    where: str = "",
    named: Mapping[str, str] | None = None,
) -> T:
    """Return an instance of `kind` with what a user gave for its fields.

    Parameters
    ----------
    kind : a pydantic model, or a dataclass whose types pydantic can check
    where : what names the values, as a file, for messages
    named : what a field is called in messages, if not by its own name

    Raises
    ------
    UserError
        A field does not exist, is missing, or cannot have its value.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import

    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        field = str(wrong["loc"][0])
    if wrong["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        raise UserError(f"{where} knows no {field!r}: {nearest(field, get_type_hints(kind))}")
    if wrong["type"] == "missing":
        raise UserError(f"{where} does not say {field!r}")
    name = (named or {}).get(field, f"{where}: {field}" if where else field)
    raise UserError(f"{name} {wrong['msg']}, not {wrong['input']!r}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is most like `name`, or at all of them."""
    names = [*known]
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"


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
    return Networks.of(name for name in names if name != "")


def _address(written: object) -> str:
    return str(ipaddress.ip_address(str(written)))


FLAG = Reader("0 or 1", _flag)
TEXT = Reader("a text", _text)  # a list of texts becomes one with commas between
IP_ADDRESS = Reader("an IP address", _address)
NETWORKS = Reader("addresses and networks, with commas between", _networks)


def whole_number(lowest: int = 0, highest: int | None = None) -> Reader[int]:
    """Return a reader of whole numbers from `lowest` to `highest`."""

    def value_of(written: object) -> int:
        text = str(written).strip()
        if not text.isdecimal():
            raise ValueError
        return _within(int(text), lowest, highest)

    return Reader(f"a whole number{_range(lowest, highest)}", value_of)


def number(lowest: float = 0, highest: float | None = None) -> Reader[float]:
    """Return a reader of finite numbers from `lowest` to `highest`."""

    def value_of(written: Any) -> float:
        return _within(float(written), lowest, highest)

    return Reader(f"a number{_range(lowest, highest)}", value_of)


def one_of(*choices: str) -> Reader[str]:
    """Return a reader of one of some words."""

    def value_of(written: object) -> str:
        return choices[choices.index(str(written))]

    return Reader(f"one of {', '.join(choices)}", value_of)


def json_object(example: str) -> Reader[Mapping[str, Any]]:
    """Return a reader of dictionaries, also written as JSON; `example` is one that makes sense."""

    def value_of(written: Any) -> Mapping[str, Any]:
        found = json.loads(written) if isinstance(written, str) else written
        if not isinstance(found, Mapping):
            raise TypeError
        return found

    return Reader(f"a JSON object, as in '{example}'", value_of)


def file_name(standard: str, ending: str = "", *words: str) -> Reader[str | None]:
    """Return a reader of the name of a file that there need not be; None: there is to be none.

    Parameters
    ----------
    standard : the name that 1 stands for
    ending : of every name
    words : what may stand there instead
    """

    def value_of(written: object) -> str | None:
        text = str(written)
        if text.lower() in (*_OFF, ""):
            return None
        if text.lower() in _ON:
            return standard
        if text not in words and not text.endswith(ending):
            raise ValueError
        return text

    needed = f" that ends in {ending}" if ending else ""
    return Reader(f"{', '.join(['0', '1', *words])} or the name of a file{needed}", value_of)


def _range(lowest: float, highest: float | None) -> str:
    return f", {lowest:g} or more" if highest is None else f" from {lowest:g} to {highest:g}"


def _within(value: _N, lowest: float, highest: float | None) -> _N:
    if not lowest <= value <= (math.inf if highest is None else highest) or math.isinf(value):
        raise ValueError
    return value


@contextmanager
def open_source(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; gzip is known by its first bytes, not by the name.

    Raises
    ------
    UserError
        If the file cannot be opened, or, while it is read, proves damaged.
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
        raise UserError(f"{path}: damaged gzip file ({error}); fetch or pack it again") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path}: cannot be read ({reason}); check the path") from error


def is_store(path: Path) -> bool:
    """Tell whether there is a database of SQLite: a crawl, or knowledge."""
    if not path.is_file():  # to read from a terminal or a pipe would wait for somebody
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
        It cannot be read, or is in another encoding.
    """
    path = Path(path) if isinstance(path, str) else path
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path}: cannot be read ({reason}); check the path") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8 text"
        ) from None


def lines_of(text: str) -> dict[int, str]:
    """Return the lines of a list by number, from 1, without blanks around.

    Blank lines and those that begin with ``#`` are passed over.
    """
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), start=1)}
    return {number: line for number, line in lines.items() if line and not line.startswith("#")}


def table_of(lines: Iterable[str]) -> csv.DictReader[str]:
    """Return the rows of a CSV table; the names of its columns are those of its header, in small.

    Cells have commas, semicolons or tabs between them, as spreadsheets of many countries write
    them: whatever the header has most of.
    """
    lines = iter(lines)
    header = next(lines, "")
    between = max(",;\t", key=header.count)
    try:
        names = next(csv.reader([header], delimiter=between), [])
    except csv.Error:  # far too long for one
        names = []
    return csv.DictReader(lines, [name.strip().lower() for name in names], delimiter=between)


def numbered(
    rows: csv.DictReader[str], path: str | Path | Traversable
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with their numbers, from 1.

    Raises
    ------
    UserError
        A row is no CSV, or has cells that no column is for.
    """
    try:
        for number, row in enumerate(rows, start=1):
            surplus: Any = row.get(None)
            if any(surplus or ()):
                raise UserError(
                    f"{path}, row {number}: more cells than the header has; put what has commas "
                    "in it in quotes"
                )
            yield number, row
    except csv.Error as error:
        line = rows.line_num + 1  # of the header, too
        raise UserError(
            f"{path}: line {line} is not CSV ({error}); save the table as UTF-8 CSV"
        ) from error


def read_rows(
    path: str | Path, columns: Sequence[str], *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number, from 1, and the cells of each row of a CSV table; blank lines are none.

    Parameters
    ----------
    path : UTF-8 file with a header, plain or gzipped
    columns : that must be there, in any order and case; their names are the keys of the cells
    optional : that are read, too; empty where they are not there

    Raises
    ------
    UserError
        While rows are read: the file is none, or no CSV, or lacks a column.
    """
    needed = f"it needs the columns {','.join([*columns, *(f'[{name}]' for name in optional)])}"
    with open_source(path) as source:
        try:
            rows = table_of(io.TextIOWrapper(source, encoding="utf-8-sig", newline=""))
            if not rows.fieldnames:
                raise UserError(f"{path}: empty file; {needed}")
            if not {name.lower() for name in columns} <= set(rows.fieldnames):
                raise UserError(f"{path}: has the columns {','.join(rows.fieldnames)}; {needed}")
            names = [*columns, *optional]
            for number, row in numbered(rows, path):
                yield number, {name: (row.get(name.lower()) or "").strip() for name in names}
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}: not UTF-8 text ({error.reason}); save the table as UTF-8 CSV"
            ) from error


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    OSError
        It cannot be read.
    UserError
        It is no plain file.
    ValueError
        It is not in UTF-8.
    """
    try:
        return read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = "not UTF-8 text; save it as UTF-8"
        raise ValueError(msg) from None


def read_toml(text: str) -> dict[str, Any]:
    """Read a document.

    Raises
    ------
    ValueError
        It is no TOML, or nested deeper than anything that makes sense; says what is wrong.
    """
    if any(part.count(".") > _DEEPEST for part in _BESIDE_KEYS.split(text)):
        msg = f"a key of more than {_DEEPEST} parts"
        raise ValueError(msg)
    try:
        return tomllib.loads(text)
    except RecursionError:
        msg = "nested too deep"
        raise ValueError(msg) from None


def split_urls(text: str) -> list[str]:
    """Return what is written with commas or blanks between; a comma within a URL belongs to it."""
    return [part.strip() for part in _NEXT_URL.split(text)]


class Hosts:
    """Some hosts, and all hosts below them: ``a.example`` is ``www.a.example``, too.

    Parameters
    ----------
    names : as `HOSTS` reads them; one with a port is that port alone, one without is any
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._most_dots = max((name.count(".") for name in self._names), default=0)

    def has(self, name: str) -> bool:
        """Tell whether a host is among them; with its port, if that is not the scheme's own."""
        bare, _, port = name.rpartition(":")
        named = (name, bare) if port.isdecimal() and not bare.endswith(":") else (name,)
        return any(self._has(each.rstrip(".")) for each in named)

    def _has(self, name: str) -> bool:
        labels = name.rsplit(".", self._most_dots + 1)
        return any(".".join(labels[at:]) in self._names for at in range(len(labels)))


class UrlPatterns:
    """Finds parts of URLs: ``*`` stands for anything, ``$`` at the end for the end of the URL.

    Wildcards are those of robots.txt (RFC 9309, section 2.2.3). They are no regular expressions:
    whoever writes a page writes the URLs that they are held against, and could make an expression
    that goes back and forth take minutes. Here the time grows with the URL's length.

    Parameters
    ----------
    patterns : as `URL_PATTERNS` reads them
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [
            ([part for part in each.removesuffix("$").split("*") if part], _ends(each))
            for each in patterns
        ]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, url: str) -> bool:
        """Tell whether one of them is found in a normalised URL."""
        return any(_found(parts, url, ends=ends) for parts, ends in self._patterns)


def _ends(pattern: str) -> bool:
    """Tell whether the last part is to be at the end of a URL."""
    return pattern.endswith("$") and not pattern.endswith("*$")


def _found(parts: Sequence[str], url: str, *, ends: bool) -> bool:
    """Tell whether the parts follow each other in `url`: each where it comes first, so once."""
    *before, last = parts
    at = 0
    for part in before:
        at = url.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if ends:
        return url.endswith(last) and len(url) - len(last) >= at
    return url.find(last, at) >= 0


def _entries(written: Any) -> list[str]:
    """Return what a user lists: with commas, in a file with one a line, or in a settings module.

    Blank lines of a file are skipped, and those that begin with ``#``.

    Raises
    ------
    UserError
        There is such a file, and it cannot be read, or nothing is in it; or there is none, and
        it is called like one.
    """
    if not isinstance(written, str):
        found = [str(each) for each in written]
    elif "," not in written and written.strip() and Path(written).is_file():
        found = [*lines_of(read_text(written)).values()]
        if not found:  # no limit at all is not what a list is for
            raise UserError(f"{written}: nothing in it; write one a line, or leave it out")
    elif "," not in written and _FILE.search(written):
        raise UserError(f"there is no file {written}; as a part of URLs it is *{written}")
    else:
        found = written.split(",")
    return [*dict.fromkeys(each.strip() for each in found if each.strip())]


def _hosts(written: Any) -> tuple[str, ...]:
    return tuple(map(_host, _entries(written)))


def _host(written: str) -> str:
    url = None if re.search(r"[/@?#*\\\s]", written) else normalize(f"http://{written}/")
    if url is None:
        raise UserError(
            f"{written!r} is no host: write it as in www.example.org, without scheme and path; "
            "hosts below it are in"
        )
    return host(url).rstrip(".")


def _patterns(written: Any) -> tuple[str, ...]:
    found = _entries(written)
    for each in found:
        if _NO_WILDCARD.search(each):
            raise UserError(
                f"{each!r} is a regular expression: write a part of the URL, with * for anything "
                "and $ for its end, several with commas between"
            )
        if not each.strip("*$"):
            raise UserError(f"{each!r} stands for every URL: write a part of those that are meant")
    if len(found) > MOST_PATTERNS:
        raise UserError(
            f"{len(found):,} parts of URLs are too many: no more than {MOST_PATTERNS:,} are "
            "looked for in every URL; put those with something in common together, with *"
        )
    return tuple(quote(each, safe=string.punctuation) for each in found)


def _languages(written: Any) -> tuple[str, ...]:
    found = [each.lower() for each in _entries(written)]
    if not all(_LANGUAGE.fullmatch(each) for each in found):
        raise ValueError
    return tuple(found)


HOSTS = Reader("hosts, with commas between, or a file with one a line", _hosts)
URL_PATTERNS = Reader("parts of URLs, with commas between, or a file with one a line", _patterns)
LANGUAGES = Reader("codes of languages, with commas between, as in en,de", _languages)


def some_of(*choices: str) -> Reader[tuple[str, ...]]:
    """Return a reader of some of some words, each once, in the order of `choices`."""

    def value_of(written: Any) -> tuple[str, ...]:
        found = _entries(written)
        if not set(found) <= set(choices):
            raise ValueError
        return tuple(each for each in choices if each in found)

    return Reader(f"one or more of {', '.join(choices)}, with commas between", value_of)


class Progress:
    """Is told how many pages will be read, and of every few that were; this one in vain."""

    def start(self, pages: int) -> None:
        """Learn how many pages will be read."""

    def advance(self, pages: int = 1) -> None:
        """Learn that some were read."""


SILENT = Progress()
